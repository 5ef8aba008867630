"""Vault: where snapshots are kept. Everything in it has the hash of its content for a name.

objects/ab/cdef…     a file's bytes, or a directory: the names in it and their entries
snapshots/ID         one per snapshot; its time says when it was last made or used
lock                 held while writing or pruning
pruned               when that was done last

An object has its name only when it is whole, a snapshot only when all its objects have theirs.
"""

import hashlib
import os
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from swink.app.assistant.snapshots.trees import FileEntry, PathChange, Tree, TreeSnapshot
from swink.system.filelock import locked
from swink.system.files import open_private, write_whole

T = TypeVar("T")

KEPT = 30 * 86_400.0
"""Seconds for which an unused snapshot is kept."""
MOST = 2 << 30
"""Bytes of all objects; when there are more, the oldest snapshots go first."""
EVERY = 86_400.0
"""Seconds from one pruning to the next."""
PATIENCE = 20.0
"""Seconds to wait for another process that holds the lock."""

_Directory = list[tuple[bytes, FileEntry]]
_directory = msgspec.msgpack.Decoder(_Directory)
_root = msgspec.msgpack.Decoder(tuple[str, bool])
_encode = msgspec.msgpack.Encoder().encode


class Damaged(Exception):
    """An object is not there, or not what its name says."""


