"""Locks on files that threads and other processes respect, on POSIX and on Windows."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
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


@contextmanager
def alone(path: str | os.PathLike[str]) -> Generator[None]:
    """Hold a lock file, made for the purpose and removed at the end: one holder at a time, among all threads and processes."""
    while True:
        with open(path, "a+b", opener=_private) as file, locked(file):
            if not _is(file, path):
                continue  # the holder before has removed it: others will wait for the new one
            try:
                yield
            finally:
                with suppress(OSError):  # Windows keeps files that are open
                    os.unlink(path)
            return


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _is(file: BinaryIO, path: str | os.PathLike[str]) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False
