"""Checkers: programs that find mistakes in files, which of them a project is set up for, and what they say.

A checker is used where the project's own files configure it, or where the user's settings name it.
"""

import os
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from swink.app.assistant.settings import CheckerSettings
from swink.system.oneline import strip_controls
from swink.system.programs import find_program

_PYTHON = ("*.py", "*.pyi")
_TYPESCRIPT = ("*.ts", "*.tsx", "*.mts", "*.cts")
_JAVASCRIPT = ("*.js", "*.jsx", "*.mjs", "*.cjs", *_TYPESCRIPT)
_PLACES = (".venv/bin", "venv/bin", "node_modules/.bin")
"""Where a project keeps programs of its own."""
_LARGEST = 1_000_000
_LONGEST = 300
_LINE = re.compile(
    r"\s*(?:vet: )?(?P<file>[^\s:(][^:(\n]*?)"
    r"(?::(?P<line>\d+)(?::\d+)?|\((?P<at>\d+),\d+\))(?::| -) *(?P<text>\S.*)"
)


class Checker(Struct, frozen=True):
    """A program: which files it is for, what configures it, and its command.

    In the command `{program}` is the program, `{files}` and `{folders}` are the files and where they are.
    """

    name: str
    files: tuple[str, ...]
    command: str
    configured_by: tuple[str, ...] = ()
    section: str = ""
    """The table of pyproject.toml that configures it."""
    program: str | None = None
    """Where it is; None for a command of the user's, which a shell looks up."""

    def takes(self, path: str) -> bool:
        names = (path, os.path.basename(path))
        return any(fnmatch(name, pattern) for name in names for pattern in self.files)

    def command_for(self, files: Sequence[str]) -> str:
        """The command for some files, as a shell takes it."""
        folders = dict.fromkeys(f"./{os.path.dirname(file)}" for file in files)
        return self.command.format(
            program=shlex.quote(self.program or ""), files=shlex.join(files), folders=shlex.join(folders)
        )


class CheckerFinding(Struct, frozen=True):
    """What a checker says about a line; `source` is the line itself, by which it is known when lines move."""

    checker: str
    line: int
    text: str
    source: str = ""


CHECKERS = (
    Checker(
        "ruff",
        _PYTHON,
        "{program} check --quiet --no-cache --no-fix --force-exclude --output-format concise -- {files}",
        ("ruff.toml", ".ruff.toml"),
        "ruff",
    ),
    Checker(
        "mypy",
        _PYTHON,
        '{program} --no-error-summary --no-color-output --no-pretty --cache-dir "$TMPDIR/mypy" -- {files}',
        ("mypy.ini", ".mypy.ini"),
        "mypy",
    ),
    Checker("pyright", _PYTHON, "{program} {files}", ("pyrightconfig.json",), "pyright"),
    Checker("tsc", _TYPESCRIPT, "{program} --noEmit --pretty false -p .", ("tsconfig.json",)),
    Checker(
        "eslint",
        _JAVASCRIPT,
        "{program} --format json --no-color -- {files}",
        (
            *(f"eslint.config.{end}" for end in ("js", "mjs", "cjs", "ts")),
            *(f".eslintrc{end}" for end in ("", ".js", ".cjs", ".json", ".yml", ".yaml")),
        ),
    ),
    Checker("cargo", ("*.rs",), "{program} check --offline --quiet --message-format short", ("Cargo.toml",)),
    Checker("go", ("*.go",), "{program} vet {folders}", ("go.mod",)),
)
"""Those that are known; all of them read their configuration from the directory."""