class Vault:
    """Snapshots in a folder that only its user may read."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = str(folder)

    @contextmanager
    def holding(self) -> Generator[None]:
        """Hold the lock; TimeoutError if another process holds it for long."""
        for name in ("", "objects", "snapshots"):
            os.makedirs(os.path.join(self.folder, name), 0o700, exist_ok=True)
        lock = os.path.join(self.folder, "lock")
        with open(lock, "a+b", opener=open_private) as file, locked(file, PATIENCE):
            yield

    @property
    def generation(self) -> int:
        """It changes when objects were removed: what one knew to be there may be gone."""
        try:
            return os.stat(os.path.join(self.folder, "pruned")).st_mtime_ns
        except FileNotFoundError:
            return 0

    def has(self, hash: str) -> bool:
        """Whether an object is there."""
        return os.path.exists(self._path(hash))

    def put(self, data: bytes) -> str:
        """Keep some bytes; returns their hash."""
        hash = hash_of(data)
        path = self._path(hash)
        if not os.path.exists(path):
            self.write(path, data)
        return hash

    def get(self, hash: str) -> bytes:
        """The bytes of a hash; `Damaged` if they are not there as they were."""
        try:
            with open(self._path(hash), "rb") as file:
                data = file.read()
        except OSError as error:
            raise Damaged(f"{hash} is not there: {error.strerror}") from error
        if hash_of(data) != hash:
            with suppress(OSError):  # so that it is written anew the next time
                os.unlink(self._path(hash))
            raise Damaged(f"{hash} is damaged")
        return data

    def save(self, tree: Tree, *, complete: bool = True) -> TreeSnapshot:
        """Keep a snapshot whose files are kept already; the same files give the same id."""
        inside: dict[str, _Directory] = {"": []}
        for path, entry in tree.items():
            parent, _, name = path.rpartition("/")
            inside.setdefault(parent, []).append((os.fsencode(name), entry))
            if entry.kind == "directory":
                inside.setdefault(path, [])
        top = self._save_directory("", inside)
        id = self.put(_encode((top, complete)))
        path = os.path.join(self.folder, "snapshots", id)
        try:
            os.utime(path)
        except FileNotFoundError:
            self.write(path, b"")
        return TreeSnapshot(id, tree, complete)

    def load(self, id: str) -> TreeSnapshot:
        """A snapshot by its id."""
        top, complete = self._decode(_root, id)
        tree: dict[str, FileEntry] = {}
        waiting = [("", top)]
        while waiting:
            prefix, hash = waiting.pop()
            for path, entry in self._names(prefix, hash).items():
                tree[path] = entry.without_content
                if entry.kind == "directory":
                    waiting.append((f"{path}/", entry.content))
        return TreeSnapshot(id, tree, complete)

    def compare(self, before: str, after: str) -> list[PathChange]:
        """What is different between two snapshots; directories that are the same are not looked into."""
        found: list[PathChange] = []
        waiting = [("", self._decode(_root, before)[0], self._decode(_root, after)[0])]
        while waiting:
            prefix, old_hash, new_hash = waiting.pop()
            if old_hash == new_hash:
                continue
            old, new = self._names(prefix, old_hash), self._names(prefix, new_hash)
            for path in old.keys() | new.keys():
                was, now = old.get(path), new.get(path)
                if was == now:
                    continue
                if was is None or now is None or was.without_content != now.without_content:
                    found.append(PathChange(path, was and was.without_content, now and now.without_content))
                waiting.append((f"{path}/", _inside(was), _inside(now)))
        return sorted(found, key=lambda change: change.path)

    def prune(self, *, now: float | None = None, kept: float = KEPT, most: int = MOST) -> int:
        """Remove old snapshots and what only they need; returns how many objects went. Hold the lock."""
        now = time.time() if now is None else now
        folder = os.path.join(self.folder, "snapshots")
        ids = [(entry.stat().st_mtime, entry.name) for entry in self._entries("snapshots")]
        for entry in list(self._entries("known")):
            if now - entry.stat().st_mtime > kept:
                os.unlink(entry.path)
        sizes: dict[str, int] = {}
        for start in [entry.name for entry in self._entries("objects")]:
            sizes |= {start + entry.name: entry.stat().st_size for entry in self._entries("objects", start)}
        needed: set[str] = set()
        room = most
        for used, id in sorted(ids, reverse=True):
            more = self._needs(id, needed) if now - used <= kept else set[str]()
            room -= sum(sizes.get(hash, 0) for hash in more)
            if not more or room < 0:
                os.unlink(os.path.join(folder, id))
                room = room if room >= 0 else -1
            else:
                needed |= more
        gone = [hash for hash in sizes if hash not in needed]
        self.write(os.path.join(self.folder, "pruned"), b"")
        for hash in gone:
            os.unlink(self._path(hash))
        return len(gone)

    def is_pruning_due(self) -> bool:
        """Whether the last pruning was some time ago."""
        return time.time() - self.generation / 1e9 > EVERY

    def _entries(self, *folder: str) -> Iterator[os.DirEntry[str]]:
        """What is in a folder; what a process that was killed left half written goes at once."""
        with suppress(FileNotFoundError), os.scandir(os.path.join(self.folder, *folder)) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    os.unlink(entry.path)
                else:
                    yield entry

    def _save_directory(self, path: str, inside: Mapping[str, _Directory]) -> str:
        names: _Directory = []
        for name, entry in sorted(inside[path], key=lambda item: item[0]):
            if entry.kind == "directory":
                below = f"{path}/{os.fsdecode(name)}" if path else os.fsdecode(name)
                entry = FileEntry("directory", entry.mode, self._save_directory(below, inside))
            names.append((name, entry))
        return self.put(_encode(names))

    def _names(self, prefix: str, hash: str) -> dict[str, FileEntry]:
        """The entries of a stored directory by their paths."""
        if not hash:
            return {}
        return {prefix + os.fsdecode(name): entry for name, entry in self._decode(_directory, hash)}

    def _needs(self, id: str, known: set[str]) -> set[str]:
        """The objects of a snapshot that are not among those known; none if it is not whole any more."""
        found: set[str] = {id}
        try:
            waiting = [self._decode(_root, id)[0]]
            while waiting:
                hash = waiting.pop()
                if hash in known or hash in found:
                    continue
                found.add(hash)
                for _, entry in self._decode(_directory, hash):
                    if entry.kind == "directory":
                        waiting.append(entry.content)
                    elif entry.kind == "file" and entry.content not in known:
                        found.add(entry.content)
        except Damaged:
            return set()
        return found

    def _decode(self, decoder: "msgspec.msgpack.Decoder[T]", hash: str) -> T:
        try:
            return decoder.decode(self.get(hash))
        except msgspec.MsgspecError as error:
            raise Damaged(f"{hash} is of another kind") from error

    def _path(self, hash: str) -> str:
        return os.path.join(self.folder, "objects", hash[:2], hash[2:])

    def write(self, path: str, data: bytes) -> None:
        """A file that is there as a whole, or not at all."""
        # Not durable: a snapshot may have thousands of files, and one that is damaged is found by its hash.
        try:
            write_whole(path, data, durable=False)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
            write_whole(path, data, durable=False)


def hash_of(data: bytes) -> str:
    """The name of some bytes."""
    return hashlib.blake2b(data, digest_size=20).hexdigest()


def _inside(entry: FileEntry | None) -> str:
    return entry.content if entry is not None and entry.kind == "directory" else ""
