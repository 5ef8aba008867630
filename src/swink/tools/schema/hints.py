"""Type hints taken apart: what is inside `Annotated`, the members of a union, the fields of a class."""

import dataclasses
import types
from collections.abc import Mapping
from typing import (
    Annotated,
    Any,
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


def take_apart(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """The hint inside `Annotated`, `NewType` and aliases, and all extras that were said of it."""
    extras: tuple[Any, ...] = ()
    while True:
        if get_origin(hint) is Annotated:
            extras = (*hint.__metadata__, *extras)
            hint = hint.__origin__
        elif hasattr(hint, "__supertype__"):
            hint = hint.__supertype__
        elif type(hint).__name__ == "TypeAliasType":
            hint = hint.__value__
        elif isinstance(hint, TypeVar):
            hint = hint.__bound__ or Any
        else:
            return type(None) if hint is None else hint, extras


def members_of(hint: Any) -> tuple[Any, ...]:
    """The members of a union; of any other hint, the hint alone."""
    return get_args(hint) if is_union(hint) else (hint,)


def is_union(hint: Any) -> bool:
    """Whether a hint is `X | Y`."""
    return get_origin(hint) in (Union, types.UnionType)


def is_pydantic(cls: Any) -> bool:
    """Whether pydantic makes the values of a class: a model, its own dataclass, a type like `HttpUrl`."""
    return hasattr(cls, "__get_pydantic_core_schema__") or hasattr(cls, "__pydantic_core_schema__")


def is_struct(cls: Any) -> bool:
    """Whether a class is a msgspec Struct."""
    return isinstance(cls, type) and issubclass(cls, Struct)


def fields_of(hint: Any) -> tuple[Field, ...] | None:
    """The fields of a dataclass, attrs class, TypedDict, NamedTuple, Struct or pydantic model; else None."""
    origin = get_origin(hint)
    cls: Any = origin or hint
    if hasattr(cls, "model_fields"):
        found = cast("Mapping[str, Any]", cls.model_fields).items()
        return tuple(
            [Field(name, item.alias or name, item.annotation, item.is_required()) for name, item in found]
        )
    found = _raw_fields(cls)
    if found is None:
        return None
    hints = {name: _strip_qualifiers(said) for name, said in _hints_of(cls).items()}
    given = dict(zip(getattr(cls, "__parameters__", ()), get_args(hint), strict=False))
    return tuple(
        [
            Field(name, key, _substitute(hints.get(name, hints.get(key, Any)), given), required, default)
            for name, key, required, default in found
        ]
    )


def _hints_of(cls: Any) -> dict[str, Any]:
    try:
        return get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise TypeError(f"an annotation of {label(cls)} cannot be resolved: {error}") from error


def _strip_qualifiers(hint: Any) -> Any:
    origin = get_origin(hint)
    while origin in (Required, NotRequired, Final) or getattr(origin, "_name", "") == "ReadOnly":
        (hint,) = get_args(hint)
        origin = get_origin(hint)
    return hint


def _raw_fields(cls: Any) -> list[tuple[str, str, bool, Any]] | None:
    """Name, key, whether it is required, and default of each field, without hints."""
    if is_struct(cls):
        return [
            (field.name, field.encode_name, field.required, _default(field.default, field.default_factory))
            for field in msgspec.structs.fields(cls)
        ]
    if dataclasses.is_dataclass(cls):
        return [
            (field.name, field.name, _is_required(field), _default(field.default, field.default_factory))
            for field in dataclasses.fields(cls)
            if field.init
        ]
    if hasattr(cls, "__attrs_attrs__"):
        found = [item for item in cls.__attrs_attrs__ if item.init]
        return [(item.alias, item.name, type(item.default).__name__ == "_Nothing", MISSING) for item in found]
    if is_typeddict(cls):
        hints = _hints_of(cls)
        return [(name, name, _is_required_key(cls, name, hint), MISSING) for name, hint in hints.items()]
    if is_a(cls, tuple) and hasattr(cls, "_fields"):
        defaults = cls._field_defaults
        return [(name, name, name not in defaults, defaults.get(name, MISSING)) for name in cls._fields]
    return None


def _is_required(field: "dataclasses.Field[Any]") -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _is_required_key(cls: Any, name: str, hint: Any) -> bool:
    """`__required_keys__` overlooks what stands in string annotations."""
    origin = get_origin(hint)
    return origin is not NotRequired and (origin is Required or name in cls.__required_keys__)


def _default(value: Any, factory: Any) -> Any:
    if factory in (list, dict, set):
        return cast(Any, factory)()
    return MISSING if value is msgspec.NODEFAULT else value


def _substitute(hint: Any, given: Mapping[Any, Any]) -> Any:
    """The hint with the type variables of a generic class filled in: in `Box[int]`, `T` is `int`."""
    if isinstance(hint, TypeVar):
        return given.get(hint, hint)
    parameters = getattr(hint, "__parameters__", ())
    return hint[tuple([given.get(item, item) for item in parameters])] if parameters else hint


def is_a(cls: Any, parent: type) -> bool:
    """Whether something is a class below another."""
    return isinstance(cls, type) and issubclass(cls, parent)


def label(hint: Any) -> str:
    """A hint as messages show it."""
    if isinstance(hint, types.GenericAlias):
        return str(hint)
    return getattr(hint, "__name__", None) or str(hint)
