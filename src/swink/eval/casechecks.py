"""Checks of cases that no schema can make: patterns, schemas, paths, models, scorers."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, cast

import jsonschema_rs

from swink.errors import AgentError
from swink.eval.scorers import problem_of
from swink.models import catalog
from swink.system.loading import look_in

Problems = Iterator[tuple[list[str | int], str]]
"""Problems by their place in the data."""
Scorer = Callable[[str, tuple[str, ...]], str | None]
"""What is wrong with a scorer of that name and with these options."""


def problems_of(data: Any, directory: Path) -> Problems:
    """What is wrong with the data of a case file in that directory, as far as it has the right shape."""
    suite = _dict(data)

    @cache  # thousands of cases name the same ones
    def scorer(name: str, options: tuple[str, ...]) -> str | None:
        return problem_of(name, dict.fromkeys(options))

    yield from _model(suite.get("model"), ["model"])
    for number, judge in enumerate(_list(suite.get("judges"))):
        yield from _model(judge, ["judges", number])
    before: list[str | int] = [] if isinstance(data, list) else ["cases"]
    for number, case in enumerate(_list(data if isinstance(data, list) else suite.get("cases"))):
        for path, text in _case_problems(_dict(case), directory, scorer):
            yield [*before, number, *path], text


def _case_problems(case: dict[str, Any], directory: Path, scorer: Scorer) -> Problems:
    yield from _response(case.get("expected_response"), ["expected_response"])
    environment = _dict(case.get("expected_environment_state"))
    for name, expected in _dict(environment.get("files")).items():
        yield from _response(expected, ["expected_environment_state", "files", name])
    yield from _paths(_dict(environment.get("files")), ["expected_environment_state", "files"])
    yield from _paths(_dict(case.get("initial_files")), ["initial_files"])
    evaluators = case.get("evaluators")
    for number, evaluator in enumerate([evaluators] if isinstance(evaluators, str) else _list(evaluators)):
        given = {"name": evaluator} if isinstance(evaluator, str) else _dict(evaluator)
        name = given.get("name")
        if not isinstance(name, str) or not name:
            continue
        if ":" in name:
            look_in(directory)
        if (problem := scorer(name, tuple(_dict(given.get("options"))))) is not None:
            yield ["evaluators", number], problem
    attachments = case.get("attachments")
    for number, name in enumerate([attachments] if isinstance(attachments, str) else _list(attachments)):
        if isinstance(name, str) and name.strip() and not _is_file(directory, name):
            yield ["attachments", number], f"there is no file {name!r} in {directory}"
    yield from _model(_dict(case.get("simulated_user")).get("model"), ["simulated_user", "model"])
    yield from _tools(_list(case.get("simulated_tools")))


def _response(expected: Any, path: list[str | int]) -> Problems:
    response = _dict(expected)
    if response and "json" not in response and all(value is None for value in response.values()):
        yield path, "nothing is expected here: every value is empty; give one, or remove it"
    if isinstance(pattern := response.get("regex"), str):
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            yield [*path, "regex"], f"{pattern!r} is no regular expression: {error}"
    if response.get("schema") is not None:
        yield from _schema(response["schema"], [*path, "schema"])


def _schema(schema: Any, path: list[str | int]) -> Problems:
    if isinstance(schema, dict) and (why := schema_problem(_dict(schema))) is not None:
        yield path, f"this is no JSON Schema: {why}"


def schema_problem(schema: dict[str, Any]) -> str | None:
    """Why an object is no JSON Schema; None if it is one."""
    try:
        jsonschema_rs.validator_for(schema)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        return str(getattr(error, "message", None) or error)
    return None


def _paths(files: dict[str, Any], path: list[str | int]) -> Problems:
    for name in files:
        parts = PurePosixPath(name).parts
        outside = PurePosixPath(name).is_absolute() or PureWindowsPath(name).drive or ".." in parts
        if outside or not parts or "\0" in name or "\\" in name:
            yield [*path, name], f"{name!r} is no path within the workspace; write one such as notes/todo.txt"
            continue
        for parent in PurePosixPath(name).parents:
            if isinstance(files.get(str(parent)), str):
                yield [*path, name], f"{str(parent)!r} is a file, so that {name!r} cannot be in it"


def _is_file(directory: Path, name: str) -> bool:
    try:
        return (directory / Path(name).expanduser()).is_file()
    except (OSError, ValueError, RuntimeError):
        return False


def _model(model: Any, path: list[str | int]) -> Problems:
    if not isinstance(model, str) or not model.strip():
        return
    try:
        spec = catalog.parse_model(model)
        if not catalog.has_provider(spec.provider):
            catalog.stream_fn_for(spec)
    except AgentError as error:
        yield path, str(error)


def _tools(tools: list[Any]) -> Problems:
    names: set[str] = set()
    for number, item in enumerate(tools):
        tool = _dict(item)
        name = tool.get("name")
        if isinstance(name, str):
            if name in names:
                problem = f"two simulated tools are named {name!r}; rename one"
                yield ["simulated_tools", number, "name"], problem
            names.add(name)
        yield from _schema(tool.get("parameters"), ["simulated_tools", number, "parameters"])
        yield from _model(tool.get("model"), ["simulated_tools", number, "model"])
        if tool and not tool.get("replies") and not tool.get("instructions"):
            yield ["simulated_tools", number], f"{name!r} can say nothing; give it replies or instructions"


def _dict(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
