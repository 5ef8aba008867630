"""Directories that a model can write to: no program, module or library of ours may come from there."""

import os
import weakref
from collections.abc import Iterator
from pathlib import Path


class Writable:
    """A directory whose files tools and sandboxed commands can write, as long as this object lives."""

    __slots__ = ("__weakref__", "_home", "_identity", "path")

    def __init__(self, directory: str | Path) -> None:
        self.path = os.path.realpath(directory)
        self._home = os.path.realpath(os.path.expanduser("~"))
        self._identity = identify(self.path)
        _all.add(self)

    def covers(self, path: str) -> bool:
        """Whether a path, by any of its spellings, lies in this directory.

        In a home, what is hidden is read-only for commands. The whole disk covers nothing: there would be no
        place left to take a program from, and no sandbox confines commands there.
        """
        if os.path.dirname(self.path) == self.path:
            return False
        return any(self._holds(spelling) for spelling in self._spellings(path))

    def _holds(self, path: str) -> bool:
        if not is_beneath(path, self.path):
            return False
        is_home = is_beneath(self._home, self.path)
        return not (is_home and path.startswith(os.path.join(self._home, ".")))

    def _spellings(self, path: str) -> Iterator[str]:
        """The path as written, with links resolved, and as this directory would be named by its inode."""
        yield os.path.abspath(path)
        real = above = os.path.realpath(path)
        yield real
        while os.path.dirname(above) != above:
            if self._identity is not None and identify(above) == self._identity:
                yield os.path.normpath(os.path.join(self.path, os.path.relpath(real, above)))
                return
            above = os.path.dirname(above)


_all: "weakref.WeakSet[Writable]" = weakref.WeakSet()


def is_writable_by_model(path: str | Path) -> bool:
    """Whether a file, or what it links to, lies where tools or sandboxed commands of this program write."""
    return any(place.covers(str(path)) for place in list(_all))


def is_beneath(path: str, top: str) -> bool:
    """Whether a path is `top` or lies in it."""
    return path == top or path.startswith(top.rstrip(os.sep) + os.sep)


def identify(path: str) -> tuple[int, int] | None:
    """Device and inode of what a path leads to; None if there is nothing."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino
