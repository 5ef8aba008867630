"""What opencode keeps for its user and in a project.

AGENTS.md, ~/.config/opencode/AGENTS.md         instructions
opencode.json, opencode.jsonc                   mcp, command, permission, agent, instructions
                                                (the user's in ~/.config/opencode)
.opencode/command, commands, agent, agents      Markdown files, and the same for the user
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from swink.app.assistant.adopting.findings import Adoptable, Places
from swink.app.assistant.adopting.foreignrules import (
    ForeignRule,
    Verdict,
    are_apart,
    bash_rule,
    find_rules_of,
    path_rule,
)
from swink.app.assistant.adopting.foreignservers import find_servers_of
from swink.app.assistant.adopting.theirfiles import (
    command,
    find_agents,
    find_commands,
    find_own_instructions,
    find_read,
    find_skills_of,
    read_table,
    table,
    texts,
)
from swink.app.assistant.instructionfiles import NAME
from swink.app.assistant.rulebook import Scope
from swink.app.assistant.rules import BASH

_VARIABLE = re.compile(r"\{env:(\w+)\}")
_TOOLS: dict[str, tuple[str, ...]] = {
    "bash": ("bash",),
    "edit": ("edit_file", "write_file"),
    "read": ("read_file",),
    "glob": ("find_files",),
    "grep": ("search_text",),
    "list": ("list_files",),
    "webfetch": ("fetch_url",),
}
_ACTIONS: dict[str, Verdict] = {"allow": "allow", "ask": "ask", "deny": "deny"}


def find_opencode(places: Places) -> Iterator[Adoptable]:
    """What there is of opencode; blocking."""
    base = Path(os.environ.get("XDG_CONFIG_HOME") or places.home / ".config") / "opencode"
    broken: list[Adoptable] = []
    yield from find_read("instructions", places.project / NAME, places)
    yield from find_own_instructions(base / NAME)
    rules: list[ForeignRule] = []
    inner = places.project / ".opencode"
    for folder, is_users in ((base, True), (places.project, False), (inner, False)):
        for name in ("opencode.json", "opencode.jsonc"):
            settings = read_table(folder / name, broken)
            yield from _settings(folder / name, settings, places, is_users=is_users)
            scope: Scope = "user" if is_users else "project"
            rules += _rules(folder / name, scope, settings.get("permission"))
    for folder, is_users in ((base, True), (inner, False)):
        for name in ("command", "commands"):
            yield from find_commands(folder / name, places, is_users=is_users)
        for name in ("agent", "agents"):
            yield from find_agents(folder / name, places, is_users=is_users, is_read=False)
        for name in ("skill", "skills"):
            yield from find_skills_of(folder / name, places, is_read=False)
    yield from find_rules_of([*_in_order(rules)], places)
    yield from broken


def _settings(path: Path, settings: dict[str, Any], places: Places, *, is_users: bool) -> Iterator[Adoptable]:
    listed = table(settings.get("mcp"))
    listed = table(listed["servers"]) if isinstance(listed.get("servers"), dict) else listed
    servers = {name: _server(table(given)) for name, given in listed.items()}
    yield from find_servers_of(path, servers, places, is_users=is_users)
    for name, given in table(settings.get("command")).items():
        fields = table(given)
        if not isinstance(template := fields.get("template"), str) or not name.isprintable() or "/" in name:
            yield Adoptable("command", path, f"/{name}", "cannot", "has no template")
            continue
        described = fields.get("description")
        head = f"---\ndescription: {' '.join(described.split())}\n---\n" if isinstance(described, str) else ""
        yield command(path, name.lower(), f"{head}{template}\n", places, is_users=is_users)
    for name in table(settings.get("agent")):
        yield Adoptable("agent", path, name, "cannot", f"write it as a file: .swink/agents/{name}.md")
    for name in texts(settings.get("instructions")):
        how = f"is not read by itself; name it in {NAME}"
        yield Adoptable("instructions", path, name, "cannot", how)
    if isinstance(model := settings.get("model"), str):
        how = "set default_model in config.toml; swink models list has the names"
        yield Adoptable("setting", path, f"model {model}", "cannot", how)


def _server(given: dict[str, Any]) -> dict[str, Any]:
    """A server in the form of ours."""
    words = given.get("command")
    line = texts(words) if isinstance(words, list) else [words] if isinstance(words, str) else []
    is_off = given.get("enabled") is False or given.get("disabled") is True
    fields: dict[str, Any] = {"disabled": is_off}
    if line:
        fields |= {"command": line[0], "args": line[1:], "env": table(given.get("environment"))}
    for key in ("url", "headers", "cwd"):
        if key in given:
            fields[key] = given[key]
    return _with_variables(fields)


def _with_variables(value: Any) -> Any:
    match value:
        case str():
            return _VARIABLE.sub(r"${\1}", value)
        case dict():
            return {str(key): _with_variables(item) for key, item in table(value).items()}
        case [*items]:
            return [_with_variables(item) for item in items]
        case _:
            return value


def _rules(path: Path, scope: Scope, permission: Any) -> Iterator[ForeignRule]:
    """The rules of a file, in its order."""
    permissions = {"*": permission} if isinstance(permission, str) else table(permission)
    for tool, action in permissions.items():
        is_wild = "*" in tool or "?" in tool
        tools = _TOOLS.get(tool, () if is_wild else (f"theirs:{tool}",))
        entries = table(action) if isinstance(action, dict) else {"*": action}
        for pattern, word in entries.items():
            shown = tool if pattern == "*" and len(entries) == 1 else f"{tool}({pattern})"
            verdict = _ACTIONS.get(word) if isinstance(word, str) else None
            rule = ForeignRule(path, shown, verdict or "ask", scope, tools)
            if verdict is None:
                yield replace(rule, why="is no rule")
            elif tool not in _TOOLS:
                yield replace(rule, why="speaks of many tools" if is_wild else "swink has no such tool")
            elif pattern == "*":
                yield replace(rule, tools=_denied_too(rule))
            else:
                yield bash_rule(rule, pattern) if tool == BASH else _path_rule(rule, pattern)


def _path_rule(rule: ForeignRule, pattern: str) -> ForeignRule:
    """A rule for files: its `*` crosses folders, which is `**` here."""
    if "*/" in pattern or "?" in pattern or pattern.startswith("/"):
        return replace(rule, why="its * or ? crosses folders as no rule here does")
    return path_rule(replace(rule, tools=_denied_too(rule)), re.sub(r"\*+", "**", pattern))


def _denied_too(rule: ForeignRule) -> tuple[str, ...]:
    """A denial of edits is one of deletions too, which are commands there."""
    deletes = rule.verdict == "deny" and "edit_file" in rule.tools
    return (*rule.tools, "delete_file") if deletes else rule.tools


def _in_order(rules: Sequence[ForeignRule]) -> Iterator[ForeignRule]:
    """The rules with their numbers: the last one that matches counts, so one before it may say nothing."""
    numbered = [replace(rule, order=number) for number, rule in enumerate(rules)]
    for rule in numbered:
        later = numbered[rule.order + 1 :] if rule.verdict == "deny" and not rule.why else []
        back = [other for other in later if other.verdict != "deny" and _overlap(rule, other)]
        yield replace(rule, why=f"{back[0].verdict} {back[0].shown} after it takes it back") if back else rule


def _overlap(rule: ForeignRule, other: ForeignRule) -> bool:
    if other.tools and not {*rule.tools} & {*other.tools}:
        return False
    return BASH not in rule.tools or not are_apart(rule, other)
