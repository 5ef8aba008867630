"""Saved rules: a file of the user's configuration, never one of a repository.

permissions         allow bash(git status *)          everywhere
                    # a comment
                    [/projects/app]
                    deny bash(git push *)             in that project
permissions.uses    how often each rule was used, and when last

Both are readable by their owner alone and are written whole or not at all; several processes may share them.
"""

import os
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from swink.app.assistant.rules import CallRule, JudgedCall, allowed_by, denied_by, doubt_about, parse_rule
from swink.errors import AgentError, MisuseError
from swink.system.filelock import alone
from swink.system.files import remove_leftovers, write_whole
from swink.system.places import NoHome, config_dir

Scope = Literal["project", "user"]
SCOPES: dict[Scope, str] = {"project": "this project", "user": "everywhere"}

_HEADER = "# Rules for tool calls, one a line: allow bash(git status *). [/path] begins those of a project."
_MOST_BYTES = 1 << 20

_Version = tuple[int, int, int] | None
_Uses = dict[str, dict[str, tuple[int, float]]]


class RulesNotSaved(AgentError):
    """The file of rules cannot be written."""


class SavedRule(Struct, frozen=True):
    """A rule, where it holds and how it was used."""

    rule: CallRule
    scope: Scope
    hits: int = 0
    last: float | None = None
    """When it was last used, in seconds since 1970."""


