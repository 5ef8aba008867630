"""A backend over an SQL database: what SQLite and PostgreSQL have in common.

    sessions    key, id, updated, directory, meta (JSON), stamp (of the last append), token, holder, until
    records     key, session, record (JSON)
    messages    key, session, number, role, timestamp: what can be searched; the words are the database's own
    checkpoints key, name, data (JSON)

`token`, `holder` and `until` are the lease of the worker that has claimed a session.
"""

import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Struct

from swink.errors import SessionBusy, SessionConflict, SessionNotFound, SessionUnreadable
from swink.jsondata import clean, encode
from swink.memory.backend import Hit, Query, Stored
from swink.memory.meta import VERSION, SessionMeta, grown
from swink.records import CustomSaved, MessageSaved, Record, decode_record, encode_record

T = TypeVar("T")
log = logging.getLogger(__name__)

SEARCHED = 100_000
"""Characters of a message that can be searched; PostgreSQL takes a megabyte of words."""


class Rows(Protocol):
    """What a statement gave."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """A connection inside a transaction; the values of a statement stand in it as `?`."""

    def execute(self, sql: str, values: Sequence[Any] = ..., /) -> Rows: ...
    def executemany(self, sql: str, rows: Sequence[Sequence[Any]], /) -> Any: ...


class Database(Protocol):
    """Where the tables are."""

    NOW: str
    """SQL for its time in seconds since 1970: leases of all workers run by one clock."""
    LOCKED: str
    """SQL at the end of a SELECT that keeps other writers from that row."""

    def run(self, work: Callable[[Connection], T], *, durable: bool = True) -> T:
        """Do some work in one transaction; it may be done again if the connection was lost."""
        ...

    def look(self, work: Callable[[Connection], T]) -> T:
        """Read in one transaction, which sees one moment."""
        ...

    def index(self, connection: Connection, key: int, texts: "Sequence[Searched]") -> None:
        """Make messages of a session searchable."""
        ...

    def find(self, connection: Connection, query: Query) -> list[Any]:
        """(session id, metadata, number, role, timestamp, snippet) of messages, the best first."""
        ...

    def forget(self, connection: Connection, key: int) -> None:
        """Take the messages of a session out of the search."""
        ...

    def close(self) -> None:
        """Give back the connections; it may be used again."""
        ...


class Searched(Struct, frozen=True):
    """What a search can find of a message."""

    number: int
    role: str
    timestamp: float
    text: str


class _Row(Struct, frozen=True):
    """A session's row, locked until the transaction ends."""

    key: int
    meta: SessionMeta
    stamp: str
    token: int
    holder: str
    left: float
    """Seconds that the lease has left."""


