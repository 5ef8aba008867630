"""Sessions in a PostgreSQL database, for workers on several machines: a few connections, the tables."""

import re
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from swink.errors import InvalidInput, SessionError, SessionUnreadable
from swink.memory.backend import SearchQuery
from swink.memory.meta import VERSION
from swink.memory.postgresserver import PostgresServer
from swink.memory.searching import Phrase
from swink.memory.sqlbackend import Connection, SqlBackend, StoredRecord, filters_of, watch_forks
from swink.memory.store import Store

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")

CONNECTIONS = 4
"""How many a store has at most; a call waits while all are in use."""
PATIENCE = 10.0
"""Seconds to wait for a server that was there before: it may be starting again."""
BUSY = "30s"
"""How long to wait for another program that has locked a session."""
_LATEST = 5_000
"""Records that are searched before all of them are."""
_MOST_WORDS = 900_000
"""Bytes of the words of one message; PostgreSQL takes a megabyte."""
_LONGEST_WORD = 2046
"""Bytes that PostgreSQL takes as a word."""
_MOST_PLACES, _LAST_PLACE = 255, 16383
"""How many places of a word, and which, it keeps; without one, a word is found, but not in a phrase."""
_CREATING = 0x5377696E6B
"""The advisory lock under which the tables are created."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE sessions (
            key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id TEXT NOT NULL UNIQUE,
            updated DOUBLE PRECISION NOT NULL, directory TEXT, meta TEXT NOT NULL, stamp TEXT NOT NULL,
            token BIGINT NOT NULL DEFAULT 0, holder TEXT NOT NULL DEFAULT '',
            until DOUBLE PRECISION NOT NULL DEFAULT 0
        )""",
        "CREATE INDEX sessions_updated ON sessions (updated)",
        """CREATE TABLE records (
            key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, session BIGINT NOT NULL,
            version INTEGER NOT NULL, record TEXT NOT NULL,
            number BIGINT, role TEXT, timestamp DOUBLE PRECISION, words TSVECTOR
        )""",
        "CREATE INDEX records_session ON records (session, key)",
        "CREATE INDEX records_words ON records USING gin (words)",
        """CREATE TABLE checkpoints (
            key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name TEXT NOT NULL,
            saved DOUBLE PRECISION NOT NULL, data TEXT NOT NULL
        )""",
        "CREATE INDEX checkpoints_name ON checkpoints (name, key)",
    ),
)
"""What leads from each version of the tables to the next; the number of them is the version."""


class PostgresStore(Store):
    """Sessions in the tables of a schema of their own, which is created on first use.

    Args:
        dsn: the database, as libpq takes it
        schema: the schema of the tables

    >>> store = PostgresStore("postgresql://user:password@host:5432/database")
    """

    def __init__(self, dsn: str, *, schema: str = "swink") -> None:
        super().__init__(SqlBackend(PostgresDatabase(dsn, schema)))


