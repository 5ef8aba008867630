"""The edit engine: text in, text out, or a complaint a model can act on. It touches no file.

Every edit is looked for in the text as it is before the call: exactly first, then ignoring line ends and
trailing white space. All edits apply or none does, and two that touch the same characters are refused.
"""

import bisect
import difflib
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Annotated

from msgspec import Meta, Struct

from swink.system.shorten import clip
from swink.tools import ToolError

SHOWN = 5
_CLOSE = 0.6
_SEARCHED = 20_000
_OLD = "The text to replace, exactly as it is in the file, with enough lines around it to be unique."


class Edit(Struct, frozen=True, forbid_unknown_fields=True):
    """Replace some text."""

    old: Annotated[str, Meta(description=_OLD)]
    new: Annotated[str, Meta(description="The text to put in its place.")]
    replace_all: Annotated[bool, Meta(description="Replace every occurrence.")] = False
    near_line: Annotated[
        int | None, Meta(description="Where several places match, take the one nearest to this line.")
    ] = None


class Applied(Struct, frozen=True):
    """The new text, and the lines where it changed (numbers of the old text)."""

    text: str
    lines: tuple[int, ...]


class EditFailed(ToolError):
    """Nothing was changed; the text says what is wrong with which edit."""


class _Span(Struct, frozen=True):
    start: int
    end: int
    new: str
    edit: int


def apply_edits(text: str, edits: Sequence[Edit]) -> Applied:
    """Apply all the edits, or raise `EditFailed` with everything that is wrong with them."""
    lines = _Lines(text)
    spans: list[_Span] = []
    problems: list[str] = [] if edits else ["there are no edits"]
    for number, edit in enumerate(edits, 1):
        label = f"edit {number}: " if len(edits) > 1 else ""
        match _find_places(text, lines, edit):
            case str(problem):
                problems.append(label + problem)
            case places:
                spans += [
                    _Span(start, end, _fit_line_ends(text, lines, edit, start, end), number)
                    for start, end in places
                ]
    spans.sort(key=lambda span: (span.start, span.end))
    problems += [
        f"edits {one.edit} and {two.edit} overlap at line {lines.number(two.start)}; make them one edit"
        for one, two in pairwise(spans)
        if two.start < one.end
    ]
    if problems:
        raise EditFailed("nothing was changed: " + "\n".join(problems))
    return Applied(_splice(text, spans), tuple(lines.number(span.start) for span in spans))


def _find_places(text: str, lines: "_Lines", edit: Edit) -> list[tuple[int, int]] | str:
    if not edit.old:
        return "`old` is empty; quote the text to replace, or use write_file to write a whole file"
    if edit.old == edit.new:
        return "`old` and `new` are the same"
    found = list(_find_exact(text, edit.old)) or list(_find_tolerant(text, edit.old))
    if not found:
        return _explain_missing(lines, edit.old)
    if edit.replace_all:
        return _disjoint(found)
    if len(found) > 1 and edit.near_line is not None:
        distances = [abs(lines.number(start) - edit.near_line) for start, _ in found]
        least = min(distances)
        found = [place for place, distance in zip(found, distances, strict=True) if distance == least]
    return found if len(found) == 1 else _explain_ambiguity(lines, edit, found)


def _find_exact(text: str, old: str) -> Iterator[tuple[int, int]]:
    """Every occurrence, overlapping ones too: `aa` is not unique in `aaa`."""
    at = text.find(old)
    while at >= 0:
        yield at, at + len(old)
        at = text.find(old, at + 1)


def _find_tolerant(text: str, old: str) -> Iterator[tuple[int, int]]:
    """Occurrences that differ only in line ends (one is the end of the file) and white space before them."""
    pieces = [re.escape(line.rstrip()) for line in old.split("\n")]
    if not any(pieces):
        return
    ends_line = pieces[-1] == "" and len(pieces) > 1
    pattern = r"[ \t]*\r?\n".join(pieces[:-1] if ends_line else pieces)
    pattern += (
        r"[ \t]*(?:\r?\n|\Z)" if ends_line else (r"[ \t]*(?=\r?\n|\Z)" if old != old.rstrip(" \t") else "")
    )
    if not pieces[0]:
        # A match never starts inside a run of blanks: each of them would be tried, in quadratic time.
        pattern = r"(?<![ \t])" + pattern
    regex = re.compile(pattern)
    match = regex.search(text)
    while match:
        yield match.span()
        match = regex.search(text, match.start() + 1)


