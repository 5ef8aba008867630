"""Checkpoints of conversations, the newest few of each: in files, in SQLite or in PostgreSQL.

agent = Agent(model, policies=[Checkpoint(FileCheckpoints("checkpoints", "support-42"))])
agent = Agent.restore(await FileCheckpoints("checkpoints", "support-42").newest(), tools=[...])
"""

import logging
import os
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from swink.errors import InvalidInput, SessionError, SessionNotFound, SessionUnreadable
from swink.memory.files import write_new
from swink.memory.meta import check_id
from swink.memory.postgres import PostgresDatabase
from swink.memory.sqlbackend import Connection, Database
from swink.memory.sqlite import SqliteFile
from swink.messages.jsondata import decode, encode
from swink.system.threads import Serial, off_loop

KEPT = 10
"""How many checkpoints of a conversation are kept, unless you say otherwise."""
_FILE = re.compile(r"(\d{8,})\.json")
log = logging.getLogger(__name__)


class SavedCheckpoint(Struct, frozen=True):
    """A checkpoint in a list: `load` takes its number."""

    number: int
    saved: float
    """When, in seconds since 1970."""


class CheckpointBackend(Protocol):
    """Where checkpoints are kept; called from any thread."""

    def put(self, name: str, data: bytes, keep: int) -> None:
        """Keep one, whole or not at all, and forget the oldest."""

    def numbers(self, name: str) -> list[tuple[int, float]]:
        """The numbers of those that are there and when they were saved, the newest first."""
        ...

    def get(self, name: str, number: int) -> bytes | None:
        """One of them, or None."""
        ...

    def close(self) -> None:
        """Give back what it holds; it may be used again."""


