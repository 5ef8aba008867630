"""Function arguments that Gemini streams as values with JSON paths, turned into the JSON text they add up to.

    {"jsonPath": "$.items[0].name", "stringValue": "Ap", "willContinue": true}   →  {"items":[{"name":"Ap
    {"jsonPath": "$.items[0].name", "stringValue": "ple"}                        →  ple"
    finish()                                                                     →  }]}
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from swink.errors import StreamError

Path = tuple[str | int, ...]

_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""")


class ArgumentWriter:
    """Writes an object as its values arrive; each call gives the text to add.

    Values come in the order in which the model writes them, so a container that was left is never entered again.
    """

    def __init__(self) -> None:
        self._open: list[_Container] = []
        self._string: Path | None = None

    def write(self, part: Mapping[str, Any]) -> str:
        """The text that one value adds."""
        path = parse_path(part["jsonPath"])
        if path == self._string:
            out: list[str] = []
        else:
            out = [self._end_string(), *self._move_to(path)]
        if "stringValue" not in part:
            return "".join([*out, _literal(part)])
        if self._string is None:
            out.append('"')
        self._string = path
        out.append(_escaped(part["stringValue"]))
        if not part.get("willContinue"):
            out.append(self._end_string())
        return "".join(out)

    def finish(self) -> str:
        """The text that ends the object."""
        ending = [self._end_string(), *(container.end for container in reversed(self._open))]
        self._open.clear()
        return "".join(ending) or "{}"

    def _end_string(self) -> str:
        if self._string is None:
            return ""
        self._string = None
        return '"'

    def _move_to(self, path: Path) -> list[str]:
        """Leave and enter containers until the value at `path` can be written, comma and key included."""
        if not path:
            raise StreamError("the provider streams arguments that are not an object")
        out: list[str] = []
        while self._open and path[: len(self._open[-1].path)] != self._open[-1].path:
            out.append(self._open.pop().end)
        for depth in range(len(self._open[-1].path) + 1 if self._open else 0, len(path)):
            if self._open:
                out.append(self._open[-1].next(path[depth - 1]))
            container = _Container(path[:depth], isinstance(path[depth], int))
            self._open.append(container)
            out.append(container.start)
        out.append(self._open[-1].next(path[-1]))
        return out


class _Container:
    """An object or array that is being written."""

    __slots__ = ("_count", "_keys", "end", "path", "start")

    def __init__(self, path: Path, is_array: bool) -> None:
        self.path = path
        self.start, self.end = "[]" if is_array else "{}"
        self._keys: set[str] = set()
        self._count = 0

    def next(self, key: str | int) -> str:
        """What stands before the value of a key: a comma, and the key itself in an object."""
        if isinstance(key, int) != (self.start == "[") or key in self._keys or (isinstance(key, int) and key < self._count):
            raise StreamError("the provider streams arguments out of order")
        if isinstance(key, int):
            # An element that was passed over had nothing in it to tell of.
            skipped = "null," * (key - self._count)
            comma = "," if self._count else ""
            self._count = key + 1
            return comma + skipped
        comma = "," if self._keys else ""
        self._keys.add(key)
        return f"{comma}{msgspec.json.encode(key).decode()}:"


def parse_path(text: str) -> Path:
    """The steps of a JSON path such as `$.a[0]['b c']`."""
    steps: list[str | int] = []
    at = 1
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None or text[0] != "$":
            raise StreamError(f"the provider streams arguments under an unknown path: {text[:200]}")
        name, index, quoted, double = found.groups()
        steps.append(int(index) if index is not None else name or re.sub(r"\\(.)", r"\1", quoted or double or ""))
        at = found.end()
    return tuple(steps)


def _literal(part: Mapping[str, Any]) -> str:
    value = part.get("numberValue", part.get("boolValue"))
    return msgspec.json.encode(value).decode()


def _escaped(text: str) -> str:
    return msgspec.json.encode(text).decode()[1:-1]
