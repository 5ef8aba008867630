"""A connection to one MCP server.

The SDK's task groups must be entered and left in one task, so each connection is opened, held and closed in
its own task; calls come from anywhere in the same event loop. After a connection is lost, the next call makes
a new one; the call that was under way is not repeated, since it may have taken effect.
"""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from swink.mcp.authorisation import Authorisation, AuthorisedClient, OnLogin
from swink.mcp.elicitation import OnElicit
from swink.mcp.elicitcallback import ElicitCallback
from swink.mcp.sdk import Sdk, first_error
from swink.mcp.serverconfig import HttpServer, McpError, Server, StdioServer, own_directory
from swink.mcp.serveroutput import Stderr, broken_reply
from swink.mcp.timeouts import PausableTimeouts
from swink.messages.redact import redact_text
from swink.stream import observer
from swink.system.aio import mark_exception_seen, wait_through_cancel
from swink.system.programs import environment, find_program, passed_over
from swink.system.threads import in_thread
from swink.system.writable import is_writable_by_model
from swink.tools import ToolError

log = logging.getLogger("swink.mcp")

Progress = Callable[[float, float | None, str | None], Awaitable[None]]

_MAX_PAGES = 100
_MOST_BYTES = 64 << 20
"""Of one message over HTTP; images are large."""
_MAX_TEXT = 2_000
_FORGOTTEN = "Session terminated"
"""What the SDK says when a server answers 404 to a session."""


class ServerConnection:
    """One server, connected when it is needed."""

    def __init__(
        self,
        server: Server,
        sdk: Sdk,
        on_elicit: OnElicit | None = None,
        on_login: OnLogin | None = None,
        *,
        fresh_login: bool = False,
        before_start: Callable[[], None] | None = None,
    ) -> None:
        self.server = server
        self.sdk = sdk
        self.limits = PausableTimeouts()
        self.before_start = before_start
        self.asker = None if on_elicit is None else ElicitCallback(server.name, on_elicit, sdk, self.limits)
        self.login: Authorisation | None = None
        if isinstance(server, HttpServer):
            self.login = Authorisation(server, sdk, self.limits, on_login, fresh=fresh_login)
        self._loop = asyncio.get_running_loop()
        self._session: McpSession | None = None
        self._sessions: list[McpSession] = []
        self._closed = False

    async def connected(self) -> "McpSession":
        """A live session; raises `McpError` if there cannot be one."""
        if asyncio.get_running_loop() is not self._loop:
            what = "belongs to the event loop it was opened in; use `await agent.run()` there"
            raise McpError(f"MCP server {self.server.name!r} {what}")
        if self._closed:
            raise McpError(f"MCP server {self.server.name!r} is closed")
        if self._session is None or self._session.lost:
            self._session = McpSession(self)
            self._sessions = [session for session in self._sessions if not session.task.done()]
            self._sessions.append(self._session)
        session = self._session
        await asyncio.shield(session.opened)
        return session

    @property
    def problem(self) -> str:
        """Why the server is not there now, in a few words; the next call connects to it again."""
        if self._session is None or not self._session.lost:
            return ""
        error = self._session.opened.exception() if self._session.opened.done() else None
        return "it has ended; the next call starts it again" if error is None else str(error)

    async def refresh(self) -> None:
        """Ask the server for its tools again."""
        session = await self.connected()
        try:
            async with self.limits.of(self.server.connect_timeout):
                await session.refresh()
        except self.sdk.failures as error:
            text = self._describe(first_error(error))
            raise McpError(f"MCP server {self.server.name!r} does not list its tools: {text}") from error

    async def answers(self, seconds: float) -> bool:
        """Whether the server answers in time; one that is gone counts as lost, one that is slow does not."""
        session = self._session
        if session is None or session.lost or session.client is None:
            return False
        try:
            async with asyncio.timeout(seconds):  # which a person who is being asked does not stop
                with self.sdk.without_baggage():
                    await session.client.list_tools()
        except TimeoutError:
            return False
        except self.sdk.failures as error:
            found = first_error(error)
            if isinstance(found, self.sdk.McpFailure) and getattr(found, "code", None) != self.sdk.CLOSED:
                return str(found) != _FORGOTTEN  # it has something against the question, and is there
            session.stop()
            return False
        return True

    async def call(self, tool: str, arguments: dict[str, Any], progress: Progress) -> Any:
        """Call a tool; any failure is a `ToolError` that says whether the call may have had an effect."""
        try:
            return await self._call(tool, arguments, progress)
        except _SessionForgotten:
            # The server refused the session, so nothing was run: the call may be made again in a new one.
            return await self._call(tool, arguments, progress)

    async def _call(self, tool: str, arguments: dict[str, Any], progress: Progress) -> Any:
        if self.asker is not None:
            self.asker.asked = 0
        if self.login is not None:
            self.login.forget_failure()
        try:
            session = await self.connected()
        except McpError as error:
            raise ToolError(f"error: {error}") from error
        if observer.current is not None:
            url = self.server.url if isinstance(self.server, HttpServer) else None
            observer.current.remote(self.server.name, tool, url)
        try:
            async with self.limits.of(self.server.timeout):
                try:
                    with self.sdk.without_baggage():
                        return await session.client.call_tool(tool, arguments, progress_callback=progress)
                except self.sdk.McpFailure as error:
                    if not (wanted := self.sdk.to_open(error)):
                        raise
                    raise ToolError(await self._open_first(tool, wanted)) from error
        except TimeoutError as error:
            late = f"timed out after {self.server.timeout:g} s"
            raise ToolError(f"error: {tool!r} on {self.server.name!r} {late}") from error
        except self.sdk.failures as error:
            raise self._failure(tool, session, first_error(error)) from error

    async def _open_first(self, tool: str, wanted: list[Any]) -> str:
        """Ask the person to open what the server wants opened first; what to tell the model."""
        said = "nobody can be asked to open a page here"
        if self.asker is not None:
            for params in wanted:
                said = await self.asker.open(params)
        return f"error: {self.server.name!r} needs something done in a browser before {tool!r}: {said}"

    async def close(self) -> None:
        """Close the connection and wait until its process is gone, however often the waiter is cancelled."""
        self._closed = True
        for session in self._sessions:
            session.stop()
        # Unlike gather, wait retrieves no exceptions, so asyncio logs an unexpected one.
        if self._sessions:
            ending = asyncio.wait([session.task for session in self._sessions])
            await wait_through_cancel(asyncio.ensure_future(ending))

    def _failure(self, tool: str, session: "McpSession", error: BaseException) -> ToolError:
        text = self._describe(error)
        if text == _FORGOTTEN:
            session.stop()
            return _SessionForgotten(f"error: {self.server.name!r} has no session for us")
        answered = isinstance(error, self.sdk.McpFailure | ValueError | RuntimeError)
        if answered and not session.lost and getattr(error, "code", None) != self.sdk.CLOSED:
            return ToolError(f"error: {self.server.name!r}: {text}")
        session.stop()
        lost = f"error: the connection to {self.server.name!r} was lost ({text})"
        return ToolError(f"{lost}; whether {tool!r} took effect is unknown")

    def _describe(self, error: BaseException) -> str:
        hidden = () if self.login is None else self.login.secrets
        return redact_text(str(error) or type(error).__name__, *self.server.secrets, *hidden)[:_MAX_TEXT]


