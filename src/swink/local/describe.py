"""Short descriptions of tools, for models whose chat template has none: each token costs reading time.

- weather(city: string (Name of the city.), unit?: "celsius"|"fahrenheit"): Current weather.

A description may show a call in a line of its own: `Example: How warm is it in Oslo? {"city":"Oslo"}`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from swink.local.schemas import compact
from swink.stream import ToolSpec, parse_arguments

Schema = Mapping[str, Any]

_EXAMPLES: Schema = {"array": [], "integer": 1, "number": 1, "boolean": True, "null": None}
_EXAMPLE = re.compile(r"^Example: (.+?) (\{.*\})$", re.MULTILINE)
_HINTS = re.compile(r"^(?:Example: .+? \{.*\}|Words: .+)\n?", re.MULTILINE)
_MOST_VALUES = 20  # how many values of an enum are named; the grammar knows them all


def describe_tools(tools: Sequence[ToolSpec]) -> str:
    """The tools, and how to call one; empty without tools."""
    if not tools:
        return ""
    lines = [
        f"- {tool.name}({_parameters(tool.parameters_schema)}): {_first_paragraph(tool.description)}"
        for tool in tools
    ]
    how = 'To use a tool reply with JSON: {"tool":"<name>","arguments":{...}}'
    shown = [
        f"{asked} {_call(tool, arguments)}" for tool in tools[1:] for asked, arguments in _examples(tool)
    ]
    examples = ["Examples:", *shown] if shown else []
    return "\n".join(["You have these tools:", *lines, how, *examples])


def describe_output(schema: Schema) -> str:
    """What the answer has to be."""
    return f"Reply with JSON of this form: {_type(schema, schema)}"


def example_talk(tools: Sequence[ToolSpec]) -> list[tuple[str, str]]:
    """A short talk with one call in it: without one, a small model calls always or never."""
    if not tools:
        return []
    first = tools[0]
    asked, arguments = next(iter(_examples(first)), None) or _made_up(first)
    return [
        ("user", "Hello!"),
        ("assistant", "Hello! How can I help you?"),
        ("user", "Who are you?"),
        ("assistant", "I am a helpful assistant."),
        ("user", asked),
        ("assistant", _call(first, arguments)),
        ("user", f"{first.name} returned: done"),
        ("assistant", "Here it is: done."),
        ("user", "Thanks!"),
        ("assistant", "You are welcome."),
    ]


def strip_hints(description: str) -> str:
    """A description without the examples and words that are for models without a template for tools."""
    return _HINTS.sub("", description).rstrip()


def _examples(tool: ToolSpec) -> list[tuple[str, Any]]:
    """What a person asks, and the arguments of the call that answers it, as the description shows them."""
    shown = [(asked, parse_arguments(text)) for asked, text in _EXAMPLE.findall(tool.description)]
    return [(asked, arguments) for asked, arguments in shown if arguments is not None]


def _made_up(tool: ToolSpec) -> tuple[str, Any]:
    arguments = _example({"type": "object", **tool.parameters_schema}, tool.parameters_schema)
    return _request(tool, arguments), arguments


def _call(tool: ToolSpec, arguments: Any) -> str:
    return f'{{"tool":{compact(tool.name)},"arguments":{compact(arguments)}}}'


def _request(tool: ToolSpec, arguments: Any) -> str:
    """What the person says: it holds the arguments, so that the model takes its own from what it is asked."""
    asked = _first_paragraph(tool.description) or f"Use {tool.name}."
    if not arguments or not isinstance(arguments, dict):
        return asked
    named = cast("dict[str, Any]", arguments).items()
    said = [f"{name}: {value if isinstance(value, str) else compact(value)}" for name, value in named]
    return f"{', '.join([asked.rstrip('.'), *said])}."


def _example(schema: Schema, root: Schema, depth: int = 0) -> Any:
    """Some value of a schema."""
    if "$ref" in schema and depth < 4:
        return _example(_referred(schema, root), root, depth + 1)
    if "enum" in schema or "const" in schema:
        return next(iter(cast("Sequence[Any]", schema.get("enum", [schema.get("const")]))), None)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    match kind if isinstance(kind, str) else next(iter(kind), "null"):
        case "object":
            required = cast("Sequence[str]", schema.get("required", ()))
            members = _properties(schema).items() if depth < 4 else ()
            return {name: _example(value, root, depth + 1) for name, value in members if name in required}
        case other:
            return _EXAMPLES.get(other, "blue")


def _referred(schema: Schema, root: Schema) -> Schema:
    definitions = cast("Schema", root.get("$defs", root.get("definitions", {})))
    return _schema(definitions.get(str(schema["$ref"]).rpartition("/")[2]))


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
        return _type(_referred(schema, root), root, depth + 1)
    if "enum" in schema or "const" in schema:
        values = cast("Sequence[Any]", schema.get("enum", [schema.get("const")]))
        more = ["…"] if len(values) > _MOST_VALUES else []
        return "|".join([*map(compact, values[:_MOST_VALUES]), *more])
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
