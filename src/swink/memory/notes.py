"""Notes: short texts that outlive a conversation, in an SQLite file of their own.

Every note belongs to an owner, a user or a project, and nobody else sees it. A note that is removed is gone
from the file. Any number of threads and processes may use one file: each call is one durable transaction.
"""

import hashlib
import os
import re
import sqlite3
import struct
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from operator import mul
from pathlib import Path

import msgspec
from msgspec import Struct

from swink.errors import InvalidInput
from swink.messages.jsondata import clean
from swink.messages.redact import secret_spans
from swink.tools import ToolError

VERSION = 1
_APPLICATION = 0x73776E6B
"""In the head of the file, so that nobody takes another SQLite file for one of ours."""
_MOST_TAGS, _LONGEST_TAG = 10, 50
_PATIENCE = 30.0
"""Seconds to wait for others who write."""
_ALIKE = 0.999
"""The cosine from which two vectors of one text count as made by the same embedder."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SPOKEN = re.compile(
    r"(?:passw(?:or)?[dt]|passphrase|passcode|contraseña|mot de passe|\bpin)\b[^\n.;]{0,40}?"
    r"(?:[:=]|\b(?:is|ist|es|est)\b)\s*[\"'`]?(?=\S*\d)\S{4}",
    re.I,
)
"""A password in a sentence; one that has a digit, as sentences on passwords are many."""
_SCHEMA = (
    "CREATE TABLE notes (owner TEXT, id TEXT, text TEXT, tags TEXT, created REAL, space INTEGER, vector BLOB,"
    " PRIMARY KEY (owner, id))",
    "CREATE TABLE spaces (id INTEGER PRIMARY KEY, probe BLOB)",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)

# A write-ahead log would keep what is forgotten. Deleted text is overwritten, sorting never writes to a file
# elsewhere, and a commit has reached the disk, on macOS too.
_SETTINGS = (
    *("journal_mode = DELETE", "synchronous = EXTRA", "fullfsync = ON"),
    *("secure_delete = ON", "temp_store = MEMORY"),
)

Vector = Sequence[float]
"""Of length 1, so that the product of two is their similarity."""


class NotesError(ToolError):
    """Notes cannot be read or written, or a note cannot be kept as it is; the text says what to do."""


class Note(Struct, frozen=True):
    """A text that is remembered.

    Args:
        id: its id
        tags: words to find it by
        created: when, in seconds since 1970
    """

    id: str
    text: str
    tags: tuple[str, ...] = ()
    created: float = 0.0


class Notes:
    """Notes in a file, which only its user can read.

    An owner has at most `most` notes of at most `longest` characters. What looks like a secret is not kept.
    Calls block; `memory_tools` makes them off the event loop.

    Args:
        path: the file
    """

    def __init__(self, path: str | os.PathLike[str], *, most: int = 1000, longest: int = 4000) -> None:
        for name, value in (("most", most), ("longest", longest)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidInput(f"{name} is {value!r}; pass a whole number above 0")
        self.path = Path(path)
        self.most = most
        self.longest = longest

    def add(self, owner: str, text: str, tags: Sequence[str] = ()) -> Note:
        """Keep a text for its `owner`; the same text again only changes its tags."""
        text, tags = self._checked(text), _checked_tags(tags)
        said = "\n".join([text, *tags])
        if secret_spans(said) or _SPOKEN.search(said):
            raise NotesError(
                "not remembered: it holds what looks like a secret (a key, token or password), and secrets "
                "are not kept; leave the secret out, or say where it can be found"
            )
        id = hashlib.sha256(f"{owner}\0{text}".encode()).hexdigest()[:12]
        note = Note(id, text, tags, time.time())
        with self._writing() as database:
            counted = "SELECT count(*) FROM notes WHERE owner = ? AND id <> ?"
            (others,) = database.execute(counted, (owner, id)).fetchone()
            if others >= self.most:
                raise NotesError(
                    f"not remembered: there are {others:,} notes already, and {self.most:,} are kept at "
                    "most; forget some of them first"
                )
            database.execute(
                "INSERT INTO notes (owner, id, text, tags, created) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT DO UPDATE SET tags = excluded.tags",
                (owner, id, text, msgspec.json.encode(tags).decode(), note.created),
            )
        return note

    def list(self, owner: str) -> "list[Note]":
        """All notes of an owner, the newest first."""
        with self._open() as database:
            rows = database.execute(
                "SELECT id, text, tags, created FROM notes WHERE owner = ? ORDER BY created DESC, rowid DESC",
                (owner,),
            ).fetchall()
        tags_of = msgspec.json.Decoder(tuple[str, ...]).decode
        return [Note(id, text, tags_of(tags), created) for id, text, tags, created in rows]

    def remove(self, owner: str, id: str) -> None:
        """Forget the note `id` of its `owner`: its text, its tags and its vector."""
        with self._writing() as database:
            if not database.execute("DELETE FROM notes WHERE owner = ? AND id = ?", (owner, id)).rowcount:
                raise NotesError(f"there is no memory {id[:40]!r}; recall shows the ids")
        self._shrink()

    def clear(self, owner: str) -> int:
        """Forget all notes of an owner; how many there were."""
        with self._writing() as database:
            count = database.execute("DELETE FROM notes WHERE owner = ?", (owner,)).rowcount
        self._shrink()
        return count

    def space_of(self, probe: Vector) -> int:
        """The number of the vector space in which the embedder puts its probe there; maybe a new one."""
        with self._writing() as database:
            for space, known in database.execute("SELECT id, probe FROM spaces").fetchall():
                if similarity(probe, unpacked(known)) >= _ALIKE:
                    return int(space)
            used = "SELECT space FROM notes WHERE space IS NOT NULL"
            database.execute(f"DELETE FROM spaces WHERE id NOT IN ({used})")
            made = database.execute("INSERT INTO spaces (probe) VALUES (?)", (packed(probe),))
            return int(made.lastrowid or 0)

    def without_vector(self, owner: str, space: int) -> dict[str, str]:
        """The texts, by id, of an owner's notes that have no vector in this space."""
        with self._open() as database:
            query = "SELECT id, text FROM notes WHERE owner = ? AND space IS NOT ?"
            return dict(database.execute(query, (owner, space)).fetchall())

    def keep_vectors(self, owner: str, space: int, vectors: Mapping[str, Vector]) -> None:
        """Keep `vectors` of an `owner`'s notes, by id; `space` is the version they were made for."""
        with self._writing() as database:
            database.executemany(
                "UPDATE notes SET space = ?, vector = ? WHERE owner = ? AND id = ?",
                [(space, packed(vector), owner, id) for id, vector in vectors.items()],
            )

    def vectors(self, owner: str, space: int) -> dict[str, Vector]:
        """The vectors of an owner's notes in this space, by id."""
        with self._open() as database:
            query = "SELECT id, vector FROM notes WHERE owner = ? AND space = ?"
            return {id: unpacked(data) for id, data in database.execute(query, (owner, space))}

    def _checked(self, text: str) -> str:
        if not isinstance(text, str):
            raise InvalidInput(f"a note is a str, not {type(text).__name__}")
        text = _CONTROL.sub("", clean(text)).strip()
        if not text:
            raise NotesError("not remembered: there is no text; write what is to be remembered")
        if len(text) > self.longest:
            raise NotesError(
                f"not remembered: the text has {len(text):,} characters, and a note has {self.longest:,} at "
                "most; keep the gist of it, or split it"
            )
        return text

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        with self._open() as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
            except BaseException:
                with suppress(sqlite3.Error):
                    database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")

    @contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        """A connection for one call: none is shared with another thread or a forked process."""
        database: sqlite3.Connection | None = None
        try:
            if not self.path.exists():
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            database = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None)
            for setting in _SETTINGS:
                database.execute(f"PRAGMA {setting}")
            self._check_file(database)
            yield database
        except (sqlite3.Error, OSError) as error:
            busy = "locked" in str(error)
            advice = "another program is writing to it; try again" if busy else str(error)
            raise NotesError(f"the notes in {self.path} cannot be used: {advice}") from error
        finally:
            if database is not None:
                database.close()

    def _check_file(self, database: sqlite3.Connection) -> None:
        """Refuse what is no file of notes; make a new file one."""
        if _number(database, "application_id") != _APPLICATION:
            database.execute("BEGIN IMMEDIATE")
            (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if not tables:
                for statement in _SCHEMA:
                    database.execute(statement)
            database.execute("COMMIT")
        if _number(database, "application_id") != _APPLICATION:
            raise NotesError(f"{self.path} is an SQLite file of something else; name another file for notes")
        if (version := _number(database, "user_version")) > VERSION:
            raise NotesError(
                f"{self.path} has version {version}, and this release of swink reads {VERSION} at most; "
                "update swink"
            )

    def _shrink(self) -> None:
        """Write the file anew: a note that SQLite once moved may have left a copy between others."""
        with suppress(NotesError), self._open() as database:  # what was deleted is overwritten in any case
            database.execute("VACUUM")


def similarity(one: Vector, other: Vector) -> float:
    """The cosine of two vectors of length 1; 0 if they have not as many numbers."""
    return sum(map(mul, one, other)) if len(one) == len(other) else 0.0


def packed(vector: Vector) -> bytes:
    """A vector as it is stored."""
    return struct.pack(f"<{len(vector)}f", *vector)


def unpacked(data: bytes) -> Vector:
    """A vector that was stored."""
    return struct.unpack(f"<{len(data) // 4}f", data)


def _checked_tags(tags: Sequence[str]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(" ".join(_CONTROL.sub("", clean(tag)).split()) for tag in tags))
    found = tuple(tag for tag in found if tag)
    if len(found) > _MOST_TAGS or any(len(tag) > _LONGEST_TAG for tag in found):
        most = f"at most {_MOST_TAGS} tags of at most {_LONGEST_TAG} characters"
        raise NotesError(f"not remembered: a note has {most}")
    return found


def _number(database: sqlite3.Connection, pragma: str) -> int:
    return int(database.execute(f"PRAGMA {pragma}").fetchone()[0])