def _disjoint(places: list[tuple[int, int]]) -> list[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    for place in places:
        if not kept or place[0] >= kept[-1][1]:
            kept.append(place)
    return kept


def _fit_line_ends(text: str, lines: "_Lines", edit: Edit, start: int, end: int) -> str:
    """The new text with the line ends of the place it goes to."""
    new = edit.new
    replaced = text[start:end]
    if edit.old.endswith("\n") and not replaced.endswith("\n"):  # the file has no final newline
        new = new.removesuffix("\n").removesuffix("\r")
    if "\r\n" in edit.old or "\r\n" in new or "\n" not in new:
        return new
    return new.replace("\n", "\r\n") if lines.ends_in_crlf(start) else new


def _splice(text: str, spans: Sequence[_Span]) -> str:
    parts: list[str] = []
    at = 0
    for span in spans:
        parts += [text[at : span.start], span.new]
        at = span.end
    return "".join([*parts, text[at:]])


class _Lines:
    """Line numbers of a text, from 1."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def number(self, position: int) -> int:
        return bisect.bisect_right(self.starts, position)

    def line(self, number: int) -> str:
        start = self.starts[number - 1]
        end = self.starts[number] if number < len(self.starts) else len(self._text)
        return self._text[start:end].rstrip("\r\n")

    def ends_in_crlf(self, position: int) -> bool:
        """How the line at a position ends; on the last line, how the one before it does."""
        number = self.number(position)
        end = self.starts[number] if number < len(self.starts) else self.starts[-1]
        return self._text[max(end - 2, 0) : end] == "\r\n"

    def __len__(self) -> int:
        return len(self.starts)


def _explain_ambiguity(lines: _Lines, edit: Edit, places: Sequence[tuple[int, int]]) -> str:
    numbers = [lines.number(start) for start, _ in places]
    shown = "\n".join(f"  line {at}: {clip(lines.line(at).strip(), 200)}" for at in numbers[:SHOWN])
    more = f"\n  and {len(numbers) - SHOWN} more" if len(numbers) > SHOWN else ""
    return (
        f"{_quote(edit.old)} is there {len(places)} times:\n{shown}{more}\n"
        "Quote more lines around the one you mean, give near_line, or set replace_all."
    )


def _explain_missing(lines: _Lines, old: str) -> str:
    """Say that there is no such text, and show what comes nearest."""
    wanted = [line.strip() for line in old.splitlines() if line.strip()]
    if not wanted:
        return "`old` is only white space and is not in the file; quote a line next to it"
    close = _find_nearest(lines, wanted)
    if not close:
        return f"{_quote(old)} is not in the file, nor anything like it; read the file again"
    height = len(old.splitlines())
    shown = "\n".join(_excerpt(lines, number, height) for number in close)
    return (
        f"{_quote(old)} is not in the file. The nearest text is:\n{shown}\n"
        "Quote it exactly as it is in the file, with its indentation."
    )


def _find_nearest(lines: _Lines, wanted: Sequence[str]) -> list[int]:
    """Up to three lines where a text like the wanted one may begin, best first."""
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted[0][:300])
    scores: list[tuple[float, int]] = []
    for number in range(1, min(len(lines), _SEARCHED) + 1):
        line = lines.line(number).strip()[:300]
        if line and (score := _compare(matcher, line, wanted[0][:300])) > _CLOSE:
            scores.append((score + _count_following(lines, number, wanted), -number))
    return [-number for _, number in sorted(scores, reverse=True)[:3]]


def _compare(matcher: "difflib.SequenceMatcher[str]", line: str, wanted: str) -> float:
    """How like the wanted text a line is, or, of a much longer line, the part of it that fits best."""
    if line == wanted:
        return 1.0
    matcher.set_seq1(line)
    if len(line) > 1.3 * len(wanted):
        best = matcher.find_longest_match()
        start = max(0, best.a - best.b)
        matcher.set_seq1(line[start : start + len(wanted)])
    elif matcher.real_quick_ratio() <= _CLOSE or matcher.quick_ratio() <= _CLOSE:
        return 0.0
    return matcher.ratio()


def _count_following(lines: _Lines, number: int, wanted: Sequence[str]) -> float:
    """How many of the lines after it agree too."""
    here = [lines.line(at).strip() for at in range(number + 1, min(number + 2 * len(wanted), len(lines)) + 1)]
    present = [line for line in here if line][: len(wanted) - 1]
    return sum(one == two for one, two in zip(present, wanted[1:], strict=False))


def _excerpt(lines: _Lines, number: int, height: int) -> str:
    last = min(number + min(height, 8) - 1, len(lines))
    return "\n".join(f"  line {at}: {clip(lines.line(at), 200)}" for at in range(number, last + 1))


def _quote(old: str) -> str:
    first = next((line.strip() for line in old.splitlines() if line.strip()), old)
    return f"`{clip(first, 80)}`" + (" …" if len(old.strip().splitlines()) > 1 else "")