class _SessionForgotten(ToolError):
    """The server no longer knows the session."""


class McpSession:
    """One connection, opened, held and closed in its own task."""

    def __init__(self, connection: ServerConnection) -> None:
        self.client: Any = None
        self.tools: list[Any] = []
        self._of = connection
        self._ended = asyncio.Event()
        self._closing = False
        self._stderr: Stderr | None = None
        loop = asyncio.get_running_loop()
        self.opened: asyncio.Future[None] = loop.create_future()
        self.opened.add_done_callback(mark_exception_seen)
        self.task = loop.create_task(self._run(), name=f"swink-mcp-{connection.server.name}")

    @property
    def lost(self) -> bool:
        """Whether it can no longer be used."""
        return self._closing or self.task.done() or (self.opened.done() and self._ended.is_set())

    def stop(self) -> None:
        """Begin to close it; one that is still being opened is cancelled."""
        self._closing = True
        self._ended.set()
        if not self.opened.done():
            self.task.cancel()

    async def refresh(self) -> None:
        """Ask for the list of tools."""
        tools: list[Any] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            with self._of.sdk.without_baggage():
                page = await self.client.list_tools(cursor=cursor)
            tools.extend(page.tools)
            cursor = page.next_cursor
            if not cursor:
                break
        self.tools = tools

    async def _run(self) -> None:
        error: BaseException | None = McpError("it was closed before it was open")
        try:
            error = await self._try_to_hold("auto")
            # An old server may die of the question which protocol it speaks: then it is asked the old way.
            is_hint = getattr(error, "code", None) in (self._of.sdk.CLOSED, self._of.sdk.TIMED_OUT)
            if is_hint and not self._closing and not self.opened.done():
                self._ended = asyncio.Event()
                error = await self._try_to_hold("legacy")
        finally:
            self.client = None
            self._report(error)

    async def _try_to_hold(self, mode: str) -> BaseException | None:
        try:
            await self._hold(mode)
        except (McpError, *self._of.sdk.failures) as failure:
            return first_error(failure)
        return None

    async def _hold(self, mode: str) -> None:
        """Open, wait for the end, close."""
        async with AsyncExitStack() as stack:
            stack.enter_context(self._of.sdk.without_baggage())
            async with self._of.limits.of(self._of.server.connect_timeout):
                transport = _watched(await self._transport(stack), self._ended, self._of.sdk)
                us = self._of.sdk.Implementation(name="swink", version="1")
                asking = {"client_info": us, "elicitation_callback": self._of.asker}
                client = self._of.sdk.Client(transport, mode=mode, cache=None, **asking)
                self.client = await stack.enter_async_context(client)
                await self.refresh()
            if self._stderr is not None:
                self._stderr.close()
            self.opened.set_result(None)
            await self._ended.wait()

    async def _transport(self, stack: AsyncExitStack) -> Any:
        server, sdk = self._of.server, self._of.sdk
        if isinstance(server, HttpServer):
            # Calls have the server's `timeout`; the HTTP client must not cut off a slow tool before that.
            opening = sdk.http(server.connect_timeout, None, dict(server.headers))
            http = await stack.enter_async_context(opening)
            client = http if self._of.login is None else AuthorisedClient(http, self._of.login)
            return sdk.http_client(server.url, http_client=client, max_sse_event_size=_MOST_BYTES)
        if self._of.before_start is not None:
            await in_thread(self._of.before_start)
        self._stderr = Stderr(server.name, server.secrets)
        stack.callback(self._stderr.close)
        return sdk.stdio_client(_parameters(server, sdk), errlog=self._stderr.file)

    def _report(self, error: BaseException | None) -> None:
        name, secrets = self._of.server.name, self._of.server.secrets
        if self.opened.done():
            if error is not None:
                text = redact_text(str(error), *secrets)
                log.warning("the connection to MCP server %r ended: %s", name, text)
            return
        what = str(error) or type(error).__name__
        if isinstance(error, TimeoutError):
            what = f"no answer within {self._of.server.connect_timeout:g} s"
        text = f"cannot be reached: {redact_text(what, *secrets)}"
        if self._of.login is not None and self._of.login.failure:
            text = redact_text(self._of.login.failure, *secrets)
        if self._stderr is not None and (said := self._stderr.last_lines):
            text += f"; it said:\n{said}"
        self.opened.set_exception(McpError(f"MCP server {name!r} {text}"))


