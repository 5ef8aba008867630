"""Sessions in lines for people: age, cost, short ids, a table that fits the terminal."""

import os
import time
from collections.abc import Sequence
from pathlib import Path

from swink.app.assistant.sessionfacts import format_age, format_cost, short_ids, title_line, working_directory
from swink.app.cli.terminal import table
from swink.memory.meta import SessionMeta
from swink.messages.redact.shown import escape_invisible
from swink.system.oneline import shorten, strip_controls, width_of

_LEAST = 10
"""Columns that a title or a directory keeps in a narrow terminal."""


def list_lines(metas: Sequence[SessionMeta], width: int | None) -> str:
    """A table, one session a line; the directory "." is this one."""
    now, ids = time.time(), short_ids([meta.id for meta in metas])
    home, here = _home(), working_directory()
    rows: list[tuple[str, ...]] = [("TITLE", "AGE", "TURNS", "COST", "DIRECTORY", "ID")]
    for meta in metas:
        rows.append(
            (
                title_line(meta),
                format_age(now - meta.updated),
                str(meta.turns),
                format_cost(meta),
                _directory(meta.directory, here, home),
                ids[meta.id],
            )
        )
    return table(rows if width is None else _fitted(rows, width), numbers=(1, 2, 3))


def _directory(directory: str | None, here: str | None, home: str | None) -> str:
    if directory is None:
        return "-"
    if directory == here:
        return "."
    if home is not None and directory.startswith(home + os.sep):
        directory = f"~{directory[len(home) :]}"
    return escape_invisible(strip_controls(directory))


def _home() -> str | None:
    try:
        return str(Path.home())
    except RuntimeError:
        return None


def _fitted(rows: list[tuple[str, ...]], width: int) -> list[tuple[str, ...]]:
    """The rows with titles and directories short enough for the width."""
    sizes = [max(width_of(row[column]) for row in rows) for column in range(6)]
    room = width - sum(sizes) + sizes[0] + sizes[4] - 2 * 5
    if sizes[0] + sizes[4] <= room:
        return rows
    place = max(_LEAST, min(sizes[4], room // 3))
    title = max(_LEAST, room - min(place, sizes[4]))
    return [(shorten(row[0], title), *row[1:4], _end_of(row[4], place), row[5]) for row in rows]


def _end_of(path: str, room: int) -> str:
    """The end of a path, which tells more than its beginning."""
    return path if width_of(path) <= room else f"…{path[len(path) - room + 1 :]}"
