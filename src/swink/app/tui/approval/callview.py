"""The call of a question, row by row: every argument, literally, no line mistakable for one of ours.

$ git log              a command of bash, then its other arguments
timeout 60
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec
from rich.segment import Segment
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from swink.app.assistant.callwords import call_lines
from swink.app.assistant.person import Question
from swink.app.assistant.previews import CONTENT
from swink.app.assistant.rules import BASH
from swink.app.tui.escaping import chops, visible, wrap
from swink.app.tui.look import LOOKS, Look
from swink.app.tui.terminal.failures import EnduringPart

Kind = Literal["name", "text", "bar", "notice", "warning"]
_STYLES = {"name": "dim", "text": "text", "bar": "border", "notice": "strong", "warning": "warning"}
Row = tuple[tuple[str, Kind], ...] | Strip
"""Pieces of text with what they are, or a painted row."""


def rows_of(question: Question, width: int, *, raw: bool = False) -> Iterator[Row]:
    """The call, row by row; without the argument that the diff shows better, unless it is wanted raw."""
    request, preview = question.request, question.preview
    if question.notice:
        yield from text_rows(question.notice, width, "warning")
    has_diff = preview is not None and preview.diff is not None
    if preview is not None and (raw or not has_diff):
        yield from text_rows(preview.summary, width, "notice")
    hidden = CONTENT.get(request.name) if has_diff and not raw else None
    words = call_lines(request.name, request.shown)
    command = request.shown.get("command") if request.name == BASH else None
    if isinstance(command, str):
        yield from _barred(command.split("\n"), width, ("$ ", "name"))
    for name, value in request.shown.items():
        if name == "command" and isinstance(command, str):
            continue
        if words is not None:
            yield from _lines(name, words, width)
            continue
        if name == "path" and preview is not None and not raw:
            continue
        if name != hidden:
            yield from argument_rows(name, value, width)
    if question.leads_to and preview is None:
        yield from text_rows(f"the path leads to {question.leads_to}", width, "warning")
    if not request.arguments:
        yield from text_rows("without arguments", width, "notice")


def plain_rows(question: Question, width: int) -> list[Row]:
    """The call as the program has it: what is left where the better form failed."""
    lines = [f"{name} = {value!r}" for name, value in question.request.shown.items()]
    texts = [visible(line) for line in (question.notice, *lines, question.leads_to) if line]
    return [((text[start:end], "text"),) for text in texts for start, end in chops(text, max(2, width))]


def paint(row: Row, width: int, look: Look) -> Strip:
    """A row as it is shown."""
    if isinstance(row, Strip):
        return row.adjust_cell_length(width)
    segments = [Segment(text, getattr(look, _STYLES[kind])) for text, kind in row]
    return Strip(segments).adjust_cell_length(width)


def text_rows(text: str, width: int, kind: Kind, *, first: str = "", rest: str = "") -> list[Row]:
    """A text of our own, or a sentence of the model's, wrapped at words."""
    return [((line, kind),) for line in wrap(visible(text), max(8, width), first=first, rest=rest)]


def argument_rows(name: str, value: Any, width: int) -> Iterator[Row]:
    """An argument, or a command, literally; a bar before its lines tells them from ours."""
    text = value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=repr).decode()
    if isinstance(value, dict | list):
        text = msgspec.json.format(text, indent=2)
    label = f"{visible(name).replace(chr(10), ' ')} "
    lines = text.split("\n")
    if len(lines) == 1 and len(label) + len(text) <= width and text.isascii():
        yield ((label, "name"), (visible(text) or '""', "text"))
        return
    yield from _lines(name, lines, width)


def _lines(name: str, lines: Sequence[str], width: int) -> Iterator[Row]:
    """An argument of several lines, or of one that is long."""
    yield ((f"{visible(name).replace(chr(10), ' ')} "[:width], "name"),)
    yield from _barred(lines, width)


def _barred(lines: Sequence[str], width: int, first: tuple[str, Kind] = ("│ ", "bar")) -> Iterator[Row]:
    """Lines behind a bar, which is broken where a line goes on in the next row."""
    bar = first
    for shown in map(visible, lines):
        for start, end in chops(shown, max(2, width - 2)):
            yield (bar, (shown[start:end], "text"))
            bar = ("┆ ", "bar")
        bar = ("│ ", "bar")


class CallView(EnduringPart, ScrollView, can_focus=False):
    """Rows, as many of them at a time as there is room for."""

    DEFAULT_CSS = "CallView { height: auto; scrollbar-size-vertical: 1; background: $surface; }"

    def __init__(self) -> None:
        super().__init__()
        self.look: Look = LOOKS["dark"]
        self.rows: Sequence[Row] = ()

    @property
    def is_cut(self) -> bool:
        """Whether there are more rows than there is room for."""
        height = self.styles.height
        return height is not None and len(self.rows) > height.value

    def show_rows(self, rows: Sequence[Row], most: int, *, keep: bool = False) -> None:
        """Show rows, at most so many at a time; from the beginning unless the place is kept."""
        self.rows = rows
        self.styles.height = max(1, min(len(rows), most))
        self.virtual_size = Size(self.size.width, len(rows))
        if not keep:
            self.scroll_to(0, 0, animate=False)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        number = self.scroll_offset.y + y
        row = self.rows[number] if number < len(self.rows) else ()
        return paint(row, self.size.width, self.look).apply_style(self.rich_style)
