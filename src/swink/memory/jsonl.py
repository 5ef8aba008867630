"""Sessions as JSONL files, one per session, which people can read, copy and search with their own tools."""

import errno
import logging
import os
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from types import NoneType

from msgspec import Struct
from msgspec.structs import replace

from swink.errors import SessionConflict, SessionError, SessionNotFound, SessionUnreadable
from swink.memory.backend import Check, Hit, Repair, SearchQuery, Stored
from swink.memory.files import CLOEXEC, beside, explained, sync, write, write_new
from swink.memory.heldfile import HeldFile, identity_of
from swink.memory.jsonlfile import (
    BEGIN,
    Identity,
    ScannedSession,
    header,
    last_meta,
    rewritten,
    scan,
    transaction,
)
from swink.memory.meta import VERSION, SessionMeta, grown
from swink.memory.searching import hit_of, phrases_of, search_all
from swink.memory.store import Store
from swink.messages.checks import check_type
from swink.messages.records import Record
from swink.system.places import NoHome, data_dir, expand

log = logging.getLogger("swink.memory")

_TAIL = 4096
"""Bytes at the end of a file in which the last commit is looked for first."""
_LAST_APPEND = 65_536
"""Bytes at the end of a file in which the last transaction is looked for, before all of it is read."""
_MOST_KNOWN = 10_000
"""Sessions of which a backend remembers where their files end: about 1 KB each."""
_MOST_OPEN = 0 if sys.platform == "win32" else 16
"""Files that stay open between appends; Windows would let nobody delete them."""
_LEFT_FOR = 3600.0
"""Seconds after which a file that is being created is given up."""


class JsonlStore(Store):
    """Sessions in files of a directory, `sessions_dir()` if none is given; only their owner can read them."""

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        check_type("JsonlStore()", directory, (str, os.PathLike, NoneType))
        super().__init__(JsonlBackend(sessions_dir() if directory is None else Path(directory)))


def sessions_dir() -> Path:
    """Where sessions are kept: SWINK_SESSIONS_DIR, else the platform's place for a user's data."""
    try:
        if chosen := os.environ.get("SWINK_SESSIONS_DIR"):
            return expand(chosen)
        return data_dir() / "sessions"
    except NoHome as error:
        raise SessionError("there is no home directory; set HOME or SWINK_SESSIONS_DIR") from error


def transcript_of(directory: str | os.PathLike[str], id: str) -> str:
    """Where a copy of a session for other programs is, if there is one; it is deleted with the session."""
    return os.path.join(directory, "transcripts", f"{id}.jsonl")


class _Known(Struct, frozen=True):
    """What is known of a file, until another process writes to it."""

    identity: Identity
    meta: SessionMeta
    ended: bool
    """Whether its last line is complete."""


