"""Function arguments that Gemini streams as values with JSON paths, turned into the JSON text they add up to.

{"jsonPath": "$.items[0].name", "stringValue": "Ap", "willContinue": true}   →  {"items":[{"name":"Ap
{"jsonPath": "$.items[0].name", "stringValue": "ple"}                        →  ple"
finish()                                                                     →  }]}
"""

import re

import msgspec
from msgspec import Struct

from swink.errors import StreamError

MOST_SKIPPED = 1000

Path = tuple[str | int, ...]

_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""")


class PartialArgument(Struct, frozen=True, rename="camel"):
    """One value, or one piece of a string."""

    json_path: str
    string_value: str | None = None
    number_value: float | int | None = None
    bool_value: bool | None = None
    will_continue: bool | None = None


class ArgumentWriter:
    """Writes an object as its values arrive; each call gives the text to add.

    Values come in the order in which the model writes them, so a container that was closed stays closed.
    """

    def __init__(self) -> None:
        self._open: list[_Container] = []
        self._string: Path | None = None

    def write(self, part: PartialArgument) -> str:
        """The text that one value adds."""
        path = parse_path(part.json_path)
        out: list[str] = []
        if path != self._string:
            out = [self._end_string(), *self._move_to(path)]
            if part.string_value is None:
                value = part.bool_value if part.number_value is None else part.number_value
                return "".join([*out, msgspec.json.encode(value).decode()])
            out.append('"')
            self._string = path
        out.append(msgspec.json.encode(part.string_value or "").decode()[1:-1])
        if not part.will_continue:
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
        if isinstance(key, int) != (self.start == "[") or key in self._keys:
            raise StreamError("the provider streams arguments out of order")
        if isinstance(key, int):
            if not self._count <= key <= self._count + MOST_SKIPPED:
                raise StreamError("the provider streams arguments out of order")
            # Elements that the provider skips have no value.
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
        key = name or re.sub(r"\\(.)", r"\1", quoted or double or "")
        steps.append(key if index is None else int(index))
        at = found.end()
    return tuple(steps)
