"""BFCL v4, single turn: which functions are called with which arguments for one request.

    BFCL_v4_simple_python.json                  {"id", "question": [[{"role", "content"}]], "function": [{…}]}
    possible_answer/BFCL_v4_simple_python.json  {"id", "ground_truth": [{function: {parameter: [values]}}]}

Tools are offered as BFCL offers them, and the calls of the first reply are compared with the answers.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from swink.eval.case import Case, CaseBudget, Evaluator, SimulatedTool
from swink.eval.importers.callcheck import tool_name, wrong_calls
from swink.eval.importers.rows import BadRows, Row, read_rows
from swink.eval.score import Score
from swink.eval.scorers.registry import scorer
from swink.eval.trajectory import Trajectory
from swink.jsondata import encode

_SINGLE_TURN = re.compile(
    r"(live_)?(simple(_python|_java|_javascript)?|java|javascript|multiple|parallel|parallel_multiple"
    r"|irrelevance|relevance)"
)
_SCHEMA_TYPES = {
    **dict.fromkeys(("integer", "byte", "short", "long", "Bigint"), "integer"),
    **dict.fromkeys(("number", "float", "double"), "number"),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
    **dict.fromkeys(("array", "list", "tuple", "ArrayList", "Array", "Queue", "Stack"), "array"),
    **dict.fromkeys(("dict", "object", "HashMap", "Hashtable"), "object"),
}
_HINTS = {
    "python": " Note that the provided function is in Python 3 syntax.",
    "java": " Note that the provided function is in Java 8 SDK syntax.",
    "javascript": " Note that the provided function is in JavaScript syntax.",
}
_LANGUAGES = {"java": "Java", "javascript": "JavaScript"}
_DONE = "The call was taken."


def read_bfcl(path: Path) -> Iterator[Case]:
    """The rows of a file of questions, or of all single-turn files in a directory.

    The answers stand in the rows, or in `possible_answer/` under the same file name.
    """
    if not path.is_dir():
        yield from _read_file(path)
        return
    files = [file for file in sorted(path.glob("BFCL_v*.json")) if _category_of_file(file) is not None]
    if not files:
        raise BadRows(f"{path}: holds no single-turn files such as BFCL_v4_simple_python.json")
    for file in files:
        yield from _read_file(file)


@scorer("bfcl")
def bfcl(case: Case, trajectory: Trajectory) -> Score:
    """Whether the first reply calls what BFCL allows; for (ir)relevance, whether it calls anything."""
    told = case.metadata.get("bfcl")
    if not isinstance(told, dict):
        raise ValueError("the case's metadata has no 'bfcl'; import it with import_cases('bfcl', …)")
    row = cast("dict[str, Any]", told)
    category = str(row["category"])
    calls = [(call.name, call.arguments) for call in trajectory.calls if call.turn == 1]
    if category.endswith("irrelevance"):
        return Score(float(not calls), f"{len(calls)} calls were made, none is expected")
    if category.endswith("relevance"):
        return Score(float(bool(calls)), f"{len(calls)} calls were made, at least one is expected")
    wrong = wrong_calls(row["functions"], row["answers"], calls, _language(category))
    return Score(0.0, wrong) if wrong else Score(1.0, "the calls are the expected ones")


def _read_file(path: Path) -> Iterator[Case]:
    beside = path.parent / "possible_answer" / path.name
    answers = {row.data.get("id"): row for row in read_rows(beside)} if beside.exists() else {}
    for row in read_rows(path):
        yield _case(row, answers.get(row.data.get("id"), row), beside)


def _case(row: Row, answered: Row, beside: Path) -> Case:
    name = row.text("id")
    category = re.sub(r"_\d+(-\d+)*$", "", name)
    if not _SINGLE_TURN.fullmatch(category):
        raise row.problem(
            f"{name!r} is not a single-turn row; import files such as BFCL_v4_simple_python.json"
        )
    functions = row.objects("function")
    answers = answered.objects("ground_truth")
    expects_none = category.endswith("relevance")
    if not answers and not expects_none:
        raise row.problem(f"there is no 'ground_truth' for {name!r}, neither here nor in {beside}")
    for answer in answers:
        if len(answer) != 1 or not all(isinstance(item, dict) for item in answer.values()):
            raise answered.problem("each 'ground_truth' is an object with one function and its parameters")
    tools = tuple(_tool(row, function, _language(category)) for function in functions)
    if len({tool.name for tool in tools}) < len(tools):
        raise row.problem("two functions have the same name")
    system, user = _messages(row)
    return Case(
        id=name,
        system_prompt=system,
        user_messages=(user,),
        simulated_tools=tools,
        budget=CaseBudget(max_turns=1),
        evaluators=(Evaluator("bfcl"),),
        metadata={"bfcl": {"category": category, "functions": functions, "answers": answers}},
        tags=("bfcl", category),
        place=row.place,
    )


def _messages(row: Row) -> tuple[str | None, str]:
    """The system prompt and the request of the one turn."""
    match row.data.get("question"):
        case [[*messages]]:
            pass
        case _:
            raise row.problem("'question' is not a list with one turn, which is a list of messages")
    said: dict[str, list[str]] = {"system": [], "user": []}
    for message in messages:
        match message:
            case {"role": "system" | "user" as role, "content": str(text)}:
                said[role].append(text)
            case _:
                raise row.problem("a message is neither the system's nor the user's text")
    if not said["user"]:
        raise row.problem("the user says nothing")
    return "\n\n".join(said["system"]) or None, "\n\n".join(said["user"])


def _tool(row: Row, function: dict[str, Any], language: str) -> SimulatedTool:
    match function:
        case {"name": str(name), "parameters": {"properties": {**properties}, **rest}}:
            pass
        case _:
            raise row.problem("a function has no 'name' or no 'parameters' with 'properties'")
    described: dict[str, Any] = {
        str(key): _schema(value) if language == "python" else _as_text(value, language)
        for key, value in properties.items()
    }
    return SimulatedTool(
        name=tool_name(name),
        description=f"{function.get('description', '')}{_HINTS[language]}",
        parameters={"type": "object", "properties": described, "required": list(rest.get("required", ()))},
        replies=(_DONE,),
    )


def _schema(details: Any) -> dict[str, Any]:
    """A parameter as JSON Schema: BFCL names types as Python does."""
    if not isinstance(details, dict):
        return {}
    given = cast("dict[str, Any]", details)
    kind = str(given.get("type", "string"))
    schema = {key: given[key] for key in ("description", "enum", "default", "required") if key in given}
    schema["type"] = _SCHEMA_TYPES.get(kind, "string")
    if kind == "float":
        schema["description"] = f"{given.get('description', '')} This is a float type value.".strip()
    if isinstance(properties := given.get("properties"), dict):
        schema["properties"] = {
            key: _schema(value) for key, value in cast("dict[str, Any]", properties).items()
        }
    if "items" in given:
        schema["items"] = _schema(given["items"])
    if not isinstance(schema.get("required", []), list):
        del schema["required"]
    return schema


def _as_text(details: dict[str, Any], language: str) -> dict[str, Any]:
    """A parameter of Java or JavaScript: a text with the value as it is written there."""
    kind, name = details.get("type", "any"), _LANGUAGES[language]
    text = str(details.get("description", ""))
    if kind == "any":
        text += f" This parameter can be of any type of {name} object in string representation."
    else:
        text += f" This is {name} {kind} type parameter in string representation."
    if kind in ("ArrayList", "Array", "array") and "items" in details:
        inner = details["items"].get("type")
        text += f" The list elements are of type {inner}; they are not in string representation."
    if language == "javascript" and kind == "dict" and "properties" in details:
        text += (
            " The dictionary entries have the following schema; they are not in string representation. "
            + encode(details["properties"]).decode()
        )
    return {"type": "string", "description": text}


def _category_of_file(path: Path) -> str | None:
    found = re.fullmatch(r"BFCL_v\d+_(\w+)", path.stem)
    return found[1] if found and _SINGLE_TURN.fullmatch(found[1]) else None


def _language(category: str) -> str:
    return "javascript" if "javascript" in category else "java" if "java" in category else "python"
