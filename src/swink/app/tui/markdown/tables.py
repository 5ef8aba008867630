"""Tables: columns as wide as they need, or as there is room; narrow screens get one line a cell."""

from collections.abc import Sequence
from itertools import chain
from typing import Literal

from msgspec import Struct
from rich.cells import cell_len

from swink.app.tui.look import Look
from swink.app.tui.strips import Piece, text_of, wrap_pieces

Align = Literal["left", "center", "right"]
Row = list[Piece]
Cell = list[Row]
"""Its lines."""

_LEAST = 6  # columns narrower than this are not worth it


class MarkdownTable(Struct, frozen=True):
    """Cells by rows; the first row is the head."""

    rows: list[list[Cell]]
    aligns: list[Align]


def fit(table: MarkdownTable, width: int) -> list[int]:
    """How wide each column is: what it needs, the widest ones cut to what is left for them."""
    needed = [
        max([1, *[cell_len(text_of(line)) for row in table.rows for line in row[column]]])
        for column in range(len(table.aligns))
    ]
    room = width - 3 * (len(needed) - 1)
    widths = list(needed)
    left, many = room, len(needed)
    for column in sorted(range(len(needed)), key=needed.__getitem__):
        widths[column] = min(needed[column], max(1, left // many))
        left, many = left - widths[column], many - 1
    return widths


def paint_table(
    table: MarkdownTable, width: int, look: Look, widths: Sequence[int], *, has_head: bool
) -> list[Row]:
    """The lines of a table; `widths` are its own or those of the part before it."""
    needs_lists = sum(widths) + 3 * (len(widths) - 1) > width or any(
        size < _LEAST and any(cell_len(text_of(line)) > size for row in table.rows for line in row[column])
        for column, size in enumerate(widths)
    )
    if needs_lists:
        return _as_lists(table, width, look, has_head=has_head)
    wrapped = [
        [
            [row for line in cell for row in wrap_pieces(line, size)] or [[]]
            for cell, size in zip(row, widths, strict=True)
        ]
        for row in table.rows
    ]
    rule: Row = [("─┼─".join("─" * size for size in widths), look.border)]
    is_tall = any(len(cell) > 1 for row in wrapped for cell in row)
    rows: list[Row] = []
    for number, cells in enumerate(wrapped):
        if number == 0 and not has_head:
            continue
        if number and (is_tall or (number == 1 and has_head)):
            rows.append(list(rule))
        for line in range(max(len(cell) for cell in cells)):
            parts = [cell[line] if line < len(cell) else [] for cell in cells]
            rows.append(_line(parts, table, widths, look))
    return rows


def _line(parts: Sequence[Row], table: MarkdownTable, widths: Sequence[int], look: Look) -> Row:
    row: Row = []
    for number, (part, size, align) in enumerate(zip(parts, widths, table.aligns, strict=True)):
        if number:
            row.append((" │ ", look.border))
        room = max(0, size - cell_len(text_of(part)))
        before = {"left": 0, "center": room // 2, "right": room}[align]
        row += [(" " * before, look.text), *part]
        if number < len(widths) - 1:
            row.append((" " * (room - before), look.text))
    return row


def _as_lists(table: MarkdownTable, width: int, look: Look, *, has_head: bool) -> list[Row]:
    """Each row as lines of `head: cell`."""
    head, *body = table.rows
    rows: list[Row] = []
    if not body and has_head:
        body = [head]
    for number, cells in enumerate(body):
        if number or not has_head:
            rows.append([("─" * min(width, 8), look.border)])
        for name, cell in zip(head, cells, strict=True):
            for count, line in enumerate(cell):
                label = [] if count else [*chain.from_iterable(name), (": ", look.dim)]
                rows += wrap_pieces([*label, *line], width)
    return rows
