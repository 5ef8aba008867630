"""A backend over an SQL database: what SQLite and PostgreSQL have in common.

    sessions     key, id, updated, directory, meta (JSON), stamp (of the last append), token, holder, until
    records      key, session, version, record (JSON); number, role and timestamp of one that is a message
    checkpoints  key, name, saved, data (JSON)

`token`, `holder` and `until` are the lease of the worker that has claimed a session. The index of words is
each database's own.
"""

import logging
import os
import secrets
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar
from weakref import WeakSet

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from swink.errors import SessionBusy, SessionConflict, SessionNotFound, SessionUnreadable
from swink.memory.backend import Hit, SearchQuery, Stored
from swink.memory.meta import VERSION, SessionMeta, check_version, grown, migrated
from swink.memory.searching import Phrase, hit_of, phrases_of, searchable, words_of
from swink.messages.jsondata import clean, encode
from swink.messages.records import (
    CustomSaved,
    MessageSaved,
    Record,
    decode_record,
    decode_records,
    encode_record,
)

T = TypeVar("T")
log = logging.getLogger(__name__)

SEARCHED = 1_000_000
"""Characters of a message that can be searched."""


class Rows(Protocol):
    """The rows that a statement returned, as database cursors have them."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """A connection inside a transaction; the values of a statement stand in it as `?`."""

    def execute(self, sql: str, values: Sequence[Any] = ..., /) -> Rows: ...
    def executemany(self, sql: str, rows: Sequence[Sequence[Any]], /) -> Any: ...


class Database(Protocol):
    """A database with the tables: transactions, and what SQLite and PostgreSQL do differently."""

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

    def add(self, connection: Connection, key: int, lines: "Sequence[StoredRecord]") -> None:
        """Add records to a session, and their words to the index."""

    def find(self, connection: Connection, phrases: Sequence[Phrase], query: SearchQuery) -> list[Any]:
        """(session id, its metadata, record, version) of messages with all the phrases, the latest first."""
        ...

    def forget(self, connection: Connection, key: int) -> None:
        """Remove the records of a session, and their words."""

    def close(self) -> None:
        """Give back the connections; it may be used again."""

    def after_fork(self) -> list[Any]:
        """Begin anew in a child process; returns the connections of its parent."""
        ...


class StoredRecord(Struct, frozen=True):
    """A record as it is stored; `words` are those by which a message is found."""

    record: str
    number: int | None = None
    role: str | None = None
    timestamp: float | None = None
    words: Sequence[str] = ()


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
    """The backend of `SqliteStore` and `PostgresStore`, with leases: see `Backend` and `LeasingBackend`."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._row_sql = (
            f"SELECT key, meta, stamp, token, holder, until - {database.NOW} FROM sessions WHERE id = ?"
            + database.LOCKED
        )

    def create(self, meta: SessionMeta, records: Sequence[Record] = ()) -> SessionMeta:
        meta = grown(meta, records) if records else meta
        stamp = secrets.token_hex(8)

        def work(connection: Connection) -> SessionMeta:
            made = connection.execute(
                "INSERT INTO sessions (id, updated, directory, meta, stamp) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (id) DO NOTHING",
                (meta.id, meta.updated, _directory(meta.directory), encode(meta).decode(), stamp),
            )
            row = self._row(connection, meta.id)
            if not made.rowcount and row.stamp != stamp:
                raise SessionConflict(f"there is already a session {meta.id}")
            if made.rowcount:
                self._add(connection, row.key, records)
            return meta

        return self.database.run(work)

    def read(self, id: str) -> Stored:
        def work(connection: Connection) -> tuple[Any, list[Any]]:
            row = connection.execute("SELECT key, meta FROM sessions WHERE id = ?", (id,)).fetchone()
            if row is None:
                raise _not_found(id)
            lines = connection.execute(
                "SELECT record, version FROM records WHERE session = ? ORDER BY key", (row[0],)
            ).fetchall()
            return row[1], lines

        meta, lines = self.database.look(work)
        return Stored(_meta(id, meta), _records(id, lines))

    def append(
        self,
        id: str,
        after: int,
        records: Sequence[Record],
        *,
        durable: bool = True,
        token: int | None = None,
    ) -> SessionMeta:
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
                (meta.updated, encode(meta).decode(), stamp, row.key),
            )
            return meta

        return self.database.run(work, durable=durable)

    def metas(self, *, limit: int | None = None, directory: str | None = None) -> list[SessionMeta]:
        where, values = ("", []) if directory is None else ("WHERE directory = ? ", [_directory(directory)])
        sql = f"SELECT id, meta FROM sessions {where}ORDER BY updated DESC, key DESC"
        if limit is not None:
            sql, values = sql + " LIMIT ?", [*values, limit]
        rows = self.database.look(lambda connection: connection.execute(sql, values).fetchall())
        metas: list[SessionMeta] = []
        for id, text in rows:
            try:
                metas.append(_meta(id, text))
            except SessionUnreadable as error:
                log.warning("%s", error)
        return metas

    def search(self, query: SearchQuery) -> list[Hit]:
        phrases = phrases_of(clean(query.text))
        if not phrases:
            return []
        rows = self.database.look(lambda connection: self.database.find(connection, phrases, query))
        hits: list[Hit] = []
        for id, meta, *line in rows:
            (record,) = _records(id, [line])
            assert isinstance(record, MessageSaved | CustomSaved)
            hits.append(hit_of(id, _meta(id, meta).title, record.number, record.message, phrases))
        return hits

    def rename(self, id: str, title: str) -> SessionMeta:
        def work(connection: Connection) -> SessionMeta:
            row = self._row(connection, id)
            meta = replace(row.meta, title=title)
            connection.execute("UPDATE sessions SET meta = ? WHERE key = ?", (encode(meta).decode(), row.key))
            return meta

        return self.database.run(work)

    def delete(self, id: str) -> None:
        def work(connection: Connection) -> None:
            sql = "SELECT key FROM sessions WHERE id = ?" + self.database.LOCKED
            row = connection.execute(sql, (id,)).fetchone()
            if row is None:
                raise _not_found(id)
            self.database.forget(connection, row[0])
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
        sql = f"UPDATE sessions SET until = {self.database.NOW} + ? WHERE id = ? AND token = ?"
        return self._changed(sql, (seconds, id, token))

    def give_back(self, id: str, token: int) -> bool:
        sql = "UPDATE sessions SET token = token + 1, holder = '', until = 0 WHERE id = ? AND token = ?"
        return self._changed(sql, (id, token))

    def close(self) -> None:
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
        if records:
            self.database.add(connection, key, [*map(_line, records)])


