"""The file of a session that is written to: it may stay open, and is locked only while somebody writes.

    open → lock → is it still the file of that name? → write, sync → unlock

The next append begins with the lock. Others may delete the file meanwhile, or put another one in its place.
"""

import os
from typing import Any
from weakref import WeakSet

from swink.errors import SessionBusy
from swink.memory.files import CLOEXEC, explanation
from swink.memory.jsonlfile import Identity
from swink.system.filelock import free_lock, take_lock, try_lock

LOCKED_FOR = 30.0
"""Seconds an append waits for another program that is writing to the session."""


class HeldFile:
    """The file of a session; inside a `with`, nobody else writes to it, renames or deletes it.

    A class, since every append pays for it, and generators cost more.
    """

    __slots__ = ("__weakref__", "_flags", "_node", "_stays_open", "_what", "descriptor", "identity", "path")

    def __init__(self, what: str, path: str, flags: int, stays_open: bool) -> None:
        self.path = path
        self.descriptor = -1
        self.identity: Identity = 0, 0, 0
        self._what = what
        self._flags = flags | CLOEXEC
        self._stays_open = stays_open
        self._node = 0, 0, 0

    def __enter__(self) -> "HeldFile":
        try:
            while True:
                descriptor = self.descriptor
                if descriptor < 0 or not self._is_ours(descriptor):
                    descriptor = self._open()
                if not try_lock(descriptor):
                    take_lock(descriptor, LOCKED_FOR)
                # As long as this file is open no other one gets its number, so a file of that name and number
                # is this one, and what is said of the one is true of the other.
                there = os.stat(self.path)
                if self._node == (there.st_dev, there.st_ino, there.st_mode):
                    self.identity = there.st_ino, there.st_size, there.st_mtime_ns
                    return self
                self.close()  # there is another one in its place, or it is read-only now
        except BaseException as error:
            self.close()
            if isinstance(error, TimeoutError):
                raise SessionBusy(
                    f"{self._what} was locked by another program for {LOCKED_FOR:g} s;"
                    " end that program, or try again"
                ) from error
            if isinstance(error, OSError):
                raise explanation(f"{self._what} ({self.path})", error) from error
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            free_lock(self.descriptor)
        finally:
            if error is not None or not self._stays_open:
                self.close()
        if isinstance(error, OSError):
            raise explanation(f"{self._what} ({self.path})", error) from error

    def close(self) -> None:
        """Close the file, if it is open; what it is held for must be over."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0 and self._is_ours(descriptor):
            os.close(descriptor)

    __del__ = close

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, also in another process, opens the file itself."""
        return HeldFile, (self._what, self.path, self._flags, self._stays_open)

    def _is_ours(self, descriptor: int) -> bool:
        """Whether nobody has closed it behind our back, and perhaps opened another file with its number."""
        try:
            found = os.fstat(descriptor)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._node[:2]

    def _open(self) -> int:
        self.descriptor = os.open(self.path, self._flags)
        _all_open.add(self)
        found = os.fstat(self.descriptor)
        self._node = found.st_dev, found.st_ino, found.st_mode
        return self.descriptor


def identity_of(stat: os.stat_result) -> Identity:
    """What tells whether a file has changed."""
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _after_fork() -> None:
    """A child process shares open files, and so their locks: its own are others."""
    for file in list(_all_open):
        file.close()


_all_open: WeakSet[HeldFile] = WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
