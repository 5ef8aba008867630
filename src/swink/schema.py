"""Shapes: a JSON Schema (2020-12) and the Python type it stands for; made from annotations, checked, converted."""

import inspect
import re
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec.structs import asdict

from swink.codec import plain
from swink.errors import InvalidTool

_SCALARS = (str, int, float, bool)
_BASE64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"


class Shape:
    """What some JSON data must look like.

    `violations` lists every way a value breaks the schema; `convert` turns a valid value into the Python type.
    """

    __slots__ = ("_hint", "_validator", "schema")

    def __init__(self, schema: Mapping[str, Any], hint: Any = None) -> None:
        self.schema: dict[str, Any] = dict(schema)
        self._hint = hint
        self._validator: Any = None

    @classmethod
    def of(cls, hint: Any) -> "Shape":
        """The shape of a type hint, or of a raw JSON Schema given as a mapping."""
        if isinstance(hint, Mapping):
            return cls(cast("Mapping[str, Any]", hint))
        return cls(schema_of(hint), hint)

    def check(self) -> None:
        """Compile the schema now, so that a bad one is reported where it was written."""
        if self._validator is None:
            self._validator = _compile(self.schema)

    def violations(self, value: Any) -> list[str]:
        """Every violation with its path; empty if the value is valid."""
        if self._validator is None:
            self._validator = _compile(self.schema)
        if self._validator.is_valid(value):
            return []
        return [
            f"{_path(error.instance_path)}: {_short(error.message)}"
            for error in self._validator.iter_errors(value)
        ]

    def convert(self, value: Any) -> Any:
        """The value as the Python type; a raw schema leaves it as it is. Raises `ValueError` if it cannot be."""
        if self._hint is None:
            return value
        try:
            return msgspec.convert(value, self._hint, str_keys=True, dec_hook=_decode_foreign)
        except msgspec.ValidationError:
            # JSON Schema counts 1.0 as an integer; Python's int does not take it.
            return msgspec.convert(_whole_numbers(value), self._hint, str_keys=True, dec_hook=_decode_foreign)


