"""Diffs: what changed in a file, as hunks of numbered lines that are shown in a column or side by side."""

import difflib
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate, zip_longest
from typing import Literal

from msgspec import Struct

from swink.events.transcript.linepairs import pair_lines

CONTEXT = 3
"""Unchanged lines around a change."""
FOLDED = 3
"""Unchanged lines from which on they are left out: to say that one or two are takes as much room."""
MOST_LINES = 4_000
"""Changed lines, on either side, up to which the lines that stayed are looked for among them."""
_WORD = re.compile(r"\w+|\s+|.", re.S)
_LONGEST_COMPARED = 400
"""Characters of a line in which changed words are looked for."""

Span = tuple[int, int]


class Line(Struct, frozen=True, gc=False):
    """A line of a diff with its numbers, counted from 1: a removed one has no new number, an added no old."""

    kind: Literal["same", "removed", "added"]
    text: str
    old: int | None = None
    new: int | None = None


class Hunk(Struct, frozen=True, dict=True):
    """Changed lines and some around them."""

    lines: tuple[Line, ...]

    @property
    def header(self) -> str:
        """The line that tells where it belongs: `@@ -3,7 +3,8 @@`."""
        return (
            f"@@ -{_range([line.old for line in self.lines])} +{_range([line.new for line in self.lines])} @@"
        )

    @cached_property
    def rows(self) -> "tuple[Row, ...]":
        """The hunk side by side: the old line and the new one, or nothing on one side."""
        return tuple(self._rows())

    def _rows(self) -> "Iterator[Row]":
        removed: list[Line] = []
        added: list[Line] = []
        for line in self.lines:
            if line.kind == "removed" and not added:
                removed.append(line)
            elif line.kind == "added":
                added.append(line)
            else:
                yield from _paired(removed, added)
                removed, added = ([line], []) if line.kind == "removed" else ([], [])
                if line.kind == "same":
                    yield line, line
        yield from _paired(removed, added)


Row = tuple[Line | None, Line | None]


class Diff(Struct, frozen=True):
    """What a call changed in a file."""

    path: str
    kind: Literal["changed", "created", "deleted"]
    hunks: tuple[Hunk, ...]

    @property
    def added(self) -> int:
        return sum(line.kind == "added" for hunk in self.hunks for line in hunk.lines)

    @property
    def removed(self) -> int:
        return sum(line.kind == "removed" for hunk in self.hunks for line in hunk.lines)

    @property
    def unified(self) -> str:
        """The diff as text in the usual form."""
        old = "/dev/null" if self.kind == "created" else f"a/{self.path}"
        new = "/dev/null" if self.kind == "deleted" else f"b/{self.path}"
        marks = {"same": " ", "removed": "-", "added": "+"}
        lines = [f"--- {old}", f"+++ {new}"]
        for hunk in map(_usual, self.hunks):
            lines += [hunk.header, *[marks[line.kind] + line.text for line in hunk.lines]]
        return "\n".join(lines) + "\n"


def diff(path: str, old: str | None, new: str | None) -> Diff:
    """What changed; None stands for a file that is not there."""
    before, after = _lines(old), _lines(new)
    kind = "created" if old is None else "deleted" if new is None else "changed"
    return Diff(path, kind, tuple(_hunks(before, after)))


def changed_words(old: str, new: str) -> tuple[list[Span], list[Span]]:
    """Which characters of a line changed, word by word: of the old line and of the new one.

    Nothing for lines that have little in common, where all of it changed.
    """
    if max(len(old), len(new)) > _LONGEST_COMPARED:
        return [], []
    before, after = _WORD.findall(old), _WORD.findall(new)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    same = sum(
        sum(map(len, before[block.a : block.a + block.size])) for block in matcher.get_matching_blocks()
    )
    if same * 2 < min(len(old.strip()), len(new.strip())):
        return [], []
    gone: list[Span] = []
    come: list[Span] = []
    old_at, new_at = _offsets(before), _offsets(after)
    for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if tag != "equal":
            gone += [(old_at[old_start], old_at[old_end])] if old_end > old_start else []
            come += [(new_at[new_start], new_at[new_end])] if new_end > new_start else []
    return gone, come


def _paired(removed: Sequence[Line], added: Sequence[Line]) -> Iterator[Row]:
    for old, new in pair_lines([line.text for line in removed], [line.text for line in added]):
        yield None if old is None else removed[old], None if new is None else added[new]


def _lines(text: str | None) -> list[str]:
    """The lines without their ends; only a line feed ends one."""
    if not text:
        return []
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _hunks(old: Sequence[str], new: Sequence[str]) -> Iterator[Hunk]:
    groups = [*_groups(_changes(old, new))]
    for group, following in zip_longest(groups, groups[1:]):
        at = max(0, group[0][0] - CONTEXT)
        at = 0 if at < FOLDED else at
        lines: list[Line] = []
        shift = 0
        for old_start, old_end, new_start, new_end in group:
            shift = new_start - old_start
            lines += [Line("same", old[line], line + 1, line + shift + 1) for line in range(at, old_start)]
            lines += [Line("removed", old[line], line + 1) for line in range(old_start, old_end)]
            lines += [Line("added", new[line], None, line + 1) for line in range(new_start, new_end)]
            at, shift = old_end, new_end - old_end
        last = min(len(old), at + CONTEXT)
        if following is not None and (start := following[0][0] - CONTEXT) - last < FOLDED:
            last = start
        lines += [Line("same", old[line], line + 1, line + shift + 1) for line in range(at, last)]
        yield Hunk(tuple(lines))


_Change = tuple[int, int, int, int]
"""Old lines from–to, and the new ones in their place."""


def _changes(old: Sequence[str], new: Sequence[str]) -> list[_Change]:
    """The changes; what the files begin and end with alike is never compared line by line."""
    start, shorter = 0, min(len(old), len(new))
    while start < shorter and old[start] == new[start]:
        start += 1
    tail = 0
    while tail < shorter - start and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    before, after = old[start : len(old) - tail], new[start : len(new) - tail]
    if not before and not after:
        return []
    if len(before) > MOST_LINES or len(after) > MOST_LINES:  # comparing may take quadratic time
        return [(start, start + len(before), start, start + len(after))]
    matcher = difflib.SequenceMatcher(None, before, after)
    return [
        (start + old_start, start + old_end, start + new_start, start + new_end)
        for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes()
        if tag != "equal"
    ]


def _groups(changes: Sequence[_Change]) -> Iterator[list[_Change]]:
    """Changes that are shown together: so near that the lines around them touch."""
    group: list[_Change] = []
    for change in changes:
        if group and change[0] - group[-1][1] > 2 * CONTEXT:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _usual(hunk: Hunk) -> Hunk:
    """The hunk with no more lines around its changes than is usual."""
    changed = [place for place, line in enumerate(hunk.lines) if line.kind != "same"]
    return Hunk(hunk.lines[max(0, changed[0] - CONTEXT) : changed[-1] + CONTEXT + 1])


def _range(numbers: Sequence[int | None]) -> str:
    present = [number for number in numbers if number is not None]
    return f"{present[0] if present else 0},{len(present)}"


def _offsets(words: Sequence[str]) -> list[int]:
    return [0, *accumulate(map(len, words))]