@asynccontextmanager
async def _watched(transport: Any, ended: asyncio.Event, sdk: Sdk) -> AsyncGenerator[tuple[Any, Any]]:
    """A transport that sets an event when the server has closed its end."""
    async with transport as (read, write):
        yield _WatchedStream(read, ended, sdk), write


class _WatchedStream:
    """The reading end of a transport; a reply that cannot be read is an error of the call it was for."""

    def __init__(self, stream: Any, ended: asyncio.Event, sdk: Sdk) -> None:
        self._stream = stream
        self._ended = ended
        self._sdk = sdk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> "_WatchedStream":
        return self

    async def __anext__(self) -> Any:
        try:
            item = await self._stream.__anext__()
        except StopAsyncIteration:
            self._ended.set()
            raise
        broken = broken_reply(item) if isinstance(item, Exception) else None
        if broken is None:
            return item
        if broken.call_id is None:  # any of the calls under way may wait for it: a new connection is needed
            log.warning("an MCP server is left: %s", broken.reason)
            self._ended.set()
            raise StopAsyncIteration
        return self._sdk.error_reply(broken.call_id, broken.reason)

    async def __aenter__(self) -> "_WatchedStream":
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *failure: Any) -> Any:
        return await self._stream.__aexit__(*failure)


def _parameters(server: StdioServer, sdk: Sdk) -> Any:
    """How to start the server; its environment is PATH and what is configured, nothing else of ours."""
    env = environment({"PATH": os.environ.get("PATH", os.defpath), **server.env})
    directory = _directory(server)
    command = _command(server, directory, env.get("PATH", ""))
    if os.name != "posix":
        return sdk.parameters(command, list(server.args), env, directory)
    # The SDK adds HOME and others to what it is given; env(1) takes them out again before the server starts.
    unwanted = [f"-u{name}" for name in sdk.inherited if name not in env]
    starter = find_program("env") or "/usr/bin/env"
    return sdk.parameters(starter, [*unwanted, command, *server.args], env, directory)


def _directory(server: StdioServer) -> str:
    """Where the server starts: programs obey files of their directory, so no model may write there."""
    directory = os.path.abspath(server.cwd or ".")
    if server.cwd is None and is_writable_by_model(directory):
        directory = own_directory(server.name)
    if directory == own_directory(server.name):
        os.makedirs(directory, 0o700, exist_ok=True)
    return directory


def _command(server: StdioServer, directory: str, path: str) -> str:
    if os.path.dirname(server.command):
        return os.path.join(directory, os.path.expanduser(server.command))
    found = find_program(server.command, path)
    if found is None:
        other = passed_over(server.command)
        hint = f" ({other} is not used, because the model can write it: give its whole path)" if other else ""
        raise FileNotFoundError(f"there is no command {server.command!r} in its PATH{hint}")
    return found
