"""Partial values: what incomplete JSON already says of a value, with None for what has not arrived."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, cast, get_args, get_origin, is_typeddict

import msgspec

from swink.schema.hints import fields_of, is_struct, members_of, take_apart


def partial_json(text: str) -> Any:
    """The data in incomplete JSON text, unfinished strings included; raises `ValueError` if there is none."""
    import jiter  # only runs that show a growing output pay for it

    return jiter.from_json(text.encode(), partial_mode="trailing-strings")


def partial_value(hint: Any, data: Any) -> Any:
    """Incomplete data as a value of the type, made without its validation; scalars stay as they are."""
    hint = _choose_member(hint, data)
    origin, arguments = get_origin(hint) or hint, get_args(hint)
    match data:
        case dict():
            return _partial_object(hint, origin, arguments, cast("dict[str, Any]", data))
        case list() if origin is tuple and arguments and arguments[-1] is not ...:
            return tuple(
                [partial_value(*pair) for pair in zip(arguments, cast("list[Any]", data), strict=False)]
            )
        case list():
            item = arguments[0] if arguments else Any
            items: Any = [partial_value(item, value) for value in cast("list[Any]", data)]
            return cast(Any, origin)(items) if origin in (tuple, set, frozenset) else items
        case _:
            return data


def _partial_object(hint: Any, cls: Any, arguments: tuple[Any, ...], data: dict[str, Any]) -> Any:
    fields = fields_of(hint)
    if fields is None:
        item = arguments[-1] if arguments else Any
        return {key: partial_value(item, value) for key, value in data.items()}
    arrived = {
        field.name: partial_value(field.hint, data[key])
        for field in fields
        if (key := field.key if field.key in data else field.name) in data
    }
    if is_typeddict(cls):
        return arrived
    values = {field.name: None for field in fields} | arrived
    if hasattr(cls, "model_construct"):
        return cls.model_construct(**values)
    if is_struct(cls):
        return _without_post_init(cls)(**values)
    made = object.__new__(cls)
    for field in dataclasses.fields(cls):
        object.__setattr__(made, field.name, values.get(field.name))
    return made


def _without_post_init(cls: Any) -> Any:
    """A Struct class whose `__post_init__` does not run, since it would judge what has not arrived."""
    if not hasattr(cls, "__post_init__"):
        return cls
    return msgspec.defstruct(cls.__name__, [], bases=(cls,), namespace={"__post_init__": _accept})


def _accept(made: object) -> None:
    """A `__post_init__` that checks nothing."""


def _choose_member(hint: Any, data: Any) -> Any:
    """The first member of a union that the data may become; `Any` if there is none."""
    hint, _ = take_apart(hint)
    options = [take_apart(member)[0] for member in members_of(hint)]
    if len(options) == 1:
        return hint
    return next((option for option in options if _may_become(option, data)), Any)


def _may_become(hint: Any, data: Any) -> bool:
    origin = get_origin(hint) or hint
    if not isinstance(data, dict):
        return isinstance(data, list) and origin in (list, tuple, set, frozenset)
    keys = cast("dict[str, Any]", data).keys()
    fields = fields_of(hint)
    if fields is None:
        return isinstance(origin, type) and issubclass(origin, Mapping)
    tag_field, tag = _tag(origin)
    known = {field.key for field in fields} | {field.name for field in fields} | {tag_field}
    kind = cast("dict[str, Any]", data).get(tag_field, tag) if tag_field else None
    return (
        keys <= known
        and kind == tag
        and all(
            data[field.key] in get_args(field.hint)
            for field in fields
            if field.key in data and get_origin(field.hint) is Literal
        )
    )


def _tag(cls: Any) -> tuple[str | None, Any]:
    config = getattr(cls, "__struct_config__", None)
    return (config.tag_field, config.tag) if config is not None else (None, None)
