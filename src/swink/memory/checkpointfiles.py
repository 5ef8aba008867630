"""Checkpoints as files: DIRECTORY/NAME/NUMBER.json, each written aside, synced, and then given its name."""

import os
import re
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from swink.errors import SessionError
from swink.memory.files import write_new

_NAME = re.compile(r"(\d{8,})\.json")


class CheckpointFiles:
    """A directory with one directory per conversation."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._directory = Path(directory).absolute()

    def put(self, name: str, data: bytes, keep: int) -> None:
        """Keep one, whole or not at all, and forget the oldest."""
        place = self._directory / name
        with _explained(place):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            number = max([0, *self._there(name)]) + 1
            while not write_new(str(self._path(name, number)), data):
                number += 1  # somebody else has saved one at this moment
            for old in sorted(self._there(name))[:-keep]:
                self._path(name, old).unlink(missing_ok=True)

    def numbers(self, name: str) -> list[tuple[int, float]]:
        """The numbers of those that are there and when they were saved, the newest first."""
        found: list[tuple[int, float]] = []
        with _explained(self._directory / name):
            for number in sorted(self._there(name), reverse=True):
                with suppress(FileNotFoundError):  # it is forgotten at this moment
                    found.append((number, self._path(name, number).stat().st_mtime))
        return found

    def get(self, name: str, number: int) -> bytes | None:
        """One of them, or None."""
        with _explained(self._directory / name):
            try:
                return self._path(name, number).read_bytes()
            except FileNotFoundError:
                return None

    def close(self) -> None:
        """Nothing is held open."""

    def _there(self, name: str) -> list[int]:
        try:
            names = os.listdir(self._directory / name)
        except FileNotFoundError:
            return []
        return [int(match[1]) for name in names if (match := _NAME.fullmatch(name))]

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
