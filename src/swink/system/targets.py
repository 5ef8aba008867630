"""Targets: what a path led to when a call was judged, kept until the call runs.

look(path)                          links resolved, and what is there     the judge of a call
remember(run, call_id, path, …)     what was judged may run               the judge
take_targets(call_id, path)         it is this, or the call is refused    the tool
"""

import os
import threading
from contextlib import suppress
from weakref import WeakKeyDictionary

from msgspec import Struct

LONGEST = 4_096
"""Characters of the longest path that is looked at: no system takes a longer one."""
_TIMES = 100
_MOST_WRITTEN = 1_000

Version = tuple[int, int, int, int, int]
"""Device, inode, size, and when content and inode changed: no two contents of a file have the same."""


class Seen(Struct, frozen=True):
    """What was there: the directory, by device and inode, and the file in it; None where there is none."""

    directory: tuple[int, int] | None
    version: Version | None


class Target(Struct, frozen=True):
    """What a path leads to: an absolute path without links, and what was seen there if that counts too."""

    path: str
    seen: Seen | None = None


def look(path: str) -> Target:
    """What an absolute path leads to now; its end need not exist."""
    real = resolve(path)
    directory, file = _find(os.path.dirname(real)), _find(real)
    return Target(
        real,
        Seen(
            None if directory is None else (directory.st_dev, directory.st_ino),
            None if file is None else version_of(file),
        ),
    )


def resolve(path: str) -> str:
    """The path without links and `..`; raises `OSError` if links keep changing under our eyes."""
    for _ in range(_TIMES):
        with suppress(OSError):
            return os.path.realpath(path)
    return os.path.realpath(path)


def version_of(found: os.stat_result) -> Version:
    """What tells a file, and its content, from every other."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def remember(run: object | None, call_id: str, path: str, target: Target) -> None:
    """Bind a call to what it was judged by; several judges must have seen one path."""
    if run is not None:  # nobody can know which run the tool belongs to
        with _guard:
            _judged.setdefault(run, {}).setdefault((call_id, path), []).append(target)


def take_targets(call_id: str, path: str) -> list[Target]:
    """What a call was judged by, the last judge last, once; empty if it was not judged."""
    with _guard:
        for calls in list(_judged.values()):
            if (call_id, path) in calls:
                return calls.pop((call_id, path))
    return []


def note_written(version: Version) -> None:
    """Let calls that were judged before go on with a file that another call wrote."""
    with _guard:
        _written[version] = None
        if len(_written) > _MOST_WRITTEN:
            del _written[next(iter(_written))]


def was_written(version: Version) -> bool:
    """Whether a tool of this process wrote the file as it is."""
    return version in _written


def _find(path: str) -> os.stat_result | None:
    with suppress(OSError):
        return os.stat(path, follow_symlinks=False)
    return None


_judged: WeakKeyDictionary[object, dict[tuple[str, str], list[Target]]] = WeakKeyDictionary()
"""For each run, what its calls were judged by; an entry that no tool takes ends with the run."""
_written: dict[Version, None] = {}
"""What tools wrote last: calls of one turn are judged before any of them runs."""
_guard = threading.Lock()
