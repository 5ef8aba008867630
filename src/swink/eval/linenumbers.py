"""Data with line numbers: what a text holds, and where each value of it stands."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

DEEPEST = 100
LONGEST_NUMBER = 400

Path = Sequence[str | int]


class Unreadable(Exception):
    """The text is no YAML or JSON that can be used."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(line, message)
        self.line = line
        self.message = message


class Lined(Struct):
    """Data, and for each dict and list in it the lines of what they hold."""

    data: Any
    first: int = 1
    lines: dict[int, dict[Any, int]] = {}
    """By the identity of the dict or list, then by key or place."""
    problems: list[tuple[int, str]] = []
    """What is wrong with the text although it can be read."""

    def line_of(self, path: Path) -> int:
        """The line of the value at the path, or of the nearest one around it."""
        value, line = self.data, self.first
        for step in path:
            line = self.lines.get(id(value), {}).get(step, line)
            try:
                value = value[step]
            except (LookupError, TypeError):
                break
        return line


def twice(key: str, line: int) -> str:
    """What is said of a key that stands in a mapping twice."""
    return f"{key!r} stands here twice, first on line {line}; remove one"
