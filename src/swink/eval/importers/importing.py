"""Importing: the data of a benchmark → a suite, and a suite → a case file."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from swink.errors import InvalidInput
from swink.eval.case import Case, Suite
from swink.eval.importers.agentdojo import read_agentdojo
from swink.eval.importers.bfcl import read_bfcl
from swink.eval.importers.codetasks import read_humaneval, read_mbpp
from swink.eval.importers.gsm8k import read_gsm8k
from swink.eval.importers.ifeval import read_ifeval
from swink.eval.importers.rows import BadRows
from swink.eval.importers.tau import read_tau
from swink.system.files import write_whole

Importer = Callable[[Path], Iterator[Case | BadRows]]
MOST_PROBLEMS = 50

FORMATS: Mapping[str, Importer] = {
    "agentdojo": read_agentdojo,
    "bfcl": read_bfcl,
    "gsm8k": read_gsm8k,
    "humaneval": read_humaneval,
    "ifeval": read_ifeval,
    "mbpp": read_mbpp,
    "tau": read_tau,
}
"""Who reads a format; the scorer of a benchmark has the same name."""


def import_cases(format: str, path: str | Path, limit: int | None = None) -> Suite:
    """A suite of the rows of a published benchmark, the first `limit` good ones, with its scorers.

    `path` is the file with the rows, or for agentdojo, bfcl and tau a directory. What is wrong with a row
    stands in the suite's `skipped`; if no row is good, `BadRows` is raised with a line for each of the first
    fifty.

    Args:
        format: a benchmark of `FORMATS`, such as "bfcl"
        path: the file with the rows, or the directory
        limit: how many rows at most
    """
    importer = FORMATS.get(format)
    if importer is None:
        raise InvalidInput(f"no format {format!r}; there are {', '.join(sorted(FORMATS))}")
    if limit is not None and limit < 1:
        raise InvalidInput(f"limit is {limit!r}; pass a number above 0, or None for all")
    path = Path(path)
    cases: dict[str, Case] = {}
    problems: list[str] = []
    try:
        for made in importer(path):
            if isinstance(made, BadRows):
                problems.append(str(made))
            elif (why := _unwritable(made)) is not None:
                problems.append(f"{made.place}: cannot be written as a case: {why}")
            elif (other := cases.setdefault(made.id, made)) is not made:
                problems.append(f"{made.place}: the id {made.id!r} stands at {other.place} already")
            if len(cases) == limit:
                break
    except BadRows as error:  # a file as a whole, after what is wrong in those before it
        problems.append(str(error))
    if not cases:
        raise BadRows("\n".join(problems[:MOST_PROBLEMS]) or f"{path}: holds no rows of {format}")
    return Suite(name=format, cases=tuple(cases.values()), skipped=tuple(problems))


def _unwritable(case: Case) -> str | None:
    """Why a case cannot stand in a file: data written in Python has values that JSON does not."""
    try:
        msgspec.json.encode(case)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        return str(error)
    return None


def write_cases(suite: Suite, path: str | Path) -> None:
    """Write a suite to `path` as a case file in JSON, which `load_suite` and `swink eval run` take."""
    data = {**_given(suite), "cases": [_given(case) for case in suite.cases]}
    text = msgspec.json.format(msgspec.json.encode(data), indent=1) + b"\n"
    write_whole(path, text, make_parents=True)


def _given(value: Struct) -> dict[str, Any]:
    """What differs from the defaults, without what a loader or a runner sets."""
    data: dict[str, Any] = msgspec.to_builtins(value)
    for info in msgspec.structs.fields(value):
        name = info.encode_name
        default = info.default_factory() if callable(info.default_factory) else info.default
        if name in ("place", "path", "workspace", "cases", "skipped") or getattr(value, info.name) == default:
            data.pop(name, None)
        elif data.get(name) is UNSET:
            del data[name]
    return data
