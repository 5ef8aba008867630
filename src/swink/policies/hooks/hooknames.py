"""Names of tools and arguments as the other program has them, and back.

bash(command, timeout s)         Bash(command, timeout ms)
edit_file(path, edits)           Edit(file_path, old_string, new_string, replace_all), and edits of several
write_file(path, content)        Write(file_path, content)
delete_file(path)                Write(file_path, content "")
read_file(path, …)               Read(file_path, …)
find_files, search_text          Glob, Grep
fetch_url, task, todo            WebFetch, Task, TodoWrite
server_tool                      mcp__server__tool

Arguments that have no other name keep their own.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

TOOLS = {
    "bash": "Bash", "edit_file": "Edit", "write_file": "Write", "delete_file": "Write", "read_file": "Read",
    "list_files": "LS", "find_files": "Glob", "search_text": "Grep", "fetch_url": "WebFetch", "task": "Task",
    "explore": "Task", "todo": "TodoWrite", "ask_user": "AskUserQuestion", "skill": "Skill",
}  # fmt: skip
"""Their names of our tools."""
_ARGUMENTS: dict[str, dict[str, str]] = {
    "search_text": {"ignore_case": "-i", "context": "-C"},
    "task": {"task": "prompt"},
    "explore": {"task": "prompt"},
    "todo": {"tasks": "todos"},
}
_FILES = frozenset({"edit_file", "write_file", "delete_file", "read_file"})
_PLACES = frozenset({"list_files", "find_files", "search_text"})
_STATES = {"done": "completed"}


class CannotTranslate(ValueError):
    """A changed input that has no meaning for our tool."""


def foreign_tool(name: str, server: str | None = None) -> str:
    """What the other program calls a tool; those of MCP servers by their server."""
    if server is not None:
        own = name.removeprefix("".join(c if c.isalnum() or c in "_-" else "_" for c in f"{server}_"))
        return f"mcp__{server}__{own}"
    return TOOLS.get(name, name)


def to_foreign(name: str, arguments: Mapping[str, Any], directory: str) -> dict[str, Any]:
    """The arguments of a call of our tool as the other program would have them."""
    found: dict[str, Any] = {}
    for key, value in arguments.items():
        found[_foreign_key(name, key)] = _foreign_value(name, key, value, directory)
    if name == "edit_file":
        return _split_edits(found)
    return {**_extras(name), **found}


def to_ours(
    name: str, updated: Mapping[str, Any], arguments: Mapping[str, Any], directory: str
) -> dict[str, Any]:
    """The arguments of our tool that a changed input means; what was not changed is as it was.

    Raises `CannotTranslate`.
    """
    before = to_foreign(name, arguments, directory)
    if name == "edit_file":
        updated, before = _join_edits(updated, before), _join_edits(before, before)
    ours = {_foreign_key(name, key): key for key in arguments}
    back = {other: key for key, other in _ARGUMENTS.get(name, {}).items()}
    back |= {"file_path": "path"} if name in _FILES else {}
    extras = _extras(name)
    found: dict[str, Any] = {}
    for key, value in updated.items():
        own = ours.get(key) or back.get(key, key)
        if key in before and before[key] == value and own in arguments:
            found[own] = arguments[own]
        elif key in extras and own not in arguments:
            if value != extras[key]:
                raise CannotTranslate(f"{name} takes no {key}")
        else:
            found[own] = _own_value(name, own, value, directory)
    return found


def _foreign_key(name: str, key: str) -> str:
    if key == "path" and name in _FILES:
        return "file_path"
    return _ARGUMENTS.get(name, {}).get(key, key)


def _extras(name: str) -> dict[str, Any]:
    """What theirs have and ours has no argument for."""
    match name:
        case "delete_file":
            return {"content": ""}
        case "task" | "explore":
            return {"subagent_type": name}
        case _:
            return {}


def _foreign_value(name: str, key: str, value: Any, directory: str) -> Any:
    match name, key, value:
        case _, "path", str() if name in _FILES or name in _PLACES:
            path = os.path.join(directory, value)
            # Behind a link `..` leads elsewhere than it looks: hooks are shown what is opened.
            return os.path.realpath(path) if ".." in Path(value).parts else os.path.normpath(path)
        case "bash", "timeout", int() | float():
            return value * 1000
        case "todo", "tasks", list() | tuple():
            return _each(value, lambda task: _renamed(task, {"text": "content"}, _STATES))
        case "edit_file", "edits", list() | tuple():
            return _each(value, lambda edit: _renamed(edit, {"old": "old_string", "new": "new_string"}))
        case _:
            return value


def _own_value(name: str, key: str, value: Any, directory: str) -> Any:
    match name, key, value:
        case _, "path", str() if name in _FILES or name in _PLACES:
            inside = os.path.relpath(value, directory) if os.path.isabs(value) else value
            return value if inside.startswith("..") else inside
        case "bash", "timeout", int() | float():
            return value / 1000
        case "todo", "tasks", list() | tuple():
            states = {theirs: own for own, theirs in _STATES.items()}
            return _each(value, lambda task: _renamed(task, {"content": "text"}, states, ("activeForm",)))
        case "edit_file", "edits", list() | tuple():
            return _each(value, lambda edit: _renamed(edit, {"old_string": "old", "new_string": "new"}))
        case _:
            return value


def _each(values: Any, change: Callable[[Any], Any]) -> list[Any]:
    return [change(value) for value in values]


def _renamed(
    value: Any,
    keys: Mapping[str, str],
    states: Mapping[str, str] | None = None,
    without: tuple[str, ...] = (),
) -> Any:
    if not isinstance(value, Mapping):
        return value
    fields = cast("Mapping[str, Any]", value)
    found = {keys.get(key, key): item for key, item in fields.items() if key not in without}
    if states and isinstance(state := found.get("status"), str):
        found["status"] = states.get(state, state)
    return found


def _split_edits(found: dict[str, Any]) -> dict[str, Any]:
    """One edit as fields of its own; of several their texts together, and each."""
    edits = found.get("edits")
    whole = isinstance(edits, list) and all(
        isinstance(edit, dict)
        and isinstance(edit.get("old_string"), str)
        and isinstance(edit.get("new_string"), str)
        for edit in cast("list[dict[str, Any]]", edits)
    )
    if not whole or not edits:
        return found
    listed = cast("list[dict[str, Any]]", edits)
    texts = {key: "\n".join(edit[key] for edit in listed) for key in ("old_string", "new_string")}
    rest = {key: value for key, value in found.items() if key != "edits"}
    if len(listed) > 1:
        return {**rest, **texts, "edits": listed}
    return {**rest, "replace_all": False, **listed[0]}


def _join_edits(updated: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """The same with a list of edits."""
    found = dict(updated)
    if "old_string" not in before:
        return found
    if "edits" in before:
        for key in ("old_string", "new_string"):
            if found.pop(key, before[key]) != before[key]:
                raise CannotTranslate(f"several edits are one call here: change its edits, not {key}")
        return found
    inside = {
        key: found.pop(key)
        for key in ("old_string", "new_string", "replace_all", "near_line")
        if key in found
    }
    return {**found, "edits": [inside]}
