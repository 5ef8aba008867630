"""A full-text index of the session files in a directory; it may be thrown away and built again at any time.

    sessions    id, what its file was like when it was read last, and up to where
    messages    session, number, role, timestamp, and where in the file its line is
    words       the words of each message, under its key; those of messages that are gone stay

Every search first reads what the files have got since the last one. One process searches at a time.
"""

import os
import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress

from msgspec import Struct

from swink.errors import SessionUnreadable
from swink.memory.backend import SearchQuery
from swink.memory.jsonlfile import BAD_LINE, Identity, lines_of, scan
from swink.memory.searching import Phrase, searchable, words_of
from swink.messages import Message
from swink.messages.records import CustomSaved, MessageSaved, decode_record
from swink.system.filelock import locked
from swink.system.files import open_private

_NAME = "index.sqlite"
_VERSION = 1
WAITS = 5.0
"""Seconds for another process that searches."""
_AT_ONCE = 50
"""Sessions that are added in one transaction: what was done is kept if the process ends."""
_MOST = 1_000_000
_GONE = 10_000
"""Messages that are gone and whose words may stay in the index; it is built again when more than half are."""
_SCHEMA = f"""
BEGIN;
CREATE TABLE sessions (key INTEGER PRIMARY KEY, id TEXT UNIQUE, inode INT, size INT, changed INT, upto INT);
CREATE TABLE messages (key INTEGER PRIMARY KEY AUTOINCREMENT, session INT, number INT, role TEXT,
  timestamp REAL, start INT, length INT);
CREATE INDEX messages_of ON messages (session);
CREATE VIRTUAL TABLE words USING fts5 (text, content='',
  tokenize="unicode61 remove_diacritics 0 categories 'L* M* N* S* Co'");
PRAGMA user_version = {_VERSION};
COMMIT;
"""
_FILTERS = {"role": "role = ?", "after": "timestamp > ?", "before": "timestamp < ?", "session": "id = ?"}
_NOT_DAMAGED = {
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY),
    *(sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_PERM),
}


class NoIndex(Exception):
    """There can be no index here: sqlite3 has no FTS5, the directory cannot be written, or it is in use."""


class Found(Struct, frozen=True):
    """A message that has all the words."""

    session: str
    number: int
    message: Message


