"""Names of tools in a file of an agent: ours, and those of Claude Code, as what they are here."""

import re
from collections.abc import Iterable

from msgspec import Struct

WEB_SEARCH = "web_search"
"""The search that a provider runs."""
_SHELL = ("bash", "background_output", "background_stop")
_WRITERS = ("edit_file", "write_file", "delete_file")
_OURS: dict[str, tuple[str, ...]] = {
    "bash": _SHELL,
    "bashoutput": ("background_output",),
    "killshell": ("background_stop",),
    "killbash": ("background_stop",),
    "edit": ("edit_file",),
    "multiedit": ("edit_file",),
    "write": ("write_file",),
    "read": ("read_file",),
    "glob": ("find_files",),
    "grep": ("search_text",),
    "ls": ("list_files",),
    "webfetch": ("fetch_url",),
    "websearch": (WEB_SEARCH,),
    "todowrite": ("todo",),
    "todoread": ("todo",),
    "task": ("task",),
    "agent": ("task",),
    "skill": ("skill",),
}
_DENIED_TOO = {
    "edit": _WRITERS,
    "multiedit": _WRITERS,
    "write": _WRITERS,
    "read": ("read_file", "search_text"),
}
"""What a denial speaks of: here these tools do what theirs would do."""
_WORD = re.compile(r"([A-Za-z0-9_*-]+)\s*(\(.*\))?", re.S)
_SERVER = re.compile(r"mcp__[A-Za-z0-9_-]+?(?:__\*)?|mcp__[^*]+")


class UnknownDenial(ValueError):
    """A denial that cannot be kept."""


class ToolNames(Struct, frozen=True):
    """Some tools, by their names and by the MCP servers whose tools they are."""

    names: frozenset[str] = frozenset()
    servers: frozenset[str] = frozenset()

    def has(self, name: str, server: str | None = None) -> bool:
        """Whether a tool of this name, and of this server, is among them."""
        return name in self.names or (server is not None and server in self.servers)


def parse_tools(words: Iterable[str], notes: list[str], *, is_denial: bool = False) -> ToolNames:
    """The tools that are meant; what cannot be kept is left out of what is allowed, and noted.

    A denial is taken wide: one of `Bash(rm:*)` denies the shell.
    """
    names: set[str] = set()
    servers: set[str] = set()
    for word in words:
        found = _WORD.fullmatch(word)
        is_pattern = found is None or ("*" in found[1] and not _SERVER.fullmatch(found[1]))
        if is_denial and is_pattern:  # what is denied by a word that is not understood would be allowed
            raise UnknownDenial(f"{word[:80]!r} is no name of a tool, so what it denies is not known")
        if found is None or is_pattern:
            notes.append(f"the tool {word[:80]!r} is left out: it is no name")
            continue
        name, pattern = found[1], found[2]
        if pattern is not None and not is_denial:
            notes.append(f"the tool {word[:80]!r} is left out: patterns are not kept; write {name}")
            continue
        if name.startswith("mcp__"):
            server, _, tool = name.removeprefix("mcp__").partition("__")
            if tool in ("", "*"):
                servers.add(server)
            else:
                from swink.mcp.naming import plain_name  # most agents name no servers

                names.add(plain_name(server, tool))
            continue
        key = name.lower()
        also = _DENIED_TOO.get(key, ()) if is_denial else ()
        names.update((*_OURS.get(key, (name,)), *also))
    return ToolNames(frozenset(names), frozenset(servers))
