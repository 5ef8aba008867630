"""The parameters of a function as a shape, and the keyword arguments that fit it."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from swink.errors import InvalidTool
from swink.messages.codec import plain
from swink.tools.schema.constraints import notes_of
from swink.tools.schema.conversion import collect_values, schema_of
from swink.tools.schema.hints import is_union, take_apart
from swink.tools.schema.shape import Shape

_SCALARS = (str, int, float, bool)


class Signature:
    """The parameters of a function as a shape, and the call that fits it."""

    __slots__ = ("injected", "scalars", "shape", "wants")

    def __init__(
        self, function: Callable[..., Any], name: str, descriptions: Mapping[str, str], inject: type
    ) -> None:
        hints = _hints(function, name)
        fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
        properties: dict[str, dict[str, Any]] = {}
        self.injected: str | None = None
        self.wants: str | None = None
        """The type of the dependencies without which the function cannot work, by its name."""
        for parameter in _parameters(function, name):
            hint = hints.get(parameter.name, parameter.annotation)
            if _mentions(hint, inject):
                self.injected = parameter.name
                self.wants = wanted(hint)
                continue
            if hint is inspect.Parameter.empty:
                advice = f"annotate it, e.g. `{parameter.name}: str`"
                if parameter.name in ("self", "cls") and not fields:
                    advice = "pass the method of an instance, e.g. tools=[shop.sell]"
                raise InvalidTool(
                    f"tool {name!r}: parameter {parameter.name!r} has no type annotation; {advice}"
                )
            extra: dict[str, Any] = {}
            said = notes_of(take_apart(hint)[1]).schema
            if text := said.get("description") or descriptions.get(parameter.name):
                extra["description"] = text
            if parameter.default is inspect.Parameter.empty:
                fields.append((parameter.name, hint))
            else:
                extra["default"] = _json_default(parameter, name)
                optional = Union[hint, msgspec.UnsetType]  # noqa: UP007  hint is a value
                fields.append((parameter.name, optional, msgspec.UNSET))
            properties[parameter.name] = extra
        struct = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
        self.shape = _shape_of_arguments(name, struct, properties)
        self.scalars = struct if all(len(field) == 2 and field[1] in _SCALARS for field in fields) else None
        """What converts all arguments in one step, if all parameters are plain scalars without defaults."""

    def arguments(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Keyword arguments for the function, converted; raises `ValueError` if a value does not convert."""
        return collect_values(self.shape.convert(values))


def _parameters(function: Callable[..., Any], name: str) -> Sequence[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError as error:
        raise InvalidTool(f"tool {name!r}: {error}; wrap it in a typed function") from None
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise InvalidTool(
                f"tool {name!r}: parameter {str(parameter)!r} cannot be filled by name; "
                "use ordinary named parameters"
            )
    return parameters


def _hints(function: Any, name: str) -> dict[str, Any]:
    while hasattr(function, "func"):
        function = function.func
    if not inspect.isroutine(function):
        function = type(function).__call__
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        raise InvalidTool(
            f"tool {name!r}: an annotation cannot be resolved ({error}); define the type at module level"
        ) from None


def _mentions(hint: Any, cls: type) -> bool:
    """Whether a hint is the class, `cls[X]`, or a union or `Annotated` of it."""
    hint, _ = take_apart(hint)
    if is_union(hint):
        return any(_mentions(item, cls) for item in get_args(hint))
    return hint is cls or get_origin(hint) is cls


def wanted(hint: Any) -> str | None:
    """The name of X in a hint `ToolContext[X]`, unless it may be None; None where the hint does not say."""
    hint, _ = take_apart(hint)
    kind = next(iter(get_args(hint)), Any)
    if is_union(hint) or is_union(kind) or kind in (Any, object, NoneType) or isinstance(kind, TypeVar):
        return None
    return getattr(kind, "__name__", None) or str(kind)


def _json_default(parameter: inspect.Parameter, name: str) -> Any:
    try:
        return msgspec.json.decode(msgspec.json.encode(parameter.default, enc_hook=plain))
    except (TypeError, NotImplementedError, msgspec.EncodeError) as error:
        raise InvalidTool(
            f"tool {name!r}: the default of {parameter.name!r} is not JSON-able ({error}); "
            "use None and build the value inside the function"
        ) from None


def _shape_of_arguments(name: str, struct: Any, properties: Mapping[str, dict[str, Any]]) -> Shape:
    """The shape of one object with a property per parameter."""
    try:
        shape = Shape.of(struct)
    except InvalidTool as error:
        raise InvalidTool(f"tool {name!r}: {_wrong_parameter(struct) or error}") from None
    for parameter, extra in properties.items():
        shape.schema["properties"][parameter] |= extra
    if b'"pattern":' in msgspec.json.encode(shape.schema):
        check_shape(shape, name)  # a pattern may be wrong, and is better reported here than in a call
    return shape


def _wrong_parameter(struct: Any) -> str:
    """The first parameter whose type cannot be described by itself."""
    for parameter, hint in struct.__annotations__.items():
        try:
            schema_of(hint)
        except InvalidTool as error:
            return f"parameter {parameter!r}: {error}"
    return ""


def check_shape(shape: Shape, name: str) -> None:
    """Report a schema that cannot be used, with the name of its tool."""
    try:
        shape.check()
    except InvalidTool as error:
        raise InvalidTool(f"tool {name!r}: {error}") from None
