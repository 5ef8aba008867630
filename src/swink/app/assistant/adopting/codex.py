"""What codex keeps for its user and in a project.

AGENTS.md, ~/.codex/AGENTS.md        instructions
~/.codex/config.toml                 model, approval_policy, sandbox_mode, [mcp_servers.NAME]
.codex/config.toml                   the same, of a project
~/.codex/prompts/*.md                commands; ~/.codex/skills, .agents/skills
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from swink.app.assistant.adopting.findings import Adoptable, NewSetting, Places
from swink.app.assistant.adopting.foreignservers import find_servers_of
from swink.app.assistant.adopting.theirfiles import (
    find_commands,
    find_not_yet,
    find_own_instructions,
    find_read,
    find_skills_of,
    read_table,
    table,
    texts,
)
from swink.app.assistant.instructionfiles import NAME

_POLICIES = {
    "untrusted": 'approve = "on" in config.toml asks about every call',
    "on-request": 'swink asks by itself (approve = "smart", the default)',
    "on-failure": 'swink asks by itself (approve = "smart", the default)',
    "never": "is not taken over: it would allow everything",
}
_SANDBOXES = {
    "read-only": "swink --plan has only tools that read",
    "workspace-write": "commands write in the folder alone by default",
    "danger-full-access": "is not taken over: it would allow everything",
}


def find_codex(places: Places) -> Iterator[Adoptable]:
    """What there is of codex; blocking."""
    theirs = Path(os.environ.get("CODEX_HOME") or places.home / ".codex")
    broken: list[Adoptable] = []
    yield from find_read("instructions", places.project / NAME, places)
    yield from find_own_instructions(theirs / NAME)
    yield from find_commands(theirs / "prompts", places, is_users=True)
    for path, is_users in ((theirs / "config.toml", True), (places.project / ".codex/config.toml", False)):
        settings = read_table(path, broken)
        servers = {name: _server(table(given)) for name, given in table(settings.get("mcp_servers")).items()}
        yield from find_servers_of(path, servers, places, is_users=is_users)
        yield from _settings(path, settings, places, is_users=is_users)
    yield from find_skills_of(theirs / "skills", places, is_read=False)
    for base in (places.home, places.project):
        yield from find_skills_of(base / ".agents/skills", places, is_read=True)
    yield from find_not_yet(theirs / "agents", "agent", ".toml")
    yield from broken


def _server(given: dict[str, Any]) -> dict[str, Any]:
    """A server in the form of ours."""
    env = {name: f"${{{name}}}" for name in texts(given.get("env_vars"))} | table(given.get("env"))
    headers = dict(table(given.get("http_headers")))
    for header, variable in table(given.get("env_http_headers")).items():
        headers[header] = f"${{{variable}}}"
    if isinstance(variable := given.get("bearer_token_env_var"), str):
        headers["Authorization"] = f"Bearer ${{{variable}}}"
    kept = {key: given[key] for key in ("command", "args", "cwd", "url") if key in given}
    return {**kept, "env": env, "headers": headers, "disabled": given.get("enabled") is False}


def _settings(path: Path, settings: dict[str, Any], places: Places, *, is_users: bool) -> Iterator[Adoptable]:
    """The model, and what cannot be taken over as it is."""
    model, provider = settings.get("model"), settings.get("model_provider", "openai")
    if isinstance(model, str) and model.isprintable() and is_users:
        ours = f"openai:{model}"
        if provider != "openai":
            how = f"its provider {provider!r} is one of codex's: see swink models list"
            yield Adoptable("setting", path, f"model {model}", "cannot", how)
        elif places.settings.default_model == ours:
            yield Adoptable("setting", path, f"model {model}", "here", "is here already, in config.toml")
        elif places.settings.default_model is not None:
            yield Adoptable("setting", path, f"model {model}", "cannot", "another default_model is set here")
        else:
            becomes = f'becomes default_model = "{ours}" in config.toml'
            new = NewSetting("default_model", ours)
            yield Adoptable("setting", path, f"model {model}", "new", becomes, new)
    for name, meanings in (("approval_policy", _POLICIES), ("sandbox_mode", _SANDBOXES)):
        if isinstance(value := settings.get(name), str):
            how = meanings.get(value, "means nothing here")
            yield Adoptable("setting", path, f"{name} {value}", "cannot", how)
    if writing := table(settings.get("sandbox_workspace_write")):
        how = "see [sandbox] in config.toml, and --add-dir"
        yield Adoptable("setting", path, f"sandbox_workspace_write ({len(writing)})", "cannot", how)
    if hooks := table(settings.get("hooks")):
        yield Adoptable("hook", path, ", ".join(hooks), "cannot", "write it as [[hooks]] in config.toml")