def find_checkers(
    directory: Path, chosen: Mapping[str, CheckerSettings | bool] | bool
) -> tuple[list[Checker], list[str]]:
    """The checkers for a directory that is trusted, and what to tell about others; blocking."""
    if chosen is False:
        return [], []
    mine: Mapping[str, CheckerSettings | bool] = {} if chosen is True else chosen
    found: list[Checker] = []
    notices: list[str] = []
    sections = _read_sections(directory / "pyproject.toml")
    for known in CHECKERS:
        has_file = any((directory / name).is_file() for name in known.configured_by)
        if mine.get(known.name, True) is not True or not (has_file or known.section in sections):
            continue
        if (program := _find(known.name, directory)) is None:
            notices.append(f"{known.name} is configured here but not installed: edits are checked without it")
        else:
            found.append(replace(known, program=program))
    for name, own in mine.items():
        if not isinstance(own, bool):
            command = own.command.replace("{", "{{").replace("}", "}}")
            found.append(Checker(name, (own.files,), f"{command} {{files}}"))
    return found, notices


def parse_findings(checker: str, output: str, directory: str) -> dict[str, list[CheckerFinding]]:
    """What a checker wrote, by the real path of the file."""
    found: dict[str, list[CheckerFinding]] = {}
    for file, line, text in _read_eslint(output) if checker == "eslint" else _read_lines(output):
        if text.startswith(("note:", "information:")):
            continue
        path = os.path.realpath(os.path.join(directory, file))
        clean = " ".join(strip_controls(text).split())[:_LONGEST]
        found.setdefault(path, []).append(CheckerFinding(checker, line, clean))
    return found


def with_sources(findings: Sequence[CheckerFinding], text: str) -> list[CheckerFinding]:
    """The findings with the lines that they are about."""
    lines = text.splitlines()
    sources = (lines[one.line - 1].strip() if 0 < one.line <= len(lines) else "" for one in findings)
    return [
        CheckerFinding(one.checker, one.line, one.text, source)
        for one, source in zip(findings, sources, strict=True)
    ]


def new_findings(before: Sequence[CheckerFinding], now: Sequence[CheckerFinding]) -> list[CheckerFinding]:
    """Those that were not there: those with the same line are paired first, then those with the same text."""
    same = Counter((one.checker, one.text, one.source) for one in before)
    rest: list[CheckerFinding] = []
    for one in now:
        key = one.checker, one.text, one.source
        if same[key] > 0:
            same[key] -= 1
        else:
            rest.append(one)
    texts: Counter[tuple[str, str]] = Counter()
    for (checker, text, _), count in same.items():
        texts[checker, text] += count
    found: list[CheckerFinding] = []
    for one in rest:
        if texts[one.checker, one.text] > 0:
            texts[one.checker, one.text] -= 1
        else:
            found.append(one)
    return found


def _find(name: str, directory: Path) -> str | None:
    """A program of the project's own, else one on the PATH."""
    for place in _PLACES:
        path = directory / place / name
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    return find_program(name)


def _read_sections(path: Path) -> set[str]:
    """The tools that pyproject.toml configures."""
    try:
        if not path.is_file():  # to read a pipe would wait for a writer
            return set()
        with path.open("rb") as file:
            data: dict[str, Any] = tomllib.loads(file.read(_LARGEST).decode())
    except (OSError, ValueError):
        return set()
    tools: Any = data.get("tool")
    return {*tools} if isinstance(tools, dict) else set()


def _read_lines(output: str) -> list[tuple[str, int, str]]:
    matches = map(_LINE.fullmatch, output.splitlines())
    return [(one["file"], int(one["line"] or one["at"]), one["text"]) for one in matches if one is not None]


class _EslintMessage(Struct):
    message: str
    line: int = 0
    ruleId: str | None = None


class _EslintFile(Struct):
    filePath: str
    messages: list[_EslintMessage]


def _read_eslint(output: str) -> list[tuple[str, int, str]]:
    start = output.find("[")
    try:
        files = msgspec.json.decode(output[max(0, start) :].strip(), type=list[_EslintFile])
    except msgspec.DecodeError:
        return []
    return [
        (file.filePath, one.line, f"{one.message} ({one.ruleId})" if one.ruleId else one.message)
        for file in files
        for one in file.messages
    ]
