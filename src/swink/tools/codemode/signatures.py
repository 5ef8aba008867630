"""Tools as Python functions: the signature that a model reads, and the arguments and values of a call."""

import builtins
import json
import keyword
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast, get_type_hints

from msgspec import Struct

from swink.errors import AgentError, InvalidInput
from swink.messages import ToolResult
from swink.messages.jsondata import UNREADABLE, decode
from swink.messages.pruning import full_text
from swink.tools.definition import Tool
from swink.tools.schema import schema_of

_PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_DEEP = 4
"""Levels of types that are written out; what is deeper is `Any`."""
_WIDE = 20
"""Fields and choices of one type that are written out."""
_INDENT = "    "


class ToolFunction(Struct, frozen=True, eq=False):
    """A tool as a program sees it. `returns` is a JSON Schema, or None if nothing is known of its results."""

    name: str
    tool: Tool
    parameters: tuple[str, ...]
    returns: Mapping[str, Any] | None

    def bind(self, values: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call; raises `TypeError` as Python would."""
        if len(values) > len(self.parameters):
            most = len(self.parameters)
            raise TypeError(f"{self.name}() takes at most {most} arguments, and {len(values)} were given")
        arguments = dict(zip(self.parameters, values, strict=False))
        for key, value in named.items():
            if key in arguments:
                raise TypeError(f"{self.name}() got two values for {key!r}")
            arguments[key] = value
        return arguments

    def value_of(self, result: ToolResult) -> Any:
        """What a call returns in the program: the data that the tool returned, or its text."""
        text = full_text(result) or result.text
        if self.returns is None:
            match result.details:
                case {"structured": data} | {"details": {"structured": data}}:  # of an MCP server
                    return data
                case _:
                    return _decoded(text) if text[:1] in ("{", "[") else text
        kind = self.returns.get("type")
        if kind == "null":
            return None
        if kind == "string":
            return text
        return _decoded(text) if text else None

    def __str__(self) -> str:
        """The function with its types and its docstring, without its body."""
        schema = self.tool.parameters_schema
        properties: Mapping[str, Any] = schema.get("properties") or {}
        required = schema.get("required") or ()
        told: list[str] = []
        for name in self.parameters:
            text = f"{name}: {type_of(properties[name], schema)}"
            if name not in required:
                given = properties[name]
                has_default = isinstance(given, Mapping) and "default" in given
                text += f" = {given['default']!r}" if has_default else " = ..."
            told.append(text)
        odd = [name for name in properties if name not in self.parameters]
        if odd:
            told.append("**more")
        returned = "Any" if self.returns is None else type_of(self.returns, self.returns)
        lines = [f"def {self.name}({', '.join(told)}) -> {returned}:", *_docstring(self.tool, properties)]
        lines += [f"{_INDENT}# pass by **{{{name!r}: …}}" for name in odd]
        return "\n".join(lines)


def functions_of(tools: Sequence[Tool]) -> dict[str, ToolFunction]:
    """The tools as functions, by the names that a program calls them by."""
    found: dict[str, ToolFunction] = {}
    for tool in tools:
        name = base = _identifier(tool.name)
        number = 1
        while name in found:
            number += 1
            name = f"{base}_{number}"
        found[name] = ToolFunction(name, tool, _parameters(tool), _returns(tool))
    return found


def type_of(schema: Any, root: Mapping[str, Any], levels: int = _DEEP) -> str:
    """The Python type of a JSON Schema."""
    if not isinstance(schema, Mapping) or not levels:
        return "Any"
    given = cast("Mapping[str, Any]", schema)
    match given:
        case {"$ref": str() as reference}:
            return type_of(_resolved(reference, root), root, levels - 1)
        case {"const": value}:
            return f"Literal[{value!r}]"
        case {"enum": [*values]}:
            return f"Literal[{', '.join(map(repr, values))}]"
        case {"anyOf": [*options]} | {"oneOf": [*options]}:
            written = [type_of(option, root, levels - 1) for option in options[:_WIDE]]
            return _union([*written, *["Any"] * (len(options) > _WIDE)])
        case {"type": [*kinds]}:
            return _union([type_of({**given, "type": kind}, root, levels) for kind in kinds])
        case {"type": "array"}:
            return f"list[{type_of(given.get('items'), root, levels - 1)}]"
        case {"type": "object", "properties": {**properties}} if properties:
            first = list(properties.items())[:_WIDE]
            inner = [f"{key!r}: {type_of(value, root, levels - 1)}" for key, value in first]
            inner += ["..."] * (len(properties) > _WIDE)
            return f"dict[{{{', '.join(inner)}}}]"
        case {"type": "object"}:
            return f"dict[str, {type_of(given.get('additionalProperties'), root, levels - 1)}]"
        case {"type": str() as kind}:
            return _PLAIN.get(kind, "Any")
        case _:
            return "Any"


def _parameters(tool: Tool) -> tuple[str, ...]:
    """Those that can be given by place: the required ones first, as Python wants it."""
    schema = tool.parameters_schema
    properties: Mapping[str, Any] = schema.get("properties") or {}
    names = [name for name in properties if _is_identifier(name)]
    required = schema.get("required") or ()
    return tuple(sorted(names, key=lambda name: name not in required))


def _returns(tool: Tool) -> Mapping[str, Any] | None:
    """The schema of what its function says that it returns."""
    if tool.function is None:
        return None
    try:
        hint = get_type_hints(tool.function).get("return", Any)
        return None if hint is Any or hint is ToolResult else schema_of(hint)
    except (AgentError, InvalidInput, NameError, TypeError, AttributeError):
        return None  # it may name what cannot be looked up, or what has no schema


def _docstring(tool: Tool, properties: Mapping[str, Any]) -> list[str]:
    told = tool.description.strip().replace('"""', "'''").splitlines() or [tool.name]
    for name, schema in properties.items():
        text = cast("Mapping[str, Any]", schema).get("description") if isinstance(schema, Mapping) else None
        if isinstance(text, str) and text:
            told.append(f"{name}: {' '.join(text.split())}")
    if len(told) == 1:
        return [f'{_INDENT}"""{told[0]}"""']
    return [f'{_INDENT}"""{told[0]}', *[f"{_INDENT}{line}".rstrip() for line in told[1:]], f'{_INDENT}"""']


def _identifier(name: str) -> str:
    made = re.sub(r"\W", "_", name)
    if made[0].isdigit():
        made = f"_{made}"
    return f"{made}_" if keyword.iskeyword(made) or hasattr(builtins, made) else made


def _is_identifier(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


def _resolved(reference: str, root: Mapping[str, Any]) -> Any:
    found: Any = root
    for part in reference.removeprefix("#/").split("/"):
        found = cast("Mapping[str, Any]", found).get(part) if isinstance(found, Mapping) else None
    return found


def _union(options: Sequence[str]) -> str:
    return " | ".join(dict.fromkeys(options)) or "Any"


def _decoded(text: str) -> Any:
    try:
        return decode(text)
    except (*UNREADABLE, json.JSONDecodeError, InvalidInput):
        return text
