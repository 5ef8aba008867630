"""The tools of MCP servers, under names that no other tool has.

What counts is which servers are configured and which names swink's own tools have: a name is the same whoever
is ready first, and one that was given up for a tool of swink's stays given up.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from threading import Lock

from msgspec.structs import replace

from swink.tools import Tool

log = logging.getLogger("swink.assistant")

Origin = tuple[str, str]
"""A server, and its own name for a tool."""

_MOST_NAMES = 5_000
"""How many names are kept for tools that a server no longer lists."""
_MOST_TOLD = 5
"""How many new names are told one by one."""


class ServerTools:
    """Tools by server; `notify` is told once of each that could not have the name it would have alone."""

    def __init__(self, servers: Collection[str], notify: Callable[[str], None]) -> None:
        self.owners: dict[str, str] = {}
        """The server of each tool, by the tool's name; always the same dict."""
        self._servers = servers  # all that are configured, as they come and go
        self._notify = notify
        self._lock = Lock()  # turns ask in threads
        self._tools: dict[str, Mapping[Origin, Tool]] = {}
        self._taken: frozenset[str] = frozenset()
        self._named: dict[Origin, Tool] = {}
        self._notes: dict[Origin, str] = {}
        self._given: dict[Origin, str] = {}
        self._told: set[str] = set()

    def add(self, server: str, tools: Mapping[Origin, Tool]) -> None:
        """Offer the tools of a server."""
        self._tools[server] = tools
        self._name()

    def remove(self, server: str) -> None:
        if self._tools.pop(server, None) is not None:
            self._name()

    def named(self, taken: Iterable[str] = ()) -> list[Tool]:
        """All of them, named unlike the tools in `taken`, from now on."""
        names = self._taken.union(taken)
        if names != self._taken:
            self._taken = names
            self._name()
        return list(self._named.values())

    def names_of(self, server: str) -> tuple[str, ...]:
        """How the tools of a server are named now."""
        return tuple(tool.name for origin, tool in list(self._named.items()) if origin[0] == server)

    def origin_of(self, name: str) -> Origin:
        """The server of a tool by its name here, and the server's own name for it."""
        found = (origin for origin, tool in list(self._named.items()) if tool.name == name)
        return next(found, ("", ""))

    def name_of(self, origin: Origin) -> str | None:
        """How a tool of a server is named now."""
        tool = self._named.get(origin)
        return None if tool is None else tool.name

    def notes_of(self, server: str) -> tuple[str, ...]:
        """Which of them could not have their names, and what they are named instead."""
        return tuple(note for origin, note in list(self._notes.items()) if origin[0] == server)

    def _name(self) -> None:
        from swink.mcp.naming import plain_name, tool_names  # most people have no servers

        with self._lock:
            listed = {origin: tool for tools in list(self._tools.values()) for origin, tool in tools.items()}
            names = tool_names(listed, list(self._servers), self._taken, self._given)
            self._given = dict(list({**self._given, **names}.items())[-_MOST_NAMES:])
            self._notes = {}
            for origin, tool in listed.items():
                if tool.name != names[origin]:
                    plain = plain_name(*origin)
                    self._notes[origin] = (
                        f"the tool {origin[1]!r} of the MCP server {origin[0]!r} is named {names[origin]}: "
                        f"{plain} is another tool, or may become one; rename the server to change that"
                    )
            named = {origin: self._renamed(origin, tool, names[origin]) for origin, tool in listed.items()}
            self._named = named
            owners = {tool.name: server for (server, _), tool in named.items()}
            self.owners.update(owners)
            for gone in self.owners.keys() - owners.keys():
                del self.owners[gone]
            news = [note for note in self._notes.values() if note not in self._told]
            self._told.update(news)
        for note in news[:_MOST_TOLD]:
            log.info("%s", note)
            self._notify(note)
        if len(news) > _MOST_TOLD:
            self._notify(
                f"{len(news) - _MOST_TOLD} more tools of MCP servers have other names; /mcp lists them"
            )

    def _renamed(self, origin: Origin, tool: Tool, name: str) -> Tool:
        """The tool with this name; the same object as long as it is, so that it is converted once."""
        known = self._named.get(origin, tool)
        if known.name == name and known.body is tool.body:
            return known
        return replace(tool, name=name)
