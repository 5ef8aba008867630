"""Tools of ours from what servers list; one that is listed as before stays the same object.

A server may change what a tool is after somebody has come to trust it. Such a tool is named, and asks for
approval from then on, whatever `trusted` says.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from swink.errors import InvalidTool
from swink.mcp.connection import ServerConnection
from swink.mcp.taskcalls import Progress
from swink.mcp.toolresults import as_tool_result
from swink.tools import Tool, ToolContext, ToolResult

_DESCRIPTION = 4_000
_SHOWN_EVERY = 0.1
"""Seconds between two reports of a call's progress; the last one is always told."""

Origin = tuple[str, str]
"""A server, and its own name for a tool."""


class ToolMaker:
    """Makes tools, and knows what they were when they were first listed."""

    def __init__(self, deferred: bool | Literal["auto"] = False) -> None:
        self._deferred: bool | Literal["auto"] = deferred
        self._first: dict[Origin, bytes] = {}
        self._made: dict[Origin, tuple[str, bytes, Tool]] = {}
        self._changed: dict[Origin, None] = {}

    @property
    def changed(self) -> frozenset[Origin]:
        """The tools that are not what they were when they were first listed."""
        return frozenset(self._changed)

    def make(
        self,
        found: Sequence[tuple[ServerConnection, Any]],
        names: Mapping[Origin, str],
        problems: list[str],
    ) -> list[Tool]:
        """The tools; one whose schema cannot be used, or that is listed twice, is left out and reported."""
        made: dict[Origin, tuple[str, bytes, Tool]] = {}
        broken: set[Origin] = set()
        for connection, tool in found:
            origin = (connection.server.name, tool.name)
            if origin in made or origin in broken:
                problems.append(f"MCP server {origin[0]!r} lists {origin[1]!r} twice; the second is left out")
                continue
            try:
                made[origin] = self._make(connection, tool, names[origin])
            except InvalidTool as error:
                broken.add(origin)
                problems.append(f"MCP server {origin[0]!r}: {origin[1]!r} is left out: {error}")
        self._made = made
        problems += self._tell_changed(made)
        return [tool for _, _, tool in made.values()]

    def _make(self, connection: ServerConnection, tool: Any, name: str) -> tuple[str, bytes, Tool]:
        origin = (connection.server.name, tool.name)
        definition = definition_of(tool)
        if self._first.setdefault(origin, definition) != definition:
            self._changed[origin] = None
        known = self._made.get(origin)
        if known is not None and known[:2] == (name, definition):
            return known
        made = make_tool(connection, tool, name, is_changed=origin in self._changed, deferred=self._deferred)
        return name, definition, made

    def _tell_changed(self, made: Iterable[Origin]) -> list[str]:
        return [
            f"MCP server {server!r} has changed what its tool {tool!r} is, since it was first listed: "
            "look at it before you allow it again"
            for server, tool in made
            if (server, tool) in self._changed
        ]


def definition_of(tool: Any) -> bytes:
    """What the model is told of a tool, and what it may do, as one value."""
    hints = None if tool.annotations is None else tool.annotations.model_dump(exclude_none=True)
    said = (tool.title, tool.description, tool.input_schema, hints)
    return msgspec.json.encode(said, order="deterministic", enc_hook=str)


def make_tool(
    connection: ServerConnection,
    tool: Any,
    name: str,
    *,
    is_changed: bool = False,
    deferred: bool | Literal["auto"] = False,
) -> Tool:
    """A tool of ours that calls one of a server's."""

    async def execute(call_id: str, arguments: dict[str, Any], ctx: ToolContext) -> ToolResult:
        return as_tool_result(await connection.call(tool, arguments, _throttled(ctx.update)))

    title = tool.title or tool.name
    says_read_only = tool.annotations is not None and tool.annotations.read_only_hint is True
    server = connection.server
    return Tool.raw(
        name,
        (tool.description or title)[:_DESCRIPTION],
        tool.input_schema,
        execute,
        label=f"{server.name}: {title}"[:200],
        requires_approval=server.requires_approval if is_changed else server.asks(tool.name),
        read_only=says_read_only and server.trusted is True and not is_changed,
        deferred=deferred,
    )


def _throttled(update: Callable[[Any], object]) -> Progress:
    """Tells what a call does, a few times a second at most, and when it is at its end."""
    last = float("-inf")

    async def progress(done: float, total: float | None, message: str | None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _SHOWN_EVERY or done == total:
            last = now
            update({"progress": done, "total": total, "message": None if message is None else message[:500]})

    return progress
