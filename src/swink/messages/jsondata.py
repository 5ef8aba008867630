"""JSON data: any value as data that can be written down, and read back as it was.

`encode` and `as_data` never fail: text that cannot be encoded is cleaned, what has no JSON form becomes the
name of its type, a cycle or too deep a nesting a note. Numbers that JSON does not have are kept:

    inf, -inf, nan, integers of thousands of digits        {"$number": "inf"}
    an object that happens to look like that               {"$$number": ...}, and so on
"""

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from enum import Enum
from functools import lru_cache
from itertools import chain
from pathlib import PurePath
from typing import Any, Literal, NoReturn, cast, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from swink.errors import InvalidInput

DEEPEST = 128
"""Levels of lists and objects that a call's arguments may have."""
_DEEPEST_VALUE = DEEPEST + 16
"""Levels of any value: a message in an event, with such arguments in it."""
MOST_BITS = 14_280
"""Of an integer; Python reads and writes at most 4300 digits."""
Note = Callable[[str], str]

_MOST_ITEMS = 100_000
"""Of an array of numbers; a larger one is no message."""
UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)
_SIMPLE: tuple[Any, ...] = (str, int, bool, str | None, int | None)
_TAG = re.compile(r"\$+number")
_PARTS = re.compile("(?s).{1,10000}(?:(?<=[\ud800-\udbff])[\udc00-\udfff])?")
"""Parts of a text that do not end between the halves of a pair."""


