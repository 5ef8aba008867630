"""BFCL v4, single turn: which functions are called with which arguments for one request.

    BFCL_v4_simple_python.json                  {"id", "question": [[{"role", "content"}]], "function": [{…}]}
    possible_answer/BFCL_v4_simple_python.json  {"id", "ground_truth": [{function: {parameter: [values]}}]}

The calls of the first reply are compared with the answers. Tools have BFCL's names and types, but the hints
for the model are in our own words, so that scores compare with each other rather than with published ones.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from swink.eval.case import Case, CaseBudget, Evaluator, PriorMessage, SimulatedTool
from swink.eval.casechecks import schema_problem
from swink.eval.importers.callcheck import PYTHON, tool_name, wrong_calls
from swink.eval.importers.literals import JAVA, JAVASCRIPT, types_by_name
from swink.eval.importers.rows import BadRows, BenchmarkRow, make_cases, read_rows, row_of
from swink.eval.result import Score
from swink.eval.scorers.registry import scorer
from swink.eval.trajectory import Trajectory
from swink.messages.jsondata import encode

_KINDS = "simple simple_python simple_java simple_javascript java javascript multiple parallel"
_OTHER_KINDS = ("parallel_multiple", "irrelevance", "relevance")
_SINGLE_TURN = {f"{source}{kind}" for source in ("", "live_") for kind in (*_KINDS.split(), *_OTHER_KINDS)}
_NAMED = types_by_name("string", "integer", "number", "boolean", "array", "object")
_SCHEMA_NAMES = {kind: name for name, kind in _NAMED.items()}
_SCHEMA_TYPES = {**JAVA, **PYTHON}
_LANGUAGES = {"python": "Python 3", "java": "Java 8", "javascript": "JavaScript"}
_DONE = "The call was taken."


def read_bfcl(path: Path) -> Iterator[Case | BadRows]:
    """The rows of a file of questions, or of all single-turn files in a directory.

    The answers stand in the rows, or in `possible_answer/` under the same file name.
    """
    if not path.is_dir():
        yield from _read_file(path)
        return
    known = sorted(path.glob("BFCL_v*.json"))
    files = [file for file in known if file.stem.split("_", 2)[-1] in _SINGLE_TURN]
    if not files:
        raise BadRows(f"{path}: holds no single-turn files such as BFCL_v4_simple_python.json")
    for file in files:
        try:
            yield from _read_file(file)
        except BadRows as error:  # the other files have rows of their own
            yield error


@scorer("bfcl")
def bfcl(case: Case, trajectory: Trajectory) -> Score:
    """Whether the first reply calls what BFCL allows; for (ir)relevance, whether it calls anything."""
    row = row_of(case, "bfcl", "category", "functions", "answers")
    category = str(row["category"])
    calls = [(call.name, call.arguments) for call in trajectory.calls if call.turn == 1]
    made = "1 call was made" if len(calls) == 1 else f"{len(calls)} calls were made"
    if category.endswith("irrelevance"):
        return Score(float(not calls), f"{made}, none is expected")
    if category.endswith("relevance"):
        return Score(float(bool(calls)), f"{made}, at least one is expected")
    wrong = wrong_calls(row["functions"], row["answers"], calls, _language(category))
    return Score(0.0, wrong) if wrong else Score(1.0, "the calls are the expected ones")


def _read_file(path: Path) -> Iterator[Case | BadRows]:
    beside = path.parent / "possible_answer" / path.name
    answers: dict[str, BenchmarkRow] = {}
    for row in read_rows(beside) if beside.exists() else ():
        if isinstance(row, BadRows):
            yield row
        else:
            answers[str(row.data.get("id"))] = row

    def make(number: int, row: BenchmarkRow) -> Case:
        return _case(row, answers.get(row.text("id"), row), beside)

    yield from make_cases(read_rows(path), make)


def _case(row: BenchmarkRow, answered: BenchmarkRow, beside: Path) -> Case:
    name = row.text("id")
    kind, _, number = name.rpartition("_")
    category = kind if number.replace("-", "").isdecimal() else name
    if category not in _SINGLE_TURN:
        advice = "import files such as BFCL_v4_simple_python.json"
        raise row.problem(f"{name!r} is not a single-turn row; {advice}")
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
    system, history, user = _messages(row)
    return Case(
        id=name,
        system_prompt=system,
        history=history,
        user_messages=(user,),
        simulated_tools=tools,
        budget=CaseBudget(max_turns=1),
        evaluators=(Evaluator("bfcl"),),
        metadata={"bfcl": {"category": category, "functions": functions, "answers": answers}},
        tags=("bfcl", category),
        place=row.place,
    )


def _messages(row: BenchmarkRow) -> tuple[str | None, tuple[PriorMessage, ...], str]:
    """The system prompt, what was said before, and the request of the one turn."""
    match row.data.get("question"):
        case [[*messages]]:
            pass
        case _:
            raise row.problem("'question' is not a list with one turn, which is a list of messages")
    system: list[str] = []
    history: list[PriorMessage] = []
    asked: list[str] = []
    for message in messages:
        match message:
            case {"role": "system", "content": str(text)}:
                system.append(text)
            case {"role": "user", "content": str(text)}:
                asked.append(text)
            case {"role": "assistant", "content": str(text)}:
                history += [PriorMessage("user", said) for said in asked] + [PriorMessage("assistant", text)]
                asked.clear()
            case _:
                raise row.problem("a message is not a text of the system, the user or the assistant")
    if not "".join(asked).strip():
        raise row.problem("the user asks nothing at the end")
    return "\n\n".join(system) or None, tuple(history), "\n\n".join(asked)


def _tool(row: BenchmarkRow, function: dict[str, Any], language: str) -> SimulatedTool:
    match function:
        case {"name": str(name), "parameters": {"properties": {**properties}, **rest}} if name.strip():
            pass
        case _:
            raise row.problem("a function has no 'name' or no 'parameters' with 'properties'")
    if not all(isinstance(value, dict) for value in properties.values()):
        raise row.problem(f"a parameter of {name!r} is no object")
    described: dict[str, Any] = {
        str(key): _schema(value) if language == "python" else _as_text(value, language)
        for key, value in properties.items()
    }
    required = rest.get("required", [])
    schema = {"type": "object", "properties": described, "required": required}
    if (why := schema_problem(schema)) is not None:
        raise row.problem(f"the parameters of {name!r} are no JSON Schema: {why}")
    return SimulatedTool(
        name=tool_name(name),
        description=f"{function.get('description', '')} (A function of {_LANGUAGES[language]}.)".strip(),
        parameters=schema,
        replies=(_DONE,),
    )


def _schema(details: Any) -> dict[str, Any]:
    """A parameter as JSON Schema: BFCL names types as Python does."""
    if not isinstance(details, dict):
        return {}
    given = cast("dict[str, Any]", details)
    kind = str(given.get("type", "string"))
    schema = {key: given[key] for key in ("description", "enum", "default", "required") if key in given}
    schema["type"] = _SCHEMA_NAMES[_SCHEMA_TYPES.get(kind, str)]
    if kind == "float":
        schema["description"] = f"{given.get('description', '')} (It may have decimals.)".strip()
    if isinstance(given.get("properties"), dict):
        properties = cast("dict[str, Any]", given["properties"])
        schema["properties"] = {key: _schema(value) for key, value in properties.items()}
    if "items" in given:
        schema["items"] = _schema(given["items"])
    if not isinstance(schema.get("required", []), list):
        del schema["required"]
    return schema


def _as_text(details: dict[str, Any], language: str) -> dict[str, Any]:
    """A parameter of Java or JavaScript: a text with the value as it is written there."""
    kind, name = str(details.get("type", "any")), _LANGUAGES[language]
    hints = [f"Pass a string that holds the value as {name} source code"]
    hints.append("the value may have any type" if kind == "any" else f"the type of the value is {kind}")
    if JAVA.get(kind, JAVASCRIPT.get(kind)) is list and isinstance(details.get("items"), dict):
        hints.append(f"its items, source code too, are of the type {details['items'].get('type')}")
    if language == "javascript" and kind == "dict" and "properties" in details:
        hints.append(f"its entries, source code too, are {encode(details['properties']).decode()}")
    described = f"{details.get('description', '')} ({'; '.join(hints)}.)".strip()
    return {"type": "string", "description": described}


def _language(category: str) -> str:
    return "javascript" if "javascript" in category else "java" if "java" in category else "python"