class JsonlBackend:
    """Files of sessions; each append is one write under the file's lock."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._folder = str(directory)
        self._prefix = os.path.join(self._folder, "")
        self._known: dict[str, _Known] = {}
        self._open: dict[str, HeldFile] = {}
        """Files that stay open for the next append, without their locks."""
        self._unwanted: dict[str, tuple[int, Identity]] = {}
        """Files in which a failed append has left something: the size to cut them to."""

    def create(self, meta: SessionMeta, records: Sequence[Record] = ()) -> SessionMeta:
        """Begin a session; its file appears as a whole."""
        meta = grown(meta, records) if records else meta
        data = header(meta) + (transaction(meta, records) if records else b"")
        path = self._path(meta.id)
        with explained(f"session {meta.id} cannot be created in {self.directory}"):
            _make_directory(self.directory)
            if not write_new(path, data):
                raise SessionConflict(f"there is already a session {meta.id}; open it, or choose another id")
        return meta

    def read(self, id: str) -> Stored:
        with self._opened(id) as file:
            contents, _ = self._scanned(id, file.fileno())
        return Stored(contents.meta, contents.records)

    def append(self, id: str, after: int, records: Sequence[Record], *, durable: bool = True) -> SessionMeta:
        # Each thread that appends has an open file of its own, as locks are between those.
        file = self._open.pop(id, None) or self._held(id, stays_open=True)
        with file:
            known = self._know(id, file)
            if known.meta.sequence != after:
                raise SessionConflict(
                    f"session {id} was continued elsewhere; nothing was saved. Open it again and repeat, or"
                    f" fork it (it is at {known.meta.sequence}, here it was at {after})"
                )
            meta = self._add(file, known, grown(known.meta, records), records, durable)
        if self._open.setdefault(id, file) is not file:
            file.close()  # another thread keeps its own
        elif len(self._open) > _MOST_OPEN:
            self._close_oldest()
        return meta

    def metas(self, *, limit: int | None = None, directory: str | None = None) -> list[SessionMeta]:
        metas = [meta for meta in map(self._meta_of, self._ids()) if meta is not None]
        metas = [meta for meta in metas if directory is None or meta.directory == directory]
        return sorted(metas, key=lambda meta: meta.updated, reverse=True)[:limit]

    def search(self, query: SearchQuery) -> list[Hit]:
        phrases = phrases_of(query.text)
        if not phrases:
            return []
        try:
            # Only here, as sqlite3 may be missing and takes a while to import.
            from swink.memory.jsonlindex import JsonlIndex, NoIndex
        except ImportError:
            return search_all(self, query)
        try:
            found = JsonlIndex(self._folder).search(phrases, query, self._identities())
        except NoIndex as error:
            log.debug("no full-text index in %s, so all sessions are read: %s", self._folder, error)
            return search_all(self, query)
        ids = {hit.session for hit in found}
        titles = {id: meta.title if (meta := self._meta_of(id)) else "" for id in ids}
        return [hit_of(hit.session, titles[hit.session], hit.number, hit.message, phrases) for hit in found]

    def rename(self, id: str, title: str) -> SessionMeta:
        """A transaction without records, which leaves the sequence as it is."""
        with self._held(id) as file:
            known = self._know(id, file)
            meta = replace(known.meta, title=title, version=VERSION)
            return self._add(file, known, meta, (), True)

    def delete(self, id: str) -> None:
        with self._held(id), explained(f"session {id} cannot be deleted"):
            os.unlink(self._path(id))
            self._known.pop(id, None)
            if (file := self._open.pop(id, None)) is not None:
                file.close()
            with suppress(FileNotFoundError):
                os.unlink(transcript_of(self._folder, id))

    def close(self) -> None:
        """Close the files of sessions that were appended to last."""
        while self._open:
            with suppress(KeyError):  # another thread has just taken it
                self._open.popitem()[1].close()

    def check(self, id: str | None = None) -> list[Check]:
        return [self._checked(each) for each in ([id] if id is not None else sorted(self._ids()))]

    def repair(self, id: str) -> Repair:
        """Write what is sound of a session to a new file in its place."""
        with self._held(id) as file:
            contents, known = self._scanned(id, file.descriptor)
            if not contents.losses and known.ended:
                return Repair(id, (), None)
            path, data = self._path(id), _all_of(file.descriptor)
            kept = beside(path, "damaged")
            write_new(path, rewritten(data, contents), instead=kept)
            self._known.pop(id, None)
            return Repair(id, tuple(contents.losses), kept)

    def _path(self, id: str) -> str:
        return f"{self._prefix}{id}.jsonl"

    def _ids(self) -> list[str]:
        return [entry.name.removesuffix(".jsonl") for entry in self._entries()]

    def _identities(self) -> dict[str, Identity]:
        identities: dict[str, Identity] = {}
        for entry in self._entries():
            with suppress(FileNotFoundError):  # deleted meanwhile
                identities[entry.name.removesuffix(".jsonl")] = identity_of(entry.stat())
        return identities

    def _entries(self) -> list[os.DirEntry[str]]:
        try:
            with explained(f"the sessions in {self._folder}"), os.scandir(self._folder) as entries:
                found = list(entries)
        except SessionNotFound:
            return []
        for entry in found:
            if entry.name.endswith(".jsonl.new"):
                _sweep(entry)
        return [entry for entry in found if entry.name.endswith(".jsonl")]

    def _meta_of(self, id: str) -> SessionMeta | None:
        try:
            with self._opened(id) as file:
                size = os.fstat(file.fileno()).st_size
                file.seek(max(0, size - _TAIL))
                meta = last_meta(file.read(_TAIL)) or self._scanned(id, file.fileno())[0].meta
                return meta if meta.id == id else replace(meta, id=id)
        except SessionNotFound:
            return None  # deleted meanwhile
        except SessionError as error:
            log.warning("left out of the list: %s", error)
            return None

    def _checked(self, id: str) -> Check:
        try:
            with self._held(id, os.O_RDONLY) as file:
                contents, _ = self._scanned(id, file.descriptor)
        except SessionUnreadable as error:
            return Check(id, self._path(id), error=str(error))
        return Check(id, self._path(id), tuple(contents.losses), contents.meta.messages)

    @contextmanager
    def _opened(self, id: str) -> Generator[FileIO]:
        path = self._path(id)
        with explained(f"session {id} ({path})"), FileIO(os.open(path, os.O_RDONLY | CLOEXEC)) as file:
            yield file

    def _held(self, id: str, flags: int = os.O_RDWR | os.O_APPEND, *, stays_open: bool = False) -> HeldFile:
        return HeldFile(f"session {id}", self._path(id), flags, stays_open)

    def _close_oldest(self) -> None:
        with suppress(KeyError, StopIteration, RuntimeError):  # another thread closes or keeps one as well
            self._open.pop(next(iter(self._open))).close()

    def _scanned(self, id: str, descriptor: int) -> tuple[ScannedSession, _Known]:
        """What is in the file; what is known of it is remembered."""
        identity = identity_of(os.fstat(descriptor))
        data = _all_of(descriptor)
        contents = scan(data, self._path(id))
        if contents.meta.id != id:
            contents.meta = replace(contents.meta, id=id)  # the file was copied
        known = _Known(identity, contents.meta, data.endswith(b"\n"))
        self._remember(known)
        return contents, known

    def _know(self, id: str, file: HeldFile) -> _Known:
        """What is known of the file, after a look at what others have written."""
        identity = file.identity
        if (left := self._unwanted.get(id)) is not None:
            if left[1] == identity:
                os.ftruncate(file.descriptor, left[0])
                identity = identity_of(os.fstat(file.descriptor))
            del self._unwanted[id]
        known = self._known.get(id)
        if known is None or known.identity != identity:
            known = self._last_append(id, file.descriptor, identity) or self._scanned(id, file.descriptor)[1]
        return known

    def _last_append(self, id: str, descriptor: int, identity: Identity) -> _Known | None:
        """What the last transaction says of the file; None if that takes a look at all of it."""
        size = identity[1]
        os.lseek(descriptor, max(0, size - _LAST_APPEND), os.SEEK_SET)
        tail = os.read(descriptor, _LAST_APPEND)
        begin = tail.rfind(b"\n" + BEGIN) + 1
        if not begin or not tail.endswith(b"\n"):
            return None
        try:
            contents = scan(tail[begin:], self._path(id))
        except SessionUnreadable:
            return None
        if contents.losses:
            return None
        known = _Known(identity, replace(contents.meta, id=id), True)
        self._remember(known)
        return known

    def _remember(self, known: _Known) -> None:
        id = known.meta.id
        self._known.pop(id, None)
        if len(self._known) >= _MOST_KNOWN:
            with suppress(KeyError, StopIteration, RuntimeError):  # another thread evicts as well
                del self._known[next(iter(self._known))]
        self._known[id] = known

    def _add(
        self, file: HeldFile, known: _Known, meta: SessionMeta, records: Sequence[Record], durable: bool
    ) -> SessionMeta:
        data, descriptor = transaction(meta, records), file.descriptor
        try:
            write(descriptor, data if known.ended else b"\n" + data)
            if durable:
                sync(descriptor)
        except BaseException:
            self._undo(descriptor, known)
            raise
        now = os.fstat(descriptor)
        self._remember(_Known((now.st_ino, now.st_size, now.st_mtime_ns), meta, True))
        return meta

    def _undo(self, descriptor: int, known: _Known) -> None:
        """Take back what was written of a transaction that failed: now, or before the next one."""
        size = known.identity[1]
        try:
            os.ftruncate(descriptor, size)
        except OSError:
            self._unwanted[known.meta.id] = size, identity_of(os.fstat(descriptor))


def _all_of(descriptor: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    with FileIO(descriptor, closefd=False) as file:
        return file.readall()


def _make_directory(directory: Path) -> None:
    try:
        directory.mkdir(0o700, parents=True, exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from error
    except FileNotFoundError as error:  # not SessionNotFound: nobody has looked for a session
        advice = "choose another one (SWINK_SESSIONS_DIR)"
        raise SessionError(f"the directory {directory} cannot be made: {error.strerror}; {advice}") from error


def _sweep(entry: os.DirEntry[str]) -> None:
    """Remove what a killed process has left of a new file."""
    with suppress(OSError):
        if entry.stat().st_mtime < time.time() - _LEFT_FOR:
            os.unlink(entry)
