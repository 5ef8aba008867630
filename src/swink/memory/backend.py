"""Backend: the few blocking calls that a kind of storage has to offer; the rest is built on them.

A backend is called from any thread, by one call at a time per session object, and by several processes at
once. An append is one transaction: it is there as a whole when `append` has returned, or not at all.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from msgspec import Struct

from swink.memory.meta import SessionMeta
from swink.messages.records import Record


class Stored(Struct, frozen=True):
    """A session as it is stored.

    Args:
        meta: what a list shows of it
        records: everything in it, in order
    """

    meta: SessionMeta
    records: Sequence[Record]


class SearchQuery(Struct, frozen=True, kw_only=True):
    """What is searched for: all the words, or "a phrase"; times are seconds since 1970.

    Args:
        text: the words
        limit: hits at most
        after: not earlier than this
        before: not later than this
        session: the id of the only session to search
        role: who must have spoken
    """

    text: str
    limit: int = 20
    after: float | None = None
    before: float | None = None
    session: str | None = None
    role: str | None = None


class Hit(Struct, frozen=True):
    """A message that was found: `snippet` is its text around what was found, which stands in «…».

    Args:
        session: its id
        title: its title
        number: the number of the message in it
        role: who spoke
        timestamp: when, in seconds since 1970
    """

    session: str
    title: str
    number: int
    role: str
    timestamp: float
    snippet: str


class Loss(Struct, frozen=True):
    """A part of a stored session that cannot be used: where it is, how much, and why.

    Args:
        offset: where it begins
        bytes: how long it is
        problem: why it cannot be used
    """

    line: int
    """The number of its first line, counted from 1."""
    offset: int
    bytes: int
    problem: str


class Check(Struct, frozen=True):
    """Whether a stored session is as it was written; `error` if nothing of it can be read.

    Args:
        id: the session
        path: its file, if it has one of its own
        losses: what cannot be read
        messages: how many can
    """

    id: str
    path: str | None = None
    losses: tuple[Loss, ...] = ()
    messages: int = 0
    error: str | None = None

    @property
    def sound(self) -> bool:
        """Whether all of it can be read."""
        return not self.losses and self.error is None


class Repair(Struct, frozen=True):
    """What was taken out of a session, and where the damaged one is now; None if it was sound.

    Args:
        id: the session
        losses: what was taken out
    """

    id: str
    losses: tuple[Loss, ...]
    damaged: str | None


class Backend(Protocol):
    """Storage for sessions: eight blocking calls, from which a `Store` makes the rest."""

    def create(self, meta: SessionMeta, records: Sequence[Record] = ()) -> SessionMeta:
        """Begin the session of `meta` with these records; `SessionConflict` if there is one of that id."""
        ...

    def read(self, id: str) -> Stored:
        """All of the session `id`; `SessionNotFound` if there is none."""
        ...

    def append(self, id: str, after: int, records: Sequence[Record], *, durable: bool = True) -> SessionMeta:
        """Add records to the session `id` at once; `SessionConflict` unless `after` is its sequence.

        One that need not be durable survives the end of the process, not that of the machine.
        """
        ...

    def metas(self, *, limit: int | None = None, directory: str | None = None) -> list[SessionMeta]:
        """The sessions, at most `limit`, of one `directory` or all, the last updated first; broken ones are
        left out.
        """
        ...

    def search(self, query: SearchQuery) -> list[Hit]:
        """The messages that match the `query`, the latest first."""
        ...

    def rename(self, id: str, title: str) -> SessionMeta:
        """Give the session `id` another title; the sequence stays, so that nobody who writes is disturbed."""
        ...

    def delete(self, id: str) -> None:
        """Forget the session `id`; `SessionNotFound` if there is none."""

    def close(self) -> None:
        """Give back what it holds; it may be used again."""


@runtime_checkable
class RepairableBackend(Protocol):
    """Storage of which a part may be damaged while the rest can be read, such as files."""

    def check(self, id: str | None = None) -> list[Check]:
        """What is damaged in a session, or in any; also of those that `metas` leaves out."""
        ...

    def repair(self, id: str) -> Repair:
        """Take out what is damaged and keep the rest; `SessionUnreadable` if there is nothing to keep."""
        ...