class Signature:
    """The parameters of a function as a shape, and the call that fits it."""

    __slots__ = ("_scalars", "injected", "shape")

    def __init__(
        self, function: Callable[..., Any], name: str, descriptions: Mapping[str, str], inject: type
    ) -> None:
        hints = _hints(function, name)
        fields: list[tuple[str, Any, Any]] = []
        properties: dict[str, dict[str, Any]] = {}
        self.injected: str | None = None
        for parameter in _parameters(function, name):
            hint = hints.get(parameter.name, parameter.annotation)
            if _mentions(hint, inject):
                self.injected = parameter.name
                continue
            if hint is inspect.Parameter.empty:
                advice = f"annotate it, e.g. `{parameter.name}: str`"
                if parameter.name in ("self", "cls") and not fields:
                    advice = "pass the method of an instance, e.g. tools=[shop.sell]"
                raise InvalidTool(
                    f"tool {name!r}: parameter {parameter.name!r} has no type annotation; {advice}"
                )
            extra: dict[str, Any] = {}
            if text := _annotated_text(hint) or descriptions.get(parameter.name):
                extra["description"] = text
            if parameter.default is inspect.Parameter.empty:
                fields.append((parameter.name, hint, msgspec.NODEFAULT))
            else:
                extra["default"] = _json_default(parameter, name)
                fields.append((parameter.name, Union[hint, msgspec.UnsetType], msgspec.UNSET))  # noqa: UP007  hint is a value
            properties[parameter.name] = extra
        schema, struct = _object_schema(name, fields, properties)
        self.shape = Shape(schema, struct)
        self._scalars = (
            struct
            if all(hint in _SCALARS and default is msgspec.NODEFAULT for _, hint, default in fields)
            else None
        )

    def fitting(self, values: Mapping[str, Any]) -> dict[str, Any] | None:
        """Keyword arguments in one step, where all parameters are plain scalars and the values fit; None: look closer."""
        if self._scalars is None:
            return None
        try:
            return asdict(msgspec.convert(values, self._scalars))
        except msgspec.ValidationError:
            return None

    def arguments(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Keyword arguments for the function, converted; raises `ValueError` where a value does not convert."""
        struct = self.shape.convert(values)
        return {
            name: value
            for name in struct.__struct_fields__
            if (value := getattr(struct, name)) is not msgspec.UNSET
        }


def schema_of(hint: Any) -> dict[str, Any]:
    """The JSON Schema of a type hint; raises `InvalidTool` for a type that has none."""
    foreign: dict[str, Any] = {}

    def describe(cls: type) -> dict[str, Any]:
        if not hasattr(cls, "model_json_schema"):
            raise NotImplementedError
        schema = cast("dict[str, Any]", cast(Any, cls).model_json_schema(ref_template="#/$defs/{model}"))
        foreign.update(schema.pop("$defs", {}))
        return schema

    try:
        schema = msgspec.json.schema(hint, schema_hook=describe)
    except (TypeError, NotImplementedError) as error:
        raise InvalidTool(
            f"{_label(hint)} cannot be described in JSON Schema ({str(error).splitlines()[-1]}); use str, int, float, bool, Literal, "
            "Enum, list, dict, a dataclass, TypedDict, pydantic model or msgspec Struct"
        ) from error
    definitions: dict[str, Any] = {**schema.pop("$defs", {}), **foreign}
    schema = _flatten(schema, definitions)
    if definitions:
        schema["$defs"] = definitions
    return cast("dict[str, Any]", _tidy(schema))


def parse_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """Description and parameter descriptions from a docstring (Google, NumPy or Sphinx style)."""
    if not text:
        return "", {}
    doc = inspect.cleandoc(text)
    sphinx = dict(re.findall(r"^:param (?:[\w.\[\], |]+ )?(\w+):\s*(.+(?:\n[ \t]+.+)*)", doc, re.M))
    head = re.split(
        r"^(?:Args|Arguments|Parameters|Returns|Raises|Yields|Examples?|Notes?):?[ \t]*\n|^:\w+",
        doc,
        maxsplit=1,
        flags=re.M,
    )[0]
    section = re.search(r"^(?:Args|Arguments|Parameters):?[ \t]*\n(-+[ \t]*\n)?(?s:(.*))", doc, re.M)
    described = {name: " ".join(value.split()) for name, value in sphinx.items()}
    if section:
        described |= _numpy_items(section.group(2)) if section.group(1) else _google_items(section.group(2))
    return head.strip(), described


def _google_items(body: str) -> dict[str, str]:
    """`name (type): text`, the text going on in deeper lines."""
    lines = [line for line in body.splitlines() if line.strip()]
    indent = _depth(lines[0]) if lines else 0
    items: dict[str, str] = {}
    current = ""
    for line in lines:
        if _depth(line) < indent:
            break
        if _depth(line) > indent:
            items[current] = f"{items.get(current, '')} {line.strip()}".strip()
        elif item := re.match(r"\s*\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)", line):
            current = item.group(1)
            items[current] = item.group(2).strip()
        else:
            current = ""
    return {name: text for name, text in items.items() if name and text}


def _numpy_items(body: str) -> dict[str, str]:
    """`name : type`, the text in the lines below; the next underlined heading ends the section."""
    items: dict[str, str] = {}
    names: list[str] = []
    for line in re.split(r"^.+\n-{3,}[ \t]*$", body, maxsplit=1, flags=re.M)[0].splitlines():
        if line.strip() and not _depth(line):
            names = re.findall(r"\w+", line.partition(":")[0])
        elif line.strip():
            items |= {name: f"{items.get(name, '')} {line.strip()}".strip() for name in names}
    return items


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _parameters(function: Callable[..., Any], name: str) -> Sequence[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError as error:
        raise InvalidTool(f"tool {name!r}: {error}; wrap it in a typed function") from error
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise InvalidTool(
                f"tool {name!r}: parameter {str(parameter)!r} cannot be filled by name; use ordinary named parameters"
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
        ) from error


def _mentions(hint: Any, cls: type) -> bool:
    """Whether a hint is the class, `cls[X]`, or a union or `Annotated` of it."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType, Annotated):
        return any(_mentions(item, cls) for item in get_args(hint))
    return hint is cls or origin is cls


def _json_default(parameter: inspect.Parameter, name: str) -> Any:
    try:
        return msgspec.json.decode(msgspec.json.encode(parameter.default, enc_hook=plain))
    except (TypeError, NotImplementedError, msgspec.EncodeError) as error:
        raise InvalidTool(
            f"tool {name!r}: the default of {parameter.name!r} is not JSON-able ({error}); use None and build the value inside the function"
        ) from error


def _object_schema(
    name: str, fields: list[tuple[str, Any, Any]], properties: dict[str, dict[str, Any]]
) -> tuple[dict[str, Any], Any]:
    """One object with the fields as properties, and the type that converts it."""
    struct = msgspec.defstruct(
        "Arguments", [_field(*item) for item in fields], kw_only=True, forbid_unknown_fields=True
    )
    try:
        schema = schema_of(struct)
    except InvalidTool:
        for parameter, hint, _ in fields:
            try:
                schema_of(hint)
            except InvalidTool as error:
                raise InvalidTool(f"tool {name!r}: parameter {parameter!r}: {error}") from error
        raise
    for parameter, extra in properties.items():
        schema["properties"][parameter] = {**schema["properties"][parameter], **extra}
    return schema, struct


def _field(name: str, hint: Any, default: Any) -> Any:
    return (name, hint) if default is msgspec.NODEFAULT else (name, hint, default)


def _flatten(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """The object itself instead of a top-level reference to it, unless something else refers to it too."""
    reference = schema.get("$ref", "")
    name = reference.removeprefix("#/$defs/")
    if not reference or name not in definitions:
        return schema
    rest = {key: value for key, value in schema.items() if key != "$ref"}
    body = definitions[name]
    if f'"{reference}"' not in msgspec.json.encode(definitions).decode():
        del definitions[name]
    return {**body, **rest}


def _tidy(node: Any, *, named: bool = False) -> Any:
    """msgspec's schema, exact: a set takes repeated items, base64 text is checked, titles of classes are noise."""
    if isinstance(node, list):
        return [_tidy(item) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    node = cast("dict[str, Any]", node)
    if named:
        return {key: _tidy(value) for key, value in node.items()}
    result: dict[str, Any] = {}
    for key, value in node.items():
        if key == "title" or key == "uniqueItems" or (key == "required" and not value):
            continue
        result[key] = (
            value
            if key in ("default", "enum", "const", "examples")
            else _tidy(value, named=key in ("properties", "$defs"))
        )
    if result.get("contentEncoding") == "base64":
        result["pattern"] = _BASE64
    return result


def _annotated_text(hint: Any) -> str | None:
    """The description inside `Annotated[str, "description"]`."""
    if get_origin(hint) is not Annotated:
        return None
    for extra in get_args(hint)[1:]:
        text = extra if isinstance(extra, str) else getattr(extra, "description", None)
        if text:
            return str(text)
    return None


def _compile(schema: dict[str, Any]) -> Any:
    import jsonschema_rs  # 50 ms: paid by the first validation, not by the import of swink

    try:
        return jsonschema_rs.validator_for(schema, retriever=_refuse)
    except ValueError as error:
        text = str(error).split("\n\n")[0]
        raise InvalidTool(f"not a usable JSON Schema: {text}") from error


def _refuse(uri: str) -> Any:
    raise ValueError(f"external references are never fetched; put {uri} under $defs")


def _decode_foreign(cls: Any, value: Any) -> Any:
    """msgspec's hook for types it does not know: pydantic models validate themselves."""
    if hasattr(cls, "model_validate"):
        return cls.model_validate(value)
    raise NotImplementedError(f"{_label(cls)} cannot be made from JSON")


def _whole_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _whole_numbers(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_whole_numbers(item) for item in cast("list[Any]", value)]
    return value


def _path(parts: Sequence[str | int]) -> str:
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)


def _short(text: str) -> str:
    """A violation without the middle of the value it quotes: the beginning and what is wrong with it are enough."""
    return text if len(text) <= 500 else f"{text[:250]} … {text[-200:]}"


def _label(hint: Any) -> str:
    if isinstance(hint, types.GenericAlias):
        return str(hint)
    return getattr(hint, "__name__", None) or str(hint)
