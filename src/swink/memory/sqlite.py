"""Sessions in an SQLite file: WAL, one connection, a lock, errors that say what to do."""

import errno
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from swink.errors import InvalidInput, SessionBusy, SessionError, SessionNotFound, SessionUnreadable
from swink.memory.backend import SearchQuery
from swink.memory.meta import VERSION
from swink.memory.searching import Phrase
from swink.memory.sqlbackend import Connection, SqlBackend, StoredRecord, filters_of, watch_forks
from swink.memory.store import Store
from swink.messages.checks import check_type

T = TypeVar("T")

APPLICATION = 0x5377696E
"""Marks the file as one of ours; `file` and SQLite know it as the application id."""
BUSY = 30.0
"""Seconds to wait for another program that writes."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE sessions (
            key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, updated REAL NOT NULL, directory TEXT,
            meta TEXT NOT NULL, stamp TEXT NOT NULL,
            token INTEGER NOT NULL DEFAULT 0, holder TEXT NOT NULL DEFAULT '', until REAL NOT NULL DEFAULT 0
        )""",
        "CREATE INDEX sessions_updated ON sessions (updated)",
        """CREATE TABLE records (
            key INTEGER PRIMARY KEY, session INTEGER NOT NULL, version INTEGER NOT NULL, record TEXT NOT NULL,
            number INTEGER, role TEXT, timestamp REAL
        )""",
        "CREATE INDEX records_session ON records (session)",
        "CREATE VIRTUAL TABLE words USING fts5 (text,"
        """ tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* S* Co'")""",
        """CREATE TABLE checkpoints (
            key INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, saved REAL NOT NULL, data TEXT NOT NULL
        )""",
        "CREATE INDEX checkpoints_name ON checkpoints (name)",
    ),
)
"""What leads from each version of the tables to the next; the number of them is the version."""


_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