class SyncCheckpoints:
    """The checkpoints of one conversation, for programs without an event loop.

    Args:
        backend: where they are kept
        name: the conversation
        keep: how many of the newest stay
    """

    def __init__(self, backend: CheckpointBackend, name: str, keep: int) -> None:
        if not isinstance(keep, int) or isinstance(keep, bool) or keep < 1:
            raise InvalidInput(f"keep={keep!r}: how many checkpoints to keep, 1 or more")
        self.backend = backend
        self.name = check_id(name)
        self.keep = keep

    def save(self, data: Mapping[str, Any]) -> None:
        """Keep `data`, which `agent.checkpoint()` gave; older ones than the newest few are forgotten."""
        self.backend.put(self.name, encode(data), self.keep)

    def newest(self) -> dict[str, Any] | None:
        """The newest that can be read, for `Agent.restore`; None if there is none."""
        for number, _ in self.backend.numbers(self.name):
            try:
                return self.load(number)
            except (SessionUnreadable, SessionNotFound) as error:
                log.warning("%s; the one before is taken", error)
        return None

    def list(self) -> list[SavedCheckpoint]:
        """The checkpoints that are there, the newest first."""
        return [SavedCheckpoint(*found) for found in self.backend.numbers(self.name)]

    def load(self, number: int) -> dict[str, Any]:
        """The checkpoint of this `number` in the list."""
        data = self.backend.get(self.name, number)
        if data is None:
            raise SessionNotFound(f"there is no checkpoint {number} of {self.name}")
        try:
            return decode(data, dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise SessionUnreadable(f"checkpoint {number} of {self.name} is damaged: {error}") from error

    def close(self) -> None:
        """Give back what is held open."""
        self.backend.close()


class Checkpoints:
    """The checkpoints of one conversation; `policies.Checkpoint` takes it. `sync` is the same, blocking.

    Args:
        backend: where they are kept
        name: the conversation
        keep: how many of the newest stay
    """

    def __init__(self, backend: CheckpointBackend, name: str, keep: int) -> None:
        self.sync = SyncCheckpoints(backend, name, keep)
        self._serial = Serial()

    def of(self, name: str) -> "Checkpoints":
        """Those of the conversation `name` in the same place."""
        return Checkpoints(self.sync.backend, name, self.sync.keep)

    async def save(self, data: Mapping[str, Any]) -> None:
        """Keep `data`, which `agent.checkpoint()` gave; older ones than the newest few are forgotten."""
        await self._serial.call(self.sync.save, data)

    newest = off_loop(SyncCheckpoints.newest)
    list = off_loop(SyncCheckpoints.list)
    load = off_loop(SyncCheckpoints.load)

    async def aclose(self) -> None:
        """Wait until what was saved is stored, and give back what is held open."""
        await self._serial.call(self.sync.close)

    async def __aenter__(self) -> "Checkpoints":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class FileCheckpoints(Checkpoints):
    """Checkpoints in files (mode 0600) of a directory (0700): one directory in it per conversation.

    Args:
        directory: where the files are
        name: the conversation
        keep: how many of the newest stay
    """

    def __init__(
        self, directory: str | os.PathLike[str], name: str = "conversation", *, keep: int = KEPT
    ) -> None:
        super().__init__(_Files(directory), name, keep)


class SqliteCheckpoints(Checkpoints):
    """Checkpoints in an SQLite file; it may be that of a `SqliteStore`.

    Args:
        path: the file
        name: the conversation
        keep: how many of the newest stay
    """

    def __init__(self, path: str | os.PathLike[str], name: str = "conversation", *, keep: int = KEPT) -> None:
        super().__init__(_Tables(SqliteFile(path)), name, keep)


class PostgresCheckpoints(Checkpoints):
    """Checkpoints in a PostgreSQL database, beside the sessions of a `PostgresStore`.

    Args:
        dsn: the database
        name: the conversation
        keep: how many of the newest stay
        schema: the schema of the tables
    """

    def __init__(
        self, dsn: str, name: str = "conversation", *, keep: int = KEPT, schema: str = "swink"
    ) -> None:
        super().__init__(_Tables(PostgresDatabase(dsn, schema)), name, keep)


class _Tables:
    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, name: str, data: bytes, keep: int) -> None:
        add = f"INSERT INTO checkpoints (name, saved, data) VALUES (?, {self._database.NOW}, ?)"
        newest = "SELECT key FROM checkpoints WHERE name = ? ORDER BY key DESC LIMIT ?"
        forget = f"DELETE FROM checkpoints WHERE name = ? AND key NOT IN ({newest})"

        def work(connection: Connection) -> None:
            connection.execute(add, (name, data.decode()))
            connection.execute(forget, (name, name, keep))

        self._database.run(work)

    def numbers(self, name: str) -> list[tuple[int, float]]:
        sql = "SELECT key, saved FROM checkpoints WHERE name = ? ORDER BY key DESC"
        return self._database.look(lambda connection: connection.execute(sql, (name,)).fetchall())

    def get(self, name: str, number: int) -> bytes | None:
        sql = "SELECT data FROM checkpoints WHERE name = ? AND key = ?"
        row = self._database.look(lambda connection: connection.execute(sql, (name, number)).fetchone())
        return None if row is None else row[0].encode()

    def close(self) -> None:
        self._database.close()


class _Files:
    """DIRECTORY/NAME/NUMBER.json, each written aside, synced, and then given its name."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._directory = Path(directory).absolute()

    def put(self, name: str, data: bytes, keep: int) -> None:
        place = self._directory / name
        with _explained(place):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            number = max([0, *self._there(name)]) + 1
            while not write_new(str(self._path(name, number)), data):
                number += 1  # another process has just saved one
            for old in sorted(self._there(name))[:-keep]:
                self._path(name, old).unlink(missing_ok=True)

    def numbers(self, name: str) -> list[tuple[int, float]]:
        found: list[tuple[int, float]] = []
        with _explained(self._directory / name):
            for number in sorted(self._there(name), reverse=True):
                with suppress(FileNotFoundError):  # it is forgotten at this moment
                    found.append((number, self._path(name, number).stat().st_mtime))
        return found

    def get(self, name: str, number: int) -> bytes | None:
        with _explained(self._directory / name):
            try:
                return self._path(name, number).read_bytes()
            except FileNotFoundError:
                return None

    def close(self) -> None: ...

    def _there(self, name: str) -> list[int]:
        try:
            names = os.listdir(self._directory / name)
        except FileNotFoundError:
            return []
        return [int(match[1]) for name in names if (match := _FILE.fullmatch(name))]

    def _path(self, name: str, number: int) -> Path:
        return self._directory / name / f"{number:08}.json"


@contextmanager
def _explained(place: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise SessionError(
            f"checkpoints in {place}: {error.strerror or error}; make room, or choose another directory. "
            "What was saved before is still there"
        ) from error