def watch_forks(database: Database) -> None:
    """Call `after_fork` in child processes, where a connection must neither be used nor closed."""
    _open.add(database)


def _after_fork() -> None:
    for database in list(_open):
        _of_parents.extend(database.after_fork())


_open: WeakSet[Database] = WeakSet()
_of_parents: list[Any] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def filters_of(query: SearchQuery) -> tuple[str, list[Any]]:
    """The conditions of a query on the table of records, and their values."""
    wanted: list[tuple[str, Any]] = [
        ("timestamp > ?", query.after),
        ("timestamp < ?", query.before),
        ("sessions.id = ?", query.session),
        ("role = ?", query.role),
    ]
    return (
        "".join(f" AND {condition}" for condition, value in wanted if value is not None),
        [value for _, value in wanted if value is not None],
    )


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


def _directory(directory: str | None) -> str | None:
    return None if directory is None else clean(directory).replace("\0", " ")


def _line(record: Record) -> StoredRecord:
    text = encode_record(record).decode()
    if not isinstance(record, MessageSaved | CustomSaved):
        return StoredRecord(text)
    message = record.message
    words = words_of(clean(searchable(message)[:SEARCHED]))
    return StoredRecord(text, record.number, message.role, message.timestamp, words)


def _meta(id: str, text: str) -> SessionMeta:
    where = f"session {id}"
    try:
        meta = msgspec.json.decode(text, type=SessionMeta)
        if check_version(meta.version, where) == VERSION:
            return meta
        return msgspec.convert(migrated(msgspec.json.decode(text), meta.version), SessionMeta)
    except (msgspec.DecodeError, TypeError) as error:
        raise SessionUnreadable(f"{where} is damaged: {error}") from error


def _records(id: str, lines: Sequence[Sequence[Any]]) -> list[Record]:
    """The records in rows of text and version."""
    where = f"session {id}"
    try:
        if all(version == VERSION for _, version in lines):
            return decode_records("\n".join([text for text, _ in lines]).encode())
        return [
            decode_record(encode(migrated(msgspec.json.decode(text), check_version(version, where))))
            for text, version in lines
        ]
    except (msgspec.DecodeError, TypeError) as error:
        raise SessionUnreadable(f"{where} has a record that cannot be read: {error}") from error
