"""Lines of JSON: any value in one line, whatever a tool or a model put into it."""

import math
from collections.abc import Mapping, Sequence, Set
from typing import Any, cast

import msgspec

from swink.codec import plain

_DEPTH = 64


def encode_line(value: Any) -> bytes:
    """One line; what has no JSON form is shown as text."""
    try:
        return msgspec.json.encode(value, enc_hook=_plain_or_text) + b"\n"
    except Exception:
        # Values are somebody else's: halves of characters, keys that are no texts, objects 1,000 levels deep.
        return msgspec.json.encode(_simple(value, 0)) + b"\n"


def _plain_or_text(value: Any) -> Any:
    try:
        return plain(value)
    except NotImplementedError:
        return _text(value)


def _simple(value: Any, depth: int) -> Any:
    """The value with every part of it replaced that JSON does not have."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**63 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth >= _DEPTH:
        return "…"
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return {_text(key): _simple(item, depth + 1) for key, item in items}
    if isinstance(value, Sequence | Set) and not isinstance(value, bytes | bytearray | memoryview):
        return [_simple(item, depth + 1) for item in cast("Sequence[Any]", value)]
    if isinstance(value, msgspec.Struct):
        return _fields(value, depth)
    return _text(value)


def _fields(value: msgspec.Struct, depth: int) -> dict[str, Any]:
    config = value.__struct_config__
    tag = {config.tag_field: config.tag} if config.tag_field is not None else {}
    names = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
    return tag | {name: _simple(getattr(value, field), depth + 1) for name, field in names}


def _text(value: Any) -> str:
    """What a value says of itself, in characters that can be written."""
    try:
        text = value if isinstance(value, str) else repr(value)
    except Exception:  # somebody else's __repr__, or one that recurses too deep
        text = f"<{type(value).__name__}>"
    return text.encode("utf-8", "replace").decode()
