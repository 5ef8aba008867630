"""The terminal: lines for people on stderr, colour where it is wanted, text without control characters."""

import os
import sys
from typing import Literal, TextIO

from swink.messages.redact import redact_text
from swink.system.interrupts import Terminated
from swink.system.oneline import shorten, strip_controls, width_of

Style = Literal["error", "warning", "ok", "dim", "bold"]

_CODES: dict[Style, str] = {"error": "31", "warning": "33", "ok": "32", "dim": "2", "bold": "1"}

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


def ask_line(prompt: str) -> str | None:
    """A line that the user types, stripped; None if they leave it with Ctrl-C or Ctrl-D instead."""
    try:
        return input(prompt).strip()
    except Terminated:
        raise
    except (EOFError, KeyboardInterrupt):
        print()
        return None


def add_style(text: str, style: Style, stream: TextIO) -> str:
    """The text in a style, if the stream shows styles."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if wants_colour(stream) else text


def wants_colour(stream: TextIO) -> bool:
    """Whether the stream is a terminal with colours that are not switched off."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def table(rows: list[tuple[str, ...]], numbers: tuple[int, ...] = ()) -> str:
    """Rows in columns; those whose index is in `numbers` are aligned to the right."""
    widths = [max(width_of(row[column]) for row in rows) for column in range(len(rows[0]))]

    def aligned(index: int, cell: str) -> str:
        room = " " * (widths[index] - width_of(cell))
        return room + cell if index in numbers else cell + room

    lines = ["  ".join(aligned(index, cell) for index, cell in enumerate(row)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)


def with_bold_head(table: str) -> str:
    """A table for standard output, its first line in bold."""
    head, *lines = table.splitlines()
    return "\n".join([add_style(head, "bold", sys.stdout), *lines])