class RuleBook:
    """The rules for one project, read again whenever the file changes."""

    def __init__(
        self,
        project: str | Path | None = None,
        *,
        path: Path | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.project = None if project is None else os.path.realpath(project)
        self._given = path
        self._clock = clock
        self._version: _Version | Literal["unread"] = "unread"
        self._rules: tuple[tuple[CallRule, Scope], ...] = ()
        self._problems: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        return Path(os.path.realpath(self._given or config_dir() / "permissions"))

    @property
    def problems(self) -> tuple[str, ...]:
        """Lines that are no rules, with their numbers, and whatever keeps the file from being read."""
        self._read()
        return self._problems

    @property
    def rules(self) -> list[CallRule]:
        """Those that hold here, the project's before the user's."""
        self._read()
        return [rule for rule, _ in self._rules]

    def saved(self) -> list[SavedRule]:
        """The rules that hold here, with how they were used."""
        self._read()
        uses = _load_uses(self._uses_path) if self._rules else {}
        of = {scope: uses.get(self._section(scope), {}) for scope in SCOPES}
        return [SavedRule(rule, scope, *of[scope].get(rule.line, (0, None))) for rule, scope in self._rules]

    def denies(self, call: JudgedCall) -> SavedRule | None:
        """The rule that denies a call."""
        rule = denied_by(self.rules, call)
        return None if rule is None else SavedRule(rule, self._scope(rule))

    def doubt(self, call: JudgedCall) -> str | None:
        """Why a call that no rule denies may still run what one denies."""
        return doubt_about(self.rules, call)

    def allows(self, call: JudgedCall) -> tuple[SavedRule, ...]:
        """The rules that together allow a call."""
        return tuple(SavedRule(rule, self._scope(rule)) for rule in allowed_by(self.rules, call))

    def add(self, rules: Sequence[CallRule], scope: Scope) -> None:
        """Save rules; one that is there already stays once."""

        def change(lines: list[str]) -> list[str]:
            present = {rule for rule, _ in _sections(lines).get(self._section(scope), [])}
            new = [rule.line for rule in dict.fromkeys(rules) if rule not in present]
            return _insert(lines, self._section(scope), new) if new else lines

        self._change(change)

    def remove(self, rule: CallRule, scope: Scope) -> bool:
        """Delete a rule and leave every other line as it is; whether it was there."""
        removed: list[int] = []

        def change(lines: list[str]) -> list[str]:
            ours = _sections(lines).get(self._section(scope), [])
            removed[:] = [number for kept, number in ours if kept == rule]
            return [line for number, line in enumerate(lines, 1) if number not in removed]

        self._change(change)
        return bool(removed)

    def use(self, rules: Sequence[SavedRule]) -> None:
        """Count a use of each rule. Blocks; a file that cannot be written only loses the count."""
        with suppress(OSError, NoHome, UnicodeEncodeError):
            path = self._uses_path
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with alone(path.with_name(f"{path.name}.lock")):
                uses = _load_uses(path)
                for saved in rules:
                    section = uses.setdefault(self._section(saved.scope), {})
                    section[saved.rule.line] = (section.get(saved.rule.line, (0, 0.0))[0] + 1, self._clock())
                _write(path, msgspec.json.encode(uses))

    @property
    def _uses_path(self) -> Path:
        return self.path.with_name(f"{self.path.name}.uses")

    def _section(self, scope: Scope) -> str:
        return "" if scope == "user" or self.project is None else self.project

    def _scope(self, rule: CallRule) -> Scope:
        return next(scope for kept, scope in self._rules if kept == rule)

    def _read(self) -> None:
        try:
            version = _version(self.path)
        except NoHome as error:  # there is no place for settings: there are no rules
            self._rules, self._problems = (), (str(error),)
            return
        if version != self._version:
            self._version = version
            self._rules, self._problems = self._load()

    def _load(self) -> tuple[tuple[tuple[CallRule, Scope], ...], tuple[str, ...]]:
        path = self.path
        try:
            lines = _load_lines(path)
        except _Unusable as error:
            return (), (str(error),)
        problems: list[str] = []
        sections = _sections(lines, problems)
        ours: list[tuple[CallRule, Scope]] = []
        if self.project is not None:
            ours.extend((rule, "project") for rule, _ in sections.get(self.project, []))
        ours.extend((rule, "user") for rule, _ in sections.get("", []))
        return tuple(dict.fromkeys(ours)), tuple(f"{path}:{problem}" for problem in problems)

    def _change(self, change: Callable[[list[str]], list[str]]) -> None:
        path = self.path
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with alone(path.with_name(f"{path.name}.lock")):
                before = _load_lines(path)
                after = change(before)
                if after != before:
                    _write(path, "".join(f"{line}\n" for line in after).encode())
        except _Unusable as error:
            raise RulesNotSaved(f"{error}; nothing was changed") from error
        except OSError as error:
            raise RulesNotSaved(f"{path} cannot be written: {error.strerror}; nothing was changed") from error
        except UnicodeEncodeError as error:
            raise RulesNotSaved(f"{self.project!r} has no name that a file of rules can hold") from error
        self._version = "unread"


class _Unusable(Exception):
    pass


def _load_lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            if os.name == "posix" and found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                why = "can be changed by other users, so none of its rules holds; chmod 600 it"
                raise _Unusable(f"{path} {why}")
            if found.st_size > _MOST_BYTES:
                raise _Unusable(f"{path} is too long to hold rules; correct it or delete it")
            return file.read().decode("utf-8").removesuffix("\n").split("\n")
    except FileNotFoundError:
        return [_HEADER]
    except UnicodeDecodeError:
        raise _Unusable(f"{path} is no text; correct it or delete it") from None
    except OSError as error:
        raise _Unusable(f"{path} cannot be read: {error.strerror}") from error


def _sections(
    lines: Sequence[str], problems: list[str] | None = None
) -> dict[str, list[tuple[CallRule, int]]]:
    """The rules of each project, and under "" those for all, with the numbers of their lines."""
    found: dict[str, list[tuple[CallRule, int]]] = {"": []}
    section: str | None = ""
    for number, line in enumerate(lines, 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            section = _read_heading(line)
            if section is not None:
                found.setdefault(section, [])
            elif problems is not None:
                problems.append(f"{number}: {line!r} names no project; write [/absolute/path]")
            continue
        if section is None:  # whose rules these are is unknown
            continue
        try:
            if not line.startswith(("allow ", "deny ")):
                raise MisuseError(f"{line[:80]!r}: begin with allow or deny")
            found[section].append((parse_rule(line), number))
        except MisuseError as error:
            if problems is not None:
                problems.append(f"{number}: {error}")
    return found


def _read_heading(line: str) -> str | None:
    inside = line[1:-1].strip() if line.endswith("]") else ""
    if inside.startswith('"'):
        try:
            inside = msgspec.json.decode(inside, type=str)
        except msgspec.DecodeError:
            return None
    return inside if os.path.isabs(inside) else None


def _insert(lines: list[str], section: str, new: list[str]) -> list[str]:
    """The lines with new ones at the end of a section."""
    at: int | None = None
    current: str | None = ""
    for number, line in enumerate(lines):
        if line.strip().startswith("["):
            current = _read_heading(line.strip())
        if current == section:
            at = number + 1 if line.strip() or at is None else at
    if at is None:
        plain = section.isprintable() and section.strip() == section
        heading = f"[{section if plain else msgspec.json.encode(section).decode()}]"
        return [*lines, "", heading, *new] if section else [*new, *lines]
    return [*lines[:at], *new, *lines[at:]]


def _load_uses(path: Path) -> _Uses:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Uses)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return {}  # only counts: they begin again


def _write(path: Path, data: bytes) -> None:
    remove_leftovers(path)  # the caller holds the lock
    write_whole(path, data)


def _version(path: Path) -> _Version:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
