"""Text for one line of a terminal: without control characters, and no wider than there is room."""

import shutil
import unicodedata

# A model's text must not move the cursor, set the title or fill the clipboard.
_CONTROL = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


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
