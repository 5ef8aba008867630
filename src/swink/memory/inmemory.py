"""A store in memory, for tests and for conversations that nobody keeps."""

from collections.abc import Sequence
from threading import Lock

from msgspec.structs import replace

from swink.errors import SessionConflict, SessionNotFound
from swink.memory.backend import Hit, SearchQuery, Stored
from swink.memory.meta import SessionMeta, grown
from swink.memory.searching import search_all
from swink.memory.store import Store
from swink.messages.records import Record


class MemoryStore(Store):
    """Sessions that end with the program."""

    def __init__(self) -> None:
        super().__init__(_Backend())


class _Backend:
    def __init__(self) -> None:
        self._sessions: dict[str, Stored] = {}
        self._lock = Lock()

    def create(self, meta: SessionMeta, records: Sequence[Record] = ()) -> SessionMeta:
        with self._lock:
            if meta.id in self._sessions:
                raise SessionConflict(f"there is already a session {meta.id}")
            meta = grown(meta, records) if records else meta
            self._sessions[meta.id] = Stored(meta, tuple(records))
            return meta

    def read(self, id: str) -> Stored:
        try:
            return self._sessions[id]
        except KeyError:
            raise SessionNotFound(f"there is no session {id!r}") from None

    def append(self, id: str, after: int, records: Sequence[Record], *, durable: bool = True) -> SessionMeta:
        with self._lock:
            stored = self.read(id)
            if stored.meta.sequence != after:
                raise SessionConflict(f"session {id} was continued elsewhere; open it again, or fork it")
            meta = grown(stored.meta, records)
            self._sessions[id] = Stored(meta, (*stored.records, *records))
            return meta

    def metas(self, *, limit: int | None = None, directory: str | None = None) -> list[SessionMeta]:
        metas = [stored.meta for stored in list(self._sessions.values())]
        metas = [meta for meta in metas if directory is None or meta.directory == directory]
        return sorted(metas, key=lambda meta: meta.updated, reverse=True)[:limit]

    def search(self, query: SearchQuery) -> list[Hit]:
        return search_all(self, query)

    def rename(self, id: str, title: str) -> SessionMeta:
        with self._lock:
            stored = self.read(id)
            meta = replace(stored.meta, title=title)
            self._sessions[id] = Stored(meta, stored.records)
            return meta

    def delete(self, id: str) -> None:
        with self._lock:
            self.read(id)
            del self._sessions[id]

    def close(self) -> None:
        pass
