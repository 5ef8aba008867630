"""Migrations: what an older release wrote, as this one reads it.

A session is stored as JSON objects with a "type": its metadata ("session") and its records. `MIGRATIONS[n]`
takes one object of version n and returns it as version n + 1 has it; objects go up step by step. Whoever
changes a stored form raises `VERSION`, adds the step, and keeps an old file in tests/memory/files.
"""

from collections.abc import Callable
from typing import Any

from swink.errors import SessionUnreadable
from swink.memory.meta import VERSION

Stored = dict[str, Any]
MIGRATIONS: dict[int, Callable[[Stored], Stored]] = {}


def check_version(version: Any, where: str) -> int:
    """The version of what is stored, refused unless this release can read it."""
    if not isinstance(version, int) or isinstance(version, bool):
        raise SessionUnreadable(f"{where} is no session of swink: its version is {version!r}")
    if version > VERSION:
        raise SessionUnreadable(
            f"{where} was written by a newer release of swink (version {version}; this one reads up to"
            f" {VERSION}): update swink to open it. Nothing was changed"
        )
    if any(step not in MIGRATIONS for step in range(version, VERSION)):
        raise SessionUnreadable(f"{where} has version {version}, which this release of swink cannot read")
    return version


def migrated(data: Stored, version: int) -> Stored:
    """An object as this release has it."""
    for step in range(version, VERSION):
        data = MIGRATIONS[step](data)
    return data
