"""τ-bench: a user with an errand, tools that work on a database, and the state they leave it in.

    wiki.md          the rules, which become the system prompt
    tasks.json       [{"user_id", "instruction", "actions": [{"name", "kwargs"}], "outputs": ["…"]}]
    tasks_test.py    or the same as τ-bench writes it: Task(instruction=…, actions=[Action(…)]), read, not run
    data/*.json      the database: each file is one table
    tools.py         ALL_TOOLS: classes with get_info() and invoke(data, **arguments); or a package tools/

An attempt gets 1 if replaying its calls leaves the database as replaying the task's actions does, and each of
the outputs stands in some reply.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

from swink.eval.case import Case, Evaluator, SimulatedUser, SourceLine
from swink.eval.importers.rows import BadRows, BenchmarkRow, make_cases, read_rows, row_of
from swink.eval.importers.taudomain import about_tool, invoke, read_database, tools_of
from swink.eval.result import Score
from swink.eval.scorers.registry import scorer
from swink.eval.trajectory import Trajectory
from swink.messages import AssistantMessage
from swink.system.threads import in_thread
from swink.tools import Tool, ToolContext

MAX_TURNS = 30
_TASKS = ("tasks.json", "tasks.jsonl", "tasks_test.py", "tasks.py")
Action = tuple[str, Mapping[str, Any]]


def read_tau(path: Path) -> Iterator[Case | BadRows]:
    """The tasks of a domain's directory, or of one file of tasks in it."""
    file = next((path / name for name in _TASKS if (path / name).exists()), None) if path.is_dir() else path
    if file is None:
        raise BadRows(f"{path}: holds none of {', '.join(_TASKS)}")
    domain = file.parent.resolve()
    wiki = domain / "wiki.md"
    try:
        rules = wiki.read_text("utf-8") if wiki.exists() else None
    except (OSError, UnicodeDecodeError) as error:
        raise BadRows(f"{wiki}: cannot be read: {error}") from error
    tools_of(str(domain))

    def make(number: int, row: BenchmarkRow) -> Case:
        actions = [_action(row, action) for action in row.objects("actions")]
        told = {"domain": str(domain), "actions": actions, "outputs": row.texts("outputs")}
        return Case(
            id=f"tau-{number}",
            system_prompt=rules,
            simulated_user=SimulatedUser(goal=row.text("instruction"), max_turns=MAX_TURNS),
            evaluators=(Evaluator("tau"),),
            metadata={"tau": told},
            tags=("tau", domain.name),
            place=row.place,
        )

    return make_cases(_written_tasks(file) if file.suffix == ".py" else read_rows(file), make)


def domain_tools(case: Case) -> list[Tool]:
    """The tools of the case's domain, with a database of their own; none for other cases."""
    told = case.metadata.get("tau")
    if not isinstance(told, dict) or "domain" not in told:
        return []
    domain = str(cast("dict[str, Any]", told)["domain"])
    database: dict[str, Any] = {}

    def execute(kind: Any, call_id: str, arguments: dict[str, Any], ctx: ToolContext) -> Any:
        # In a worker thread, one call at a time: the database is read at the first one.
        if not database:
            database.update(read_database(domain))
        return invoke(kind, database, arguments)

    made: list[Tool] = []
    for name, kind in tools_of(domain).items():
        about = about_tool(kind)
        parameters = about.get("parameters", {"type": "object", "properties": {}})
        description, call = about.get("description", name), partial(execute, kind)
        made.append(Tool.raw(name, description, parameters, call, sequential=True))
    return made


@scorer("tau")
async def tau(case: Case, trajectory: Trajectory) -> Score:
    """1 if the database is as the task's actions leave it, and every output was said."""
    row = row_of(case, "tau", "domain", "actions", "outputs")
    domain, outputs = str(row["domain"]), row["outputs"]
    taken = [(call.name, call.arguments) for call in trajectory.calls if call.ran]
    expected = [(str(action["name"]), action["kwargs"]) for action in row["actions"]]
    wrong = await in_thread(lambda: _difference(_replayed(domain, taken), _replayed(domain, expected), ""))
    replies = [message for message in trajectory.messages if isinstance(message, AssistantMessage)]
    said = [reply.text.lower().replace(",", "") for reply in replies]
    missing = [text for text in outputs if not any(str(text).lower() in reply for reply in said)]
    if missing:
        wrong = "; ".join(filter(None, [wrong, f"never said: {', '.join(map(repr, missing))}"]))
    return Score(0.0, wrong) if wrong else Score(1.0, "the database and the replies are as expected")


def _written_tasks(path: Path) -> Iterator[BenchmarkRow | BadRows]:
    """The calls of Task(…) in a file of Python, which is not run."""
    try:
        tree = ast.parse(path.read_text("utf-8"))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        why = str(error) or "it is nested too deeply"
        raise BadRows(f"{path}: is no Python that can be read: {why}") from error
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Task":
            place = SourceLine(str(path), node.lineno)
            try:
                yield BenchmarkRow(_value(node), place)
            except (ValueError, TypeError, RecursionError) as error:
                yield BadRows(f"{place}: the task is not written with literals alone: {error}")


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Call(func=ast.Name(id="Task" | "Action"), args=[], keywords=keywords):
            return {item.arg: _value(item.value) for item in keywords if item.arg is not None}
        case ast.List(elts=items):
            return [_value(item) for item in items]
        case _:
            return ast.literal_eval(node)


def _action(row: BenchmarkRow, action: dict[str, Any]) -> dict[str, Any]:
    match action:
        case {"name": str(name), "kwargs": {**arguments}} | {"name": str(name), "arguments": {**arguments}}:
            return {"name": name, "kwargs": arguments}
        case _:
            raise row.problem("an action needs a 'name' and its 'kwargs'")


def _replayed(domain: str, calls: Sequence[Action]) -> dict[str, Any]:
    tools, database = tools_of(domain), read_database(domain)
    for name, arguments in calls:
        if name in tools:
            invoke(tools[name], database, arguments)
    return database


def _difference(given: Any, wanted: Any, path: str) -> str:
    match given, wanted:
        case ({**one}, {**other}):
            for key in sorted(one.keys() | other.keys(), key=str):
                place = f"{path}.{key}".lstrip(".")
                if key not in one or key not in other:
                    what = "not expected" if key in one else "missing"
                    return f"the database differs: {place} is {what}"
                if found := _difference(one[key], other[key], place):
                    return found
            return ""
        case ([*one], [*other]) if len(one) == len(other):
            pairs = enumerate(zip(one, other, strict=True))
            found = (_difference(*pair, f"{path}.{number}") for number, pair in pairs)
            return next(filter(None, found), "")
        case _ if type(given) is type(wanted) and given == wanted:
            return ""
        case _:
            return f"the database differs: {path} is {str(given)[:100]!r}, not {str(wanted)[:100]!r}"