class JsonlIndex:
    """The index beside the files of a directory."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._path = os.path.join(directory, _NAME)

    def search(
        self, phrases: Sequence[Phrase], query: SearchQuery, files: Mapping[str, Identity]
    ) -> list[Found]:
        """Messages with all the phrases, those that were saved last first; raises `NoIndex`."""
        try:
            with open(self._path + ".lock", "ab", opener=open_private) as lock, locked(lock, WAITS):
                for _ in range(2):
                    try:
                        return self._search(phrases, query, files)
                    except sqlite3.Error as error:
                        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _NOT_DAMAGED:
                            raise
                    except BAD_LINE:
                        pass  # a file was changed in place
                    self._throw_away()
        except (sqlite3.Error, OSError) as error:
            raise NoIndex(str(error)) from error
        raise NoIndex("it is damaged again and again")

    def _search(
        self, phrases: Sequence[Phrase], query: SearchQuery, files: Mapping[str, Identity]
    ) -> list[Found]:
        with self._connected() as index:
            self._update(index, files)
            if self._is_mostly_gone(index):
                index.close()
                self._throw_away()
                return self._search(phrases, query, files)
            wanted = " ".join(f'"{" ".join(phrase)}"' for phrase in phrases)
            filters = {name: value for name in _FILTERS if (value := getattr(query, name)) is not None}
            rows = index.execute(
                "SELECT id, number, start, length FROM words JOIN messages ON messages.key = words.rowid"
                " JOIN sessions ON sessions.key = session WHERE words MATCH ?"
                + "".join(f" AND {_FILTERS[name]}" for name in filters)
                + " ORDER BY words.rowid DESC LIMIT ?",
                [wanted, *filters.values(), min(query.limit, _MOST)],
            ).fetchall()
        return [Found(id, number, self._message(id, number, *place)) for id, number, *place in rows]

    @contextmanager
    def _connected(self) -> Generator[sqlite3.Connection]:
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        with closing(sqlite3.connect(self._path, timeout=WAITS, isolation_level=None)) as index:
            index.execute("PRAGMA journal_mode = TRUNCATE")
            index.execute("PRAGMA synchronous = NORMAL")
            if index.execute("PRAGMA user_version").fetchone() != (_VERSION,):
                index.executescript(_SCHEMA)  # fails if there is another version's: that is thrown away
            yield index

    def _throw_away(self) -> None:
        for suffix in ("", "-journal", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.unlink(self._path + suffix)

    def _update(self, index: sqlite3.Connection, files: Mapping[str, Identity]) -> None:
        """Take in what has changed; only the files that are given are looked at."""
        rows = index.execute("SELECT id, key, inode, size, changed, upto FROM sessions")
        known = {id: (key, (inode, size, changed), upto) for id, key, inode, size, changed, upto in rows}
        for id in known.keys() - files.keys():
            self._forget(index, known[id][0])
        stale = [id for id, identity in files.items() if id not in known or known[id][1] != identity]
        stale.sort(key=lambda id: files[id][2])
        for first in range(0, len(stale), _AT_ONCE):
            index.execute("BEGIN")
            for id in stale[first : first + _AT_ONCE]:
                start = 0
                if id in known:
                    key, (inode, size, _), upto = known[id]
                    if inode == files[id][0] and size < files[id][1]:
                        start = upto  # it was appended to
                    else:
                        self._forget(index, key)
                self._read(index, id, files[id], start)
            index.execute("COMMIT")

    def _forget(self, index: sqlite3.Connection, key: int) -> None:
        index.execute("DELETE FROM messages WHERE session = ?", (key,))
        index.execute("DELETE FROM sessions WHERE key = ?", (key,))

    def _read(self, index: sqlite3.Connection, id: str, identity: Identity, start: int) -> None:
        """Take in a file from there on."""
        try:
            with open(self._file(id), "rb") as file:
                file.seek(start)
                data = file.read()
            contents = scan(data, id)
        except OSError:
            return  # it cannot be read now, or is deleted
        except SessionUnreadable:
            data, contents = b"", None
        sound = contents.sound if contents else []
        index.execute(
            "INSERT INTO sessions (id, inode, size, changed, upto) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (id) DO UPDATE SET inode = excluded.inode, size = excluded.size,"
            " changed = excluded.changed, upto = excluded.upto",
            (id, *identity, start + (sound[-1][1] if sound else 0)),
        )
        (key,) = index.execute("SELECT key FROM sessions WHERE id = ?", (id,)).fetchone()
        records = contents.records if contents else []
        for (at, length), record in zip(lines_of(data, sound), records, strict=True):
            if isinstance(record, MessageSaved | CustomSaved):
                message = record.message
                row = index.execute(
                    "INSERT INTO messages (session, number, role, timestamp, start, length)"
                    " VALUES (?, ?, ?, ?, ?, ?)",
                    (key, record.number, message.role, message.timestamp, start + at, length),
                )
                words = " ".join(words_of(searchable(message)))
                index.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (row.lastrowid, words))

    def _is_mostly_gone(self, index: sqlite3.Connection) -> bool:
        (used,) = index.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence").fetchone()
        if used <= _GONE:
            return False
        (there,) = index.execute("SELECT count(*) FROM messages").fetchone()
        return there < used // 2

    def _message(self, id: str, number: int, start: int, length: int) -> Message:
        with open(self._file(id), "rb") as file:
            file.seek(start)
            line = file.read(length)
            try:
                records = [decode_record(line)]
            except BAD_LINE:  # another version's
                file.seek(0)
                records = scan(file.read(), id).records
        for record in records:
            if isinstance(record, MessageSaved | CustomSaved) and record.number == number:
                return record.message
        raise ValueError(f"session {id} was changed in place")

    def _file(self, id: str) -> str:
        return os.path.join(self._directory, id + ".jsonl")
