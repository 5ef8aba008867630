"""The terminal: lines for people on stderr, colour where it is wanted, text without control characters."""

import os
import shutil
import sys
import unicodedata
from typing import Literal, TextIO

from swink.redact import redact_text

Style = Literal["error", "warning", "ok", "dim", "bold"]

_CODES: dict[Style, str] = {"error": "31", "warning": "33", "ok": "32", "dim": "2", "bold": "1"}
# A model's text must not move the cursor, set the title or fill the clipboard.
_CONTROL = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}

_passing = ""


def say(text: str, style: Style | None = None) -> None:
    """One line for people on stderr; secrets in it are redacted."""
    say_in_passing("")
    mark = f"{style}: " if style in ("error", "warning") else ""
    line = strip_controls(redact_text(f"{mark}{text}"))
    print(f"swink: {add_style(line, style, sys.stderr) if style else line}", file=sys.stderr, flush=True)


def say_in_passing(text: str) -> None:
    """A line on stderr that the next one replaces; only on a terminal that can erase it."""
    global _passing
    if text != _passing and sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        print(f"\r\x1b[K{shorten(text)}", end="", file=sys.stderr, flush=True)
        _passing = text


def add_style(text: str, style: Style, stream: TextIO) -> str:
    """The text in a style, if the stream shows styles."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if wants_colour(stream) else text


def wants_colour(stream: TextIO) -> bool:
    """Whether the stream is a terminal with colours that nobody has switched off."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def strip_controls(text: str) -> str:
    """The text without control characters, line ends and tabs aside."""
    return text.translate(_CONTROL)


def shorten(text: str, room: int | None = None) -> str:
    """The text in one line of at most `room` columns, by default what fits the terminal."""
    room = room or max(40, shutil.get_terminal_size().columns - 1)
    line = " ".join(strip_controls(text).split())
    if width_of(line) <= room:
        return line
    if line.isascii():
        return f"{line[: room - 1]}…"
    kept, left = "", room - 1
    for character in line:
        left -= width_of(character)
        if left < 0:
            break
        kept += character
    return f"{kept}…"


def width_of(text: str) -> int:
    """How many columns of a terminal the text takes: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def table(rows: list[tuple[str, ...]], numbers: tuple[int, ...] = ()) -> str:
    """Rows in columns; those whose index is in `numbers` are aligned to the right."""
    widths = [max(width_of(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            " " * (width - width_of(cell)) + cell
            if index in numbers
            else cell + " " * (width - width_of(cell))
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