class SqliteStore(Store):
    """Sessions in an SQLite file (mode 0600), which is created with its directory (0700) on first use.

    Args:
        path: the file
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(SqlBackend(SqliteFile(path)))


class SqliteFile:
    """The `Database` in a file, created with its directory when it is first used."""

    NOW: str = "((julianday('now') - 2440587.5) * 86400.0)"
    LOCKED: str = ""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        check_type("path", path, (str, os.PathLike))
        if str(path) == ":memory:" or "://" in str(path):
            raise InvalidInput(  # without the path: an address may hold a password
                "path is that of an SQLite file, such as data/sessions.db; what nobody keeps goes into "
                "MemoryStore(), and the address of a PostgreSQL server to PostgresStore(dsn)"
            )
        self.path = Path(path).absolute()
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._is_durable: bool | None = None
        watch_forks(self)

    def run(self, work: Callable[[Connection], T], *, durable: bool = True) -> T:
        return self._transact("BEGIN IMMEDIATE", work, durable)

    def look(self, work: Callable[[Connection], T]) -> T:
        return self._transact("BEGIN", work, None)

    def add(self, connection: Connection, key: int, lines: Sequence[StoredRecord]) -> None:
        (last,) = connection.execute("SELECT coalesce(max(key), 0) FROM records").fetchone()
        connection.executemany(
            "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (place, key, VERSION, line.record, line.number, line.role, line.timestamp)
                for place, line in enumerate(lines, last + 1)
            ],
        )
        connection.executemany(
            "INSERT INTO words (rowid, text) VALUES (?, ?)",
            [(place, " ".join(line.words)) for place, line in enumerate(lines, last + 1) if line.words],
        )

    def find(self, connection: Connection, phrases: Sequence[Phrase], query: SearchQuery) -> list[Any]:
        filters, values = filters_of(query)
        return connection.execute(
            "SELECT sessions.id, sessions.meta, record, version FROM words"
            " JOIN records ON records.key = words.rowid JOIN sessions ON sessions.key = session"
            f" WHERE words MATCH ?{filters} ORDER BY words.rowid DESC LIMIT ?",
            (" ".join(f'"{" ".join(phrase)}"' for phrase in phrases), *values, query.limit),
        ).fetchall()

    def forget(self, connection: Connection, key: int) -> None:
        rows = "SELECT key FROM records WHERE session = ?"
        connection.execute(f"DELETE FROM words WHERE rowid IN ({rows})", (key,))
        connection.execute("DELETE FROM records WHERE session = ?", (key,))

    def close(self) -> None:
        with self._lock:
            self._disconnect()
            self._file = None

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def __del__(self) -> None:
        if getattr(self, "_connection", None) is not None:
            self.close()

    def after_fork(self) -> list[Any]:
        self._lock = threading.RLock()
        left, self._connection = self._connection, None
        return [left]

    def _transact(self, begin: str, work: Callable[[Connection], T], durable: bool | None) -> T:
        with self._lock:
            try:
                connection = self._connected()
                if durable is not None and durable is not self._is_durable:
                    # With WAL, NORMAL leaves a commit to the operating system; FULL syncs it.
                    connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                    self._is_durable = durable
                return _in_transaction(connection, begin, work)
            except (sqlite3.Error, OSError) as error:
                self._disconnect()  # the next call finds out how things stand
                raise self._explained(error) from error

    def _connected(self) -> sqlite3.Connection:
        """The connection; a new one if the file was replaced: what is written to the old one is lost."""
        there = _identity(self.path)
        if self._connection is not None and self._file == there:
            return self._connection
        self._disconnect()
        if self._file is not None and there is None:
            raise SessionNotFound(
                f"{self.path} is gone: it was renamed or removed while it was in use; nothing was saved."
                " Put it back, or close this store and open one for the file's new path"
            )
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        connection = sqlite3.connect(self.path, timeout=BUSY, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._connection, self._file, self._is_durable = connection, _identity(self.path), None
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        if _in_transaction(connection, "BEGIN", self._version) < len(MIGRATIONS):
            _use_wal(connection)
            connection.execute("PRAGMA synchronous = FULL")
            _in_transaction(connection, "BEGIN IMMEDIATE", self._migrate)
        connection.execute("PRAGMA fullfsync = ON")  # macOS: a sync that reaches the disk
        connection.execute("PRAGMA checkpoint_fullfsync = ON")

    def _migrate(self, connection: Any) -> None:
        version = self._version(connection)  # another process may have been faster
        for statements in MIGRATIONS[version:]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    def _version(self, connection: Any) -> int:
        """The version of its tables, 0 for an empty file; whatever else it is is refused."""
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application != APPLICATION and (application or version or tables):
            whose = "an SQLite database of another program"
            raise SessionUnreadable(f"{self.path} is {whose}; give another path")
        if version > len(MIGRATIONS):
            raise SessionUnreadable(
                f"{self.path} has version {version}, and this release knows {len(MIGRATIONS)}: update swink"
            )
        return version

    def _explained(self, error: Exception) -> SessionError:
        name = getattr(error, "sqlite_errorname", "")
        match name.split("_")[:2]:
            case ["SQLITE", "BUSY" | "LOCKED"]:
                return SessionBusy(f"{self.path}: another program has been writing for {BUSY:g} s; try again")
            case ["SQLITE", "CANTOPEN"] if self.path.is_dir():
                return SessionError(f"{self.path} cannot be used: it is a directory; give the path of a file")
            case ["SQLITE", "NOTADB"]:
                return SessionUnreadable(f"{self.path} is no SQLite database; give another path")
            case ["SQLITE", "CORRUPT"]:
                return SessionUnreadable(
                    f"{self.path} is damaged ({error}); `sqlite3 {self.path.name} .recover` saves what can be"
                )
            case ["SQLITE", "FULL"]:
                return SessionError(f"{self.path} cannot grow: the disk is full; make room and try again")
            case _ if name.startswith("SQLITE_READONLY") or getattr(error, "errno", 0) in _FORBIDDEN:
                return SessionError(
                    f"{self.path} cannot be written: it, or its directory, is read-only, and SQLite writes"
                    " there even to read; allow your user to (chmod u+rwX), or copy the file to another path"
                )
            case _ if "fts5" in str(error):
                return SessionError(f"the SQLite of this Python has no full-text search ({error})")
            case _:
                what = error.strerror if isinstance(error, OSError) else f"{error} {name}".strip()
                return SessionError(f"{self.path} cannot be used: {what}")


def _in_transaction(connection: sqlite3.Connection, begin: str, work: Callable[[Connection], T]) -> T:
    connection.execute(begin)
    try:
        result = work(connection)
        connection.execute("COMMIT")
        return result
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _use_wal(connection: sqlite3.Connection) -> None:
    """SQLite does not wait here while another process does the same."""
    deadline = time.monotonic() + BUSY
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