def clean(text: str) -> str:
    """The text without lone surrogates, which no JSON encoder takes; a pair of halves is joined."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        # In parts: this takes long, and other threads must have their turn.
        return "".join([_without_halves(part) for part in _PARTS.findall(text)])
    return text


def _without_halves(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def plain(value: Any) -> Any:
    """msgspec's hook for foreign types: one step towards JSON; raises `NotImplementedError` if there is none.

    Models of pydantic, paths, scalars and arrays of numpy and its like, subclasses of str, int and float.
    """
    match value:
        case PurePath():
            return str(value)
        case str():
            return str.__str__(value)
        case int():
            return int(value)
        case float():
            return float(value)
        case Mapping():
            return dict(cast("Mapping[Any, Any]", value))
        case Set() | Sequence():
            return list(cast("Iterable[Any]", value))
        case _ if hasattr(value, "model_dump"):
            return value.model_dump(mode="json")
        case _ if hasattr(value, "dtype") and hasattr(value, "tolist") and _size(value) <= _MOST_ITEMS:
            return value.tolist()
        case _:
            raise NotImplementedError(f"{type(value).__name__} is not JSON-able")


def digest(data: bytes) -> str:
    """The SHA-256 of some data, in hex."""
    from hashlib import sha256  # 3 ms and 0.7 MB that few programs need

    return sha256(data).hexdigest()


def encode(value: Any, note: Note = str, nulls: int = 0) -> bytes:
    """Any value as JSON that `decode` reads back.

    `nulls` says how many the value has by itself: one more may be a number that JSON does not have.
    """
    try:
        data = _encode(value)
    except Exception:
        # What is no JSON, and whatever a foreign `model_dump` raises.
        return msgspec.json.encode(as_data(value, note))
    suspect = data.count(b"null") != nulls or (b"$" in data and b"$number" in data)
    may_be_deep = data.count(b"[") + data.count(b"{") > _DEEPEST_VALUE
    if (may_be_deep and not _is_shallow_json(data)) or (suspect and not _is_ordinary(value)):
        return msgspec.json.encode(as_data(value, note))
    return data


def encode_lines(values: Sequence[Any], nulls: int = 0) -> bytes | None:
    """Values as lines of JSON, each as `encode` writes it; None if one of them takes a closer look."""
    try:
        data = _encoder.encode_lines(values)
    except Exception:
        # As in `encode`.
        return None
    is_plain = data.count(b"null") == nulls and b"$number" not in data
    return data if is_plain and data.count(b"[") + data.count(b"{") <= _DEEPEST_VALUE else None


_encoder = msgspec.json.Encoder(enc_hook=plain)
_encode = _encoder.encode


def decode(data: bytes | str, kind: Any = Any) -> Any:
    """A value of that type from the JSON that `encode` wrote."""
    return decode_with(msgspec.json.Decoder(kind), data)


def decode_with(decoder: "msgspec.json.Decoder[Any]", data: bytes | str) -> Any:
    """`decode` with a decoder that is made once."""
    found = "$number" in data if isinstance(data, str) else b"$number" in data
    return (
        msgspec.convert(from_data(msgspec.json.decode(data)), decoder.type) if found else decoder.decode(data)
    )


def read(decoder: "msgspec.json.Decoder[Any]", data: bytes | str, what: str) -> Any:
    """`decode_with` for what others wrote: what is unknown or damaged is an `InvalidInput` that names it."""
    try:
        return decode_with(decoder, data)
    except UNREADABLE as error:
        raise unreadable(what, error) from error


def unreadable(what: str, error: Exception) -> InvalidInput:
    """The error for data that is not what it should be."""
    return InvalidInput(f"{what} cannot be read: {error}; was it changed, or written by a newer release?")


def as_data(value: Any, note: Note = str) -> Any:
    """Any value as JSON data; `note` gets the text to write for what has no JSON form, and may refuse it."""
    return _data(value, note, ())


def refuse(note: str) -> NoReturn:
    """For `encode` and `as_data`: take nothing but JSON."""
    raise InvalidInput(f"{note} is not JSON-able")


def copy_data(value: Any) -> Any:
    """A copy of a value as JSON data; what has no JSON form is refused."""
    return decode(encode(value, refuse))


def from_data(data: Any) -> Any:
    """A copy of JSON data with the numbers that JSON does not have."""
    match data:
        case dict():
            items = cast("dict[str, Any]", data)
            if len(items) == 1 and _TAG.fullmatch(key := next(iter(items))):
                return _number(items[key]) if key == "$number" else {key[1:]: from_data(items[key])}
            return {key: from_data(item) for key, item in items.items()}
        case list() | tuple():
            return [from_data(item) for item in cast("Sequence[Any]", data)]
        case _:
            return data


def object_of(value: Any) -> dict[str, Any]:
    """JSON data that should be an object; an empty one if it is none."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    """JSON data that should be a list; an empty one if it is none."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def texts_of(value: Any) -> list[str]:
    """The texts in JSON data that should be a list of them."""
    return [item for item in list_of(value) if isinstance(item, str)]


def as_key(key: Any) -> str:
    """The key of a dict as the key of a JSON object."""
    data = as_data(key)
    return data if isinstance(data, str) else msgspec.json.encode(data).decode()


def is_shallow(value: Any, levels: int = DEEPEST) -> bool:
    """Whether everybody who copies, checks or shows the value recursively can do so."""
    layer: list[Any] = [value]
    for _ in range(levels):
        layer = list(chain.from_iterable([_items(outer) for outer in layer]))
        if not layer:
            return True
    return False


def _is_shallow_json(data: bytes) -> bool:
    try:
        return is_shallow(msgspec.json.decode(data), _DEEPEST_VALUE)
    except RecursionError:
        return False


def _items(value: Any) -> Iterable[Any]:
    match value:
        case dict():
            return cast("dict[str, Any]", value).values()
        case list():
            return cast("list[Any]", value)
        case _:
            return ()


def _is_ordinary(value: Any) -> bool:
    """Whether msgspec writes the value so that it can be read back; False also if that is not sure."""
    kind = cast("type[Any]", type(value))
    if kind is str or kind is int or kind is bool or value is None:
        return True
    if kind is float:
        return math.isfinite(value)
    if isinstance(value, Struct):
        return all(_is_ordinary(getattr(value, name)) for name in _doubtful_fields(kind))
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value)
        return not _is_tagged(items) and all(map(_is_ordinary, items.values()))
    return isinstance(value, list | tuple) and all(map(_is_ordinary, cast("list[Any]", value)))


