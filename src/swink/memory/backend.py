"""Backend: the few blocking calls that a kind of storage has to offer; the rest is built on them.

A backend is called from any thread, by one call at a time per session object, and by several processes at
once. An append is one transaction: it is there as a whole when `append` has returned, or not at all.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from swink.memory.meta import SessionMeta
from swink.records import Record


class Stored(Struct, frozen=True):
    """A session as it is stored."""

    meta: SessionMeta
    records: Sequence[Record]


class Query(Struct, frozen=True, kw_only=True):
    """What is searched for: all the words, or "a phrase"; times are seconds since 1970."""

    text: str
    limit: int = 20
    after: float | None = None
    before: float | None = None
    session: str | None = None
    role: str | None = None


class Hit(Struct, frozen=True):
    """A message that was found: `snippet` is its text around what was found, which stands in «…»."""

    session: str
    title: str
    number: int
    role: str
    timestamp: float
    snippet: str


class Backend(Protocol):
    """Where sessions are kept."""

    def create(self, meta: SessionMeta, records: Sequence[Record] = ()) -> SessionMeta:
        """Begin a session with these records; `SessionConflict` if there is one of that id."""
        ...

    def read(self, id: str) -> Stored:
        """All of a session; `SessionNotFound` if there is none."""
        ...

    def append(self, id: str, after: int, records: Sequence[Record], *, durable: bool = True) -> SessionMeta:
        """Add records in one transaction; `SessionConflict` unless `after` is the session's sequence.

        One that need not be durable survives the end of the process, not that of the machine.
        """
        ...

    def metas(self, *, limit: int | None = None, directory: str | None = None) -> list[SessionMeta]:
        """The sessions, the last updated first; what cannot be read is left out, with a warning."""
        ...

    def search(self, query: Query) -> list[Hit]:
        """Messages, the latest first."""
        ...

    def rename(self, id: str, title: str) -> SessionMeta:
        """Give it another title; the sequence stays, so that nobody who writes is disturbed."""
        ...

    def delete(self, id: str) -> None:
        """Forget it; `SessionNotFound` if there is none."""
        ...

    def close(self) -> None:
        """Give back what it holds; it may be used again."""
        ...
