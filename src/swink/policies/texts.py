"""Texts inside values: every string of a message's data, changed by a policy."""

import dataclasses
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, cast

import msgspec

from swink.messages.codec import plain

Change = Callable[[str], str]


def map_texts(value: Any, change: Change) -> Any:
    """The value with every string in it changed, keys too; itself if no string changes.

    A dataclass, a Struct, a pydantic model or any object with attributes becomes plain data if something in
    it changes: its class may not take the changed values.
    """
    match value:
        case str():
            return value if (changed := change(value)) == value else changed
        case int() if 10**8 <= abs(value) < 10**20:  # a card or phone number may come as a number
            return value if (changed := change(str(value))) == str(value) else changed
        case None | int() | float() | bytes() | bytearray():
            return value
        case Mapping():
            return _mapping(cast("Mapping[Any, Any]", value), change)
        case list() | tuple() | set() | frozenset():
            items = list(cast("list[Any]", value))
            changed_items = [map_texts(item, change) for item in items]
            if all(new is old for new, old in zip(changed_items, items, strict=True)):
                return cast("Any", value)
            return changed_items if isinstance(value, list) else tuple(changed_items)
        case _:
            shown = _plain(value)
            return value if (changed := map_texts(shown, change)) is shown else changed


def _mapping(value: Mapping[Any, Any], change: Change) -> Any:
    changed = {map_texts(key, change): map_texts(item, change) for key, item in value.items()}
    if len(changed) != len(value):
        return changed
    pairs = zip(changed, value, strict=True)
    return value if all(new is old and changed[new] is value[old] for new, old in pairs) else changed


def _plain(value: Any) -> Any:
    """An object as plain data: as JSON if it can, by its attributes if it has some, by its text otherwise."""
    if isinstance(value, Enum):
        return value.value
    try:
        return msgspec.to_builtins(value, enc_hook=plain)
    except Exception:
        # A `model_dump` that fails, or something in it that is no JSON.
        pass
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    attributes = None if isinstance(value, type) else getattr(value, "__dict__", None)
    if attributes and isinstance(attributes, dict):
        return dict(cast("dict[str, Any]", attributes))
    return str(value)


def strings_in(value: Any) -> list[str]:
    """Every string in a value."""
    found: list[str] = []

    def note(text: str) -> str:
        found.append(text)
        return text

    map_texts(value, note)
    return found
