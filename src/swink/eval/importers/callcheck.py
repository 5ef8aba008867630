"""Checks of calls: whether a function call is one of the answers that BFCL allows, as BFCL decides it.

An allowed answer lists, for each parameter, the values that will do; "" means that it may be left out. Types
must be exact, but whole numbers do for `float`. Case, spaces, kinds of quotes and , . / - _ * ^ are ignored.
"""

import re
from collections.abc import Sequence
from typing import Any, cast

from swink.eval.importers.literals import JAVA, JAVASCRIPT, read_java, read_javascript, types_by_name

PYTHON = types_by_name(
    "string String any Any", "integer", "number float", "boolean bool", "list array tuple", "object dict"
)
"""What a type of Python is here, as BFCL names them."""
_TYPES = {"python": PYTHON, "java": JAVA, "javascript": JAVASCRIPT}
_IGNORED = str.maketrans({**dict.fromkeys(" ,./-_*^", None), "'": '"'})
Call = tuple[str, dict[str, Any]]
"""The name of a function, as the model knows it, and the arguments."""


def tool_name(name: str) -> str:
    """A function's name as tools may be named: BFCL has a dot written as an underscore."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64]


def wrong_calls(
    functions: Sequence[dict[str, Any]],
    answers: Sequence[dict[str, Any]],
    calls: Sequence[Call],
    language: str = "python",
) -> str | None:
    """Why the calls are not the allowed ones, in any order; None if they are."""
    if len(calls) != len(answers):
        return f"{len(answers)} calls are expected, and {len(calls)} were made"
    left = list(calls)
    for answer in answers:
        ((name, allowed),) = answer.items()
        described = next((item for item in functions if item.get("name") == name), dict[str, Any]())
        problems: list[str] = []
        for index, call in enumerate(left):
            problem = wrong_call(described, allowed, call, name, language)
            if problem is None:
                del left[index]
                break
            problems.append(problem)
        else:
            return problems[0] if len(problems) == 1 else f"no call fits {name}: {'; '.join(problems)}"
    return None


def wrong_call(
    described: dict[str, Any], allowed: dict[str, Any], call: Call, name: str, language: str = "python"
) -> str | None:
    """Why a call of a function is not an allowed one; None if it is."""
    called, arguments = call
    if called != tool_name(name):
        return f"{called} is called, not {tool_name(name)}"
    schema = described.get("parameters", {})
    properties: dict[str, Any] = schema.get("properties", {})
    for parameter in schema.get("required", ()):
        if parameter not in arguments:
            return f"the required parameter {parameter!r} is missing"
    for parameter, value in arguments.items():
        if parameter not in properties or parameter not in allowed:
            return f"the parameter {parameter!r} is not expected"
        if problem := _wrong_value(properties[parameter], allowed[parameter], value, language):
            return f"{parameter}: {problem}"
    for parameter, values in allowed.items():
        if parameter not in arguments and "" not in values:
            return f"the parameter {parameter!r} is missing"
    return None


def _wrong_value(details: dict[str, Any], allowed: list[Any], value: Any, language: str) -> str | None:
    types = _TYPES[language]
    kind = str(details.get("type", "string"))
    expected = types.get(kind, str)
    inner = details.get("items", {}).get("type") if expected is list else None
    if language != "python":
        if type(value) is not str:
            return f"{value!r} is not a text, in which {language} values are written"
        value = (read_java if language == "java" else read_javascript)(value, kind, inner)
    elif expected is float and type(value) is int:
        value = float(value)
    inner_type = None if inner is None else types.get(inner, str)
    kinds: list[Any] = [type(item) for item in allowed if item != ""]
    given_type = kinds[0] if kinds else None
    if type(value) is expected:
        # An answer of another type than the described one is a variable's name: it is compared as it is.
        is_variable = given_type not in (None, expected)
        if inner_type is not None and not _fits_inside(value, allowed, inner_type):
            return f"{value!r} has items that are not of the type {inner}"
    elif given_type is not None and type(value) is given_type:
        is_variable = True
    else:
        return f"{value!r} is {type(value).__name__}, not {kind}"
    if is_variable or not _is_allowed(value, allowed, expected, inner_type):
        return None if is_variable and value in allowed else f"{value!r} is none of {allowed!r}"
    return None


def _fits_inside(value: list[Any], allowed: list[Any], inner: type) -> bool:
    """Whether the items of a list have the described type, or that of some allowed answer."""
    for answer in allowed:
        if not isinstance(answer, list):
            return True
        kinds: list[Any] = [type(item) for item in cast("list[Any]", answer) if item != ""]
        given = kinds[0] if kinds else None
        if all(type(item) in (inner, given) for item in value):
            return True
    return False


def _is_allowed(value: Any, allowed: list[Any], expected: type, inner: type | None) -> bool:
    if expected is dict:
        return any(_same_object(value, answer) for answer in allowed if isinstance(answer, dict))
    lists = [cast("list[Any]", answer) for answer in allowed if isinstance(answer, list)]
    if inner is dict:
        alike = [answer for answer in lists if len(answer) == len(value)]
        return any(all(map(_same_object, value, answer)) for answer in alike)
    if expected is list:
        plain = [_plain(item) for item in value]
        is_left_out = value == [] and "" in allowed
        return is_left_out or any(plain == [_plain(item) for item in answer] for answer in lists)
    if expected is str:
        return _plain(value) in [_plain(answer) for answer in allowed if isinstance(answer, str)]
    return value in allowed


def _same_object(value: Any, answer: Any) -> bool:
    """Whether an object has allowed values, none besides, and lacks only what may be left out."""
    if not isinstance(value, dict) or not isinstance(answer, dict):
        return False
    given, wanted = cast("dict[str, Any]", value), cast("dict[str, list[Any]]", answer)
    plain = {key: [_plain(one) for one in values] for key, values in wanted.items()}
    is_allowed = all(_plain(item) in plain.get(key, ()) for key, item in given.items())
    return is_allowed and all(key in given or "" in values for key, values in wanted.items())


def _plain(value: Any) -> Any:
    """A text with small letters, one kind of quotes and none of the ignored signs; anything else as it is."""
    return value.translate(_IGNORED).lower() if isinstance(value, str) else value
