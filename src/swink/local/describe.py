"""Short descriptions of tools, for models whose chat template has none: each token costs reading time.

- weather(city: string (Name of the city.), unit?: "celsius"|"fahrenheit"): Current weather.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from swink.local.grammar import compact
from swink.stream import ToolSpec

Schema = Mapping[str, Any]


def describe_tools(tools: Sequence[ToolSpec]) -> str:
    """The tools, and how to call one; empty without tools."""
    if not tools:
        return ""
    lines = [
        f"- {tool.name}({_parameters(tool.parameters_schema)}): {_first_paragraph(tool.description)}"
        for tool in tools
    ]
    how = 'To use a tool reply with JSON: {"tool":"<name>","arguments":{...}}'
    return "\n".join(["You have these tools:", *lines, how])


def _first_paragraph(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())


def _parameters(schema: Schema) -> str:
    required = cast("Sequence[str]", schema.get("required", ()))
    shown: list[str] = []
    for name, value in _properties(schema).items():
        about = _first_paragraph(str(value.get("description", "")))
        mark = "" if name in required else "?"
        shown.append(f"{name}{mark}: {_type(value, schema)}{f' ({about})' if about else ''}")
    return ", ".join(shown)


def _type(schema: Schema, root: Schema, depth: int = 0) -> str:
    """A schema, as short as a model can understand it."""
    if depth > 3:
        return "any"
    if "$ref" in schema:
        definitions = cast("Schema", root.get("$defs", root.get("definitions", {})))
        return _type(_schema(definitions.get(str(schema["$ref"]).rpartition("/")[2])), root, depth + 1)
    if "enum" in schema or "const" in schema:
        values = cast("Sequence[Any]", schema.get("enum", [schema.get("const")]))
        return "|".join(map(compact, values))
    if options := cast("Sequence[Any]", schema.get("anyOf", schema.get("oneOf", ()))):
        return "|".join(_type(_schema(option), root, depth + 1) for option in options)
    kind = cast("str | Sequence[str]", schema.get("type", "any"))
    if kind == "array":
        return f"[{_type(_schema(schema.get('items')), root, depth + 1)}]"
    if kind == "object" and (properties := _properties(schema)):
        members = (f"{name}: {_type(value, root, depth + 1)}" for name, value in properties.items())
        return f"{{{', '.join(members)}}}"
    return kind if isinstance(kind, str) else "|".join(kind)


def _properties(schema: Schema) -> dict[str, Schema]:
    return {name: _schema(value) for name, value in cast("Schema", schema.get("properties", {})).items()}


def _schema(value: Any) -> Schema:
    """A schema that may also be a boolean, or missing."""
    return cast("Schema", value) if isinstance(value, Mapping) else {}
