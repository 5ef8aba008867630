"""Values: JSON compared as JSON, and found in the text of a reply."""

import math
import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, cast

import msgspec

from swink.errors import InvalidInput
from swink.messages.jsondata import is_shallow

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([\w+#.-]*)(.*)")


class NoJson(InvalidInput):
    """A text holds no JSON where some was expected."""


def equal(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: 1 is 1.0, but not true."""
    return _compare(one, other, exactly=True)


def contains(wanted: Any, value: Any) -> bool:
    """Whether a value holds all that is wanted: an object may have more keys, at any level."""
    return _compare(wanted, value, exactly=False)


def likeness(wanted: Any, value: Any) -> float:
    """Which part of the values that an object or list holds, at any level, is the same in another."""
    same, total = _count(wanted, value)
    return same / total if total else 1.0


def read_json(text: str) -> Any:
    """The JSON that a reply is, or that its one fenced block of code holds; raises `NoJson`."""
    blocks = [body for language, body in fenced_blocks(text) if language in ("", "json", "jsonc", "json5")]
    for candidate in [text.strip(), *(blocks if len(blocks) == 1 else ())]:
        try:
            value = msgspec.json.decode(candidate)
        except (msgspec.DecodeError, RecursionError, ValueError):
            continue
        if not is_shallow(value):
            raise NoJson("the JSON of the response is nested too deeply")
        return value
    found = "it has several blocks of code" if len(blocks) > 1 else "it is neither JSON nor one block of it"
    raise NoJson(f"the response holds no JSON: {found}")


def fenced_blocks(text: str) -> list[tuple[str, str]]:
    """The fenced blocks of code in a text that are closed: language, in small letters, and contents."""
    blocks: list[tuple[str, str]] = []
    fence, language = "", ""
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        match = _FENCE.match(line)
        if not fence and match is not None:
            fence, language, lines = match[1], match[2].lower(), []
        elif fence and match and match[1].startswith(fence) and not (match[2] or match[3].strip()):
            blocks.append((language, "".join(lines)))
            fence = ""
        elif fence:
            lines.append(line)
    return blocks


def _compare(one: Any, other: Any, *, exactly: bool) -> bool:
    match one, other:
        case (Mapping(), Mapping()):
            wanted, given = cast("Mapping[str, Any]", one), cast("Mapping[str, Any]", other)
            if (exactly and len(wanted) != len(given)) or not wanted.keys() <= given.keys():
                return False
            return all(_compare(item, given[key], exactly=exactly) for key, item in wanted.items())
        case (list() | tuple(), list() | tuple()):
            items, others = cast("Sequence[Any]", one), cast("Sequence[Any]", other)
            same = zip(items, others, strict=False)
            return len(items) == len(others) and all(_compare(a, b, exactly=exactly) for a, b in same)
        case _:
            return _same(one, other)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other or (math.isnan(one) and math.isnan(other))
    return type(one) is type(other) and one == other


def _count(wanted: Any, value: Any) -> tuple[int, int]:
    """How many of the leaves on both sides are the same, and how many there are."""
    match wanted, value:
        case (Mapping(), Mapping()) if wanted or value:
            one, other = cast("Mapping[str, Any]", wanted), cast("Mapping[str, Any]", value)
            pairs = [(one.get(key, _NOTHING), other.get(key, _NOTHING)) for key in {**one, **other}]
        case (list() | tuple(), list() | tuple()) if wanted or value:
            items, others = cast("Sequence[Any]", wanted), cast("Sequence[Any]", value)
            pairs = list(zip_longest(items, others, fillvalue=_NOTHING))
        case _:
            return (1, 1) if equal(wanted, value) else (0, max(_leaves(wanted), _leaves(value)))
    counts = [_count(a, b) for a, b in pairs]
    return sum(same for same, _ in counts), sum(total for _, total in counts)


def _leaves(value: Any) -> int:
    match value:
        case Mapping() if value:
            return sum(map(_leaves, cast("Mapping[str, Any]", value).values()))
        case list() | tuple() if value:
            return sum(map(_leaves, cast("Sequence[Any]", value)))
        case _:
            return 1


_NOTHING: Any = object()
