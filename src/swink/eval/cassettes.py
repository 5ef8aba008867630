"""Cassettes of whole runs: every model in a block is recorded, or answered from what was recorded."""

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from swink.errors import CacheMiss
from swink.stream.wrappers import recorded, replayed, through

Recording = Literal["record", "replay", "off"]


@contextmanager
def recording(path: str | Path, mode: Recording, *, again: bool = True, how: str = "") -> Generator[None]:
    """Ask every model of the block through the cassette at `path`; the `mode` is "record", "replay" or "off".

    A recording takes the place of the old one when the block ends without an exception. With `again`, what is
    asked more often than recorded is answered from the first on. `how` is the command that records it.
    """
    path = Path(path)
    match mode:
        case "off":
            yield
        case "replay":
            if not path.is_file():
                raise missing_cassette(path, how)
            answers = replayed(path, again=again)
            with through(lambda stream_fn: answers):
                yield
        case "record":
            with replacement_of(path) as fresh, through(lambda stream_fn: recorded(stream_fn, fresh)):
                yield


def missing_cassette(path: Path, how: str) -> CacheMiss:
    """What is said where there is no cassette."""
    return CacheMiss(f"there is no cassette at {path}" + (f"; record it with: {how}" if how else ""))


@contextmanager
def replacement_of(path: Path) -> Generator[Path]:
    """A file that becomes `path` in the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        yield fresh
        if fresh.exists():
            os.replace(fresh, path)
    finally:
        with suppress(FileNotFoundError):
            fresh.unlink()
