"""Case files: YAML, JSON or Python → a suite, or every problem at once, with its line."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from swink.errors import MisuseError
from swink.eval.case import Case, SourceLine, Suite
from swink.eval.casechecks import problems_of
from swink.eval.caseschema import violations
from swink.eval.jsontext import read_json
from swink.eval.linenumbers import Lined, Unreadable
from swink.eval.pythoncases import read_python
from swink.eval.yamltext import read_yaml

LARGEST = 200_000_000
"""Bytes of a case file."""

_READERS = {".yaml": read_yaml, ".yml": read_yaml, ".json": read_json}
_WHOLE = ("max_input", "max_output", "max_turns")
_OF_SUITE = ("model", "system_prompt", "tools", "agent", "judges", "cassette")


class BadCases(MisuseError):
    """Cases that cannot be run; the text has every problem on a line of its own: file:line: what to do."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class _File(Struct):
    """A case file that was read, and what is wrong with it."""

    path: Path
    found: Lined
    problems: list[tuple[int, str]]

    @property
    def items(self) -> list[Any]:
        """Its cases as data; empty if there is no telling."""
        data = self.found.data
        cases = cast("dict[str, Any]", data).get("cases") if isinstance(data, dict) else data
        return cast("list[Any]", cases) if isinstance(cases, list) else []

    def line_of(self, number: int) -> int:
        """Where the case of that number begins."""
        return self.found.line_of([number] if isinstance(self.found.data, list) else ["cases", number])


def load_suite(path: str | Path) -> Suite:
    """The suite of the file at `path`, or of the case files that are in a directory.

    Raises `BadCases` with every problem. In a directory these are `*.yaml`, `*.yml`, `*.json` and
    `*cases.py`; what is said of the suite must be the same in all that say it.
    """
    path = Path(path)
    files = [_read(file) for file in (_files_of(path) if path.is_dir() else [path])]
    _find_twins(files)
    problems = [f"{file.path}:{line}: {text}" for file in files for line, text in sorted(set(file.problems))]
    if problems:
        raise BadCases(problems)
    suites = [_suite_of(file) for file in files]
    return suites[0] if not path.is_dir() else _joined(path, suites)


def load_cases(path: str | Path) -> list[Case]:
    """The cases of the file at `path`, or of the case files of a directory."""
    return list(load_suite(path).cases)


def _files_of(directory: Path) -> list[Path]:
    named = [file for file in sorted(directory.iterdir()) if file.name.endswith((*_READERS, "cases.py"))]
    files = [file for file in named if file.name[0] != "." and not file.name.endswith(".schema.json")]
    if not files:
        raise BadCases([f"{directory}:1: no case files in here; `swink eval init` writes one"])
    return files


def _read(path: Path) -> _File:
    found = Lined(None, 1, {}, [])
    try:
        found = _lined(path)
        problems = list(found.problems)
    except Unreadable as error:
        return _File(path, found, [(error.line, error.message)])
    except ImportError as error:
        return _File(path, found, [(1, str(error))])
    problems += [(found.line_of(place), text) for place, text in violations(found.data)]
    problems += [(found.line_of(place), text) for place, text in problems_of(found.data, path.parent)]
    return _File(path, found, problems)


def _lined(path: Path) -> Lined:
    reader = _READERS.get(path.suffix.lower())
    if reader is None and path.suffix != ".py":
        raise Unreadable(1, f"{path.name!r} is no case file; name it .yaml, .json or .py")
    text = _text_of(path)
    return read_python(path) if reader is None else reader(text)


def _text_of(path: Path) -> str:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise Unreadable(1, "this is no file")  # opening a pipe would wait for its other end
        if path.stat().st_size > LARGEST:
            raise Unreadable(1, f"the file has more than {LARGEST:,} bytes; divide it into several")
        data = path.read_bytes()
    except FileNotFoundError:
        raise Unreadable(1, "there is no such file; `swink eval init` writes one to begin with") from None
    except OSError as error:
        raise Unreadable(1, f"cannot read the file: {error.strerror or error}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(data.count(b"\n", 0, error.start) + 1, "not UTF-8; save it as UTF-8") from None


def _find_twins(files: Sequence[_File]) -> None:
    """Note every id that an earlier case has."""
    seen: dict[str, SourceLine] = {}
    for file in files:
        for number, item in enumerate(file.items):
            match item:
                case {"id": str(id)} if id in seen:
                    first = seen[id]
                    where = f"on line {first.line}" if first.path == str(file.path) else f"in {first}"
                    told = f"a case with the id {id!r} is {where} already; rename it"
                    file.problems.append((file.line_of(number), told))
                case {"id": str(id)}:
                    seen[id] = SourceLine(str(file.path), file.line_of(number))
                case _:
                    pass


def _suite_of(file: _File) -> Suite:
    data: dict[str, Any] = {"cases": []} if isinstance(file.found.data, list) else file.found.data
    directory = file.path.parent.absolute()
    places = [SourceLine(str(file.path), file.line_of(number)) for number in range(len(file.items))]
    cases = tuple(_case_of(item, directory, place) for item, place in zip(file.items, places, strict=True))
    said = {name: data[name] for name in ("name", *_OF_SUITE) if name in data}
    if "cassette" in said:
        said["cassette"] = str(directory / said["cassette"])
    stem = file.path.name.split(".")[0] or file.path.name
    return replace(msgspec.convert({"name": stem, **said, "cases": []}, Suite), cases=cases, path=file.path)


def _case_of(item: dict[str, Any], directory: Path, place: SourceLine) -> Case:
    data = dict(item)
    for name in ("user_messages", "tags", "attachments", "evaluators"):
        if isinstance(data.get(name), str):
            data[name] = [data[name]]
    named = data.get("evaluators", ())
    data["evaluators"] = [{"name": item} if isinstance(item, str) else item for item in named]
    for name in ("budget", "simulated_user"):
        given = data.get(name)
        for key in _WHOLE if isinstance(given, dict) else ():
            if isinstance(value := data[name].get(key), float):  # 4.0 is a whole number, in JSON
                data[name] = data[name] | {key: int(value)}
    data["attachments"] = [str(directory / Path(name).expanduser()) for name in data.get("attachments", ())]
    return replace(msgspec.convert(data, Case), place=place)


def _joined(directory: Path, suites: Sequence[Suite]) -> Suite:
    """One suite of those of a directory's files."""
    said: dict[str, Any] = {}
    first: dict[str, Suite] = {}
    problems: list[str] = []
    default = Suite(name="", cases=())
    for suite in suites:
        for name in _OF_SUITE:
            value = getattr(suite, name)
            if value == getattr(default, name):
                continue
            if name in said and said[name] != value:
                problems.append(f"{suite.path}:1: {name} differs from {first[name].path}; run them apart")
            said.setdefault(name, value)
            first.setdefault(name, suite)
    if problems:
        raise BadCases(problems)
    cases = tuple(case for suite in suites for case in suite.cases)
    return Suite(name=directory.absolute().name, cases=cases, path=directory, **said)
