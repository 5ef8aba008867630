"""Trees in lines: each span with its place in the tree, the time it took, its tokens and its money."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from swink.messages.modelspec import format_dollars
from swink.messages.redact import redact_text
from swink.system.oneline import shorten, width_of
from swink.telemetry.tracetree import Trace, TraceNode

_LEAST = 16
"""Columns that a name keeps in a narrow terminal."""
_GAP = "  "
_DEEPEST = 200
"""Columns that lines of the tree take; what is further inside stands below each other."""


class TraceRow(Struct, frozen=True):
    """A span as it is shown; `branch` are the lines that lead to it."""

    branch: str
    name: str
    cells: tuple[str, ...]
    """When it begins, what it takes, tokens in and out, dollars."""
    error: str = ""


def heads() -> TraceRow:
    """What the columns are called, as a row above the others."""
    return TraceRow("", "span", ("begins", "takes", "tokens", "cost"))


def rows_of(roots: Sequence[TraceNode]) -> Iterator[TraceRow]:
    """A row for each span, those around others before them."""
    began = min((root.began for root in roots), default=0.0)
    waiting = [("", "", root) for root in reversed(roots)]
    while waiting:
        branch, below, node = waiting.pop()
        error = "unfinished" if node.unfinished and not node.error else node.error
        cells = f"+{clock(node.began - began)}", clock(node.seconds), _tokens(node), _cost(node)
        yield TraceRow(branch, _name(node), cells, error)
        last = len(node.inside) - 1
        for number in range(last, -1, -1):
            lead, further = ("└ ", "  ") if number == last else ("├ ", "│ ")
            deeper = below + further if len(below) < _DEEPEST else below
            waiting.append((below + lead, deeper, node.inside[number]))


def lines_of(rows: Sequence[TraceRow], width: int | None) -> list[tuple[TraceRow, str, str]]:
    """Each row with its name and its figures as they fit the columns; the first row are heads."""
    figures = [row.cells for row in rows]
    widths = [max(len(cells[at]) for cells in figures) for at in range(4)]
    shown = [at for at in range(4) if any(cells[at] for cells in figures[1:])]
    names = [_label(row) for row in rows]
    room = max(width_of(name) for name in names)
    if width is not None:

        def left() -> int:
            return width - sum(widths[at] + len(_GAP) for at in shown)

        for least in (0, 2, 3, 1):  # the beginning goes first, what it took last
            if left() < min(room, 2 * _LEAST) and least in shown:
                shown.remove(least)
        room = max(min(room, left()), min(_LEAST, width))
    lines: list[tuple[TraceRow, str, str]] = []
    for row, name, cells in zip(rows, names, figures, strict=True):
        text = name
        if width_of(text) > room:
            lead = row.branch if len(row.branch) < room - 4 else f"…{row.branch[-(room // 2) :]}"
            text = lead + shorten(name[len(row.branch) :], room - len(lead))
        told = "".join(_GAP + cells[at].rjust(widths[at]) for at in shown)
        lines.append((row, text + " " * (room - width_of(text)), told.rstrip()))
    return lines


def summary_of(trace: Trace, width: int | None = None) -> str:
    """When it began, what all of it took, used and cost; in two lines where one is too narrow."""
    asked = trace.requests
    parts = [trace.began.replace("T", " ").replace("Z", " UTC")] if trace.began else []
    parts.append(clock(trace.seconds))
    parts.append(f"{len(asked):,} request{'' if len(asked) == 1 else 's'}")
    counted = [node for node in asked if node.input is not None or node.output is not None]
    if counted:
        used = sum(node.input or 0 for node in counted), sum(node.output or 0 for node in counted)
        parts.append(f"{used[0]:,} tokens in, {used[1]:,} out")
        priced = [node.cost for node in counted if node.cost is not None]
        unknown = len(counted) - len(priced)
        if priced:
            more = f" and {unknown:,} without a price" if unknown else ""
            parts.append(format_dollars(sum(priced), exact=True) + more)
        else:
            parts.append("cost unknown")
    line = " · ".join(parts)
    if width is None or len(line) <= width:
        return line
    return "\n".join(shorten(" · ".join(half), width) for half in (parts[:-2], parts[-2:]))


def clock(seconds: float) -> str:
    """A time for people: 0.3 ms, 41 ms, 1.24 s, 2:05 min, 1:02:05 h."""
    if seconds < 0.9995:
        return f"{seconds * 1e3:.1f} ms" if seconds < 0.00995 else f"{seconds * 1e3:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{rest:02} h"


def _label(row: TraceRow) -> str:
    return row.branch + row.name + (f" · {row.error}" if row.error else "")


def _name(node: TraceNode) -> str:
    """The name in one line, without secrets and without what moves a cursor."""
    return shorten(redact_text(node.name), 200) or "(no name)"


def _tokens(node: TraceNode) -> str:
    if node.input is None and node.output is None:
        return ""
    return f"{_short(node.input or 0)} → {_short(node.output or 0)}"


def _short(count: int) -> str:
    """A count in at most five characters: 999, 12.3k, 1.2M."""
    for limit, unit in ((1e6, "M"), (1e3, "k")):
        if count >= limit * 0.9995:
            return f"{count / limit:.1f}{unit}" if count < 99.95 * limit else f"{count / limit:.0f}{unit}"
    return str(count)


def _cost(node: TraceNode) -> str:
    return "" if node.cost is None else format_dollars(node.cost)
