"""Sections: Markdown cut from left to right into parts that are painted on their own.

A section ends where a blank line or a fence says so; a long list between two items, a long table or program
after some lines, and anything else after `MOST` characters. Where it ends depends on what stands before it
and on the line after it, so a section that is followed by a whole line never changes while a reply arrives.
"""

import re
from typing import Literal

from msgspec import Struct

MOST = 8_000
"""Characters of a section; what stays within one paragraph for longer is shown as it is."""
_ITEMS = 20  # lines of a list after which it is cut at an item
_ROWS = 50  # lines of a table after which it is cut; the rest keeps the columns
_CODE_SOFT = 15
"""Lines of code after which it is cut at a blank line before one that is not indented…"""
_CODE_HARD = 60
"""…or anywhere: colours start anew there."""

_BLANK = re.compile(r"(?:[ \t\r]*\n)*")
_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*)")
_ITEM = re.compile(r"(?P<start> {0,3}(?:[-+*]|\d{1,9}[.)]))(?P<space>[ \t]+|$)")
_DELIMITER = re.compile(r"[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")


class Fence(Struct, frozen=True):
    """A program that goes on."""

    mark: str
    info: str
    indent: int


class TableRows(Struct, frozen=True):
    """A table that goes on: its head."""

    head: str


Open = Fence | TableRows | Literal["items", "literal"] | None
"""What the last section left open."""


class Section(Struct, frozen=True):
    """A part of the source."""

    start: int
    end: int
    continues: Open
    """What was open before."""
    fence: Fence | None
    """Only of a program; its lines are those from `start` to `body_end`."""
    body_end: int
    leaves: Open
    """What is open after it."""
    is_settled: bool
    """Whether more text leaves it as it is."""


def next_section(text: str, at: int, continues: Open) -> Section | None:
    """The section that starts here, after blank lines; none at the end of the text."""
    if isinstance(continues, Fence):
        return _code(text, at, continues, continues) if at < len(text) else None
    if continues is None:
        found = _BLANK.match(text, at)
        at = found.end() if found else at
    if at >= len(text) or (continues is None and not text[at : at + MOST].strip()):
        return None
    if continues is None:
        end = text.find("\n", at, at + MOST)
        line = text[at : end if end >= 0 else at + MOST].rstrip("\r")
        if opening := _FENCE.fullmatch(line):
            fence = Fence(opening["mark"], opening["info"].strip(), opening.start("mark"))
            return _code(text, len(text) if end < 0 else end + 1, fence, None)
    return _text(text, at, continues)


def _code(text: str, start: int, fence: Fence, continues: Open) -> Section:
    """The lines of a program up to its closing fence, or to where it is cut."""
    closing = re.compile(rf" {{0,3}}{re.escape(fence.mark)}{re.escape(fence.mark[0])}*[ \t\r]*")
    at, count, was_blank = start, 0, False
    while at < len(text):
        end = text.find("\n", at, start + MOST)
        is_whole = end >= 0
        is_long = not is_whole and len(text) >= start + MOST
        line = text[at : end if is_whole else start + MOST]
        if not is_long and closing.fullmatch(line):
            after = end + 1 if is_whole else len(text)
            return Section(start, after, continues, fence, at, None, is_whole)
        starts_anew = count >= _CODE_SOFT and was_blank and line[:1].strip() != ""
        if count >= _CODE_HARD or starts_anew or (is_long and at > start):
            return Section(start, at, continues, fence, at, fence, is_whole or is_long)
        if is_long:
            return Section(start, start + MOST, continues, fence, start + MOST, fence, True)
        at, count, was_blank = (end + 1 if is_whole else len(text)), count + 1, not line.strip()
    return Section(start, len(text), continues, fence, len(text), fence, False)


def _text(text: str, start: int, continues: Open) -> Section:
    """Everything else, up to where something new starts for certain."""

    def cut(at: int, leaves: Open, *, is_settled: bool) -> Section:
        return Section(start, at, continues, None, at, leaves, is_settled)

    at, before, count = start, start, 0
    offset, marker, head = 0, "", continues.head if isinstance(continues, TableRows) else ""
    was_blank = False
    while at < len(text):
        if at >= start + MOST:  # nothing but blank lines for long
            return cut(at, None if was_blank else "literal", is_settled=True)
        end = text.find("\n", at, start + MOST)
        is_whole = end >= 0
        is_long = not is_whole and len(text) >= start + MOST
        line = text[at : end if is_whole else start + MOST].rstrip("\r")
        after = end + 1 if is_whole else min(len(text), start + MOST)
        if not line.strip():
            at, was_blank = after, True
            continue
        indent = len(line[: len(line) - len(line.lstrip(" \t"))].expandtabs(4))
        item = _ITEM.match(line)
        if at > start:
            is_inside = bool(offset) and indent >= offset
            if (was_blank and indent <= 1) or (not is_inside and _FENCE.fullmatch(line)):
                return cut(at, None, is_settled=is_whole or is_long)
            is_large = at - start >= MOST * 3 // 4
            if (count >= _ITEMS or is_large) and item and indent <= 1 and item["start"][-1] == marker:
                return cut(at, "items", is_settled=is_whole or is_long)
            if (count >= _ROWS or is_large) and head:
                return cut(at, TableRows(head), is_settled=is_whole or is_long)
            if is_long:
                return cut(at, "literal", is_settled=True)
        elif is_long:
            return cut(start + MOST, "literal", is_settled=True)
        if item and (indent < offset or not offset):
            spaces = len(item["space"])
            offset, marker = len(item["start"]) + (spaces if 1 <= spaces <= 4 else 1), item["start"][-1]
        elif was_blank and indent < offset:
            offset, marker = 0, ""
        if count and not head and "|" in line and _DELIMITER.fullmatch(line):
            head = text[before:after]
        before, at, count, was_blank = at, after, count + 1, False
    return cut(len(text), None, is_settled=False)
