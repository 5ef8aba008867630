"""A connection to one MCP server.

Calls come from anywhere in the same event loop. After a connection is lost, the next call makes
a new one; the call that was under way is not repeated, since it may have taken effect.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from swink.mcp.authorisation import Authorisation, OnLogin
from swink.mcp.elicitation import OnElicit
from swink.mcp.elicitcallback import ElicitCallback
from swink.mcp.sdk import Sdk, first_error
from swink.mcp.serverconfig import HttpServer, McpError, Server
from swink.mcp.serverlists import ServerLists
from swink.mcp.serversession import McpSession
from swink.mcp.taskcalls import CallWatcher, Progress, TaskCalls
from swink.mcp.timeouts import PausableTimeouts
from swink.messages.redact import redact_text
from swink.stream import observer
from swink.system.aio import wait_through_cancel
from swink.tools import ToolError

log = logging.getLogger("swink.mcp")

Send = Callable[[Any, Callable[[], None]], Awaitable[Any]]
"""Sends a request with a client of the SDK; what it is given besides lets the time limit begin anew."""

_MAX_TEXT = 2_000
_COMPLETION = 2.0
"""Seconds in which a server says what an argument may become."""
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
        self.tasks = TaskCalls(sdk)
        self.on_change: Callable[[], None] = lambda: None
        """Called when what the server lists is listed anew."""
        self._lists: ServerLists | None = None
        self._session: McpSession | None = None
        self._known: McpSession | None = None
        self._sessions: list[McpSession] = []
        self._closed = False

    async def connected(self) -> McpSession:
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
        session, is_new = self._session, self._session is not self._known
        await asyncio.shield(session.opened)
        if is_new and self._known is not session:
            self._known = session
            self.on_change()
        return session

    @property
    def problem(self) -> str:
        """Why the server is not there now, in a few words; the next call connects to it again."""
        if self._session is None or not self._session.lost:
            return ""
        error = self._session.opened.exception() if self._session.opened.done() else None
        return "it has ended; the next call starts it again" if error is None else str(error)

    @property
    def lists(self) -> ServerLists | None:
        """What the server offers, as it was last listed, also by a connection that is lost."""
        if self._session is not None and self._session.opened.done() and not self._session.opened.exception():
            self._lists = self._session.lists
        return self._lists

    async def refresh(self) -> None:
        """Ask the server for its tools again."""
        session = await self.connected()
        try:
            async with self.limits.of(self.server.connect_timeout):
                await session.lists.refresh()
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
                await session.lists.ask_something()
        except TimeoutError:
            return False
        except self.sdk.failures as error:
            found = first_error(error)
            if isinstance(found, self.sdk.McpFailure) and getattr(found, "code", None) != self.sdk.CLOSED:
                return str(found) != _FORGOTTEN  # it has something against the question, and is there
            session.stop()
            return False
        return True

    async def call(self, tool: Any, arguments: dict[str, Any], progress: Progress) -> Any:
        """Call a tool; any failure is a `ToolError` that says whether the call may have had an effect."""

        async def send(client: Any, renew: Callable[[], None]) -> Any:
            if observer.current is not None:
                url = self.server.url if isinstance(self.server, HttpServer) else None
                observer.current.remote(self.server.name, tool.name, url)
            return await self.tasks.call(client, tool, arguments, CallWatcher(progress, renew))

        return await self._ask(tool.name, send)

    async def read(self, uri: str) -> Any:
        """Read a resource; any failure is a `ToolError`."""
        return await self._ask(uri, lambda client, renew: client.read_resource(uri))

    async def prompt(self, name: str, arguments: dict[str, str]) -> Any:
        """A prompt of the server; any failure is a `ToolError`."""
        return await self._ask(name, lambda client, renew: client.get_prompt(name, arguments))

    async def complete(self, prompt: str, argument: str, value: str, given: dict[str, str]) -> list[str]:
        """What an argument of a prompt may become; nothing if the server does not say."""
        session = self._session
        if session is None or session.lost or session.client is None:
            return []
        if session.client.server_capabilities.completions is None:
            return []
        ref = self.sdk.prompt_reference(prompt)
        try:
            async with asyncio.timeout(_COMPLETION):
                with self.sdk.without_baggage():
                    asked = {"name": argument, "value": value}
                    found = await session.client.complete(ref, asked, given or None)
        except (TimeoutError, *self.sdk.failures):
            return []
        return [text for text in found.completion.values if text.isprintable()]

    async def _ask(self, what: str, send: Send) -> Any:
        try:
            return await self._ask_once(what, send)
        except _SessionForgotten:
            # The server refused the session, so nothing was run: it may be asked again in a new one.
            return await self._ask_once(what, send)

    async def _ask_once(self, what: str, send: Send) -> Any:
        if self.asker is not None:
            self.asker.asked = 0
        if self.login is not None:
            self.login.forget_failure()
        try:
            session = await self.connected()
        except McpError as error:
            raise ToolError(f"error: {error}") from error
        if (client := session.client) is None:
            raise ToolError(f"error: {self.server.name!r} has just ended; {what!r} was not asked for")
        try:
            async with self.limits.of(self.server.timeout) as renew:
                try:
                    with self.sdk.without_baggage():
                        return await send(client, renew)
                except self.sdk.McpFailure as error:
                    if not (wanted := self.sdk.to_open(error)):
                        raise
                    raise ToolError(await self._open_first(what, wanted)) from error
        except TimeoutError as error:
            late = f"timed out after {self.server.timeout:g} s"
            raise ToolError(f"error: {what!r} on {self.server.name!r} {late}") from error
        except self.sdk.failures as error:
            raise self._failure(what, session, first_error(error)) from error

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

    def _failure(self, tool: str, session: McpSession, error: BaseException) -> ToolError:
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
