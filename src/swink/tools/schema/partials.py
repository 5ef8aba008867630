"""Partial values: what incomplete JSON already says of a value, with None for what has not arrived."""

import dataclasses
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal, cast, get_args, get_origin, is_typeddict

import msgspec

from swink.tools.schema.hints import fields_of, is_a, is_struct, members_of, take_apart


def partial_json(text: str) -> Any:
    """The data in incomplete JSON text, unfinished strings included; raises `ValueError` if there is none."""
    import jiter  # only runs that show a growing output pay for it

    return jiter.from_json(text.encode(), partial_mode="trailing-strings")


def partial_value(hint: Any, data: Any) -> Any:
    """Incomplete data as a value of the type, made without its validation; scalars stay as they are."""
    if type(hint) is type and not isinstance(data, dict | list):
        return data  # by far the most frequent case, such as the items of a list[str]
    hint = _choose_member(hint, data)
    origin, arguments = get_origin(hint) or hint, get_args(hint)
    if hasattr(origin, "__pydantic_root_model__") and origin.__pydantic_root_model__:
        return origin.model_construct(partial_value(origin.model_fields["root"].annotation, data))
    match data:
        case dict():
            return _partial_object(hint, origin, arguments, cast("dict[str, Any]", data))
        case list():
            return _partial_list(hint, origin, arguments, cast("list[Any]", data))
        case _:
            return data


def _partial_list(hint: Any, cls: Any, arguments: tuple[Any, ...], data: list[Any]) -> Any:
    make: Callable[..., Any] = cls
    if cls is tuple and arguments and arguments[-1] is not ...:
        return tuple([partial_value(*pair) for pair in zip(arguments, data, strict=False)])
    if is_a(cls, tuple) and (fields := fields_of(hint)) is not None:
        values = [partial_value(field.hint, item) for field, item in zip(fields, data, strict=False)]
        return make(*values, *[None] * (len(fields) - len(values)))
    items = [partial_value(arguments[0] if arguments else Any, item) for item in data]
    return make(items) if cls in (tuple, set, frozenset) else items


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
    for field in dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else cls.__attrs_attrs__:
        object.__setattr__(made, field.name, values.get(getattr(field, "alias", field.name)))
    return made


@lru_cache(maxsize=64)
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
    cls = get_origin(hint) or hint
    if isinstance(data, list):
        return cls in (list, tuple, set, frozenset)
    if not isinstance(data, dict):
        return False
    arrived = cast("dict[str, Any]", data)
    fields = fields_of(hint)
    if fields is None:
        return is_a(cls, Mapping)
    words = {field.key: get_args(take_apart(field.hint)[0]) for field in fields if _is_literal(field.hint)}
    config = getattr(cls, "__struct_config__", None)
    if config is not None and config.tag_field is not None:
        words[config.tag_field] = (config.tag,)
    known = {field.key for field in fields} | {field.name for field in fields} | set(words)
    return arrived.keys() <= known and all(
        any(word == arrived[key] or str(word).startswith(str(arrived[key])) for word in words[key])
        for key in words.keys() & arrived.keys()
    )


def _is_literal(hint: Any) -> bool:
    return get_origin(take_apart(hint)[0]) is Literal
