"""MCP servers of an assistant: the user's and a trusted project's, started beside the conversation.

    .mcp.json of a trusted project    {"mcpServers": {"files": {"command": "npx", "args": ["…"]}}}
    [mcp.files] in config.toml        the same fields; of two servers with one name the user's counts

A server that fails is one notice, and the others work. What a project's file says about approval is ignored:
that is the user's to decide.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from swink.app.assistant.brought import SERVERS as PROJECT_FILE
from swink.app.assistant.brought import Brought, Programs, read_servers
from swink.app.assistant.forms import FillIn
from swink.app.assistant.serverprograms import expanded
from swink.app.assistant.servertools import ServerTools
from swink.app.assistant.trust import find_project
from swink.errors import AgentError, MisuseError
from swink.messages import Image, Text
from swink.messages.redact import redact_text
from swink.system.aio import wait_through_cancel
from swink.system.writable import is_beneath
from swink.tools import Tool, ToolError

if TYPE_CHECKING:
    from swink.mcp.client import McpServers, ServerToolset
    from swink.mcp.serverconfig import Server, StdioServer
    from swink.mcp.serveroffers import ServerPrompt, ServerResource

_ANSWER = 3.0
"""Seconds in which a server that is there says so."""
_USERS_ALONE = ("requires_approval", "trusted")


class ServerState(Struct, frozen=True):
    """One server for people: where it was configured, how it stands, and what it offers."""

    name: str
    source: str
    state: Literal["starting", "ready", "silent", "stopped", "failed", "off"]
    tools: tuple[str, ...] = ()
    error: str = ""
    notes: tuple[str, ...] = ()
    """What was left out of its tools or is named otherwise, and why."""


class Configured(Struct, frozen=True):
    """Which servers there are, where each was configured, and what was wrong with others."""

    servers: "tuple[Server, ...]" = ()
    sources: dict[str, str] = {}
    notices: tuple[str, ...] = ()
    programs: dict[str, Programs] = {}
    """What each server of a project names there, as it was allowed."""


def find_servers(
    users: Mapping[str, Any],
    brought: Brought | None,
    directory: str | Path = ".",
    editors: Mapping[str, Any] | None = None,
) -> Configured:
    """The servers of a trusted project, an editor and the user's settings; of one name the last counts."""
    servers: dict[str, Server] = {}
    sources: dict[str, str] = {}
    notices: list[str] = []
    theirs: Mapping[str, Any] = {}
    project = None if brought is None else brought.project
    if brought is not None and (data := brought.data(PROJECT_FILE)) is not None:
        try:
            theirs = {name: _without_approval(fields) for name, fields in read_servers(data).items()}
        except ValueError as error:
            notices.append(f"{brought.project / PROJECT_FILE} was not read: {error}")
    if not theirs and not users and not editors:
        return Configured(notices=tuple(notices))
    from swink.mcp.serverconfig import StdioServer, servers_from  # most people have no servers

    for source, listed in ((PROJECT_FILE, theirs), ("the editor", editors or {}), ("config.toml", users)):
        for name, fields in listed.items():
            missing: list[str] = []
            try:
                whole = expanded(fields, missing)
                if missing:
                    hint = f"${{{missing[0]}:-}} is empty then"
                    raise MisuseError(f"{missing[0]} is not set in the environment; {hint}")
                server = servers_from({"mcpServers": {name: whole}})[0]
                if isinstance(server, StdioServer):
                    server = _placed(server, project if source == PROJECT_FILE else None, project, directory)
            except AgentError as error:
                notices.append(f"MCP server {name!r} of {source} is left out: {redact_text(str(error))}")
                continue
            servers[name], sources[name] = server, source
    judged = {} if brought is None else brought.programs
    programs = {name: judged[name] for name, source in sources.items() if source == PROJECT_FILE}
    return Configured(tuple(servers.values()), sources, tuple(notices), programs)


def _placed(
    server: "StdioServer", owner: Path | None, project: Path | None, directory: str | Path
) -> "StdioServer":
    """The server with the directory that it starts in, and its program by its whole path if it names one.

    That of a project (`owner`) starts in it; one of the user's in a directory of its own, so that no file of
    the folder decides what it does, unless its `cwd` says so and the folder is trusted.
    """
    from swink.mcp.serverconfig import own_directory

    base = os.path.realpath(directory if owner is None else owner)
    own = own_directory(server.name) if owner is None and server.cwd is None else None
    cwd = own or _joined(base, server.cwd or ".")
    named = os.path.dirname(server.command) != ""
    command = _joined(cwd, server.command) if named else server.command
    if project is None:
        untrusted = str(find_project(directory))
        for what, path in (("starts in", cwd), *([("is a program of", command)] if named else [])):
            if is_beneath(os.path.realpath(path), untrusted):
                how = "/trust, or swink trust, asks about it"
                raise MisuseError(f"it {what} this folder, which is not trusted ({path}); {how}")
    return replace(server, cwd=cwd, command=command)


def _joined(base: str, path: str) -> str:
    return os.path.normpath(os.path.join(base, os.path.expanduser(path)))


