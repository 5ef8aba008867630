"""Markdown as strips: at once, or while it arrives with only its end painted anew."""

from typing import NamedTuple

from textual.strip import Strip

from swink.app.tui.look import Look
from swink.app.tui.markdown.blockpainter import Blocks, Carry, Row, paint_literal
from swink.app.tui.markdown.inline import Definition, definitions
from swink.app.tui.markdown.sections import Open, Section, TableRows, next_section
from swink.app.tui.sourcecode import paint_code
from swink.app.tui.strips import strip

_NARROWEST = 10
_Key = tuple[Open, Carry, str]  # what was before a section, and its source
_BLANK = Strip([], 0)


class _Part(NamedTuple):
    """A section that may still change, as it was painted."""

    key: _Key
    rows: list[Row]
    strips: list[Strip]
    leaves: Carry


def paint_markdown(text: str, width: int, look: Look) -> list[Strip]:
    """A reply as lines that are no wider than the width, from ten columns on."""
    return StreamedMarkdown(look).paint(text, width)


class StreamedMarkdown:
    """A reply that arrives: however it is cut up, the strips are the same; settled sections keep theirs."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._width = 0
        self._known: dict[str, Definition] = {}
        self._searched = 0
        self._start_over()

    def paint(self, text: str, width: int, *, is_complete: bool = True) -> list[Strip]:
        """All of the text so far; of a table that still arrives only whole rows."""
        if not is_complete:
            text = text[: _end_of_rows(text)]
        width = max(width, _NARROWEST)
        if width != self._width or not text.startswith(self._source):
            self._start_over()
            self._width, self._known, self._searched = width, {}, 0
        self._look_for_definitions(text)
        strips = list[Strip]()
        at, leaves, carry = self._at, self._leaves, self._carry
        is_settled = True
        kept, self._tail = self._tail, {}
        while (section := next_section(text, at, leaves)) is not None:
            source = text[section.start : section.body_end]
            key = section.continues, carry, source
            part = self._part(section, kept.get(section.start), key)
            if not section.is_settled:
                self._tail[section.start] = part
            painted, carry = part.strips, part.leaves
            if painted and (self._strips or strips) and section.continues is None:
                painted = [_BLANK, *painted]
            at, leaves = section.end, section.leaves
            is_settled = is_settled and section.is_settled
            if is_settled:
                self._strips += painted
                self._at, self._leaves, self._carry = at, leaves, carry
            else:
                strips += painted
        self._source = text[: max(self._at, self._searched)]
        return self._strips + strips

    def _start_over(self) -> None:
        self._source = ""
        self._strips: list[Strip] = []
        self._at = 0
        self._leaves: Open = None
        self._carry = Carry()
        self._tail: dict[int, _Part] = {}

    def _look_for_definitions(self, text: str) -> None:
        """What links refer to may stand below them: a new definition has all of it painted again."""
        end = text.rfind("\n") + 1
        found = definitions(text[:end], self._searched, self._known)
        self._searched = end
        if found:
            self._known |= found
            self._start_over()

    def _part(self, section: Section, last: _Part | None, key: _Key) -> _Part:
        """A section as strips; lines that are as they were keep theirs."""
        if last is not None and last.key == key:
            return last
        rows, leaves = self._rows(section, *key[1:])
        before = [] if last is None else last.rows
        strips = [
            (last.strips[number] if last and number < len(before) and before[number] == row else strip(*row))
            if row
            else _BLANK
            for number, row in enumerate(rows)
        ]
        return _Part(key, rows, strips, leaves)

    def _rows(self, section: Section, carry: Carry, source: str) -> tuple[list[Row], Carry]:
        if section.fence is not None:
            lines = source.removesuffix("\n").split("\n") if source or section.continues is None else []
            lines = [_dedent(line, section.fence.indent) for line in lines]
            return paint_code(lines, section.fence.info, self._width, self._look), Carry()
        match section.continues:
            case "literal":
                return paint_literal(source, self._width, self._look), Carry()
            case TableRows(head):
                blocks = Blocks(head + source, self._look, self._known, carry)
                return blocks.paint(self._width, has_head=False), blocks.leaves
            case _:
                blocks = Blocks(source, self._look, self._known, carry)
                return blocks.paint(self._width), blocks.leaves


def _end_of_rows(text: str) -> int:
    """Where a text that goes on ends if a row of a table that is not whole, or a head alone, is held back."""
    end = text.rfind("\n") + 1
    if text[end:] and text[end] != "|":
        return len(text)
    head = text.rfind("\n", 0, max(0, end - 1)) + 1
    before = text.rfind("\n", 0, max(0, head - 1)) + 1
    is_head = text[head : head + 1] == "|" and (head == 0 or text[before] != "|")
    return head if is_head and head < end else end


def _dedent(line: str, indent: int) -> str:
    """A line of code without the indent of its fence."""
    return line[min(indent, len(line) - len(line.lstrip(" "))) :].removesuffix("\r")