@lru_cache(1024)
def _doubtful_fields(cls: type[Struct]) -> tuple[str, ...]:
    """The fields of a Struct that may hold more than text, whole numbers and words."""
    try:
        hints = get_type_hints(cls)
    except Exception:
        # A foreign class, with hints that cannot be resolved here.
        return cls.__struct_fields__
    return tuple([name for name in cls.__struct_fields__ if not _is_simple(hints[name])])


def _is_simple(hint: Any) -> bool:
    return hint in _SIMPLE or get_origin(hint) is Literal


def _data(value: Any, note: Note, path: tuple[int, ...]) -> Any:
    """The value as data; `path` has the identities of what it is inside of."""
    match value:
        case None | bool():
            return value
        case Enum():
            return _data(value.value, note, path)
        case str():
            return clean(str.__str__(value))
        case int():
            number = int(value)
            return number if number.bit_length() <= MOST_BITS else {"$number": hex(number)}
        case float():
            number = float(value)
            return number if math.isfinite(number) else {"$number": repr(number)}
        case _ if id(value) in path:
            return note("[circular]")
        case _ if len(path) >= _DEEPEST_VALUE:
            return note("[nested too deeply]")
        case _:
            return _nested(value, note, (*path, id(value)))


def _nested(value: Any, note: Note, path: tuple[int, ...]) -> Any:
    match value:
        case Struct():
            return _object(_fields(value), note, path)
        case Mapping():
            data = _object(cast("Mapping[Any, Any]", value).items(), note, path)
            return {f"${next(iter(data))}": next(iter(data.values()))} if _is_tagged(data) else data
        case bytes() | bytearray() | memoryview():
            return msgspec.to_builtins(value)  # base64 text, as in what msgspec writes by itself
        case list() | tuple() | set() | frozenset():
            return [_data(item, note, path) for item in cast("Iterable[Any]", value)]
        case _:
            try:
                step = _step(value)
            except Exception:
                # What has no JSON form, and whatever a foreign `model_dump` raises.
                return note(f"<{type(value).__name__}>")
            return _data(step, note, path)


def _step(value: Any) -> Any:
    """A value one step closer to JSON data, for `_data` to go on with."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    try:
        return plain(value)
    except NotImplementedError:
        return msgspec.to_builtins(value)


def _fields(value: Struct) -> Iterable[tuple[str, Any]]:
    config, names = value.__struct_config__, value.__struct_encode_fields__
    if config.tag is not None:
        yield str(config.tag_field), config.tag
    required = len(names) - len(value.__struct_defaults__)
    defaults = (msgspec.NODEFAULT,) * required + value.__struct_defaults__
    for attribute, name, default in zip(value.__struct_fields__, names, defaults, strict=True):
        item: Any = getattr(value, attribute)
        omitted = config.omit_defaults and (item is default or item == default or item == {})
        if item is not msgspec.UNSET and not omitted:
            yield name, item


def _object(items: Iterable[tuple[Any, Any]], note: Note, path: tuple[int, ...]) -> dict[str, Any]:
    return {as_key(key): _data(item, note, path) for key, item in items}


def _is_tagged(items: Mapping[Any, Any]) -> bool:
    return len(items) == 1 and isinstance(key := next(iter(items)), str) and _TAG.fullmatch(key) is not None


def _number(text: Any) -> Any:
    if not isinstance(text, str):
        return {"$number": from_data(text)}
    try:
        return int(text, 16) if "x" in text else float(text)
    except ValueError:
        return {"$number": text}  # written by another program


def _size(value: Any) -> int:
    return math.prod(getattr(value, "shape", ()))
