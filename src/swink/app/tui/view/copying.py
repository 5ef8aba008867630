"""Copying: from what is selected on the screen back to the text it was painted from.

A line knows its piece of the text, or only that its words are in there (Markdown drops marks and breaks lines
anew): then the words are looked for, in order, and the text from the first one to the last is what is copied.
"""

import re
from collections.abc import Iterable, Iterator

from swink.app.tui.view.linewindow import LineWindow
from swink.app.tui.view.painted import Painted
from swink.events.transcript import Block, NoticeBlock, PromptBlock, ReplyBlock, ThinkingBlock, ToolBlock
from swink.events.transcript.blockkinds import json_of

Point = tuple[int, int, int]
"""Block, line in it, character in that."""
_WORD = re.compile(r"\w+|[^\w\s]")
_AHEAD = 2_000  # characters in which the next word is looked for
_NEAR = 20  # and in which a sign is: one that only the painter put there would be found far off


def copied(source: LineWindow, start: Point | None, end: Point | None) -> str:
    """The text between two points; None is the very beginning or end."""
    first = 0 if start is None else start[0]
    last = len(source.blocks) - 1 if end is None else min(end[0], len(source.blocks) - 1)
    pieces: list[str] = []
    for place in range(first, last + 1):
        if source.is_hidden_at(place):
            continue
        block = source.blocks[place]
        if isinstance(block, ReplyBlock) and first < place < last:  # all of it: no need to paint it
            pieces.append(block.text)
            continue
        painted = source.painted(place)
        begins = (0, 0) if start is None or place > first else start[1:]
        ends = (len(painted.strips), 0) if end is None or place < end[0] else end[1:]
        pieces.append(_copied_of(painted, begins, ends))
    return "\n\n".join(piece for piece in pieces if piece)


def source_of(block: Block) -> str:
    """All text of a block, for searching."""
    match block:
        case PromptBlock() | ReplyBlock() | ThinkingBlock():
            return block.text
        case ToolBlock():
            told = block.partial if block.partial is not None else json_of(block.arguments)
            return f"{block.name}\n{told}\n{block.text if block.is_settled else block.output}"
        case NoticeBlock():
            return str(block.notice)


def _copied_of(painted: Painted, start: tuple[int, int], end: tuple[int, int]) -> str:
    if start == (0, 0) and end[0] >= len(painted.strips):
        return painted.text
    begin, stop = _offset(painted, start, is_end=False), _offset(painted, end, is_end=True)
    return painted.text[begin:stop] if begin is not None and stop is not None and begin < stop else ""


def _offset(painted: Painted, point: tuple[int, int], *, is_end: bool) -> int | None:
    """Where in the text a point is: what is shown at or after it, or for an end, at or before it."""
    line, x = point
    lines = range(min(line, len(painted.strips) - 1), -1, -1) if is_end else range(line, len(painted.strips))
    for number in lines:
        span = painted.spans[number]
        if span is None:
            continue
        if span.is_loose:
            found = _loose_offset(painted, number, x if number == line else None, is_end=is_end)
            if found is not None:
                return found
            continue
        if number != line:
            return span.end if is_end else span.start
        return min(span.end, max(span.start, span.start + x - span.gutter))
    return None


def _loose_offset(painted: Painted, line: int, x: int | None, *, is_end: bool) -> int | None:
    span = painted.spans[line]
    assert span is not None
    first = last = line
    while first and painted.spans[first - 1] is span:
        first -= 1
    while last + 1 < len(painted.spans) and painted.spans[last + 1] is span:
        last += 1
    rows = [painted.strips[number].text[span.gutter :] for number in range(first, last + 1)]
    text = painted.text[span.start : span.end]
    row = [word for word in _found(rows, text) if word[0] == line - first]
    own = row
    if x is not None:
        column = x - span.gutter
        own = [word for word in row if (word[1] < column if is_end else word[2] > column)]
    if not own:
        return None
    if is_end:
        _, left, right, offset = own[-1]
        size = right - left if x is None else min(right, x - span.gutter) - left
        at = offset + size
        if size == right - left and own[-1] is row[-1]:
            at += len(_marks_after(text, at))
        return span.start + at
    _, left, _, offset = own[0]
    at = offset + (0 if x is None else max(0, x - span.gutter - left))
    if at == offset and own[0] is row[0]:
        at -= len(_marks_before(text, at))
    return span.start + at


_Word = tuple[int, int, int, int]  # row, from which character to which, and where it is in the text


def _found(rows: Iterable[str], text: str) -> Iterator[_Word]:
    at = 0
    for number, row in enumerate(rows):
        for word in _WORD.finditer(row):
            found = text.find(word.group(), at, at + (_AHEAD if word.group()[0].isalnum() else _NEAR))
            if found >= 0:
                yield number, word.start(), word.end(), found
                at = found + len(word.group())


def _marks_after(text: str, at: int) -> str:
    """What closes emphasis, code or a link: up to the end of the line, if nothing else is there."""
    rest = text[at : text.find("\n", at) if "\n" in text[at:] else len(text)]
    return rest if re.fullmatch(r"[*_~`)\]|]*(\([^)\s]*\))?[*_~`|]*", rest) else ""


def _marks_before(text: str, at: int) -> str:
    """What begins the line: blanks, a bullet, a heading's or emphasis' marks."""
    start = text.rfind("\n", 0, at) + 1
    lead = text[start:at]
    return lead if re.fullmatch(r"[\s>#*_~`\-+\[|]*(\d+[.)]\s+)?[*_~`\[]*", lead) else ""
