"""Pastes in what a terminal sends: taken out whole, before anything in them is read as keys.

Textual's parser reads an escape sequence inside a paste as keys, Enter included, and needs seconds for a
paste of megabytes.
"""

from collections.abc import Iterator

from msgspec import Struct

START, END = "\x1b[200~", "\x1b[201~"


class Pasted(Struct, frozen=True):
    """The text of a paste."""

    text: str


class PasteReader:
    """Parts keys from pastes, however the input is cut into pieces."""

    def __init__(self) -> None:
        self._inside: list[str] | None = None
        self._rest = ""

    def feed(self, data: str) -> Iterator[str | Pasted]:
        """Keys and pastes, in their order."""
        data, self._rest = self._rest + data, ""
        while data:
            mark = START if self._inside is None else END
            before, found, data = data.partition(mark)
            if not found:
                # One or two characters of a mark may be the Escape key: they are not kept waiting.
                kept = _overlap(before, mark, 3 if self._inside is None else 1)
                before, self._rest = before[: len(before) - kept], before[len(before) - kept :]
            if self._inside is not None:
                self._inside.append(before)
            elif before:
                yield before
            if found and self._inside is not None:
                yield Pasted("".join(self._inside).replace("\0", ""))
                self._inside = None
            elif found:
                self._inside = []


def _overlap(text: str, mark: str, least: int) -> int:
    """How many characters at the end of a text begin a mark."""
    return next((size for size in range(len(mark) - 1, least - 1, -1) if text.endswith(mark[:size])), 0)
