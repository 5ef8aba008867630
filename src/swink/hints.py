"""Type hints taken apart: what is inside `Annotated`, the members of a union, the fields of a class."""

import dataclasses
import types
from collections.abc import Mapping
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    NotRequired,
    Required,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import msgspec
from msgspec import Struct

MISSING: Any = dataclasses.MISSING
"""The default of a field that has none."""


class Field(Struct, frozen=True):
    """One field of a class: its name in Python, its name in JSON, its hint and its default."""

    name: str
    key: str
    hint: Any
    required: bool = True
    default: Any = MISSING


def bare(hint: Any) -> Any:
    """The hint without what only qualifies it: `Annotated`, `NewType`, aliases, `Required`, `Final` …"""
    while True:
        origin = get_origin(hint)
        if origin in (Annotated, Required, NotRequired, Final):
            hint = get_args(hint)[0]
        elif hasattr(hint, "__supertype__"):
            hint = hint.__supertype__
        elif type(hint).__name__ == "TypeAliasType":
            hint = hint.__value__
        else:
            return type(None) if hint is None else hint


def members(hint: Any) -> tuple[Any, ...]:
    """The members of a union; of any other hint, the hint alone."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def is_pydantic(cls: Any) -> bool:
    """Whether pydantic makes the values of a class: a model, a dataclass of its own, a type like `HttpUrl`."""
    return hasattr(cls, "__get_pydantic_core_schema__") or hasattr(cls, "__pydantic_core_schema__")


def is_struct(cls: Any) -> bool:
    """Whether a class is a msgspec Struct."""
    return isinstance(cls, type) and issubclass(cls, Struct)


def fields_of(hint: Any) -> tuple[Field, ...] | None:
    """The fields of a dataclass, TypedDict, Struct or pydantic model; None for what has no fields."""
    origin = get_origin(hint)
    cls: Any = origin or hint
    if hasattr(cls, "model_fields"):
        return _model_fields(cls)
    if is_struct(cls):
        found = [
            (field.name, field.encode_name, field.required, field.default)
            for field in msgspec.structs.fields(cls)
        ]
    elif dataclasses.is_dataclass(cls):
        found = [
            (field.name, field.name, _is_required(field), field.default)
            for field in dataclasses.fields(cls)
            if field.init
        ]
    elif is_typeddict(cls):
        found = [(name, name, name in cls.__required_keys__, MISSING) for name in cls.__annotations__]
    else:
        return None
    hints = _class_hints(cls)
    given = dict(zip(getattr(cls, "__parameters__", ()), get_args(hint), strict=False)) if origin else {}
    return tuple(
        [
            Field(name, key, _substituted(hints.get(name, Any), given), required, _default(default))
            for name, key, required, default in found
            if get_origin(hints.get(name)) is not ClassVar
        ]
    )


def _model_fields(cls: Any) -> tuple[Field, ...]:
    fields = cast("Mapping[str, Any]", cls.model_fields)
    return tuple(
        [
            Field(name, field.alias or name, field.annotation, field.is_required())
            for name, field in fields.items()
        ]
    )


def _is_required(field: "dataclasses.Field[Any]") -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _default(value: Any) -> Any:
    return MISSING if value is msgspec.NODEFAULT else value


def _class_hints(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls, include_extras=True)


def _substituted(hint: Any, given: Mapping[Any, Any]) -> Any:
    """The hint with the type variables of a generic class filled in: `list[T]` of `Box[int]` is `list[int]`."""
    if isinstance(hint, TypeVar):
        return given.get(hint, Any)
    parameters = getattr(hint, "__parameters__", ())
    return hint[tuple([given.get(item, Any) for item in parameters])] if parameters and given else hint
