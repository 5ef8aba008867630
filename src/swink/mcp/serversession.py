"""One connection to a server, opened, held and closed in its own task.

The SDK's task groups must be entered and left in one task.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from swink.mcp.authorisation import AuthorisedClient
from swink.mcp.probing import ProtocolProbe
from swink.mcp.sdk import first_error
from swink.mcp.serverconfig import HttpServer, McpError, StdioServer
from swink.mcp.serverlists import ServerLists
from swink.mcp.serveroutput import Stderr
from swink.mcp.servertransport import parameters_of, watched
from swink.messages.redact import redact_text
from swink.system import VERSION
from swink.system.aio import mark_exception_seen, wait_through_cancel
from swink.system.threads import in_thread

if TYPE_CHECKING:
    from swink.mcp.connection import ServerConnection

log = logging.getLogger("swink.mcp")

_MOST_BYTES = 64 << 20
"""Of one message over HTTP; images are large."""


class McpSession:
    """One connection, opened, held and closed in its own task."""

    def __init__(self, connection: "ServerConnection") -> None:
        self.client: Any = None
        self.lists = ServerLists(connection.sdk, connection.server.secrets, connection.on_change)
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
                is_stdio = isinstance(self._of.server, StdioServer)
                probe = ProtocolProbe(self._of.sdk) if is_stdio and mode == "auto" else None
                transport = watched(await self._transport(stack), self._ended, self._of.sdk, probe)
                us = self._of.sdk.Implementation(name="swink", version=VERSION)
                calling = {"elicitation_callback": self._of.asker, "message_handler": self.lists.notice}
                more: Any = {"client_info": us, "extensions": [self._of.tasks.extension], **calling}
                client = self._of.sdk.Client(transport, mode=mode, cache=None, **more)
                self.client = await stack.enter_async_context(client)
                await self.lists.open(self.client)
            if self._stderr is not None:
                self._stderr.close()
            self.opened.set_result(None)
            async with _beside(self.lists.follow(), self.lists.listen()):
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
        return sdk.stdio_client(parameters_of(server, sdk), errlog=self._stderr.file)

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
async def _beside(*work: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    """A block beside which something else is done, which ends with it."""
    tasks = [asyncio.create_task(each, name="swink-mcp-lists") for each in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await wait_through_cancel(asyncio.ensure_future(asyncio.wait(tasks)))
