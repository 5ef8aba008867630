"""The descriptors 0 and 1 while an editor is at their other ends: nothing but the protocol gets there.

Tools, libraries in C and their processes write to the descriptor 1 and read from 0, whatever Python's
`sys.stdout` is. So the pipes leave these numbers: what is written to 1 goes to standard error, and 0 is
empty. Their new numbers are not inherited by any process.
"""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress

from swink.errors import MisuseError


@contextmanager
def claimed_descriptors() -> Generator[tuple[int, int], None, None]:
    """The pipes to read from and to write to; at the end they are 0 and 1 again."""
    try:
        source, sink = os.dup(0), os.dup(1)
    except OSError as error:
        raise MisuseError("swink acp needs standard input and output, which are closed here") from error
    _flush()
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        os.dup2(nothing, 0)
        try:
            os.dup2(2, 1)
        except OSError:  # standard error is closed
            os.dup2(nothing, 1)
        yield source, sink
    finally:
        _flush()
        os.dup2(source, 0)
        os.dup2(sink, 1)
        for descriptor in (nothing, source, sink):
            os.close(descriptor)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