class SqlBackend:
    """Sessions in a database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._row_sql = (
            f"SELECT key, meta, stamp, token, holder, until - {database.NOW} FROM sessions WHERE id = ?"
            + database.LOCKED
        )

    def create(self, meta: SessionMeta, records: Sequence[Record] = ()) -> SessionMeta:
        """Begin a session with these records; `SessionConflict` if there is one of that id."""
        meta = grown(meta, records) if records else meta
        stamp = secrets.token_hex(8)

        def work(connection: Connection) -> SessionMeta:
            made = connection.execute(
                "INSERT INTO sessions (id, updated, directory, meta, stamp) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (id) DO NOTHING",
                (meta.id, meta.updated, _directory(meta.directory), _encoded(meta), stamp),
            )
            row = self._row(connection, meta.id)
            if not made.rowcount and row.stamp != stamp:
                raise SessionConflict(f"there is already a session {meta.id}")
            if made.rowcount:
                self._add(connection, row.key, records)
            return meta

        return self.database.run(work)

    def read(self, id: str) -> Stored:
        """All of a session; `SessionNotFound` if there is none."""

        def work(connection: Connection) -> tuple[Any, list[Any]]:
            row = connection.execute("SELECT key, meta FROM sessions WHERE id = ?", (id,)).fetchone()
            if row is None:
                raise _not_found(id)
            lines = connection.execute(
                "SELECT record FROM records WHERE session = ? ORDER BY key", (row[0],)
            ).fetchall()
            return row[1], lines

        meta, lines = self.database.look(work)
        return Stored(_meta(id, meta), [_record(id, line) for (line,) in lines])

    def append(
        self,
        id: str,
        after: int,
        records: Sequence[Record],
        *,
        durable: bool = True,
        token: int | None = None,
    ) -> SessionMeta:
        """Add records in one transaction; `token` is that of the claim under which it is done."""
        stamp = secrets.token_hex(8)

        def work(connection: Connection) -> SessionMeta:
            row = self._row(connection, id)
            if row.stamp == stamp:
                return row.meta  # the connection was lost after all was stored
            _check_claim(id, row, token)
            if row.meta.sequence != after:
                raise SessionConflict(f"session {id} was continued elsewhere; open it again, or fork it")
            meta = grown(row.meta, records)
            self._add(connection, row.key, records)
            connection.execute(
                "UPDATE sessions SET updated = ?, meta = ?, stamp = ? WHERE key = ?",
                (meta.updated, _encoded(meta), stamp, row.key),
            )
            return meta

        return self.database.run(work, durable=durable)

    def metas(self, *, limit: int | None = None, directory: str | None = None) -> list[SessionMeta]:
        """The sessions, the last updated first; what cannot be read is left out, with a warning."""
        where, values = ("", []) if directory is None else ("WHERE directory = ? ", [_directory(directory)])
        sql = f"SELECT id, meta FROM sessions {where}ORDER BY updated DESC, key DESC"
        if limit is not None:
            sql, values = sql + " LIMIT ?", [*values, max(0, limit)]
        rows = self.database.look(lambda connection: connection.execute(sql, values).fetchall())
        metas: list[SessionMeta] = []
        for id, text in rows:
            try:
                metas.append(_meta(id, text))
            except SessionUnreadable as error:
                log.warning("%s", error)
        return metas

    def search(self, query: Query) -> list[Hit]:
        """Messages, the best first."""
        rows = self.database.look(lambda connection: self.database.find(connection, query))
        return [Hit(id, _meta(id, meta).title, *found) for id, meta, *found in rows]

    def rename(self, id: str, title: str) -> SessionMeta:
        """Give it another title; the sequence stays, so that nobody who writes is disturbed."""

        def work(connection: Connection) -> SessionMeta:
            row = self._row(connection, id)
            meta = msgspec.structs.replace(row.meta, title=title)
            connection.execute("UPDATE sessions SET meta = ? WHERE key = ?", (_encoded(meta), row.key))
            return meta

        return self.database.run(work)

    def delete(self, id: str) -> None:
        """Forget it; `SessionNotFound` if there is none."""

        def work(connection: Connection) -> None:
            sql = "SELECT key FROM sessions WHERE id = ?" + self.database.LOCKED
            row = connection.execute(sql, (id,)).fetchone()
            if row is None:
                raise _not_found(id)
            self.database.forget(connection, row[0])
            connection.execute("DELETE FROM records WHERE session = ?", row)
            connection.execute("DELETE FROM sessions WHERE key = ?", row)

        self.database.run(work)

    def claim(self, id: str, holder: str, seconds: float) -> int:
        """Take the lease of a session; `SessionBusy` if another worker has it. Returns its fencing token."""

        def work(connection: Connection) -> int:
            row = self._row(connection, id)
            if row.holder == holder:
                return row.token  # the connection was lost after it was taken
            if row.left > 0:
                raise _busy(id, row)
            connection.execute(
                f"UPDATE sessions SET token = ?, holder = ?, until = {self.database.NOW} + ? WHERE key = ?",
                (row.token + 1, holder, seconds, row.key),
            )
            return row.token + 1

        return self.database.run(work)

    def renew(self, id: str, token: int, seconds: float) -> bool:
        """Make a lease last from now on; False if it is somebody else's by now."""
        sql = f"UPDATE sessions SET until = {self.database.NOW} + ? WHERE id = ? AND token = ?"
        return self._changed(sql, (seconds, id, token))

    def give_back(self, id: str, token: int) -> bool:
        """End a lease: its token is worth nothing from here on."""
        sql = "UPDATE sessions SET token = token + 1, holder = '', until = 0 WHERE id = ? AND token = ?"
        return self._changed(sql, (id, token))

    def close(self) -> None:
        """Give back what it holds; it may be used again."""
        self.database.close()

    def _changed(self, sql: str, values: Sequence[Any]) -> bool:
        return self.database.run(
            lambda connection: connection.execute(sql, values).rowcount > 0, durable=False
        )

    def _row(self, connection: Connection, id: str) -> _Row:
        found = connection.execute(self._row_sql, (id,)).fetchone()
        if found is None:
            raise _not_found(id)
        key, meta, *rest = found
        return _Row(key, _meta(id, meta), *rest)

    def _add(self, connection: Connection, key: int, records: Sequence[Record]) -> None:
        if not records:
            return
        connection.executemany(
            "INSERT INTO records (session, record) VALUES (?, ?)",
            [(key, encode_record(record).decode()) for record in records],
        )
        if texts := list(searched(records)):
            self.database.index(connection, key, texts)


def searched(records: Sequence[Record]) -> Iterator[Searched]:
    """What of these records a search can find."""
    for record in records:
        if isinstance(record, MessageSaved | CustomSaved):
            message = record.message
            text = clean(getattr(message, "text", "")[:SEARCHED]).replace("\0", " ")
            if text:
                yield Searched(record.number, message.role, message.timestamp, text)


def _check_claim(id: str, row: _Row, token: int | None) -> None:
    """Refuse an append of a worker that has lost its claim, or of one without while another has it."""
    if token is None:
        if row.left > 0:
            raise _busy(id, row)
    elif token != row.token:
        raise SessionConflict(
            f"the claim on session {id} has ended: it was given back, or was not renewed in time and "
            "another worker took over; nothing of this append is saved. Claim it again to go on"
        )


def _busy(id: str, row: _Row) -> SessionBusy:
    return SessionBusy(
        f"session {id} is held by {row.holder} for {row.left:.0f} more seconds, unless it renews its claim; "
        "try again later"
    )


def _not_found(id: str) -> SessionNotFound:
    return SessionNotFound(f"there is no session {id!r}")


def _encoded(meta: SessionMeta) -> str:
    return encode(meta).decode()


def _directory(directory: str | None) -> str | None:
    return None if directory is None else clean(directory).replace("\0", " ")


def _meta(id: str, text: str) -> SessionMeta:
    try:
        meta = msgspec.json.decode(text, type=SessionMeta)
    except (msgspec.DecodeError, TypeError) as error:
        raise SessionUnreadable(f"session {id} is damaged: {error}") from error
    if meta.version > VERSION:
        raise SessionUnreadable(
            f"session {id} has version {meta.version}, and this release knows {VERSION}: update swink"
        )
    return meta


def _record(id: str, line: str) -> Record:
    try:
        return decode_record(line)
    except (msgspec.DecodeError, TypeError) as error:
        raise SessionUnreadable(f"session {id} has a record that cannot be read: {error}") from error
