"""McpServers: MCP servers as a source of tools."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from types import MappingProxyType
from typing import Literal

from swink.errors import InvalidInput, MisuseError
from swink.mcp.authorisation import OnLogin
from swink.mcp.connection import ServerConnection
from swink.mcp.elicitation import OnElicit
from swink.mcp.naming import plain_name, tool_names
from swink.mcp.resourcetools import LIST, READ, resource_tools
from swink.mcp.sdk import load_sdk
from swink.mcp.serverconfig import McpError, Server
from swink.mcp.serverlists import ServerLists
from swink.mcp.serveroffers import (
    ServerPrompt,
    ServerResource,
    blocks_of,
    contents_of,
    fenced_instructions,
    prompts_of,
    resources_of,
)
from swink.mcp.toolmaking import Origin, ToolMaker
from swink.messages import CALL_TOOL, Image, Text
from swink.system.aio import running_loop, wait_through_cancel
from swink.tools import Tool, ToolError

log = logging.getLogger("swink.mcp")

_SETTLING = 2.0
"""Seconds that a turn waits for lists that have just changed."""
_MOST_NAMES = 5_000
"""How many names are kept for tools that a server no longer lists."""


class McpServers:
    """MCP servers, open while the `async with` block runs, for agents that run in the same event loop.

    Args:
        servers: which, such as `StdioServer` and `HttpServer`
        on_elicit: asks the person what a server wants to know
        on_login: shows the person where to log in
        before_start: called before a server is started; it may raise
        deferred: keep tools out of the context until they are looked for ("auto": if they are many)

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
        deferred: bool | Literal["auto"] = "auto",
    ) -> None:
        """Servers, and who answers for the person: `on_elicit` what they ask, `on_login` where to log in.

        `before_start` is called in a thread before each start of a process; if it raises, there is none.
        `deferred` keeps their tools out of the model's context until it looks for them: "auto" if all of them
        take more than 5 % of its window.
        """
        if not isinstance(deferred, bool) and deferred != "auto":
            raise InvalidInput(f"McpServers(deferred=…) is True, False or 'auto', not {deferred!r}")
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
        self._names: dict[Origin, str] = {}
        self._maker = ToolMaker(deferred)
        self._reading: list[Tool] = []
        self._unreachable: list[str] = []
        self._told: set[str] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
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
        self._loop = asyncio.get_running_loop()
        for connection in self._connections:
            connection.on_change = self._collect_opened
        try:
            await self._open()
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
        """Ask every server whether it is there; the names of those that gave no answer within `seconds`."""
        answers = await asyncio.gather(*[connection.answers(seconds) for connection in self._connections])
        names = [connection.server.name for connection in self._connections]
        return [name for name, is_there in zip(names, answers, strict=True) if not is_there]

    @property
    def tools(self) -> "ServerToolset":
        """The tools of all servers, named `server_tool`; an agent that has them follows changes."""
        if self._tools is None:
            raise MisuseError("MCP servers have tools only inside `async with McpServers(...) as servers:`")
        return self._tools

    @property
    def changed(self) -> frozenset[Origin]:
        """The tools, by server and its name for them, that are not what they were when first listed."""
        return self._maker.changed

    async def settle(self) -> None:
        """Return when lists that have changed were listed anew, or after a moment."""
        waiting = [lists.settled() for _, lists in self._listed()]
        with suppress(TimeoutError):
            async with asyncio.timeout(_SETTLING):
                await asyncio.gather(*waiting)

    async def refresh(self) -> tuple[Tool, ...]:
        """Ask every server for its tools again."""
        for connection in self._connections:
            await connection.refresh()
        await self._open()
        return self.tools

    @property
    def instructions(self) -> str:
        """What the servers say about their use, fenced and cut, for a system prompt; empty if nothing."""
        return fenced_instructions({one.server.name: lists.instructions for one, lists in self._listed()})

    def said(self, server: str) -> str:
        """What a server says about its use, as it says it."""
        return next((lists.instructions for one, lists in self._listed() if one.server.name == server), "")

    @property
    def resources(self) -> tuple[ServerResource, ...]:
        """What the servers let read."""
        found = [
            resources_of(one.server.name, lists.resources, lists.resource_templates)
            for one, lists in self._listed()
        ]
        return tuple(resource for listed in found for resource in listed)

    @property
    def prompts(self) -> tuple[ServerPrompt, ...]:
        """The prompts that the servers have ready."""
        found = [prompts_of(one.server.name, lists.prompts) for one, lists in self._listed()]
        return tuple(prompt for listed in found for prompt in listed)

    async def read(self, server: str, uri: str) -> list[Text | Image]:
        """Read the resource `uri` of a `server`; raises `ToolError` if it cannot be read."""
        return contents_of(await self._connection(server).read(uri))

    async def prompt(
        self, server: str, name: str, arguments: Mapping[str, str] = MappingProxyType({})
    ) -> list[Text | Image]:
        """The prompt `name` of a `server`, filled in with `arguments`, to be sent; `ToolError` if there is
        none.
        """
        return blocks_of(await self._connection(server).prompt(name, dict(arguments)))

    async def complete(
        self,
        server: str,
        prompt: str,
        argument: str,
        value: str,
        given: Mapping[str, str] = MappingProxyType({}),
    ) -> list[str]:
        """What an argument of a prompt may become, beside those that are given; empty if nobody knows.

        Args:
            server: the name of the server
            prompt: the name of its prompt
            argument: the argument to complete
            value: what is written of it so far
            given: other arguments of the prompt
        """
        return await self._connection(server).complete(prompt, argument, value, dict(given))

    async def aclose(self) -> None:
        """Close every connection and stop every server that was started."""
        connections, self._connections, self._tools = self._connections, [], None
        await wait_through_cancel(asyncio.gather(*(connection.close() for connection in connections)))

    def _connection(self, server: str) -> ServerConnection:
        for connection in self._connections:
            if connection.server.name == server:
                return connection
        raise ToolError(f"error: there is no MCP server {server!r} here")

    def _listed(self) -> list[tuple[ServerConnection, ServerLists]]:
        found = [(connection, connection.lists) for connection in self._connections]
        return [(connection, lists) for connection, lists in found if lists is not None]

    async def _open(self) -> None:
        """Connect to every server; one that is required and cannot be reached is an error."""
        opening = [connection.connected() for connection in self._connections]
        opened = await asyncio.gather(*opening, return_exceptions=True)
        self._unreachable = []
        for connection, session in zip(self._connections, opened, strict=True):
            if isinstance(session, McpError) and not connection.server.required:
                self._unreachable.append(str(session))
            elif isinstance(session, BaseException):
                raise session
        self._collect()

    def _collect(self) -> None:
        """Make tools of what is listed now."""
        if not self._connections:
            return  # a list that came as they were closed
        problems = list(self._unreachable)
        found = [
            (connection, tool)
            for connection, lists in self._listed()
            for tool in lists.tools
            if connection.server.offers(tool.name)
        ]
        pairs = [(connection.server.name, tool.name) for connection, tool in found]
        enabled = [connection.server.name for connection in self._connections]
        names = tool_names(pairs, enabled, (LIST, READ, CALL_TOOL), self._names)
        tools = [*self._maker.make(found, names, problems), *self._resource_tools()]
        self._names = dict(list({**self._names, **names}.items())[-_MOST_NAMES:])
        self.origins = {name: pair for pair, name in names.items()}
        if self._tools is None or list(self._tools) != tools:
            self._tools = ServerToolset(tools, self._tools_now)
        self._tell(problems, names)

    def _collect_opened(self) -> None:
        if self._tools is not None:  # else they are being opened, which collects them all
            self._collect()

    def _resource_tools(self) -> list[Tool]:
        having = [one.server for one, lists in self._listed() if lists.resources or lists.resource_templates]
        if not having:
            return []
        asks = any(server.requires_approval for server in having)
        if not self._reading or self._reading[-1].requires_approval != asks:
            self._reading = resource_tools(lambda: self.resources, self.read, asks=asks)
        return self._reading

    def _tell(self, problems: Sequence[str], names: Mapping[Origin, str]) -> None:
        """Say once what is new: problems, and names that tools could not have."""
        self.problems = tuple(problems)
        for problem in problems:
            if problem not in self._told:
                log.warning("%s", problem)
        for (server, tool), name in names.items():
            note = f"the tool {tool!r} of the MCP server {server!r} is named {name} here"
            if name != plain_name(server, tool) and note not in self._told:
                self._told.add(note)
                log.info("%s", note)
        self._told = {*problems, *(note for note in self._told if note.startswith("the tool "))}

    def _tools_now(self) -> "tuple[Tool, ...] | None":
        """The tools as they are; a turn, which asks in a thread, waits a moment for what has just changed."""
        loop = self._loop
        if self._is_settling and running_loop() is None and loop is not None and loop.is_running():
            with suppress(TimeoutError, CancelledError):
                asyncio.run_coroutine_threadsafe(self.settle(), loop).result(_SETTLING + 1)
        return self._tools

    @property
    def _is_settling(self) -> bool:
        return any(not lists.is_settled for _, lists in self._listed())


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
