"""Locks on files that threads and other processes respect, on POSIX and on Windows."""

import os
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import BinaryIO


@contextmanager
def locked(
    file: BinaryIO, within: float | None = None, *, waiting: Callable[[], object] | None = None
) -> Generator[None]:
    """Hold the lock of an open file; each holder must have opened the file itself.

    Raises TimeoutError after `within` seconds. `waiting` is called before each pause, and may raise.
    """
    deadline, pause = time.monotonic() + (within if within is not None else float("inf")), 0.001
    while not _take(file):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{file.name} was locked by another program for {within:g} s")
        if waiting is not None:
            waiting()
        time.sleep(pause)
        pause = min(2 * pause, 0.05)
    try:
        yield
    finally:
        file.flush()
        _free(file)


@contextmanager
def alone(path: str | os.PathLike[str]) -> Generator[None]:
    """Hold a lock file, created here and removed at the end: one holder among all threads and processes."""
    while True:
        with open(path, "a+b", opener=_private) as file, locked(file):
            if not is_at(file, path):
                continue  # the previous holder has removed this one: others wait for a new one
            try:
                yield
            finally:
                with suppress(OSError):  # Windows keeps files that are open
                    os.unlink(path)
            return


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def is_at(file: BinaryIO, path: str | os.PathLike[str]) -> bool:
    """Whether an open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    _POSITION = 1 << 40  # Windows locks bytes: one far past the end of the file, which nobody reads

    def _take(file: BinaryIO) -> bool:
        file.seek(_POSITION)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _free(file: BinaryIO) -> None:
        file.seek(_POSITION)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _take(file: BinaryIO) -> bool:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _free(file: BinaryIO) -> None:
        fcntl.flock(file.fileno(), fcntl.LOCK_UN)
