"""Settings: what a person chose once, in config.toml; the fields of `UserSettings` say what may stand there.

A name or a value that means nothing is reported with its line; the rest applies.
"""

import os
import re
import tomllib
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import msgspec
from msgspec import Meta, Struct

from swink.app.assistant.approvalmodes import APPROVAL_WORDS, ApprovalWord, parse_approval
from swink.errors import MisuseError
from swink.system.filelock import alone
from swink.system.files import write_whole
from swink.system.places import config_dir

_Count = Annotated[int, Meta(ge=0)]


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
    keys: dict[str, str] = {}
    mcp: dict[str, dict[str, Any]] = {}
    problems: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"UserSettings({str(self.path)!r})"  # the environment of an MCP server may hold a secret

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("path", self.path)]


KNOWN = tuple(name for name in UserSettings.__struct_fields__ if name not in ("path", "problems"))

_CAUTIOUS: dict[str, Any] = {"approve": "on", "save": False}
"""What holds where a value cannot be understood and the default could be less than was wanted."""

_TAKES = {
    "default_model": 'a text, e.g. default_model = "anthropic:claude-sonnet-4-6"',
    "approve": f'one of {", ".join(APPROVAL_WORDS)}, e.g. approve = "smart"',
    "save": "true or false, without quotes, e.g. save = false",
    "title": 'one of words, model, e.g. title = "words"',
    "theme": 'one of auto, dark, light, high-contrast, ansi, plain, e.g. theme = "dark"',
    "thinking": 'one of hidden, collapsed, shown, e.g. thinking = "shown"',
    "busy_enter": 'one of steer, queue, e.g. busy_enter = "queue"',
    "notifications": "true or false, without quotes, e.g. notifications = false",
    "editor": 'a command, e.g. editor = "code --wait"',
    "snapshot_megabytes": "a number of at least 0, without quotes, e.g. snapshot_megabytes = 200",
    "snapshot_files": "a number of at least 0, without quotes, e.g. snapshot_files = 20000",
    "keys": 'a table of texts, e.g. [keys] and below it command_palette = "ctrl+k"',
    "mcp": 'a table of servers, e.g. [mcp.files] and below it command = "npx"',
}


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
            good[name] = msgspec.convert(value, hints[name])
        except (msgspec.ValidationError, MisuseError) as error:
            why = f"; {error}" if isinstance(error, MisuseError) else ""
            instead = f"; taken as {_CAUTIOUS[name]!r} until then".lower() if name in _CAUTIOUS else ""
            problems.append(f"{where}: {name} takes {_TAKES[name]}{why}{instead}")
            if name in _CAUTIOUS:
                good[name] = _CAUTIOUS[name]
    return UserSettings(path, **good, problems=tuple(problems))


def change_setting(name: str, value: str | bool | int) -> Path:
    """Write one setting into the file, whose other lines stay as they are; returns the file."""
    if name not in KNOWN or name in ("keys", "mcp"):
        raise MisuseError(f"{name!r} cannot be set here; there are {', '.join(KNOWN)}")
    path = Path(os.path.realpath(config_dir() / "config.toml"))
    written = f"{name} = {_toml(value)}"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with alone(path.with_name(f"{path.name}.lock")):
            text = path.read_text("utf-8") if path.exists() else ""
            tomllib.loads(changed := _with_line(text, name, written))
            write_whole(path, changed.encode())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise MisuseError(f"{path} could not be changed: {error}; write {written} into it") from error
    return path


def line_of(text: str, name: str) -> int:
    """The line where a name of the top level is set, or where its table begins; 1 if it is not found."""
    return next((number for number, found in _top_names(text) if found == name), 1)


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


def _toml(value: str | bool | int) -> str:
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007F")
