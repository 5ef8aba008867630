"""The schema of case files, which editors use, and what it says against data, in sentences."""

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, cast

import jsonschema_rs

SCHEMA_FILE = Path(__file__).with_name("cases.schema.json")

_KINDS = {
    "string": "a text",
    "object": "a mapping",
    "array": "a list",
    "integer": "a whole number",
    "number": "a number",
}
_BOUNDS = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most"}
_OTHER_WORDS = {
    **dict.fromkeys(("input", "inputs", "prompt", "question", "message", "messages"), "user_messages"),
    **dict.fromkeys(("expected", "expected_output", "output", "answer", "assert"), "expected_response"),
    **dict.fromkeys(("ideal", "target", "golden"), "reference"),
    **dict.fromkeys(("trajectory", "expected_tools", "tool_calls", "calls"), "expected_trajectory"),
    **dict.fromkeys(("scorers", "metrics", "scorer"), "evaluators"),
    **dict.fromkeys(("files", "workspace"), "initial_files"),
    **dict.fromkeys(("system", "instructions"), "system_prompt"),
    **dict.fromkeys(("tool", "name"), "tool_name"),
    **dict.fromkeys(("args", "parameters"), "arguments"),
    **dict.fromkeys(("tests", "examples", "samples", "items"), "cases"),
    **dict.fromkeys(("equals", "equal"), "exact"),
    "factory": "agent",
    "evaluator": "evaluators",
    "state": "session_state",
    "pattern": "regex",
    "json_schema": "schema",
    "judge": "judges",
}
"""What others call it."""


@cache
def case_schema() -> dict[str, Any]:
    """The JSON Schema of case files."""
    return json.loads(schema_text())


def schema_text() -> str:
    """The JSON Schema of case files as a text."""
    return SCHEMA_FILE.read_text("utf-8")


@cache
def _validator() -> Any:
    return jsonschema_rs.validator_for(case_schema())


def violations(data: Any) -> Iterator[tuple[list[str | int], str]]:
    """Where data is no case file, and what to do about it."""
    if _validator().is_valid(data):
        return
    unknown: dict[tuple[str | int, ...], list[str]] = {}
    errors = list(_validator().iter_errors(data))
    for error in errors:
        if error.kind.name == "additionalProperties":
            unknown[tuple(error.instance_path)] = error.kind.unexpected
    for error in errors:
        path: list[str | int] = list(error.instance_path)
        if error.kind.name == "additionalProperties":
            value = _at(data, path)
            if len(path) > 1 and path[-2] == "expected_trajectory" and "tool_name" not in value:
                yield path, _as_call(value)
                continue
            for key in error.kind.unexpected:
                yield [*path, key], _about_key(key, value, error.schema_path, path)
        elif not _is_meant(error, unknown.get(tuple(path), [])):
            yield path, _sentence(error, path)


def _is_meant(error: Any, unknown: Sequence[str]) -> bool:
    """Whether what is missing stands there under an unknown key, of which people are told anyway."""
    if not unknown or error.kind.name not in ("required", "anyOf"):
        return False
    key = error.kind.property if error.kind.name == "required" else "user_messages"
    near = [_OTHER_WORDS.get(word) == key or get_close_matches(word, [key]) for word in unknown]
    return key == "tool_name" or any(near)


def _at(data: Any, path: Sequence[str | int]) -> Any:
    for step in path:
        data = data[step]
    return data


def _as_call(value: Mapping[str, Any]) -> str:
    """What is said of an expected call that is written {tool: arguments}."""
    for word in ("tool", "name", "function"):
        if isinstance(named := value.get(word), str):
            return f"unknown key {word!r}; write {{tool_name: {named}, arguments: …}}"
    tool, arguments = next(iter(value.items()))
    shown = f", arguments: {json.dumps(arguments)}" if isinstance(arguments, dict) else ""
    return f"unknown key {tool!r}; write {{tool_name: {tool}{shown}}}"


def _about_key(
    key: str, value: Mapping[str, Any], schema_path: Sequence[Any], path: Sequence[str | int]
) -> str:
    schema: Any = case_schema()
    for step in schema_path[:-1]:
        schema = schema.get(step, schema)
        while "$ref" in schema:
            schema = _at(case_schema(), schema["$ref"].removeprefix("#/").split("/"))
    known = sorted(cast("dict[str, Any]", schema.get("properties", {})))
    other = _OTHER_WORDS.get(key)
    near = [other] if other in known else get_close_matches(key, known, n=1)
    if near and near[0] in value:
        near = []
    if near:
        return f"unknown key {key!r}; did you mean {near[0]!r}?"
    case_keys = case_schema()["$defs"]["case"]["properties"]
    if not path and key in case_keys:
        return f"unknown key {key!r}; it belongs to a case, below `cases`"
    if key in case_schema()["properties"] and schema.get("properties") is case_keys:
        return f"unknown key {key!r}; it belongs to the suite, beside `cases`"
    return f"unknown key {key!r}; there are {', '.join(name for name in known if name != '$schema')}"


def _sentence(error: Any, path: Sequence[str | int]) -> str:
    name = ".".join(step for step in path if isinstance(step, str)).removeprefix("cases.") or "the file"
    if path and isinstance(path[-1], int) and len(path) < 3 and name in ("cases", "the file"):
        name = "a case"
    kind, value = error.kind, error.instance
    match kind.name:
        case "type":
            wanted = " or ".join(_KINDS[word] for word in _KINDS if word in kind.types)
            if kind.types == ["string"] and isinstance(value, bool | int | float):
                return f'{name} must be a text; write it in quotes: "{json.dumps(value)}"'
            if value is None:
                return f"{name} is empty; give it {wanted}, or remove it"
            return f"{name} must be {wanted}, not {_shown(value)}"
        case "required" if kind.property == "cases":
            return "there are no cases; write them below `cases:`"
        case "required" if kind.property == "id":
            return "the case has no id; add id: and a name that no other case has"
        case "required":
            return f"{name} needs {kind.property!r}"
        case "anyOf":
            return "the case has neither user_messages nor a simulated_user; say what the user says"
        case "enum":
            near = get_close_matches(str(value), list(map(str, kind.options)), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            return f"{name} is {', '.join(kind.options)}, not {_shown(value)}{hint}"
        case "minItems" if name in ("cases", "the file"):
            return "there are no cases; write at least one"
        case "minItems" | "minLength" | "minProperties":
            return f"{name} is empty; say what is expected, or remove it"
        case "pattern":
            return _about_pattern(name, value, path)
        case "minimum" | "exclusiveMinimum" | "maximum":
            return f"{name} is {value}; it must be {_BOUNDS[kind.name]} {kind.limit}"
        case "maxLength":
            return f"{name} has {len(value)} characters; it may have {kind.limit}"
        case _:
            return f"{name}: {error.message}"


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "…"


def _about_pattern(name: str, value: str, path: Sequence[str | int]) -> str:
    if not value.strip():
        return f"{name} is an empty text; write something, or remove it"
    if path[-1] == "agent" or "tools" in path[-2:]:
        return f"{name} is {_shown(value)}; write package.module:function"
    if name.endswith("simulated_tools.name"):
        return f"{name} is {_shown(value)}; a tool's name is 1 to 64 ASCII letters, digits, '_' or '-'"
    return f"{name} is {_shown(value)}; write it on one line, without blanks around it"
