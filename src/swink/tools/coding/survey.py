"""Files of a workspace that commands must not read (credentials) or must not change (what programs obey).

The whole tree is walked once; later surveys read only directories whose change time differs. No command can
reset that time, so files that were moved or made since are found. No directory is left out, since a secret
could be moved there.
"""

import os
import time

from msgspec import Struct

from swink.tools.coding.credentials import (
    Readable,
    is_known_place,
    is_unsuspicious,
    shows_credentials,
    suspect,
)
from swink.tools.coding.obeyed import GUARDED
from swink.tools.coding.supervisor import gitconfig

MAX_ENTRIES = 1_000_000
"""Files and directories of the largest workspace that is surveyed."""
_RECENT = 2_000_000_000
"""Nanoseconds: a directory that changed more recently is read again, because time stamps are coarse."""
_HEAD = 1 << 16

_Stamp = tuple[int, int, int]  # device, number and change time


class TooLarge(Exception):
    """The workspace has more files than can be looked through before a command."""


class Findings(Struct, frozen=True):
    """Absolute paths: files with credentials, repositories, `.git` files and links (pointers), and what other
    programs obey."""

    credentials: tuple[str, ...]
    repositories: tuple[str, ...]
    pointers: tuple[str, ...]
    obeyed: tuple[str, ...]
    directories: dict[str, _Stamp]

    def without_new(self, baseline: "Findings") -> "Findings":
        """Without what a baseline lacks; the directories of that count as changed."""
        new = {*self.repositories} - {*baseline.repositories}
        named = {*self.pointers, *self.obeyed} - {*baseline.pointers, *baseline.obeyed}
        changed = new | {os.path.dirname(path) for path in named}
        return Findings(
            self.credentials,
            tuple(path for path in self.repositories if path not in new),
            tuple(path for path in self.pointers if path not in named),
            tuple(path for path in self.obeyed if path not in named),
            {path: (*stamp[:2], 0) if path in changed else stamp for path, stamp in self.directories.items()},
        )


class _Directory(Struct, frozen=True):
    """What one look at a directory has shown."""

    stamp: _Stamp
    is_settled: bool
    entries: int
    directories: tuple[str, ...]
    sure: tuple[str, ...]
    perhaps: tuple[str, ...]
    is_repository: bool
    pointer: str | None
    obeyed: tuple[str, ...]


class Survey:
    """Looks at one workspace again and again."""

    def __init__(self, root: str, readable: Readable) -> None:
        self._root = root
        self._readable = readable
        self._known: dict[str, _Directory] = {}
        self._keys: dict[str, tuple[tuple[int, int, int], bool]] = {}

    def look(self) -> Findings:
        """What is there now; raises `TooLarge`."""
        known: dict[str, _Directory] = {}
        waiting = [self._root]
        entries = 0
        while waiting:
            path = waiting.pop()
            found = self._directory(path)
            if found is None:
                continue
            known[path] = found
            entries += found.entries
            if entries > MAX_ENTRIES:
                raise TooLarge(f"{self._root} has more than {MAX_ENTRIES:,} files")
            waiting += found.directories
        self._known = known
        return Findings(
            tuple(self._credentials()),
            tuple(path for path, found in known.items() if found.is_repository),
            tuple(found.pointer for found in known.values() if found.pointer),
            tuple(path for found in known.values() for path in found.obeyed),
            {path: seen.stamp if seen.is_settled else (*seen.stamp[:2], 0) for path, seen in known.items()},
        )

    def _directory(self, path: str) -> _Directory | None:
        try:
            status = os.lstat(path)
        except OSError:
            return None
        stamp = (status.st_dev, status.st_ino, status.st_ctime_ns)
        old = self._known.get(path)
        if old is not None and old.stamp == stamp and old.is_settled:
            return old
        return self._read(path, stamp)

    def _read(self, path: str, stamp: _Stamp) -> _Directory:
        directories: list[str] = []
        sure: list[str] = []
        perhaps: list[str] = []
        obeyed: list[str] = []
        names: set[str] = set()
        pointer = None
        relative = os.path.relpath(path, self._root) + "/" if path != self._root else ""
        expected = GUARDED.expected_in(relative)
        in_place = is_known_place(relative)
        started = time.time_ns()
        try:
            with os.scandir(path) as found:
                for entry in found:
                    name = entry.name
                    names.add(name)
                    is_directory = entry.is_dir(follow_symlinks=False)
                    if GUARDED.match(name, expected, is_directory):
                        obeyed.append(entry.path)
                    if is_directory:
                        directories.append(entry.path)
                        continue
                    if not in_place and is_unsuspicious(name):
                        continue
                    if name.casefold() == ".git":
                        pointer = entry.path
                    if suspicion := suspect(relative + name):
                        (sure if suspicion == "sure" else perhaps).append(entry.path)
        except OSError:
            pass  # unreadable for us: unreadable for a command
        is_settled = started - stamp[2] > _RECENT
        below = tuple(directories), tuple(sure), tuple(perhaps)
        # Without HEAD it is none yet: the command that adds it makes the repository.
        is_repository = gitconfig.is_repository(names) and any(name.lower() == "head" for name in names)
        return _Directory(stamp, is_settled, len(names), *below, is_repository, pointer, tuple(obeyed))

    def _credentials(self) -> list[str]:
        found: set[str] = set()
        for directory in self._known.values():
            for path in (*directory.sure, *filter(self._is_key, directory.perhaps)):
                self._add(found, path)
        return sorted(found)

    def _add(self, found: set[str], path: str) -> None:
        """Note a file, not a directory; of a link what it leads to, if that lies in the workspace."""
        real = os.path.realpath(path) if os.path.islink(path) else path
        inside = real.startswith(self._root + "/")
        names = (os.path.relpath(name, self._root) for name in (path, real))
        if inside and os.path.isfile(real) and not any(map(self._readable.allows, names)):
            found.add(real)

    def _is_key(self, path: str) -> bool:
        try:
            status = os.stat(path)
            stamp = (status.st_ino, status.st_ctime_ns, status.st_size)
            old = self._keys.get(path)
            if old is not None and old[0] == stamp and time.time_ns() - stamp[1] > _RECENT:
                return old[1]
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            verdict = shows_credentials(path, os.read(fd, _HEAD))
        except OSError:
            verdict = False
        finally:
            os.close(fd)
        self._keys[path] = (stamp, verdict)
        return verdict
