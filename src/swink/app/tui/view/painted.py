"""Painted: the lines of a block on the screen, and what a copy of them is."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from swink.app.tui.escaping import breaks, chops
from swink.app.tui.look import Look

Strips = Sequence[Strip]
Words = tuple[str, Style]
"""Some text in a style."""
Row = tuple[int, int]
"""From where to where in a text a line goes."""
MARGIN = 2
"""Columns at the left that hold marks and bars; text begins after them."""


class Painted(NamedTuple):
    """Lines, each as wide as the screen, over the text that they show."""

    strips: list[Strip]
    text: str
    spans: "list[TextSpan | None]"
    """Of each line, what it shows; of one that is no text (a rule, a label), nothing."""

    def last_lines(self, lines: int) -> "Painted":
        return Painted(self.strips[-lines:], self.text, self.spans[-lines:])


@dataclass(slots=True, eq=False)
class TextSpan:
    """What a line shows: `text[start:end]` after its gutter; if it `is_loose`, its words are in there."""

    gutter: int
    start: int
    end: int
    is_loose: bool = False


class Canvas:
    """Where a block is painted, from the top down."""

    def __init__(self, width: int, look: Look) -> None:
        self.width = width
        self.look = look
        self.strips: list[Strip] = []
        self._spans: list[TextSpan | None] = []
        self._texts: list[str] = []
        self._length = 0

    @property
    def painted(self) -> Painted:
        return Painted(self.strips, "\n".join(self._texts), self._spans)

    def gap(self) -> None:
        self._add([], None)

    def line(self, words: Sequence[Words], *, copied: str = "", fill: Style | None = None) -> None:
        """One line, cut off at the width; a copy of it is `copied`."""
        span = TextSpan(0, self._length, self._length + len(copied), is_loose=True) if copied else None
        self._add(words, span, fill)
        if copied:
            self._keep(copied)

    def text(
        self,
        text: str,
        style: Style,
        *,
        gutter: Words = (" " * MARGIN, Style.null()),
        first: Words | None = None,
        most: int | None = None,
        fill: Style | None = None,
        is_exact: bool = False,
    ) -> None:
        """Text that wraps, each line after a gutter, at most so many; exact text keeps all of its blanks."""
        room = max(1, self.width - cell_len(gutter[0]))
        longest = len(text) if most is None else 20 * most * room  # the rest is not worth being counted
        text, cut = text[:longest], len(text) - longest
        rows = list(_rows(text, room, chops if is_exact else breaks))
        hidden = 0 if most is None or len(rows) <= most else len(rows) - most
        base = self._length
        for number, (start, end) in enumerate(rows[: len(rows) - hidden]):
            mark = first if first is not None and not number else gutter
            span = TextSpan(len(mark[0]), base + start, base + end)
            self._add([mark, (text[start:end], style)], span, fill)
        self._keep(text)
        if hidden or cut > 0:
            more = f"… {hidden:,}{'+' if cut > 0 else ''} more line{'' if hidden == 1 else 's'}"
            self._add([gutter, (more, self.look.dim)], None, fill)

    def place(
        self, strips: Strips, text: str, *, gutter: Words, known: tuple[Strips, Strips] = ((), ())
    ) -> list[Strip]:
        """Lines that another painted, each after a gutter; those `known` need not be put together again."""
        span = TextSpan(len(gutter[0]), self._length, self._length + len(text), is_loose=True)
        mark = Segment(*gutter)
        given, became = known
        placed = [
            became[number]
            if number < len(given) and given[number] is strip
            else Strip([mark, *strip]).adjust_cell_length(self.width)
            for number, strip in enumerate(strips)
        ]
        self.strips += placed
        self._spans += [span] * len(placed)
        self._keep(text)
        return placed

    def inset(self, painted: Painted, gutter: Words) -> None:
        """What was painted on a narrower canvas, every line of it after a gutter."""
        base, size = self._length, len(gutter[0])
        moved: dict[TextSpan | None, TextSpan | None] = {None: None}
        for strip, span in zip(painted.strips, painted.spans, strict=True):
            if span is not None and span not in moved:
                moved[span] = TextSpan(size + span.gutter, base + span.start, base + span.end, span.is_loose)
            self._put(Strip([Segment(*gutter), *strip]).adjust_cell_length(self.width), moved[span])
        self._keep(painted.text)

    def _keep(self, text: str) -> None:
        self._texts.append(text)
        self._length += len(text) + 1

    def _add(self, words: Sequence[Words], span: TextSpan | None, fill: Style | None = None) -> None:
        used = 0
        segments: list[Segment] = []
        for text, style in words:
            size = cell_len(text)
            if used + size > self.width:
                text = set_cell_size(text, self.width - used)
                size = self.width - used
            if text:
                segments.append(Segment(text, style if fill is None else fill + style))
            used += size
        if used < self.width:
            segments.append(Segment(" " * (self.width - used), fill))
        self._put(Strip(segments, self.width), span)

    def _put(self, strip: Strip, span: TextSpan | None) -> None:
        self.strips.append(strip)
        self._spans.append(span)


def _rows(text: str, width: int, broken: Callable[[str, int], list[Row]]) -> Iterator[Row]:
    at = 0
    for line in text.split("\n"):
        for start, end in broken(line, max(2, width)):
            yield at + start, at + end
        at += len(line) + 1
