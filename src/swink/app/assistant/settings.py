"""Settings: what a person chose once, in config.toml; the fields of `UserSettings` say what may stand there.

A name or a value that means nothing is reported with its line; the rest applies.
"""

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_type_hints

import msgspec
from msgspec import Meta, Struct

from swink.app.assistant.approvalmodes import ApprovalWord, parse_approval
from swink.app.assistant.settingstable import takes
from swink.app.assistant.statustemplate import STATUS_FIELDS, parse_template
from swink.errors import MisuseError
from swink.system.filelock import alone
from swink.system.files import write_whole
from swink.system.places import config_dir

_Count = Annotated[int, Meta(ge=0)]
_Words = tuple[Annotated[str, Meta(min_length=1)], ...]


class SandboxSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """`[sandbox]`: where commands of the agent run, what of the network they reach, where they write."""

    level: Literal["workspace", "none"] = "workspace"
    network: Literal["ask", "off", "on"] | _Words = "ask"
    """A list names the domains that are reached unasked; no others are."""
    writable: _Words = ()
    """Further directories that tools and commands may write, as `--add-dir`."""
    home: bool = False
    """Whether there are tools and commands in the home directory itself."""

    def __post_init__(self) -> None:
        if isinstance(self.network, tuple):
            from swink.tools.coding.wishes import parse_pattern  # here: most commands need no tools

            for entry in self.network:
                parse_pattern(entry)


class LocalSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """`[local]`: how models in this process run."""

    gpu: Literal["auto", "off"] | _Count = "auto"
    """A number is how many layers go to the GPU."""

    @property
    def gpu_layers(self) -> int | None:
        return None if self.gpu == "auto" else 0 if self.gpu == "off" else self.gpu


class OwnProvider(Struct, frozen=True, forbid_unknown_fields=True):
    """`[providers.NAME]`: a server of one's own that speaks like a known one."""

    kind: Literal["openai", "anthropic"]
    base_url: Annotated[str, Meta(pattern="^https?://")]
    key_env: str | None = None
    """The environment variable that holds its key; without one it gets none."""
    models: _Words = ()


class CheckerSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """`[diagnostics.NAME]`: a program that finds mistakes in edited files."""

    command: Annotated[str, Meta(min_length=1)]
    """Takes the files at its end, and writes `file:line: text`."""
    files: Annotated[str, Meta(min_length=1)]
    """Which files it is for, as in "*.py"."""


class UserSettings(Struct, frozen=True):
    """What config.toml says; `problems` are lines of it that mean nothing, each with what to write."""

    path: Path
    default_model: str | None = None
    approve: ApprovalWord = "smart"
    save: bool = True
    title: Literal["words", "model"] = "words"
    theme: Literal["auto", "dark", "light", "high-contrast", "ansi", "plain"] = "auto"
    thinking: Literal["hidden", "collapsed", "shown"] = "collapsed"
    busy_enter: Literal["steer", "queue"] = "steer"
    notifications: bool = True
    editor: str | None = None
    snapshot_megabytes: _Count = 200
    snapshot_files: _Count = 20_000
    fallbacks: _Words = ()
    retries: _Count = 10
    web_search: bool = False
    status_line: str | None = None
    status_command: str | None = None
    sandbox: SandboxSettings = SandboxSettings()
    local: LocalSettings = LocalSettings()
    providers: dict[str, OwnProvider] = {}
    diagnostics: bool | dict[str, CheckerSettings | bool] = True
    keys: dict[str, str] = {}
    mcp: dict[str, dict[str, Any]] = {}
    mcp_deferred: Literal["auto"] | bool = "auto"
    hooks: tuple[dict[str, Any], ...] = ()
    problems: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"UserSettings({str(self.path)!r})"  # the environment of an MCP server may hold a secret

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("path", self.path)]


KNOWN = tuple(name for name in UserSettings.__struct_fields__ if name not in ("path", "problems"))

_CAUTIOUS: dict[str, Any] = {
    "approve": "on",
    "save": False,
    "sandbox": {"level": "workspace", "network": "off", "writable": [], "home": False},
}
"""What holds where a value cannot be understood and the default could be less than was wanted."""

_TABLES = ("sandbox", "local", "providers", "diagnostics", "keys", "mcp", "hooks")


def load_settings() -> UserSettings:
    """The settings; raises `MisuseError` with the file and the place if it is no TOML at all."""
    path = config_dir() / "config.toml"
    try:
        text = path.read_text("utf-8")
        data: dict[str, Any] = tomllib.loads(text)
    except FileNotFoundError:
        return UserSettings(path)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise MisuseError(f"{path} cannot be read: {error}; correct it or delete it") from error
    hints = get_type_hints(UserSettings, include_extras=True)
    good: dict[str, Any] = {}
    problems: list[str] = []
    for name, value in data.items():
        where = f"{path}, line {line_of(text, name)}"
        if name not in KNOWN:
            near = get_close_matches(name, KNOWN, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(KNOWN)}"
            problems.append(f"{where}: {name} means nothing; {hint}")
            continue
        try:
            if name == "approve" and isinstance(value, str):
                value = parse_approval(value)
            if isinstance(value, dict):
                value = _good_entries(text, name, cast(dict[str, Any], value), hints[name], problems, path)
            good[name] = msgspec.convert(value, hints[name])
        except (msgspec.ValidationError, MisuseError) as error:
            why = f"; {error}" if isinstance(error, MisuseError) else ""
            instead = f"; taken as {_CAUTIOUS[name]!r} until then".lower() if name in _CAUTIOUS else ""
            problems.append(f"{where}: {name} takes {takes(UserSettings, name)}{why}{instead}")
            if name in _CAUTIOUS:
                good[name] = _CAUTIOUS[name]
    problems += _template_problems(good.get("status_line"), f"{path}, line {line_of(text, 'status_line')}")
    return UserSettings(path, **good, problems=tuple(problems))


