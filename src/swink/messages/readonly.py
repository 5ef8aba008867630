"""Read-only data: JSON objects and lists that nobody can change, so that they can be shared.

They are dicts and lists to everybody who reads them. A copy (`.copy()`, `copy.deepcopy`) is an ordinary dict
or list throughout, and its owner may change it.
"""

from collections.abc import Callable
from types import NoneType
from typing import Any, NoReturn, cast

from swink.errors import InvalidInput
from swink.messages.jsondata import DEEPEST, as_data, as_key, clean, from_data, refuse

_SCALARS = frozenset({int, float, bool, NoneType})


class ReadOnlyDict(dict[str, Any]):
    """A JSON object that cannot be changed."""

    __slots__ = ()

    def copy(self) -> dict[str, Any]:
        return thaw(self)

    def __copy__(self) -> dict[str, Any]:
        return thaw(self)

    def __deepcopy__(self, memo: Any) -> dict[str, Any]:
        return thaw(self)

    def __reduce__(self) -> tuple[Callable[[Any], Any], tuple[Any]]:
        return freeze, (dict(self),)


class ReadOnlyList(list[Any]):
    """A JSON array that cannot be changed."""

    __slots__ = ()

    def copy(self) -> list[Any]:
        return thaw(self)

    def __copy__(self) -> list[Any]:
        return thaw(self)

    def __deepcopy__(self, memo: Any) -> list[Any]:
        return thaw(self)

    def __reduce__(self) -> tuple[Callable[[Any], Any], tuple[Any]]:
        return freeze, (list(self),)


def freeze(value: Any, what: str = "data", depth: int = 0) -> Any:
    """JSON data that cannot be changed, with text that can be encoded; what is frozen already is not copied.

    What has no JSON form, or too many levels, is refused.
    """
    given: object = value
    kind = type(given)
    if kind is str:
        return value if value.isascii() else clean(value)
    if kind is ReadOnlyDict or kind is ReadOnlyList or kind in _SCALARS:
        return value
    if depth >= DEEPEST:
        raise InvalidInput(f"{what} has more than {DEEPEST} levels of lists and objects; make it flatter")
    if kind is dict:
        items: dict[str, Any] = {}
        for key, item in value.items():
            if type(key) is not str or not key.isascii():
                key = as_key(key)
            items[key] = item if type(item) is str and item.isascii() else freeze(item, what, depth + 1)
        return ReadOnlyDict(items)
    if kind is list or kind is tuple:
        return ReadOnlyList([freeze(item, what, depth + 1) for item in value])
    return freeze(from_data(as_data(value, refuse)), what, depth)


def thaw(value: Any) -> Any:
    """A copy of JSON data to change, at every level."""
    if isinstance(value, dict):
        return {
            key: item if type(item) is str else thaw(item)
            for key, item in cast("dict[str, Any]", value).items()
        }
    if isinstance(value, list):
        return [thaw(item) for item in cast("list[Any]", value)]
    return value


def _refuse(self: Any, *values: Any, **named: Any) -> NoReturn:
    kind = "dict" if isinstance(self, dict) else "list"
    raise TypeError(f"this {kind} is part of a message and cannot change; change a copy: .copy()")


for _name in ("__setitem__", "__delitem__", "clear", "pop"):
    setattr(ReadOnlyDict, _name, _refuse)
    setattr(ReadOnlyList, _name, _refuse)
for _name in ("__ior__", "popitem", "setdefault", "update"):
    setattr(ReadOnlyDict, _name, _refuse)
for _name in ("__iadd__", "__imul__", "append", "extend", "insert", "remove", "reverse", "sort"):
    setattr(ReadOnlyList, _name, _refuse)
