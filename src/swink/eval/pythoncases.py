"""Cases in Python: a file with `cases`, a list or a function, of `Case` values or mappings."""

import ast
import importlib.util
import inspect
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec.structs import asdict, replace

from swink.errors import message_of
from swink.eval.case import Case, Suite
from swink.eval.linenumbers import Lined, Unreadable
from swink.system.loading import look_in

_SUITE = ("name", "model", "system_prompt", "tools", "agent", "judges", "cassette")


def read_python(path: Path) -> Lined:
    """What a Python file says of its suite, as data; raises `Unreadable`."""
    tree = _parsed(path)
    given = _given(path)
    if isinstance(given.get("cases"), Suite):
        suite = cast(Suite, given["cases"])
        said = {name: getattr(suite, name) for name in _SUITE if getattr(suite, name)}
        given = {**said, "cases": suite.cases}
    lines = _lines_of_ids(tree)
    first = _line_of_cases(tree)
    cases: list[Any] = []
    marks: dict[Any, int] = {}
    for item in given["cases"]:
        data = _as_data(item, first)
        known = cast("dict[str, Any]", data).get("id") if isinstance(data, dict) else None
        marks[len(cases)] = lines.get(known, first) if isinstance(known, str) else first
        cases.append(data)
    suite_data = {name: _plain(given[name], first) for name in _SUITE if name in given}
    found = {**suite_data, "cases": cases}
    return Lined(found, first, {id(found): dict.fromkeys(found, first), id(cases): marks}, [])


def _parsed(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_bytes(), str(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = error.lineno or 1 if isinstance(error, SyntaxError) else 1
        raise Unreadable(line, f"not Python: {message_of(error)}") from None


def _given(path: Path) -> dict[str, Any]:
    """The module's names, with the cases as a list."""
    look_in(path.parent)
    spec = importlib.util.spec_from_file_location(f"swink_cases_{path.stem.replace('.', '_')}", path)
    if spec is None or spec.loader is None:
        raise Unreadable(1, "this Python file cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # for dataclasses and pickle, which look there
    try:
        spec.loader.exec_module(module)
        cases = getattr(module, "cases", None)
        cases = cases() if callable(cases) else cases
        if not isinstance(cases, Suite):
            if inspect.iscoroutine(cases):
                cases.close()
                raise Unreadable(1, "cases() is async; make it a plain function")
            if not isinstance(cases, Iterable) or isinstance(cases, str | bytes | dict):
                raise Unreadable(1, "there are no cases; write cases = [...] or def cases()")
            cases = list(cast("Iterable[Any]", cases))
    except Unreadable:
        raise
    except (Exception, SystemExit) as error:
        # Importing runs the user's code, which may fail in any way.
        raise Unreadable(_line_in(path, error), f"{type(error).__name__}: {message_of(error)}") from error
    names = {name: value for name, value in vars(module).items() if name in _SUITE}
    return {name: value for name, value in names.items() if not inspect.ismodule(value)} | {"cases": cases}


def _line_in(path: Path, error: BaseException) -> int:
    line, trace = 1, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename in (str(path), str(path.absolute())):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _as_data(item: Any, line: int) -> Any:
    if isinstance(item, Case):
        given = asdict(replace(item, place=None, workspace=None))
        item = {field: value for field, value in given.items() if value is not None}
    return _plain(item, line)


def _plain(value: Any, line: int) -> Any:
    """The value as JSON would have it."""
    try:
        return msgspec.json.decode(msgspec.json.encode(value))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise Unreadable(line, f"a case holds what JSON cannot: {message_of(error)}") from None


def _line_of_cases(tree: ast.Module) -> int:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="cases")]) | ast.AnnAssign(target=ast.Name(id="cases")):
                return node.lineno
            case ast.FunctionDef(name="cases"):
                return node.lineno
            case _:
                pass
    return 1


def _lines_of_ids(tree: ast.Module) -> dict[str, int]:
    """Where an id is written down: Case(id="oslo") or {"id": "oslo"}."""
    lines: dict[str, int] = {}
    for node in ast.walk(tree):
        match node:
            case ast.keyword(arg="id", value=ast.Constant(value=str(text))):
                lines.setdefault(text, node.lineno)
            case ast.Dict(keys=keys, values=values):
                for key, value in zip(keys, values, strict=True):
                    match key, value:
                        case ast.Constant(value="id"), ast.Constant(value=str(text)):
                            lines.setdefault(text, value.lineno)
                        case _:
                            pass
            case _:
                pass
    return lines