def _template_problems(template: str | None, where: str) -> list[str]:
    """What in a template of the status line means nothing; the rest applies."""
    try:
        wrong = () if template is None else parse_template(template).wrong
    except ValueError as error:
        return [f"{where}: status_line cannot be read: {error}; a brace alone is written twice: {{{{"]
    fields = ", ".join(STATUS_FIELDS)
    return [f"{where}: there is no field {{{name}}} for status_line; there are {fields}" for name in wrong]


def _good_entries(
    text: str, table: str, entries: dict[str, Any], kind: Any, problems: list[str], path: Path
) -> dict[str, Any]:
    """The entries of a table that mean something; what is wrong with the others is added to the problems."""
    cautious = _CAUTIOUS.get(table, {})
    good: dict[str, Any] = {}
    for name, value in entries.items():
        try:
            msgspec.convert({name: value}, kind)
            good[name] = value
        except msgspec.ValidationError as error:
            instead = f"; taken as {cautious[name]!r} until then" if name in cautious else ""
            where = f"{path}, line {line_in(text, table, name)}"
            why = str(error).partition(" - at")[0]
            wanted = takes(UserSettings, table)
            problems.append(f"{where}: {name} is wrong ({why}); {table} takes {wanted}{instead}")
            if name in cautious:
                good[name] = cautious[name]
    return good


def change_setting(name: str, value: str | bool | int) -> Path:
    """Write one setting into the file, whose other lines stay as they are; returns the file."""
    if name not in KNOWN or name in _TABLES:
        raise MisuseError(f"{name!r} cannot be set here; there are {', '.join(KNOWN)}")
    written = f"{name} = {toml_of(value)}"
    return rewrite_settings(lambda text: _with_line(text, name, written), f"write {written} into it")


def rewrite_settings(change: Callable[[str], str], instead: str) -> Path:
    """Change the text of the file, whole or not at all; returns it. Where it cannot be, `instead` is told."""
    path = Path(os.path.realpath(config_dir() / "config.toml"))
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with alone(path.with_name(f"{path.name}.lock")):
            text = path.read_text("utf-8") if path.exists() else ""
            tomllib.loads(changed := change(text))
            write_whole(path, changed.encode())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise MisuseError(f"{path} could not be changed: {error}; {instead}") from error
    return path


def line_of(text: str, name: str) -> int:
    """The line where a name of the top level is set, or where its table begins; 1 if it is not found."""
    return next((number for number, found in _top_names(text) if found == name), 1)


def line_in(text: str, table: str, name: str) -> int:
    """The line where a name is set in a table, or where its own table begins; else where the table begins."""
    inside: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if header := _WHOLE_HEADER.match(line):
            inside = _parts(header[1])
            if inside[:2] == [table, name]:
                return number
        elif (found := _ASSIGNED.match(line)) and [*inside, *_parts(found[1])][:2] == [table, name]:
            return number
    return line_of(text, table)


def _parts(name: str) -> list[str]:
    return [part.strip(" \t\"'") for part in name.split(".")]


_ASSIGNED = re.compile(r"\s*([^=#\[]+?)\s*=")
_WHOLE_HEADER = re.compile(r"\s*\[\[?([^\]]+)\]")
_HEADER = re.compile(r"""\s*\[\[?\s*["']?([A-Za-z0-9_-]+)""")
_SETTING = re.compile(r"""\s*["']?([A-Za-z0-9_-]+)["']?\s*[.=]""")


def _top_names(text: str) -> Iterator[tuple[int, str]]:
    """Lines that set a name of the top level; a line inside of a text that looks like one counts too."""
    in_table = False
    for number, line in enumerate(text.split("\n"), 1):
        if header := _HEADER.match(line):
            in_table = True
            yield number, header[1]
        elif not in_table and (setting := _SETTING.match(line)):
            yield number, setting[1]


def _with_line(text: str, name: str, written: str) -> str:
    lines = text.split("\n") if text else [""]
    before = tomllib.loads(text)
    if name in before:
        lines[line_of(text, name) - 1] = written
    else:
        first = next((i for i, line in enumerate(lines) if _HEADER.match(line)), None)
        lines.insert(0 if first is None else first, written if first is None else f"{written}\n")
    return "\n".join(lines).rstrip("\n") + "\n"


def toml_of(value: str | bool | int | Sequence[str]) -> str:
    """A value as TOML writes it."""
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007F")
