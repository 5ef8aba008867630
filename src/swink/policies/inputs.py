"""Inputs: options of a policy that cannot work are refused when it is built, with what to pass instead."""

import re
from collections.abc import Iterable
from math import inf
from typing import cast

from swink.errors import InvalidInput


def check_number(
    option: str, value: object, least: float = 0, *, whole: bool = False, above: bool = False
) -> None:
    """Refuse what is not a finite number from `least` on, or `above` it."""
    kind = int if whole else int | float
    fits = isinstance(value, kind) and not isinstance(value, bool) and least <= value < inf
    if not fits or (above and value == least):
        number = "a whole number" if whole else "a number"
        bound = f"above {least:g}" if above else f"from {least:g} on"
        raise InvalidInput(f"{option}={value!r}: give {number} {bound}")


def check_flag(option: str, value: object) -> None:
    """Refuse what is neither True nor False: a text such as "no" counts as true otherwise."""
    if not isinstance(value, bool):
        raise InvalidInput(f"{option}={value!r}: give True or False")


def texts_of(option: str, values: Iterable[str]) -> tuple[str, ...]:
    """The texts of a list; refuses a single text, of which each letter would count, and blank texts."""
    return tuple(cast("Iterable[str]", _listed(option, values, str)))


def patterns_of(option: str, values: Iterable[str | re.Pattern[str]]) -> tuple[re.Pattern[str], ...]:
    """Regular expressions, compiled to ignore case; refuses those that are wrong or match an empty text."""
    compiled: list[re.Pattern[str]] = []
    for value in _listed(option, values, str, re.Pattern):
        try:
            pattern = re.compile(value, re.I) if isinstance(value, str) else cast("re.Pattern[str]", value)
        except re.error as error:
            raise InvalidInput(f"{option}: {value!r} is not a regular expression: {error}") from None
        if pattern.search("") is not None:
            raise InvalidInput(f"{option}: {pattern.pattern!r} matches even an empty text; narrow it")
        compiled.append(pattern)
    return tuple(compiled)


def _listed(option: str, values: object, *kinds: type) -> list[object]:
    if isinstance(values, str | bytes | re.Pattern) or not isinstance(values, Iterable):
        raise InvalidInput(f"{option}={values!r}: give a list, such as {option}=[{values!r}]")
    items = list(cast("Iterable[object]", values))
    for item in items:
        if not isinstance(item, kinds) or (isinstance(item, str) and not item.strip()):
            raise InvalidInput(f"{option}: {item!r} is no text that could be looked for; leave it out")
    return items
