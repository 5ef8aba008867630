"""A tool server over streamable HTTP: who may ask is checked here, before the SDK sees a request."""

import asyncio
import hmac
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from swink.errors import MisuseError
from swink.serve.admission import check_visitor
from swink.serve.asgi import App, Message, Receive, Send, admit, serve_app
from swink.serve.mcp.toolserver import ToolServer
from swink.serve.wire import Refused
from swink.stream.urls import is_loopback
from swink.system.aio import wait_through_cancel

PATH = "/mcp"
_REFUSED = -32_000
_FAREWELL = 5.0
"""Seconds in which a request ends after its client has left."""


@asynccontextmanager
async def serve_http(
    tools: ToolServer, host: str = "127.0.0.1", port: int = 0, token: str | None = None
) -> AsyncGenerator[str, None]:
    """Serve the tools while the block runs, and give their URL; beyond loopback only with a token.

    Args:
        tools: what is served
        host: the address to listen on
        port: the port; 0 takes a free one
        token: what clients send as a bearer token
    """
    if not token and not is_loopback(host):
        remedy = "give a token that clients must send, or serve on 127.0.0.1"
        raise MisuseError(f"serving on {host} lets the whole network use the tools; {remedy}")
    sessions = _Sessions(tools)
    try:
        async with sessions, serve_app(_Front(sessions.manager, token), host, port) as url:
            yield f"{url}{PATH}"
    except OSError as error:
        raise MisuseError(f"{host}:{port} cannot be served: {error.strerror or error}") from error
    finally:
        await tools.aclose()


class _Sessions:
    """The SDK's sessions, in a task of their own: they live in a task group."""

    def __init__(self, tools: ToolServer) -> None:
        self.manager: Any = tools.sdk.SessionManager(tools.server)
        self._stopped = asyncio.Event()

    async def __aenter__(self) -> None:
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold(ready), name="swink-mcp-sessions")
        await ready

    async def __aexit__(self, *error: object) -> None:
        self._stopped.set()
        await self._task

    async def _hold(self, ready: "asyncio.Future[None]") -> None:
        async with self.manager.run():
            ready.set_result(None)
            await self._stopped.wait()


class _Front:
    """Lets those through who may ask: programs of this machine, or holders of the token."""

    def __init__(self, manager: Any, token: str | None) -> None:
        self._manager = manager
        self._token = token.encode() if token else None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        try:
            if scope["path"] != PATH:
                raise Refused(404, f"the tools are at {PATH}")
            self._check(scope)
        except Refused as refused:
            await _refuse(send, refused)
            return
        admit(scope)
        await _Exchange(receive, send).run(self._manager.handle_request, scope)

    def _check(self, scope: Message) -> None:
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        if self._token is None:
            check_visitor(headers, scope["scheme"])
            return
        given = [value for name, value in headers if name.lower() == b"authorization"]
        kind, _, word = (given[0] if len(given) == 1 else b"").partition(b" ")
        if kind.lower() != b"bearer" or not hmac.compare_digest(word.strip(), self._token):
            raise Refused(401, "send the header Authorization: Bearer with the token of this server")
        host = next((value for name, value in headers if name.lower() == b"host"), b"").decode("latin-1")
        here = f"{scope['scheme']}://{host}".lower()
        if any(
            value.decode("latin-1").lower() != here for name, value in headers if name.lower() == b"origin"
        ):
            raise Refused(403, "the header Origin names a web page elsewhere")


class _Exchange:
    """A request as the SDK expects it: a client that leaves is a message, and no cancellation.

    Clients close a stream once they have their answer; a session must outlive that.
    """

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._is_read = False
        self._left = asyncio.Event()

    async def run(self, app: App, scope: Message) -> None:
        task = asyncio.ensure_future(app(scope, self.receive, self.send))
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            self._left.set()
            await wait_through_cancel(task, timeout=_FAREWELL)
            task.cancel()
            raise

    async def receive(self) -> Message:
        if self._is_read:
            await self._left.wait()
        if self._left.is_set():
            return {"type": "http.disconnect"}
        message = await self._receive()
        self._is_read = not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        if self._left.is_set():
            return
        try:
            await self._send(message)
        except ConnectionError:
            self._left.set()


async def _refuse(send: Send, refused: Refused) -> None:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": _REFUSED, "message": str(refused)}}
    headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
    if refused.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": msgspec.json.encode(error), "more_body": False})
