"""Locks on files that threads and other processes respect, on POSIX and on Windows."""

import os
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from swink.system.files import open_private


@contextmanager
def locked(
    file: BinaryIO, within: float | None = None, *, waiting: Callable[[], object] | None = None
) -> Generator[None]:
    """Hold the lock of an open file; each holder must have opened the file itself.

    Raises TimeoutError after `within` seconds. `waiting` is called before each pause, and may raise.
    """
    take_lock(file.fileno(), within, file.name, waiting)
    try:
        yield
    finally:
        file.flush()
        free_lock(file.fileno())


def take_lock(
    descriptor: int,
    within: float | None = None,
    name: str = "the file",
    waiting: Callable[[], object] | None = None,
) -> None:
    """Take the lock of an open file, as `locked` does."""
    if try_lock(descriptor):
        return
    deadline, pause = time.monotonic() + (within if within is not None else float("inf")), 0.001
    while not try_lock(descriptor):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{name} was locked by another program for {within:g} s")
        if waiting is not None:
            waiting()
        time.sleep(pause)
        pause = min(2 * pause, 0.05)


@contextmanager
def alone(path: str | os.PathLike[str], within: float | None = None) -> Generator[None]:
    """Hold a lock file, created here and removed at the end: one holder among all threads and processes.

    Raises TimeoutError after `within` seconds.
    """
    while True:
        with open(path, "a+b", opener=open_private) as file, locked(file, within):
            if not is_at(file, path):
                continue  # the previous holder has removed this one: others wait for a new one
            try:
                yield
            finally:
                with suppress(OSError):  # Windows keeps files that are open
                    os.unlink(path)
            return


def is_at(file: BinaryIO, path: str | os.PathLike[str]) -> bool:
    """Whether an open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    _POSITION = 1 << 40  # Windows locks bytes: one far past the end of the file, which nobody reads

    def try_lock(descriptor: int) -> bool:
        os.lseek(descriptor, _POSITION, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def free_lock(descriptor: int) -> None:
        """Free the lock of an open file."""
        os.lseek(descriptor, _POSITION, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def free_lock(descriptor: int) -> None:
        """Free the lock of an open file."""
        fcntl.flock(descriptor, fcntl.LOCK_UN)
