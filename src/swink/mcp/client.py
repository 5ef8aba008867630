"""McpServers: MCP servers as a source of tools."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from swink.errors import InvalidInput, InvalidTool, MisuseError
from swink.mcp.authorisation import OnLogin
from swink.mcp.connection import ServerConnection
from swink.mcp.elicitation import OnElicit
from swink.mcp.naming import plain_name, tool_names
from swink.mcp.sdk import load_sdk
from swink.mcp.serverconfig import McpError, Server
from swink.mcp.toolresults import as_tool_result
from swink.system.aio import wait_through_cancel
from swink.tools import Tool, ToolContext, ToolResult

log = logging.getLogger("swink.mcp")

_DESCRIPTION = 4_000
_MOST_NAMES = 5_000
"""How many names are kept for tools that a server no longer lists."""


class McpServers:
    """MCP servers, open while the `async with` block runs, for agents that run in the same event loop.

    >>> async with McpServers([StdioServer("time", "mcp-server-time")]) as servers:
    ...     agent = Agent(model, tools=servers.tools, approve=ask)
    ...     await agent.run("What time is it in Oslo?")
    """

    def __init__(
        self,
        servers: Iterable[Server],
        *,
        on_elicit: OnElicit | None = None,
        on_login: OnLogin | None = None,
        before_start: Callable[[], None] | None = None,
    ) -> None:
        """Servers, and who answers for the person: `on_elicit` what they ask, `on_login` where to log in.

        `before_start` is called in a thread before each start of a process; if it raises, there is none.
        """
        self._on_elicit = on_elicit
        self._on_login = on_login
        self._before_start = before_start
        self.servers = tuple(servers)
        if not all(isinstance(server, Server) for server in self.servers):
            remedy = "servers_from(config) makes it from a dict"
            raise InvalidInput(f"McpServers takes a list of servers; {remedy}")
        names = [server.name for server in self.servers]
        if len(set(names)) != len(names) or not all(names):
            raise MisuseError(f"MCP servers need different names, not {names}")
        self._connections: list[ServerConnection] = []
        self._tools: ServerToolset | None = None
        self._names: dict[tuple[str, str], str] = {}
        self.origins: dict[str, tuple[str, str]] = {}
        """The server and its own name for each tool, by the tool's name here."""
        self.problems: tuple[str, ...] = ()
        """What was left out, and why: tools whose schemas cannot be used, servers that are not required."""

    @property
    def disabled(self) -> tuple[str, ...]:
        """The names of the servers that are switched off."""
        return tuple(server.name for server in self.servers if server.disabled)

    async def __aenter__(self) -> "McpServers":
        if self._connections:
            raise MisuseError("these MCP servers are open already")
        enabled = [server for server in self.servers if not server.disabled]
        if not enabled:
            self._tools = ServerToolset((), self._tools_now)
            return self
        sdk = await load_sdk()
        asking, check = (self._on_elicit, self._on_login), self._before_start
        self._connections = [ServerConnection(one, sdk, *asking, before_start=check) for one in enabled]
        try:
            await self._collect()
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.aclose()

    @property
    def lost(self) -> dict[str, str]:
        """The servers that are not there now, each with the reason; the next call connects to them again."""
        found = {connection.server.name: connection.problem for connection in self._connections}
        return {name: problem for name, problem in found.items() if problem}

    async def silent(self, seconds: float) -> list[str]:
        """Ask every server whether it is there; the names of those that gave no answer in time."""
        answers = await asyncio.gather(*[connection.answers(seconds) for connection in self._connections])
        names = [connection.server.name for connection in self._connections]
        return [name for name, is_there in zip(names, answers, strict=True) if not is_there]

    @property
    def tools(self) -> "ServerToolset":
        """The tools of all servers, named `server_tool`; an agent that has them follows changes."""
        if self._tools is None:
            raise MisuseError("MCP servers have tools only inside `async with McpServers(...) as servers:`")
        return self._tools

    def _tools_now(self) -> "tuple[Tool, ...] | None":
        return self._tools

    async def refresh(self) -> tuple[Tool, ...]:
        """Ask every server for its tools again."""
        for connection in self._connections:
            await connection.refresh()
        await self._collect()
        return self.tools

    async def aclose(self) -> None:
        """Close every connection and stop every server that was started."""
        connections, self._connections, self._tools = self._connections, [], None
        await wait_through_cancel(asyncio.gather(*(connection.close() for connection in connections)))

    async def _collect(self) -> None:
        opening = [connection.connected() for connection in self._connections]
        opened = await asyncio.gather(*opening, return_exceptions=True)
        enabled = [connection.server.name for connection in self._connections]
        problems: list[str] = []
        found: list[tuple[ServerConnection, Any]] = []
        for connection, session in zip(self._connections, opened, strict=True):
            if not isinstance(session, BaseException):
                offered = [tool for tool in session.tools if connection.server.offers(tool.name)]
                found += [(connection, tool) for tool in offered]
            elif isinstance(session, McpError) and not connection.server.required:
                problems.append(str(session))
            else:
                raise session
        pairs = [(connection.server.name, tool.name) for connection, tool in found]
        names = tool_names(pairs, enabled, before=self._names)
        self._tools = ServerToolset(_make_tools(found, names, problems), self._tools_now)
        for pair, name in names.items():
            if self._names.get(pair) != name and name != plain_name(*pair):
                log.info("the tool %r of the MCP server %r is named %s here", pair[1], pair[0], name)
        self._names = dict(list({**self._names, **names}.items())[-_MOST_NAMES:])
        self.origins = {name: pair for pair, name in names.items()}
        self.problems = tuple(problems)
        for problem in problems:
            log.warning("%s", problem)


