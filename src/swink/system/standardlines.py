"""Standard input and output as a pair of pipes that nothing but a protocol uses.

claim_lines     takes the descriptors 0 and 1: what tools, libraries and processes print goes to stderr
lines           what comes, line by line; a read that waits for a client is nobody's to wait for
write           what goes out, off the event loop, whole lines in the order of the calls
"""

import os
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager, suppress
from typing import Any

from swink.system.threads import Serial, begin, outcome_of, start_thread

LONGEST = 64 << 20
"""Bytes of a line; what is longer is left out."""
_CHUNK = 1 << 16


class StandardLines:
    """The claimed streams; made by `claim_lines`."""

    def __init__(self, source: int, sink: int, longest: int = LONGEST) -> None:
        self._source, self._sink, self._longest = source, sink, longest
        self._writing = Serial()
        self.is_gone = False
        """Whether nobody reads what is written."""

    async def lines(self) -> AsyncGenerator[bytes | None, None]:
        """Each line without its end, None for one that is too long; a last one without an end is dropped."""
        line = bytearray()
        is_too_long = False
        while chunk := await self._read():
            *ended, rest = chunk.split(b"\n")
            for piece in ended:
                line += piece
                yield None if is_too_long or len(line) > self._longest else bytes(line)
                line.clear()
                is_too_long = False
            line += rest
            if len(line) > self._longest:
                line.clear()
                is_too_long = True

    async def write(self, line: bytes) -> None:
        """Write a line, which has its end; without effect once nobody reads."""
        if not self.is_gone:
            await self._writing.call(self._write, line)

    async def _read(self) -> bytes:
        # A thread that nobody waits for: only the client can end the read.
        try:
            return outcome_of(await begin(start_thread, os.read, self._source, _CHUNK))
        except OSError:
            return b""

    def _write(self, line: bytes) -> None:
        view = memoryview(line)
        try:
            while view:
                view = view[os.write(self._sink, view) :]
        except OSError:
            self.is_gone = True


@contextmanager
def claim_lines(longest: int = LONGEST) -> Generator[StandardLines, None, None]:
    """The standard streams while the block runs; meanwhile 0 is empty, and 1 is standard error."""
    _flush()
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    reconfigure: Any = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(line_buffering=True)  # what is printed is seen when it is printed
    try:
        yield StandardLines(source, sink, longest)
    finally:
        _flush()
        os.dup2(source, 0)
        os.dup2(sink, 1)
        os.close(sink)  # the other one may still be read by a thread


def _flush() -> None:
    with suppress(OSError, ValueError):
        sys.stdout.flush()
