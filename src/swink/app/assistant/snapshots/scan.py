"""Scan: what is in a directory now, with the content of its files where that is not known yet.

A file is read again only if its size, times or number changed: an unchanged tree costs one `lstat` a file.
"""

import os
import stat
import time
from collections.abc import Collection, Iterable
from contextlib import suppress

from msgspec import Struct

from swink.app.assistant.snapshots.filehashes import FileHashes, Signature
from swink.app.assistant.snapshots.trees import FileEntry, TreeSnapshot
from swink.app.assistant.snapshots.vault import Damaged, Vault
from swink.tools.coding.credentials import is_known_place, is_unsuspicious, suspect
from swink.tools.coding.ignore import IgnoreFile, is_ignored
from swink.tools.coding.supervisor.snapshot import open_beneath

MOST_SECONDS = 30.0
_DEEPEST = 100
_RULES = 1 << 20
"""Bytes of an ignore file that are read."""
_SETTLED = 2_000_000_000
"""Nanoseconds after which a file's times tell whether it changed again: the clocks of disks are coarse."""
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)

Rules = tuple[tuple[int, IgnoreFile], ...]
"""The ignore files in force, outermost first, each with the length of its directory's path."""


class SnapshotLimits(Struct, frozen=True):
    """What a snapshot takes: bytes of a file, bytes that one snapshot may add, files and directories."""

    largest: int = 5 << 20
    new: int = 200 << 20
    files: int = 20_000


class TooMuch(Exception):
    """There are more files than a snapshot takes."""


