"""Sessions in lines for people: age, cost, short ids, a table that fits the terminal, a family tree."""

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from swink.cli.terminal import shorten, strip_controls, table, width_of
from swink.memory.meta import SessionMeta
from swink.memory.tree import Branch
from swink.redact import redact_text
from swink.redact.shown import escape_invisible

_SHORT = 6
"""Characters of an id that are shown, if no other id has them."""
_LEAST = 10
"""Columns that a title or a directory keeps in a narrow terminal."""
_STEPS = ((60, "s"), (60, "min"), (24, "h"), (7, "d"), (52, "w"))


def title_line(meta: SessionMeta, room: int | None = None) -> str:
    """The title in one line, without secrets and without characters that nobody sees."""
    text = escape_invisible(redact_text(strip_controls(meta.title))).strip() or "(no title)"
    return text if room is None else shorten(text, room)


def format_age(seconds: float) -> str:
    """How long ago: "40 s", "5 min", "3 h", "2 d", "6 w", "2 y"."""
    left = max(0.0, seconds)
    for size, unit in _STEPS:
        if left < size:
            return f"{int(left)} {unit}"
        left /= size
    return f"{int(left)} y"


def format_cost(meta: SessionMeta) -> str:
    """What it cost, in US dollars; "?" stands for a part that is not known."""
    if meta.unpriced:
        return f"{_dollars(meta.cost)}+?" if meta.cost else "?"
    return _dollars(meta.cost)


def short_ids(ids: Sequence[str]) -> dict[str, str]:
    """For each id a part of it that no other one has."""
    pieces = Counter(piece for id in ids for piece in {id[at : at + _SHORT] for at in range(len(id))})
    return {id: _short(id, ids, pieces) for id in ids}


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


def tree_lines(branches: Sequence[Branch], marked: str | None = None) -> Iterator[str]:
    """Sessions below those that they were forked from, one of them marked."""
    ids = short_ids([branch.meta.id for branch in branches])
    for branch in branches:
        meta = branch.meta
        indent = "   " * (branch.depth - 1) + "└─ " if branch.depth else ""
        place = "" if meta.parent is None else f", forked after message {meta.forked_at}"
        gone = f" of {meta.parent}, which was deleted" if meta.parent and not branch.depth else ""
        facts = f"({meta.messages} messages{place}{gone}){' ←' if meta.id == marked else ''}"
        yield f"{indent}{title_line(meta)}  {ids[meta.id]}  {facts}"


def working_directory() -> str | None:
    """The current directory as sessions name it; None if it is gone."""
    try:
        return os.getcwd()
    except OSError:
        return None


def _short(id: str, ids: Iterable[str], pieces: Counter[str]) -> str:
    tail = id.rpartition("_")[2]
    if len(tail) < 2 * _SHORT or pieces[tail[:_SHORT]] == 1:
        return tail[:_SHORT] if len(tail) >= 2 * _SHORT else id
    others = [other for other in ids if other != id]
    for length in range(_SHORT + 1, len(tail)):
        if not any(tail[:length] in other for other in others):
            return tail[:length]
    return id


def _dollars(cost: float) -> str:
    return (
        "$0"
        if cost == 0
        else f"${cost:.2f}"
        if cost >= 0.995
        else f"${cost:.4f}"
        if cost >= 0.0001
        else "<$0.0001"
    )


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
