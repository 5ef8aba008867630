"""What was found of another program, and what it becomes here.

A finding has something to write (`new`), or says why not: it is `here` already, is `read` as it is, `cannot`
be had, or is of a kind that swink does not read `yet`.
"""

import os
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from swink.app.assistant.rulebook import Scope
from swink.app.assistant.rules import CallRule
from swink.app.assistant.settings import UserSettings
from swink.system.places import config_dir

Kind = Literal["instructions", "command", "server", "rule", "setting", "skill", "agent", "hook", "file"]
State = Literal["new", "here", "read", "cannot", "yet"]


class NewRules(Struct, frozen=True):
    """Rules for the file of permissions."""

    rules: tuple[CallRule, ...]
    scope: Scope


class NewServer(Struct, frozen=True):
    """A server for config.toml."""

    name: str
    fields: dict[str, Any]

    def __repr__(self) -> str:
        return f"NewServer({self.name!r}, {sorted(self.fields)})"  # its environment may hold a secret


class NewFile(Struct, frozen=True):
    """A file that is not there yet."""

    path: Path
    data: bytes


class NewSetting(Struct, frozen=True):
    """A setting of config.toml."""

    name: str
    value: str


class NewHook(Struct, frozen=True):
    """A hook for config.toml."""

    fields: dict[str, Any]


New = NewRules | NewServer | NewFile | NewSetting | NewHook


class Adoptable(Struct, frozen=True):
    """One thing of theirs: where it stands, what it is, and in words what becomes of it."""

    kind: Kind
    source: Path
    name: str
    state: State
    becomes: str
    new: New | None = None


class Places(Struct, frozen=True):
    """Where to look and to write: the user's home, the project, our configuration, and what it says."""

    home: Path
    project: Path
    settings: UserSettings
    is_trusted: bool = False
    """Whether what the project brings along may be used."""

    @property
    def commands(self) -> Path:
        return config_dir() / "commands"

    @property
    def project_commands(self) -> Path:
        return self.project / ".swink" / "commands"

    def short(self, path: Path) -> str:
        """A path as people write it."""
        if path.is_relative_to(self.project):
            return path.relative_to(self.project).as_posix()
        return f"~/{path.relative_to(self.home).as_posix()}" if path.is_relative_to(self.home) else str(path)


def new_file(kind: Kind, source: Path, name: str, path: Path, data: bytes, becomes: str) -> Adoptable:
    """A file to write, unless it is there already, with this or with something else in it; blocking."""
    if not os.path.lexists(path):
        return Adoptable(kind, source, name, "new", becomes, NewFile(path, data))
    try:
        is_same = path.read_bytes() == data
    except OSError:
        is_same = False
    if is_same:
        return Adoptable(kind, source, name, "here", f"is here already: {path}")
    return Adoptable(kind, source, name, "cannot", f"{path} is there, with something else in it")
