"""Permission rules as Claude Code has them, in our terms: `Bash(git:*)`, `Edit(docs/**)`, `mcp__server`."""

import re

from msgspec.structs import replace

from swink.app.assistant.adopting.foreignrules import ForeignRule, bash_rule, path_rule
from swink.app.assistant.rules import MCP
from swink.mcp.naming import plain_name
from swink.tools import is_tool_name

_RULE = re.compile(r"([A-Za-z_][\w*-]*)(?:\((.*)\))?", re.S)
_TOOLS: dict[str, tuple[str, ...]] = {
    "Bash": ("bash",),
    "Edit": ("edit_file", "write_file"),
    "Write": ("write_file",),
    "Read": ("read_file",),
    "Glob": ("find_files",),
    "Grep": ("search_text",),
    "LS": ("list_files",),
    "WebFetch": ("fetch_url",),
}
_DENIED_TOO = {"Edit": ("delete_file",), "Write": ("delete_file",), "Read": ("search_text",)}
"""What a denial speaks of besides: here these tools do what theirs would do."""
_OWN = {name for names in (*_TOOLS.values(), *_DENIED_TOO.values()) for name in names}


def read_claude_rule(rule: ForeignRule, text: str) -> ForeignRule:
    """The same rule with what its text, such as `Bash(git:*)`, speaks of in our terms."""
    found = _RULE.fullmatch(text)
    if found is None:
        return replace(rule, why="is no rule")
    name, inside = found[1], found[2]
    if name.startswith("mcp__"):
        return _server_rule(rule, name, inside)
    tools = _TOOLS.get(name, ())
    if not tools:
        # What it speaks of is unknown: only a tool that swink does not have can be told apart.
        about = () if "*" in name else (f"theirs:{name}",)
        return replace(rule, tools=about, why=f"swink has no tool like {name}")
    if rule.verdict != "allow":
        tools = (*tools, *_DENIED_TOO.get(name, ()))
    rule = replace(rule, tools=tools)
    if inside is None or inside == "*":
        return rule
    if name == "Bash":
        return bash_rule(rule, inside)
    if name not in ("Edit", "Read"):
        return replace(rule, why=f"{name} takes no pattern here")
    if inside.startswith("/") and rule.scope == "user" and not inside.startswith("//"):
        return replace(rule, why="the path is relative to ~/.claude")
    rule = path_rule(rule, inside)
    told = "; a search of a whole folder, and commands, may still read it"
    return replace(rule, told=told) if name == "Read" and rule.verdict == "deny" else rule


def _server_rule(rule: ForeignRule, name: str, inside: str | None) -> ForeignRule:
    server, _, tool = name.removeprefix("mcp__").partition("__")
    if not server or inside is not None or "*" in server:
        return replace(rule, tools=(MCP,), why="is no rule for a server here")
    if tool in ("", "*"):
        return replace(rule, tools=(MCP,), pattern=server)
    ours = plain_name(server, tool)
    if ours in (*_OWN, "todo", "task", "explore", "ask_user") or not is_tool_name(ours) or "*" in tool:
        return replace(rule, tools=(MCP,), why="cannot be told apart from other tools here")
    return replace(rule, tools=(ours,), server=server)
