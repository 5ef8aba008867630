"""What Claude Code keeps for its user and in a project.

CLAUDE.md, ~/.claude/CLAUDE.md                      instructions
.claude/settings.json, settings.local.json          permissions, hooks; the user's in ~/.claude
.claude/commands, agents, skills                    Markdown files; the user's in ~/.claude
.mcp.json, mcpServers of ~/.claude.json             servers
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from swink.app.assistant.adopting.clauderules import read_claude_rule
from swink.app.assistant.adopting.findings import Adoptable, NewHook, Places
from swink.app.assistant.adopting.foreignrules import ForeignRule, Verdict, find_rules_of
from swink.app.assistant.adopting.foreignservers import find_servers_of
from swink.app.assistant.adopting.theirfiles import (
    find_agents,
    find_commands,
    find_own_instructions,
    find_read,
    find_skills_of,
    read_table,
    table,
    texts,
)
from swink.app.assistant.brought import SERVERS
from swink.app.assistant.hookfiles import THEIR_HOOKS, THEIR_NAMES, read_hook_file
from swink.app.assistant.instructionfiles import NAME, OTHER_NAME
from swink.app.assistant.rulebook import Scope

_MODES = {
    "acceptEdits": 'approve = "edits" in config.toml does about this',
    "plan": "swink --plan does this",
    "dontAsk": 'approve = "deny" in config.toml does about this',
    "bypassPermissions": "is not taken over: it would allow everything",
}


def find_claude(places: Places) -> Iterator[Adoptable]:
    """What there is of Claude Code; blocking."""
    ours, theirs = places.home / ".claude", places.project / ".claude"
    broken: list[Adoptable] = []
    yield from _instructions(places)
    yield from find_own_instructions(ours / OTHER_NAME)
    yield from find_commands(ours / "commands", places, is_users=True)
    yield from find_commands(theirs / "commands", places, is_users=False)
    yield from find_read("server", places.project / SERVERS, places)
    state = places.home / ".claude.json"
    known = read_table(state, broken)
    yield from find_servers_of(state, known.get("mcpServers"), places, is_users=True)
    local = table(table(known.get("projects")).get(str(places.project)))
    yield from find_servers_of(state, local.get("mcpServers"), places, is_users=False)
    rules: list[ForeignRule] = []
    files = [ours / "settings.json", theirs / "settings.json", theirs / "settings.local.json"]
    for path in files:
        scope: Scope = "user" if path.parent == ours else "project"
        settings = read_table(path, broken)
        rules += _rules(path, scope, table(settings.get("permissions")))
        yield from _hooks(path, settings, places)
        yield from _others(path, settings)
    yield from find_rules_of(rules, places)
    for folder in (ours, theirs):
        yield from find_skills_of(folder / "skills", places, is_read=True)
        yield from find_agents(folder / "agents", places, is_users=folder == ours, is_read=True)
    yield from broken


def _instructions(places: Places) -> Iterator[Adoptable]:
    """The project's own instructions, which are read where they are."""
    path = places.project / OTHER_NAME
    if os.path.lexists(path) and os.path.lexists(places.project / NAME):
        yield Adoptable("instructions", path, OTHER_NAME, "cannot", f"is not read, because {NAME} is there")
    else:
        yield from find_read("instructions", path, places)


def _hooks(path: Path, settings: dict[str, Any], places: Places) -> Iterator[Adoptable]:
    """Hooks: the project's are run where they stand, the user's are taken over with their names."""
    data = json.dumps({"hooks": settings["hooks"]}).encode() if "hooks" in settings else b"{}"
    entries, problems = read_hook_file(THEIR_HOOKS, data)
    for entry in entries:
        fields: dict[str, Any] = {"event": entry.event, "command": entry.command, "names": THEIR_NAMES}
        fields |= {"matcher": entry.matcher} if entry.matcher else {}
        fields |= {"timeout": entry.timeout} if entry.timeout is not None else {}
        if path == places.project / THEIR_HOOKS:
            when = "as it is" if places.is_trusted else "once the folder is trusted (swink trust)"
            yield Adoptable("hook", path, entry.name, "read", f"is run {when}")
        elif path.is_relative_to(places.project):
            how = f"is not run; hooks of {THEIR_HOOKS} and of config.toml are"
            yield Adoptable("hook", path, entry.name, "cannot", how)
        elif fields in places.settings.hooks:
            yield Adoptable("hook", path, entry.name, "here", "is here already, in config.toml")
        else:
            becomes = 'becomes [[hooks]] in config.toml, with names = "claude"'
            yield Adoptable("hook", path, entry.name, "new", becomes, NewHook(fields))
    for problem in problems:
        yield Adoptable("hook", path, "hooks", "cannot", problem.removeprefix(f"{THEIR_HOOKS}: "))


def _others(path: Path, settings: dict[str, Any]) -> Iterator[Adoptable]:
    """What else the settings say about permissions."""
    permissions = table(settings.get("permissions"))
    if isinstance(mode := permissions.get("defaultMode"), str) and mode != "default":
        how = _MODES.get(mode, "means nothing here")
        yield Adoptable("setting", path, f"defaultMode {mode}", "cannot", how)
    for place in texts(permissions.get("additionalDirectories")):
        yield Adoptable("setting", path, f"additional {place}", "cannot", "name it to swink with --add-dir")


def _rules(path: Path, scope: Scope, permissions: dict[str, Any]) -> Iterator[ForeignRule]:
    verdicts: tuple[Verdict, ...] = ("deny", "ask", "allow")
    for verdict in verdicts:
        for text in texts(permissions.get(verdict)):
            yield read_claude_rule(ForeignRule(path, text, verdict, scope, ()), text.strip())
