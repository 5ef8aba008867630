"""Strips: pieces of styled text, wrapped and put into the lines of a screen."""

from collections.abc import Iterable, Sequence

from rich.cells import cell_len, get_character_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from swink.app.tui.escaping import breaks, chops

Piece = tuple[str, Style]
"""Visible text in one style."""


def strip(*pieces: Piece) -> Strip:
    """Pieces of text as one line of the screen."""
    return Strip([Segment(text, style) for text, style in pieces if text])


def text_of(pieces: Iterable[Piece]) -> str:
    """The pieces without their styles."""
    return "".join([text for text, _ in pieces])


def wrap_pieces(pieces: Sequence[Piece], width: int) -> list[list[Piece]]:
    """A paragraph as lines that break at words."""
    text = text_of(pieces)
    return _cut(_whole(pieces, text), breaks(text, width))


def chop_pieces(pieces: Sequence[Piece], width: int) -> list[list[Piece]]:
    """A line of code as lines that keep every space."""
    text = text_of(pieces)
    return _cut(_whole(pieces, text), chops(text, width))


def pad(pieces: Iterable[Piece], width: int, style: Style) -> Strip:
    """A line filled up to the width."""
    segments = [Segment(text, style + own) for text, own in pieces if text]
    cells = sum([cell_len(segment.text) for segment in segments])
    if cells < width:
        segments.append(Segment(" " * (width - cells), style))
    return Strip(segments, max(cells, width))


def _whole(pieces: Sequence[Piece], text: str) -> Sequence[Piece]:
    """The pieces so that none begins within a character: a part of it has another width than the whole."""
    if text.isascii():
        return pieces
    kept: list[Piece] = []
    for text, style in pieces:
        joined = 0
        if kept:
            before, own = kept[-1]
            while joined < len(text) and (
                before.endswith("\u200d") or get_character_cell_size(text[joined]) == 0
            ):
                before += text[joined]
                joined += 1
            kept[-1] = before, own
        if text[joined:]:
            kept.append((text[joined:], style))
    return kept


def _cut(pieces: Sequence[Piece], spans: Sequence[tuple[int, int]]) -> list[list[Piece]]:
    """The pieces between the places; both go from left to right."""
    if len(pieces) == 1:
        text, style = pieces[0]
        return [[(text[start:end], style)] for start, end in spans]
    lines: list[list[Piece]] = []
    number, offset = 0, 0  # of the first piece that may reach into the line
    for start, end in spans:
        while number < len(pieces) and offset + len(pieces[number][0]) <= start:
            offset += len(pieces[number][0])
            number += 1
        line: list[Piece] = []
        at, index = offset, number
        while index < len(pieces) and at < end:
            text, style = pieces[index]
            line.append((text[max(0, start - at) : end - at], style))
            at += len(text)
            index += 1
        lines.append(line)
    return lines