class DirectoryScan:
    """One look at a directory, after another snapshot of it if there is one; the vault keeps what is new."""

    def __init__(
        self,
        root: str,
        known: FileHashes,
        vault: Vault,
        limits: SnapshotLimits = SnapshotLimits(),
        before: TreeSnapshot | None = None,
    ) -> None:
        self.root = root
        self._limits = limits
        self._known = known.files
        self._vault = vault
        self._before = before
        self.seen: dict[str, tuple[Signature, str]] = {}
        """The hashes of the files that were looked at."""
        self._new = 0
        self._started = time.time_ns()
        self._until = time.monotonic() + MOST_SECONDS
        self.tree: dict[str, FileEntry] = {}

    def walk(self) -> None:
        """Everything in the directory, less what git ignores by the rules of the snapshot before.

        Raises `TooMuch`. A tool that changes .gitignore must not make files appear or vanish: what was
        ignored stays so, what was there is looked at.
        """
        top = os.open(self.root, _DIRECTORY & ~getattr(os, "O_NOFOLLOW", 0))
        try:
            self._below(top, "", _exclude(top))
        finally:
            os.close(top)
        if self._before is not None:
            self.look([path for path in self._before.tree if path not in self.tree])

    def look(self, paths: Iterable[str]) -> None:
        """What is at these paths, and the directories that they are in."""
        for path in paths:
            parent, _, name = path.rpartition("/")
            directory = open_beneath(self.root, os.path.join(self.root, parent))
            if directory is None:
                continue
            try:
                self._add(directory, path, os.stat(name, dir_fd=directory, follow_symlinks=False))
            except OSError:
                continue
            finally:
                os.close(directory)
            while parent and parent not in self.tree:
                with suppress(OSError):
                    mode = os.lstat(os.path.join(self.root, parent)).st_mode
                    self.tree[parent] = FileEntry("directory", stat.S_IMODE(mode))
                parent = parent.rpartition("/")[0]

    def _below(self, directory: int, prefix: str, rules: Rules) -> None:
        try:
            with os.scandir(directory) as entries:
                found = {entry.name: entry for entry in entries}
        except OSError:
            return
        if time.monotonic() > self._until or len(self.tree) + len(found) > self._limits.files:
            raise TooMuch
        if self._before is not None and (not prefix or prefix[:-1] in self._before.tree):
            lines = self._content_before(self._before, prefix + ".gitignore")
        else:
            lines = _read(directory, ".gitignore") if ".gitignore" in found else b""
        if lines:
            rules = (*rules, (len(prefix), _parse(lines)))
        in_place = is_known_place(prefix)
        for name in sorted(found):
            path = prefix + name
            try:
                status = found[name].stat(follow_symlinks=False)
            except OSError:
                continue
            is_directory = stat.S_ISDIR(status.st_mode)
            if name == ".git" or (rules and is_ignored(rules, path, name, is_directory)):
                continue
            if (in_place or not is_unsuspicious(name)) and not is_directory and suspect(path) == "sure":
                continue
            self._add(directory, path, status)
            if is_directory and prefix.count("/") < _DEEPEST:
                try:
                    inside = os.open(name, _DIRECTORY, dir_fd=directory)
                except OSError:
                    continue
                try:
                    self._below(inside, path + "/", rules)
                finally:
                    os.close(inside)

    def _content_before(self, before: TreeSnapshot, path: str) -> bytes:
        entry = before.tree.get(path)
        with suppress(Damaged):
            return self._vault.get(entry.content) if entry is not None and entry.kind == "file" else b""
        return b""

    def _add(self, directory: int, path: str, found: os.stat_result) -> None:
        mode = stat.S_IMODE(found.st_mode)
        if stat.S_ISREG(found.st_mode):
            self.tree[path] = self._file(directory, path, found, mode)
        elif stat.S_ISDIR(found.st_mode):
            self.tree[path] = FileEntry("directory", mode)
        elif stat.S_ISLNK(found.st_mode):
            with suppress(OSError):
                target = os.readlink(path.rpartition("/")[2], dir_fd=directory)
                self.tree[path] = FileEntry("link", 0, os.fsencode(target).decode("latin-1"))

    def _file(self, directory: int, path: str, found: os.stat_result, mode: int) -> FileEntry:
        signature = (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
        known = self._known.get(path)
        if known is not None and known[0] == signature:
            self.seen[path] = known
            return FileEntry("file", mode, known[1])
        unsaved = FileEntry("unsaved", mode, f"{found.st_size} {found.st_mtime_ns}")
        if found.st_size > self._limits.largest or self._new + found.st_size > self._limits.new:
            return unsaved
        if self._before is not None and self._before.tree.get(path) == unsaved:
            return unsaved  # it would look as if it had changed
        try:
            with open(os.open(path.rpartition("/")[2], _FILE, dir_fd=directory), "rb") as file:
                data = file.read(self._limits.largest + 1)
        except OSError:
            return unsaved
        if len(data) > self._limits.largest:
            return unsaved
        hash = self._vault.put(data)
        self._new += len(data)
        if self._started - max(found.st_mtime_ns, found.st_ctime_ns) > _SETTLED:
            self.seen[path] = signature, hash
        return FileEntry("file", mode, hash)


def take_snapshot(
    vault: Vault,
    root: str,
    known: FileHashes,
    before: TreeSnapshot | None = None,
    named: Collection[str] = (),
    *,
    whole: bool = True,
    limits: SnapshotLimits = SnapshotLimits(),
) -> TreeSnapshot:
    """A snapshot of the whole directory, with the files that tools named even if git ignores them.

    One after another looks at the same files: if that one is not complete, neither is this one.
    """
    with vault.holding():
        if known.generation != vault.generation:
            known.files.clear()
            known.generation, known.last = vault.generation, None
        scan = DirectoryScan(root, known, vault, limits, before)
        complete = whole if before is None else before.complete
        is_walked = False
        if complete:
            with suppress(TooMuch):
                scan.walk()
                is_walked = True
        if not is_walked:
            complete = complete and before is not None
            scan = DirectoryScan(root, known, vault, limits, before)
            scan.look(() if before is None else before.tree)
        scan.look([path for path in named if path not in scan.tree])
        known.files.update(scan.seen)
        last = known.last
        if last is None or last.complete != complete or last.tree != scan.tree:
            known.last = last = vault.save(scan.tree, complete=complete)
        return last


def _exclude(top: int) -> Rules:
    try:
        directory = os.open(".git/info", _DIRECTORY, dir_fd=top)
    except OSError:
        return ()
    try:
        lines = _read(directory, "exclude")
    finally:
        os.close(directory)
    return ((0, _parse(lines)),) if lines else ()


def _read(directory: int, name: str) -> bytes:
    try:
        with open(os.open(name, _FILE, dir_fd=directory), "rb") as file:
            return file.read(_RULES) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
    except OSError:
        return b""


def _parse(lines: bytes) -> IgnoreFile:
    return IgnoreFile(lines.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").split("\n"))