class ServerToolset(tuple[Tool, ...]):
    """Tools as they were listed; an agent asks it at every turn for those that there are now."""

    _now: "Callable[[], tuple[Tool, ...] | None]"

    def __new__(cls, tools: Iterable[Tool], now: "Callable[[], tuple[Tool, ...] | None]") -> "ServerToolset":
        made = super().__new__(cls, tools)
        made._now = now
        return made

    def tools(self) -> tuple[Tool, ...]:
        """The tools as they are now; those it was made with, once the servers are closed."""
        now = self._now()
        return tuple(self) if now is None else tuple(now)


def _make_tools(
    found: Sequence[tuple[ServerConnection, Any]], names: Mapping[tuple[str, str], str], problems: list[str]
) -> Iterable[Tool]:
    """Tools of ours; one whose schema cannot be used, or that is listed twice, is left out and reported."""
    done: set[tuple[str, str]] = set()
    for connection, tool in found:
        pair = (connection.server.name, tool.name)
        if pair in done:
            problems.append(f"MCP server {pair[0]!r} lists {pair[1]!r} twice; the second is left out")
            continue
        done.add(pair)
        try:
            yield _make_tool(connection, tool, names[pair])
        except InvalidTool as error:
            problems.append(f"MCP server {pair[0]!r}: {pair[1]!r} is left out: {error}")


def _make_tool(connection: ServerConnection, tool: Any, name: str) -> Tool:
    async def execute(call_id: str, arguments: dict[str, Any], ctx: ToolContext) -> ToolResult:
        async def progress(done: float, total: float | None, message: str | None) -> None:
            ctx.update({"progress": done, "total": total, "message": message})

        return as_tool_result(await connection.call(tool.name, arguments, progress))

    title = tool.title or tool.name
    says_read_only = tool.annotations is not None and tool.annotations.read_only_hint is True
    return Tool.raw(
        name,
        (tool.description or title)[:_DESCRIPTION],
        tool.input_schema,
        execute,
        label=f"{connection.server.name}: {title}"[:200],
        requires_approval=connection.server.asks(tool.name),
        read_only=says_read_only and connection.server.trusted is True,
    )
