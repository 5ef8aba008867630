"""Standard output and standard error, and every way in which writing to them can fail.

the reader closed the pipe    the command ends quietly, with exit code 141
no space, closed, ...         the command ends with exit code 1 and one line that says why
standard error fails          that cannot be reported; the command goes on
"""

import errno
import io
import os
import select
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from typing_extensions import Buffer

from swink.app.cli.terminal import say

FAILED, UNREAD = 1, 141


_output: "StandardStream | None" = None


class OutputFailed(Exception):
    """Nothing more can be written to standard output."""


class StandardStream(io.RawIOBase):
    """A file descriptor to write to; after the first failure, which is kept, everything goes nowhere."""

    def __init__(self, descriptor: int, *, is_vital: bool) -> None:
        self._descriptor = descriptor
        self.is_vital = is_vital
        self.failure: OSError | None = None
        self.ends_a_line = True

    def move(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        return True

    def check(self) -> None:
        """Raise `OutputFailed` if it is closed."""
        try:
            os.write(self._descriptor, b"")
        except OSError as error:
            self.failure = error
            raise OutputFailed(_explain(error)) from error

    def write(self, data: Buffer, /) -> int:
        """Write everything; raises `OutputFailed` the first time that cannot be."""
        view = memoryview(data).cast("B")
        done = 0
        while done < len(view) and self.failure is None:
            try:
                done += os.write(self._descriptor, view[done:])
                self.ends_a_line = view[done - 1] == 10
            except BlockingIOError:  # another process made the pipe non-blocking
                select.select([], [self._descriptor], [])
            except OSError as error:
                self.failure = error
                if self.is_vital:
                    raise OutputFailed(_explain(error)) from error
        return len(view)


def install_output() -> None:
    """Replace the standard streams by ones of this module, except those that a caller has replaced."""
    global _output
    if sys.__stdin__ is None:  # closed: it reads as empty
        nothing = os.open(os.devnull, os.O_RDONLY)
        sys.stdin = open(nothing, encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is sys.__stderr__:
        sys.stderr = _text_stream(StandardStream(2, is_vital=False), sys.__stderr__)
    if sys.stdout is sys.__stdout__:
        _output = StandardStream(1, is_vital=True)
        sys.stdout = _text_stream(_output, sys.__stdout__)


def check_output() -> None:
    """Raise `OutputFailed` if standard output is closed, before anything is paid for."""
    if _output is not None:
        _output.check()


def claim_stdout() -> Callable[[bytes], None]:
    """Standard output for one writer of whole lines; what tools and their processes print goes to stderr."""
    output = _output
    if output is None:  # a stream of the caller's
        return lambda line: print(line.decode(), end="", flush=True)
    sys.stdout.flush()
    output.move(os.dup(output.fileno()))  # which processes do not inherit
    os.dup2(2, 1)
    sys.stdout = _text_stream(StandardStream(1, is_vital=False), sys.__stdout__)

    def write(line: bytes) -> None:
        output.write(line if output.ends_a_line else b"\n" + line)

    return write


def finish_output(code: int) -> int:
    """Write what is still held back; the exit code of the command, given its own."""
    with suppress(OutputFailed):
        sys.stdout.flush()
    failure = None if _output is None else _output.failure
    if failure is None or code > 128:
        return code
    if isinstance(failure, BrokenPipeError):
        return UNREAD
    say(_explain(failure), "error")
    return FAILED


def _explain(failure: OSError) -> str:
    why = "it is closed" if failure.errno == errno.EBADF else failure.strerror or str(failure)
    return f"cannot write the output: {why}"


def _text_stream(output: StandardStream, before: TextIO | None) -> TextIO:
    """Text for people: characters that the encoding lacks are replaced."""
    encoding = getattr(before, "encoding", None) or "utf-8"
    by_line = not output.is_vital or output.isatty()
    return io.TextIOWrapper(io.BufferedWriter(output), encoding, "replace", line_buffering=by_line)
