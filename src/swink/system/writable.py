"""Directories that a model can write to: no program, module or library of ours may come from there."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from weakref import WeakValueDictionary


class Writable:
    """A directory whose files tools and sandboxed commands can write, as long as this object lives."""

    __slots__ = ("__weakref__", "_home", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._home = os.path.realpath(os.path.expanduser("~"))

    def covers(self, path: str) -> bool:
        """Whether a path in this directory can be written; what is hidden in a home cannot, by commands.

        The whole disk covers nothing: there would be no place left to take a program from, and no sandbox
        confines commands there.
        """
        if os.path.dirname(self.path) == self.path:
            return False
        is_home = is_beneath(self._home, self.path)
        return not (is_home and path.startswith(os.path.join(self._home, ".")))


_by_path: "WeakValueDictionary[str, Writable]" = WeakValueDictionary()
_by_identity: "WeakValueDictionary[tuple[int, int], Writable]" = WeakValueDictionary()
_lock = threading.Lock()


def mark_writable(directory: str | Path) -> Writable:
    """Say that a model can write to a directory, as long as the object that is returned lives."""
    path = os.path.realpath(directory)
    with _lock:
        found = _by_path.get(path)
        if found is None:
            found = _by_path[path] = Writable(path)
        if (identity := identify(path)) is not None:
            _by_identity[identity] = found
        return found


def is_writable_by_model(path: str | Path) -> bool:
    """Whether a file, or what it links to, lies where tools or sandboxed commands of this program write.

    A directory is known by each of its names: as written, with links resolved, and by its inode.
    """
    real = os.path.realpath(path)
    for spelling in (os.path.abspath(path), real):
        for above in _up_from(spelling):
            found = _by_path.get(above)
            if found is not None and found.covers(spelling):
                return True
    for above in _up_from(real):
        identity = identify(above)
        found = None if identity is None else _by_identity.get(identity)
        if found is not None and found.covers(
            os.path.normpath(os.path.join(found.path, os.path.relpath(real, above)))
        ):
            return True
    return False


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


def _up_from(path: str) -> Iterator[str]:
    yield path
    while (above := os.path.dirname(path)) != path:
        path = above
        yield path
