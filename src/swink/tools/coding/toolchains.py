"""Credentials in the tool chains that commands see: files that a user has put there, not what packages hold.

A tool chain has 100,000s of files, so only its upper directories are searched, without the stores of
packages, and a directory is read again only when its change time differs.
"""

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator

from msgspec import Struct

from swink.system.writable import is_beneath
from swink.tools.coding.credentials import (
    SAMPLE,
    Readable,
    is_known_place,
    is_unsuspicious,
    shows_credentials,
    suspect,
)
from swink.tools.coding.mounts import SYSTEM, Mounts

MAX_DEPTH = 4
"""Directories below the top of a tool chain: `.nvm/versions/node/v20/etc` is the fourth below `.nvm`."""
MAX_DIRECTORIES = 5000
"""Directories of one tool chain, the upper ones first."""

_STORE = re.compile(
    r"node_modules|site-packages|dist-packages|python\d.*|registry|repository|mod|pkgs|gems|toolchains|\.git"
)
"""Directories of packages that anybody can download, which hold keys for tests."""
_ADMINISTERED = tuple(path for path in SYSTEM if path != "/opt")
_RECENT = 2_000_000_000
"""Nanoseconds: a directory that changed more recently is read again, because time stamps are coarse."""


class _Directory(Struct, frozen=True):
    """What one look at a directory has shown."""

    stamp: tuple[int, int, int]
    directories: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()


_seen: dict[str, _Directory] = {}


def find_credentials(mounts: Mounts, readable: Readable) -> list[str]:
    """The files with credentials in the tool chains that commands see, less those that they may read."""
    found = search(top for top in mounts.tool_chains if not _is_left_out(top))
    return [path for path in found if not readable.allows(os.path.relpath(path, mounts.root))]


def search(tops: Iterable[str]) -> list[str]:
    """The files with credentials in the upper directories of these, symlinks resolved."""
    found: set[str] = set()
    for top in tops:
        for path in _list_suspects(top):
            real = os.path.realpath(path)
            if real not in found and _holds_credentials(path, real):
                found.add(real)
    return sorted(found)


def _is_left_out(top: str) -> bool:
    above, name = os.path.split(top)
    if _STORE.fullmatch(name) or os.path.basename(above) == ".cache":
        return True
    return any(is_beneath(top, system) for system in _ADMINISTERED)


def _list_suspects(top: str) -> Iterator[str]:
    level = [top]
    left = MAX_DIRECTORIES
    for _ in range(MAX_DEPTH + 1):
        below: list[str] = []
        for path in level[:left]:
            found = _look(path)
            below += found.directories
            yield from found.suspects
        left -= len(level)
        level = below
        if left <= 0:
            return


def _look(path: str) -> _Directory:
    try:
        status = os.lstat(path)
    except OSError:
        return _Directory((0, 0, 0))
    stamp = (status.st_dev, status.st_ino, status.st_ctime_ns)
    if (old := _seen.get(path)) is not None and old.stamp == stamp:
        return old
    is_settled = time.time_ns() - status.st_ctime_ns > _RECENT
    found = _read(path, stamp)
    if is_settled:
        _seen[path] = found
    return found


def _read(path: str, stamp: tuple[int, int, int]) -> _Directory:
    directories: list[str] = []
    suspects: list[str] = []
    in_place = is_known_place(path)
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if not _STORE.fullmatch(entry.name):
                        directories.append(entry.path)
                elif (in_place or not is_unsuspicious(entry.name)) and suspect(entry.path):
                    suspects.append(entry.path)
    except OSError:
        pass  # unreadable for us: unreadable for a command
    return _Directory(stamp, tuple(directories), tuple(suspects))


def _holds_credentials(path: str, real: str) -> bool:
    try:
        if not stat.S_ISREG(os.stat(real).st_mode):
            return False
        if suspect(path) == "sure":
            return True
        with open(real, "rb") as file:
            return shows_credentials(path, file.read(SAMPLE))
    except OSError:
        return False
