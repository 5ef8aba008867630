"""Diffs on the screen: one column, or side by side where there is room.

src/app.py  +2 −1
1 1   def main() -> None:
2   -     print("hello")
  2 +     print("hello, world")
  3 +     return None
⋯ 40 unchanged lines
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest

from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from swink.app.tui.escaping import visible, wrap
from swink.app.tui.look import Look
from swink.app.tui.sourcecode import highlight
from swink.app.tui.strips import Piece, chop_pieces, pad, strip
from swink.events.transcript.blockkinds import counted
from swink.events.transcript.diffs import Diff, Hunk, Line, Span, changed_words

WIDE = 160
"""Columns from which a diff is shown side by side."""
_MOST_COLOURED = 400
"""Lines of a diff up to which programs are shown in colour: more would hold up the screen."""
_MOST_COMPARED = 3_000_000  # pairs of characters up to which changed words are looked for
_MOST_LINES = 5_000
_LONGEST = 4_000  # lines, and characters of a line, that are shown
_ROOMY = 60  # columns from which lines are numbered as they were and as they are
_NARROWEST = 20
_MARKS = {"same": " ", "removed": "-", "added": "+"}
_NOTHING = {
    "created": "The new file is empty.",
    "deleted": "The file was empty.",
    "changed": "No line changed; the ends of lines may have.",
}

_Row = tuple[list[Piece], Style]
_Key = tuple[int | None, int | None]  # a line within its hunk, by its numbers


class _Frame(Struct, frozen=True):
    """How the hunks of a diff are shown."""

    width: int
    look: Look
    path: str
    """Says in which language they are; none if they are too long for colours."""
    digits: int
    side_by_side: bool
    has_words: bool


def paint_diff(diff: Diff, width: int, look: Look, *, side_by_side: bool | None = None) -> list[Strip]:
    """What changed in a file; `side_by_side=None` decides by the width."""
    width = max(width, _NARROWEST)
    strips = _title(diff, width, look)
    if not diff.hunks:
        return strips + [strip((line, look.dim)) for line in wrap(_NOTHING[diff.kind], width)]
    if side_by_side is None:
        side_by_side = width >= WIDE and diff.kind == "changed"
    hunks, left_out = _bound(diff.hunks)
    frame = _frame(hunks, width, look, diff.path, side_by_side=side_by_side)
    at = 1
    for hunk in hunks:
        numbers = [line.old for line in hunk.lines if line.old is not None] or [1, 0]
        if numbers[0] > at:
            strips.append(strip((f"⋯ {counted(numbers[0] - at, 'unchanged line')}", look.dim)))
        strips += _paint(hunk, frame)
        at = numbers[-1] + 1
    return strips + _left_out(left_out, width, look)


def paint_hunk(hunk: Hunk, width: int, look: Look, *, path: str = "") -> list[Strip]:
    """One hunk in a column, or side by side where there is room; `path` says in which language it is."""
    width = max(width, _NARROWEST)
    is_wide = width >= WIDE and {"removed", "added"} <= {line.kind for line in hunk.lines}
    (shown,), left_out = _bound([hunk])
    strips = _paint(shown, _frame([shown], width, look, path, side_by_side=is_wide))
    return strips + _left_out(left_out, width, look)


def _bound(hunks: Sequence[Hunk]) -> tuple[list[Hunk], int]:
    """As much of the hunks as a screen can hold without delay, and how many lines that leaves out."""
    kept: list[Hunk] = []
    room = _MOST_LINES
    for hunk in hunks:
        if lines := tuple(map(_shorten, hunk.lines[:room])):
            kept.append(Hunk(lines))
        room -= len(lines)
    return kept, sum(len(hunk.lines) for hunk in hunks) - (_MOST_LINES - room)


def _shorten(line: Line) -> Line:
    more = len(line.text) - _LONGEST
    if more <= 0:
        return line
    return replace(line, text=f"{line.text[:_LONGEST]} ⋯ {counted(more, 'more character')} not shown")


def _frame(hunks: Sequence[Hunk], width: int, look: Look, path: str, *, side_by_side: bool) -> _Frame:
    lines = [line for hunk in hunks for line in hunk.lines]
    is_long = len(lines) > _MOST_COLOURED or sum(len(line.text) for line in lines) > 100 * _MOST_COLOURED
    digits = len(str(max(number or 0 for line in lines for number in (line.old, line.new))))
    pairs = [pair for hunk in hunks for pair in hunk.rows]
    compared = sum(len(old.text) * len(new.text) for old, new in pairs if old and new and old is not new)
    return _Frame(width, look, "" if is_long else path, digits, side_by_side, compared <= _MOST_COMPARED)


def _left_out(lines: int, width: int, look: Look) -> list[Strip]:
    said = wrap(f"⋯ {counted(lines, 'more line')} not shown", width) if lines else []
    return [strip((line, look.warning)) for line in said]


def _title(diff: Diff, width: int, look: Look) -> list[Strip]:
    what = {"created": "new file  ", "deleted": "deleted file  ", "changed": ""}[diff.kind]
    counts: list[Piece] = [("  ", look.text), (what, look.dim)]
    counts += [(f"+{diff.added:,}", look.ok)] if diff.added or not diff.removed else []
    counts += [(" ", look.text)] if diff.added and diff.removed else []
    counts += [(f"−{diff.removed:,}", look.failed)] if diff.removed else []
    *above, last = wrap(visible(diff.path).replace("\n", "␊"), width)
    rows = [[(line, look.strong)] for line in above]
    if cell_len(last) + sum(len(text) for text, _ in counts) <= width:
        rows.append([(last, look.strong), *counts])
    else:
        rows += [[(last, look.strong)], counts[1:]]
    return [strip(*row) for row in rows]


def _paint(hunk: Hunk, frame: _Frame) -> list[Strip]:
    width, look, digits = frame.width, frame.look, frame.digits
    pieces = _pieces(hunk, frame)
    strips: list[Strip] = []
    if not frame.side_by_side:
        has_both = width >= _ROOMY and any(line.kind == "same" for line in hunk.lines)
        for line in hunk.lines:
            numbers = f"{line.new or line.old:>{digits}}"
            if has_both:
                numbers = f"{line.old or '':>{digits}} {line.new or '':>{digits}}"
            rows = _rows(line, pieces[line.old, line.new], width, look, numbers)
            strips += [pad(row, width, ground) for row, ground in rows]
        return strips
    half = (width - 3) // 2
    for old, new in hunk.rows:
        left = _rows(old, pieces[old.old, old.new], half, look, f"{old.old:>{digits}}") if old else []
        right = _rows(new, pieces[new.old, new.new], half, look, f"{new.new:>{digits}}") if new else []
        for sides in zip_longest(left, right, fillvalue=(list[Piece](), Style())):
            before, after = (pad(row, half, ground) for row, ground in sides)
            strips.append(Strip([*before, Segment(" │ ", look.border), *after], 2 * half + 3))
    return strips


def _pieces(hunk: Hunk, frame: _Frame) -> dict[_Key, list[Piece]]:
    """The text of every line in its styles."""
    look = frame.look
    texts = {(line.old, line.new): visible(line.text) for line in hunk.lines}
    made = dict[_Key, list[Piece]]()
    for left_out in ("added", "removed"):  # the file before, then as it is now
        lines = [line for line in hunk.lines if line.kind != left_out]
        shown = [texts[line.old, line.new] for line in lines]
        for line, pieces in zip(lines, highlight(shown, look, Style(), path=frame.path), strict=True):
            made[line.old, line.new] = [(text, _ink(line, style, look)) for text, style in pieces]
    for old, new in hunk.rows if frame.has_words else ():
        if old is not None and new is not None and old is not new:
            before, after = (old.old, old.new), (new.old, new.new)
            gone, come = changed_words(texts[before], texts[after])
            made[before] = list(_emphasise(made[before], gone, look.removed_word))
            made[after] = list(_emphasise(made[after], come, look.added_word))
    return made


def _ink(line: Line, style: Style, look: Look) -> Style:
    """Where the look has no grounds for changed lines, their own colour is what tells them apart."""
    ground = {"same": Style(), "added": look.added, "removed": look.removed}[line.kind]
    if line.kind != "same" and ground.bgcolor is None:
        return ground
    return look.text + style


def _emphasise(pieces: Sequence[Piece], spans: Sequence[Span], style: Style) -> Iterator[Piece]:
    """The pieces with the characters of the spans in a style of their own."""
    edges = sorted({edge for span in spans for edge in span})
    at = 0
    for text, own in pieces:
        cuts = [0, *[edge - at for edge in edges if at < edge < at + len(text)], len(text)]
        for start, end in pairwise(cuts):
            marked = any(first <= at + start < last for first, last in spans)
            yield text[start:end], own + style if marked else own
        at += len(text)


def _rows(line: Line, pieces: Sequence[Piece], width: int, look: Look, numbers: str) -> list[_Row]:
    """A line behind its numbers and mark, wrapped; and the ground that it stands on."""
    style = {"same": look.dim, "added": look.added, "removed": look.removed}[line.kind]
    gutter = f"{numbers} {_MARKS[line.kind]} "
    ground = Style(bgcolor=style.bgcolor)
    return [
        ([(" " * len(gutter) if count else gutter, style), *row], ground)
        for count, row in enumerate(chop_pieces(pieces, width - len(gutter)))
    ]
