r"""Text that a terminal shows as it is: nothing in it moves the cursor, hides or reaches the clipboard.

visible    every control character as a symbol (␛), every invisible or reordering one as its code (\u202e)
printed    what a program's output leaves on a terminal: colours dropped, overwritten lines gone; then visible
breaks     where the lines of a paragraph end at a width
wrap       the lines themselves

Joiners and selectors stay where emoji and scripts need them; what a person approves is escaped more strictly
by `swink.messages.redact.shown`.
"""

import re
from collections.abc import Iterator

from rich.cells import cell_len, get_character_cell_size

TAB = 4
"""Columns from one tab stop to the next."""
_MOST_MARKS = 8  # characters of no width in a row; Vietnamese needs two, a flood has thousands

_ASCII = re.compile(r"[\n -~]*")
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")
_SYMBOLS = {**{code: chr(0x2400 + code) for code in range(32)}, 0x7F: "␡"}
_EMOJI = "\u2190-\u23ff\u2460-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001fbff"
_LETTER = "\u0590-\u1fff\ua800-\uabff"
_UNSEEN = re.compile(
    r"[\x80-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    r"\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\uffff"
    r"\U00016fe4\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    # A joiner between emoji, a non-joiner between letters of scripts that need it, a selector after an emoji.
    rf"|(?<![{_EMOJI}\ufe0f])\u200d|\u200d(?![{_EMOJI}])"
    rf"|(?<![{_LETTER}])\u200c|\u200c(?![{_LETTER}])"
    rf"|(?<![#*0-9\xa9\xae\u203c\u2049\u2122\u2139{_EMOJI}])\ufe0f"
)
_MAY_FLOOD = re.compile(rf"[^\x00-\u02ff\u2e80-\u9fff\uac00-\ud7a3]{{{_MOST_MARKS + 1},}}")

_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI: colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]?"
)
_ERASED = re.compile(r"[^\n\x08]\x08")


def visible(text: str) -> str:
    """The text with everything made visible that a terminal would act on or hide; line feeds stay."""
    if _ASCII.fullmatch(text):
        return text
    if "\t" in text:
        text = text.expandtabs(TAB)
    text = _CONTROL.sub(lambda found: _SYMBOLS[ord(found[0])], text.replace("\r\n", "\n"))
    return _MAY_FLOOD.sub(_thin_out, _UNSEEN.sub(_escape, text))


def printed(output: str) -> str:
    """What a program's output leaves on a terminal, made visible."""
    if _ASCII.fullmatch(output):
        return output
    if "\x1b" in output or not output.isascii():
        output = _SEQUENCE.sub("", output)
    output = output.replace("\r\n", "\n")
    if "\r" in output:
        output = "\n".join([line.rstrip("\r").rpartition("\r")[2] for line in output.split("\n")])
    if "\x08" in output:
        output = _ERASED.sub("", output).replace("\x08", "")
    return visible(output.replace("\x07", ""))


def wrap(text: str, width: int, *, first: str = "", rest: str = "") -> list[str]:
    """The lines of a visible text at a width, each behind its indent; words break only if they must."""
    lines: list[str] = []
    room = max(2, width - cell_len(rest))
    for paragraph in text.split("\n"):
        spans = breaks(paragraph, room if lines else max(2, width - cell_len(first)), room)
        for start, end in spans:
            lines.append((rest if lines else first) + paragraph[start:end])
    return lines


def breaks(text: str, width: int, rest: int | None = None) -> list[tuple[int, int]]:
    """Where the lines of a paragraph start and end; `rest` is the width of all lines but the first.

    Spaces at the end of a line that is full belong to no line. There is always one line.
    """
    rest = width if rest is None else rest
    return list(_ascii_breaks(text, width, rest) if text.isascii() else _cell_breaks(text, width, rest))


def chops(text: str, width: int) -> list[tuple[int, int]]:
    """Where the lines of a text start and end that keeps its spaces: code and output."""
    if text.isascii():
        return [(at, min(at + width, len(text))) for at in range(0, len(text), width)] or [(0, 0)]
    lines: list[tuple[int, int]] = []
    start = cells = 0
    for at, _, size in clusters(text):
        if cells + size > width and at > start:
            lines.append((start, at))
            start, cells = at, 0
        cells += size
    return [*lines, (start, len(text))]


def clusters(text: str, at: int = 0) -> Iterator[tuple[int, int, int]]:
    """What a terminal shows as one character: where it starts and ends, and its width in cells."""
    length = len(text)
    while at < length:
        end = at + 1
        while end < length:
            if text[end] == "\u200d":
                end += 2
            elif get_character_cell_size(text[end]) == 0:
                end += 1
            else:
                break
        end = min(end, length)
        size = get_character_cell_size(text[at]) if end == at + 1 else cell_len(text[at:end])
        yield at, end, size
        at = end


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode-escape").decode()


def _thin_out(found: re.Match[str]) -> str:
    kept: list[str] = []
    marks = 0
    for char in found[0]:
        marks = 0 if get_character_cell_size(char) else marks + 1
        kept.append(char if marks <= _MOST_MARKS else char.encode("unicode-escape").decode())
    return "".join(kept)


def _ascii_breaks(text: str, width: int, rest: int) -> Iterator[tuple[int, int]]:
    start, length = 0, len(text)
    while length - start > width:
        end = text.rfind(" ", start + 1, start + width + 1)
        if end < 0 or text[start:end].isspace():
            yield start, start + width
            start += width
        else:
            yield start, start + len(text[start:end].rstrip(" "))
            start = end
        while start < length and text[start] == " ":
            start += 1
        if start == length:
            return
        width = rest
    yield start, length


_NEVER_FIRST = frozenset("、。，．・：；？！）」』】〉》〕］｝”’…‥ー々%)]}.,:;!?")
_NEVER_LAST = frozenset("（「『【〈《〔［｛“‘([{")


def _cell_breaks(text: str, width: int, rest: int) -> Iterator[tuple[int, int]]:
    start, length = 0, len(text)
    while True:
        stop, resume = _line_end(text, start, width)
        yield start, stop
        if resume >= length:
            return
        start, width = resume, rest


def _line_end(text: str, start: int, width: int) -> tuple[int, int]:
    """Where a line ends, and the next begins: at the last space or beside a wide character that fits."""
    cells, stop, resume = 0, -1, -1
    before, was_wide = " ", False
    for at, end, size in clusters(text, start):
        char = text[at]
        if char == " ":
            stop = at if before != " " else stop
            resume = end
        else:
            if before != " " and (was_wide or size == 2):
                may_break = before not in _NEVER_LAST and char not in _NEVER_FIRST
                stop, resume = (at, at) if may_break else (stop, resume)
            if cells + size > width and at > start:
                if stop > start:
                    return stop, resume
                return (start + width if cells > width else at), at  # wider by spaces alone
        cells += size
        before, was_wide = char, size == 2
    if cells > width:
        return (stop if stop >= 0 else start + width), len(text)
    return len(text), len(text)
