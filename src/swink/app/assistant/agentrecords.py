"""Records of background agents: one file each, whose lock is held as long as the agent runs.

it ends             the file is removed
the program leaves  the file stays, and its lock is free: the agent was interrupted
kill -9             the same, since locks end with their process
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

from swink.system.filelock import take_lock
from swink.system.files import open_private
from swink.system.places import state_dir

_MOST_BYTES = 1 << 20


class AgentRecord(Struct, frozen=True):
    """What it takes to go on with a background agent: its session, who it is, and its task."""

    session: str
    task: str
    directory: str
    started: float
    agent: str | None = None
    """The name of its file; None for an agent without one."""
    around: tuple[str, ...] = ()
    """The names of the agents that it was started inside of."""


class HeldRecord:
    """The file of a record, held by this process; raises `OSError`, `TimeoutError` if another one has it."""

    def __init__(self, record: AgentRecord) -> None:
        place = _place()
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = place / f"{record.session}.json"
        self._file: BinaryIO = open(self._path, "a+b", opener=open_private)  # noqa: SIM115 - until `free`
        try:
            take_lock(self._file.fileno(), 0.0, str(self._path))
            self._file.truncate(0)
            self._file.write(msgspec.json.encode(record))
            self._file.flush()
        except BaseException:
            self._file.close()
            raise

    def free(self, *, keep: bool) -> None:
        """Let go of it; without `keep` the agent has ended and there is nothing to go on with."""
        if not keep:
            with suppress(OSError):  # Windows keeps files that are open
                os.unlink(self._path)
        self._file.close()
        if not keep:
            forget(self._path.stem)


def find_interrupted(directory: Path) -> list[AgentRecord]:
    """The agents of a directory that run nowhere and have not ended, the oldest first; blocking."""
    found = [record for record in _free_records() if record.directory == str(directory)]
    return sorted(found, key=lambda record: record.started)


def forget(session: str) -> None:
    """Never speak of an agent again; its session stays."""
    with suppress(OSError):
        os.unlink(_place() / f"{session}.json")


def _free_records() -> Iterator[AgentRecord]:
    with suppress(OSError):
        for path in sorted(_place().glob("*.json")):
            with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError), open(path, "rb") as file:
                take_lock(file.fileno(), 0.0, str(path))
                record = msgspec.json.decode(file.read(_MOST_BYTES), type=AgentRecord)
                if record.session == path.stem:
                    yield record


def _place() -> Path:
    return state_dir() / "agents"
