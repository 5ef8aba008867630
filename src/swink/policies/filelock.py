"""A lock on an open file that threads and other processes respect, on POSIX and on Windows."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import BinaryIO

if sys.platform == "win32":
    import msvcrt

    @contextmanager
    def locked(file: BinaryIO) -> Generator[None]:
        """Hold the file alone; every holder must have opened it by itself."""
        position = 1 << 40  # far past the end: Windows locks bytes, and these are nobody's
        file.seek(position)
        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
        try:
            yield
        finally:
            file.flush()
            file.seek(position)
            msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    @contextmanager
    def locked(file: BinaryIO) -> Generator[None]:
        """Hold the file alone; every holder must have opened it by itself."""
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        try:
            yield
        finally:
            file.flush()
            fcntl.flock(file.fileno(), fcntl.LOCK_UN)
