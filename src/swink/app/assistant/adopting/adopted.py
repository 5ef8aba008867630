"""Writing what was adopted: rules, servers, files and settings of ours; nothing is overwritten."""

import os
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from swink.app.assistant.adopting.findings import (
    Adoptable,
    NewFile,
    NewHook,
    NewRules,
    NewServer,
    NewSetting,
    Places,
)
from swink.app.assistant.adopting.theirfiles import table
from swink.app.assistant.rulebook import RuleBook
from swink.app.assistant.settings import change_setting, rewrite_settings
from swink.errors import AgentError, MisuseError
from swink.system.filelock import alone
from swink.system.files import write_whole
from swink.system.places import config_dir


class NotAdopted(AgentError):
    """Something could not be written."""


def write_adopted(finding: Adoptable, places: Places) -> None:
    """Write what a finding becomes, if it becomes anything; blocking, raises `AgentError`."""
    match finding.new:
        case NewRules(rules, scope):
            RuleBook(places.project).add(rules, scope)
        case NewServer(name, fields):
            _add_server(name, fields)
        case NewFile(path, data):
            _add_file(path, data)
        case NewSetting(name, value):
            change_setting(name, value)
        case NewHook(fields):
            _add_hook(fields)
        case None:
            pass


def _add_file(path: Path, data: bytes) -> None:
    """Write a file that is not there; one that has come meanwhile stays."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(data)
    except FileExistsError as error:
        raise NotAdopted(f"{path} is there by now, and was not changed") from error
    except OSError as error:
        raise NotAdopted(f"{path} cannot be written: {error.strerror or error}") from error


def _add_server(name: str, fields: dict[str, Any]) -> None:
    """Add a table to config.toml, whose lines stay as they are."""
    path = Path(os.path.realpath(config_dir() / "config.toml"))
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with alone(path.with_name(f"{path.name}.lock")):
            text = path.read_text("utf-8") if path.exists() else ""
            if name in tomllib.loads(text).get("mcp", {}):
                raise NotAdopted(f"[mcp.{name}] is in {path} by now, and was not changed")
            gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
            changed = f"{text}{gap}{_toml_table(f'mcp.{_key(name)}', fields)}"
            tomllib.loads(changed)
            write_whole(path, changed.encode())
    except (OSError, ValueError, TypeError) as error:
        raise MisuseError(f"{path} could not be changed: {error}; [mcp.{name}] was not added") from error


def _add_hook(fields: dict[str, Any]) -> None:
    """Add a hook at the end of config.toml."""
    lines = "\n".join(["[[hooks]]", *(f"{key} = {_value(value)}" for key, value in fields.items()), ""])
    rewrite_settings(lambda text: f"{text.rstrip()}\n\n{lines}".lstrip(), "add the hook to it")


def _toml_table(name: str, fields: dict[str, Any]) -> str:
    """A table, with tables in it after it."""
    plain = {key: value for key, value in fields.items() if not isinstance(value, dict)}
    lines = [f"[{name}]", *(f"{_key(key)} = {_value(value)}" for key, value in plain.items())]
    inner = {key: table(value) for key, value in fields.items() if key not in plain}
    below = [_toml_table(f"{name}.{_key(key)}", value) for key, value in inner.items()]
    return "\n".join([*lines, "", *below])


def _key(name: str) -> str:
    is_bare = name.isascii() and name.replace("_", "a").replace("-", "a").isalnum()
    return name if is_bare else _value(name)


def _value(value: Any) -> str:
    """Texts, numbers and lists are written as in JSON."""
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007F")
