"""Checks of what callers pass: a value that cannot work is refused with what to pass instead."""

from collections.abc import Iterable, Mapping, Sequence
from types import NoneType
from typing import Any, TypeGuard, TypeVar

from swink.errors import InvalidInput

T = TypeVar("T")

MOST_SECONDS = 1e9
"""More than any clock of an event loop takes: thirty years."""


def check_type(what: str, value: object, kinds: type | tuple[type, ...]) -> None:
    """Refuse a value of the wrong type with what to pass instead."""
    if not isinstance(value, kinds):
        named = [
            kind.__name__ if kind is not NoneType else "None"
            for kind in (kinds if isinstance(kinds, tuple) else (kinds,))
        ]
        raise InvalidInput(f"{what} takes {' or '.join(named)}, not {type(value).__name__}")


def check_list(name: str, value: Iterable[T], of: str) -> Sequence[T]:
    """The items of what should be a list; a text and a single item are refused with what to pass instead."""
    kind: Any = type(value)
    items: Any = value
    if kind is tuple or kind is list:
        return items
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise InvalidInput(f"{name} is a list of {of}; write [...] instead of {value!r:.80}")
    return tuple(value)


def as_tuple(name: str, value: Iterable[T], of: str) -> tuple[T, ...]:
    """The items of what should be a list, for keeping: who changes the list later changes nothing here."""
    return tuple(check_list(name, value, of))


def check_word(name: str, value: object, words: tuple[str, ...], more: str = "") -> None:
    """Refuse a mode word that does not exist."""
    if value not in words:
        raise InvalidInput(f"{name} is {', '.join(map(repr, words))}{more}, not {value!r}")


def check_hook(name: str, value: object) -> None:
    """Refuse what cannot be called where a function is wanted."""
    if not callable(value):
        raise InvalidInput(f"{name} is a function, not {type(value).__name__}")


def check_seconds(name: str, value: object) -> float:
    """The value as seconds; refused unless it is a finite number."""
    if not is_number(value):
        raise InvalidInput(f"{name} is a finite number of seconds, not {value!r}")
    return float(value)


def check_positive(name: str, value: object) -> None:
    """Refuse seconds that are no finite number above 0."""
    if check_seconds(name, value) <= 0:
        raise InvalidInput(f"{name} is {value!r}; pass seconds above 0, or None")


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is a number that a clock or a model can take: no bool, no infinity."""
    return not isinstance(value, bool) and isinstance(value, int | float) and abs(value) < MOST_SECONDS