class Servers:
    """The servers that run, and their tools; `notify` is told of one that fails."""

    def __init__(self, notify: Callable[[str], None]) -> None:
        self.deferred: bool | Literal["auto"] = "auto"
        """Whether the tools of servers that start from now on are found when they are needed."""
        self.fill_in: FillIn | None = None
        """Puts what a server asks to the person; without it servers are told that nobody answers."""
        self.is_known = False
        """Whether it is known which servers there are; before, there seem to be none."""
        self._notify = notify
        self._states: dict[str, ServerState] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._closing: dict[str, asyncio.Event] = {}
        self._running: dict[str, Server] = {}
        self._programs: dict[str, Programs] = {}
        self._tools = ServerTools(self._running.keys(), notify)
        self.owners = self._tools.owners
        self._settled: dict[str, asyncio.Event] = {}
        self._opened: dict[str, McpServers] = {}
        self._logging_in: set[str] = set()
        self._toolsets: dict[str, ServerToolset] = {}
        self._last: dict[str, Sequence[Tool]] = {}
        self._told: set[str] = set()
        self._redefined: set[tuple[str, str]] = set()
        self._reading: list[Tool] = []
        self.on_redefined: Callable[[str], None] = lambda name: None
        """Called, from any thread, with the name of a tool that is no longer what it was."""

    @property
    def states(self) -> list[ServerState]:
        """All servers, as they stand; one that has ended since it was ready is stopped."""
        return [self._state_now(state) for state in self._states.values()]

    def _state_now(self, state: ServerState) -> ServerState:
        problems = self._opened[state.name].problems if state.name in self._opened else ()
        notes = (*map(redact_text, problems), *self._tools.notes_of(state.name))
        state = replace(state, tools=self._tools.names_of(state.name), notes=notes)
        lost = self._opened[state.name].lost if state.name in self._opened else {}
        return replace(state, state="stopped", error=lost[state.name]) if state.name in lost else state

    async def check(self) -> list[ServerState]:
        """All servers, each asked whether it is there: one over HTTP may be gone without a sign."""
        opened = [*self._opened.values()]
        silent = await asyncio.gather(*[servers.silent(_ANSWER) for servers in opened])
        names = {name for found in silent for name in found}
        why = f"it gave no answer within {_ANSWER:g} s"
        unsure = [state.state == "ready" and state.name in names for state in self.states]
        return [
            replace(state, state="silent", error=why) if is_unsure else state
            for state, is_unsure in zip(self.states, unsure, strict=True)
        ]

    def tools(self, taken: Iterable[str] = ()) -> Sequence[Tool]:
        """The tools of the servers that are ready, named unlike each other and unlike those in `taken`.

        Lists that have changed are followed here, at the start of a turn.
        """
        if not self._opened:
            return self._tools.named(taken)
        from swink.mcp.resourcetools import LIST, READ

        for name in list(self._toolsets):
            self._follow_list(name)
        return [*self._tools.named([*taken, LIST, READ]), *self._resource_tools()]

    @property
    def instructions(self) -> str:
        """What the servers that are ready say about their use, fenced and cut; empty if nothing."""
        if not self._opened:
            return ""
        from swink.mcp.serveroffers import fenced_instructions

        return fenced_instructions({name: each.said(name) for name, each in sorted(self._opened.items())})

    @property
    def resources(self) -> "list[ServerResource]":
        """What the servers that are ready let read."""
        return [one for opened in list(self._opened.values()) for one in opened.resources]

    @property
    def prompts(self) -> "list[ServerPrompt]":
        """The prompts of the servers that are ready."""
        return [one for opened in list(self._opened.values()) for one in opened.prompts]

    async def read(self, server: str, uri: str) -> list[Text | Image]:
        """Read a resource; raises `ToolError` if it cannot be read."""
        return await self._find(server).read(server, uri)

    async def prompt(self, server: str, name: str, arguments: Mapping[str, str]) -> list[Text | Image]:
        """A prompt of a server, to be sent; raises `ToolError` if there is none."""
        return await self._find(server).prompt(server, name, arguments)

    async def complete(self, server: str, prompt: str, argument: str, value: str) -> list[str]:
        """What an argument of a prompt may become."""
        return await self._find(server).complete(server, prompt, argument, value)

    def caution_about(self, tool: str) -> str:
        """What a person has to know of a tool: whether its server has changed what it is."""
        server = self.owners.get(tool)
        opened = None if server is None else self._opened.get(server)
        if opened is None or (origin := self._tools.origin_of(tool)) not in opened.changed:
            return ""
        return f"the MCP server {origin[0]!r} has changed what this tool is since it was first listed"

    def _find(self, server: str) -> "McpServers":
        if (opened := self._opened.get(server)) is None:
            raise ToolError(f"error: the MCP server {server!r} is not ready; /mcp says why")
        return opened

    def _follow_list(self, name: str) -> None:
        toolset, opened = self._toolsets.get(name), self._opened.get(name)
        if toolset is None or opened is None:
            return
        tools = toolset.tools()
        if self._last.get(name) != tools:
            self._last[name] = tools
            origins = opened.origins
            self._tools.add(name, {origins[tool.name]: tool for tool in tools if tool.name in origins})
        for origin in opened.changed - self._redefined:
            self._redefined.add(origin)
            if (known := self._tools.name_of(origin)) is not None:
                self.on_redefined(known)
        self._tell(opened)

    def _tell(self, opened: "McpServers") -> None:
        for problem in map(redact_text, opened.problems):
            if problem not in self._told:
                self._told.add(problem)
                self._notify(problem)

    def _resource_tools(self) -> list[Tool]:
        from swink.mcp.resourcetools import resource_tools

        if not self.resources:
            return []
        asks = any(server.requires_approval for server in list(self._running.values()))
        if not self._reading or self._reading[-1].requires_approval != asks:
            self._reading = resource_tools(lambda: self.resources, self.read, asks=asks)
        return self._reading

    async def follow(self, configured: Configured) -> None:
        """Start what is new, stop what is gone or was changed; it does not wait until servers are ready."""
        self.is_known = True
        wanted = {server.name: server for server in configured.servers}
        before, self._programs = self._programs, configured.programs
        is_changed = {name: before.get(name) != self._programs.get(name) for name in self._running}
        running = self._running.items()
        await self._stop([name for name, server in running if wanted.get(name) != server or is_changed[name]])
        self._states = {name: state for name, state in self._states.items() if name in wanted}
        for name, server in wanted.items():
            source = configured.sources.get(name, "")
            if server.disabled:
                self._states[name] = ServerState(name, source, "off")
            elif name not in self._running:
                self._states[name] = ServerState(name, source, "starting")
                self._running[name], self._closing[name] = server, asyncio.Event()
                self._settled[name] = asyncio.Event()
                self._tasks[name] = asyncio.create_task(self._serve(server), name=f"swink-mcp-{name}")
        for notice in configured.notices:
            self._notify(notice)

    async def settle(self) -> None:
        """Return when every server is ready or has failed: a run that begins earlier is without its tools."""
        for settled in list(self._settled.values()):
            await settled.wait()

    async def restart(self, name: str) -> None:
        """Stop a server and start it anew."""
        server, state = self._running.get(name), self._states.get(name)
        if server is not None and state is not None:
            await self._stop([name])
            servers = (*self._running.values(), server)
            await self.follow(Configured(servers, {name: state.source}, programs=self._programs))

    async def login(self, name: str) -> None:
        """Start a server anew, and show the person where to log in if it wants that."""
        self._logging_in.add(name)
        await self.restart(name)

    async def aclose(self) -> None:
        await self._stop(list(self._running))

    async def _serve(self, server: "Server") -> None:
        """Keep one server open until it is to be closed, in one task from its start to its end."""
        from swink.app.assistant.elicitations import answer
        from swink.mcp.client import McpServers

        on_elicit = None if self.fill_in is None else partial(answer, fill_in=self.fill_in)
        name = server.name
        on_login, settled = self._show_login if name in self._logging_in else None, self._settled[name]
        self._logging_in.discard(name)
        programs = self._programs.get(name)
        check = None if programs is None else partial(_check, programs)
        try:
            servers = McpServers(
                [server],
                on_elicit=on_elicit,
                on_login=on_login,
                before_start=check,
                deferred=self.deferred,
            )
            async with servers as opened:
                self._opened[name], self._toolsets[name] = opened, opened.tools
                self._states[name] = replace(self._states[name], state="ready")
                self._follow_list(name)
                settled.set()
                await self._closing[name].wait()
        except Exception as error:
            # The SDK and what it imports may raise anything; a server must not be starting for ever.
            is_known = isinstance(error, AgentError)
            text = redact_text(str(error) if is_known else f"MCP server {name!r}: {error!r}")
            self._states[name] = replace(self._states[name], state="failed", error=text)
            self._notify(f"{text} (/mcp, or swink mcp list, shows all servers)")
        finally:
            settled.set()
            self._opened.pop(name, None)
            self._toolsets.pop(name, None)
            self._last.pop(name, None)
            self._tools.remove(name)

    def _show_login(self, name: str, url: str) -> None:
        from swink.mcp.webaddress import open_browser

        self._notify(f"log in to the MCP server {name} in your browser: {url}")
        open_browser(url)

    async def _stop(self, names: Sequence[str]) -> None:
        tasks: list[asyncio.Task[None]] = []
        for name in names:
            self._closing.pop(name).set()
            task = self._tasks.pop(name)
            if self._states[name].state == "starting":
                task.cancel()
            tasks.append(task)
            del self._running[name]
        if tasks:
            await wait_through_cancel(asyncio.gather(*tasks, return_exceptions=True))


def _check(programs: Programs) -> None:
    """Refuse to start a server while what it names is not what was allowed; blocking."""
    from swink.mcp.serverconfig import McpError

    if (changed := programs.changed()) is not None:
        why = f"{changed} is not as it was when the user allowed it"
        raise McpError(f"it is not started, because {why}; /reload or /trust asks about it")


def _without_approval(fields: Any) -> Any:
    if not isinstance(fields, dict):
        return fields
    given = cast("dict[str, Any]", fields)
    return {key: value for key, value in given.items() if key not in _USERS_ALONE}