class PostgresDatabase:
    """The `Database` with its tables in a schema of their own, created when they are first used."""

    NOW: str = "extract(epoch FROM clock_timestamp())::float8"
    LOCKED: str = " FOR UPDATE"

    def __init__(self, dsn: str, schema: str = "swink") -> None:
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema) or schema.startswith("pg_"):
            raise InvalidInput(f"schema={schema!r}: a name of lower-case letters, digits and _")
        self._server = PostgresServer(dsn)
        self._schema = schema
        self._idle: list[psycopg.Connection[Any]] = []
        self._slots = threading.BoundedSemaphore(CONNECTIONS)
        self._is_ready = False
        watch_forks(self)

    def run(self, work: Callable[[Connection], T], *, durable: bool = True) -> T:
        return self._transact("BEGIN" if durable else "BEGIN; SET LOCAL synchronous_commit TO off", work)

    def look(self, work: Callable[[Connection], T]) -> T:
        return self._transact("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", work)

    def add(self, connection: Connection, key: int, lines: Sequence[StoredRecord]) -> None:
        connection.executemany(
            "INSERT INTO records (session, version, record, number, role, timestamp, words)"
            " VALUES (?, ?, ?, ?, ?, ?, ?::tsvector)",
            [
                (key, VERSION, line.record, line.number, line.role, line.timestamp, _vector(line.words))
                for line in lines
            ],
        )

    def find(self, connection: Connection, phrases: Sequence[Phrase], query: SearchQuery) -> list[Any]:
        filters, values = filters_of(query)
        if any(len(word.encode()) > _LONGEST_WORD for phrase in phrases for word in phrase):
            return []
        wanted = " & ".join("('" + "' <-> '".join(phrase) + "')" for phrase in phrases)
        select = (
            "SELECT sessions.id, sessions.meta, record, version FROM records JOIN sessions ON sessions.key ="
            f" session WHERE words @@ ?::tsquery{filters}"
        )
        # A common word is found soon among the latest records; for any other the index of words is fast.
        # PostgreSQL cannot tell one from the other, and takes a hundred times longer if it is wrong.
        latest = f" AND records.key > (SELECT max(key) FROM records) - {_LATEST}"
        ordered = f"{select}{latest} ORDER BY records.key DESC LIMIT ?"
        found = connection.execute(ordered, (wanted, *values, query.limit)).fetchall()
        if len(found) == query.limit:
            return found
        indexed = " ORDER BY records.key + 0 DESC LIMIT ?"
        return connection.execute(select + indexed, (wanted, *values, query.limit)).fetchall()

    def forget(self, connection: Connection, key: int) -> None:
        connection.execute("DELETE FROM records WHERE session = ?", (key,))

    def close(self) -> None:
        while self._idle:
            with suppress(IndexError):  # another thread took it
                self._idle.pop().close()

    def __del__(self) -> None:
        if getattr(self, "_idle", None):
            self.close()

    def after_fork(self) -> list[Any]:
        self._slots = threading.BoundedSemaphore(CONNECTIONS)
        left, self._idle = self._idle, []
        return left

    def _transact(self, begin: str, work: Callable[[Connection], T]) -> T:
        import psycopg

        setup = f"{begin}; SET LOCAL search_path TO {self._schema}; SET LOCAL lock_timeout TO '{BUSY}'"
        with self._slots:
            for is_last in (False, True):
                connection = self._acquire()
                try:
                    connection.execute(setup.encode())
                    result = work(_Connection(connection))
                    connection.execute(b"COMMIT")
                except SessionError:
                    self._roll_back(connection)
                    raise
                except psycopg.Error as error:
                    is_lost = connection.closed
                    connection.close()
                    if is_last or not is_lost:
                        raise self._server.problem(error) from None
                    self.close()  # what is idle has lost its server too
                except BaseException:
                    connection.close()
                    raise
                else:
                    self._idle.append(connection)
                    return result
        raise AssertionError("unreachable")

    def _roll_back(self, connection: "psycopg.Connection[Any]") -> None:
        import psycopg

        try:
            connection.execute(b"ROLLBACK")
            self._idle.append(connection)
        except psycopg.Error:
            connection.close()

    def _acquire(self) -> "psycopg.Connection[Any]":
        """A connection that is idle, or a new one; a server that was there before is waited for."""
        with suppress(IndexError):
            return self._idle.pop()
        deadline = time.monotonic() + (PATIENCE if self._is_ready else 0.0)
        while True:
            try:
                connection = self._server.connect()
                break
            except SessionError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        try:
            if not self._is_ready:
                self._prepare(connection)
                self._is_ready = True
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: "psycopg.Connection[Any]") -> None:
        """Create the tables, or bring them up to date; one process does, and the others wait for it."""
        import psycopg

        try:
            if self._version(connection) < len(MIGRATIONS):
                with connection.transaction():
                    connection.execute(b"SELECT pg_advisory_xact_lock(%s)", (_CREATING,))
                    version = self._version(connection)
                    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {self._schema}".encode())
                    connection.execute(f"SET LOCAL search_path TO {self._schema}".encode())
                    for statements in MIGRATIONS[version:]:
                        for statement in statements:
                            connection.execute(statement.encode())
                    connection.execute(b"CREATE TABLE IF NOT EXISTS version (version INTEGER NOT NULL)")
                    connection.execute(b"DELETE FROM version")
                    connection.execute(b"INSERT INTO version VALUES (%s)", (len(MIGRATIONS),))
        except psycopg.Error as error:
            raise self._server.problem(error) from None

    def _version(self, connection: "psycopg.Connection[Any]") -> int:
        """The version of the tables, 0 if there are none; a schema of another program is refused."""
        name = f"{self._schema}.version"
        ((table, tables),) = connection.execute(
            b"SELECT to_regclass(%s), (SELECT count(*) FROM pg_class JOIN pg_namespace"
            b" ON pg_namespace.oid = relnamespace WHERE nspname = %s)",
            (name, self._schema),
        )
        if table is None:
            if tables:
                raise SessionUnreadable(
                    f"the schema {self._schema} of {self._server} belongs to another program; give another "
                    "one with schema="
                )
            return 0
        row = connection.execute(f"SELECT version FROM {name}".encode()).fetchone()
        version = row[0] if row else 0
        if version > len(MIGRATIONS):
            raise SessionUnreadable(
                f"the schema {self._schema} of {self._server} has version {version}, and this release "
                f"knows {len(MIGRATIONS)}: update swink"
            )
        return version


class _Connection:
    """A connection whose statements have `?` for values."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self._connection = connection

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Any:
        return self._connection.execute(_statement(sql), values)

    def executemany(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_statement(sql), rows)


@lru_cache(256)
def _statement(sql: str) -> bytes:
    return sql.replace("?", "%s").encode()


def _vector(words: Sequence[str]) -> str | None:
    """Words with their places, as many as PostgreSQL takes."""
    places: dict[str, list[int]] = {}
    size = 0
    for place, word in enumerate(words, 1):
        if word not in places:
            length = len(word.encode())
            if length > _LONGEST_WORD or size + length + 8 > _MOST_WORDS:
                continue
            size += length + 8
            places[word] = []
        if len(places[word]) < _MOST_PLACES and place <= _LAST_PLACE:
            places[word].append(place)
            size += 2
    return " ".join([f"'{word}':{','.join(map(str, at))}".rstrip(":") for word, at in places.items()]) or None
