"""A small ASGI server on aiohttp, for programs that bring none of their own."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeAlias

from aiohttp import web

from swink.serve.connections import IDLE_SECONDS, Connections, Site
from swink.serve.wire import Refused

SHUTDOWN_SECONDS = 0.1
SEND_SECONDS = 60.0
AT_ONCE = 32 * 1024
"""Bytes that an empty buffer of a connection takes without waiting for the client."""
_ADMITTED = "swink.admitted"
_CUT_OFF = "swink.cut_off"

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]


@asynccontextmanager
async def serve_app(
    app: App,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    tls: ssl.SSLContext | None = None,
    connections: Connections | None = None,
) -> AsyncGenerator[str, None]:
    """Serve an ASGI application while the block runs; gives the base URL it is reached at.

    A client that disconnects cancels the application's call; one that does not read its answer is dropped.
    When connections run short, those that the application has not admitted (`admit`) are dropped. Leaving the
    block closes every connection.

    Args:
        app: the application
        host: the address to listen on
        port: the port; 0 takes a free one
        tls: makes it https
        connections: those that are open, if somebody else has to know
    """
    connections = connections or Connections()

    async def answer(request: web.Request) -> web.StreamResponse:
        connections.request_began(request.protocol)
        exchange = _Exchange(request)
        scope = exchange.scope()
        scope["extensions"] = {
            _ADMITTED: partial(connections.admitted, request.protocol),
            _CUT_OFF: exchange.cut_off,
        }
        await app(scope, exchange.receive, exchange.send)
        return exchange.response or web.Response(status=500)

    site = web.Application()
    site.router.add_route("*", "/{path:(?s:.*)}", answer)
    limits: dict[str, Any] = {"shutdown_timeout": SHUTDOWN_SECONDS, "keepalive_timeout": IDLE_SECONDS}
    # As ASGI has it, a body is given as it came: whether it is compressed is for the application to say.
    limits["auto_decompress"] = False
    runner = web.AppRunner(site, handler_cancellation=True, access_log=None, **limits)
    await runner.setup()
    try:
        await Site(runner, (host, port), connections, tls).start()
        bound = runner.addresses[0]
        shown = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        yield f"{'https' if tls else 'http'}://{shown}:{bound[1]}"
    finally:
        await connections.close()
        await runner.cleanup()


def admit(scope: Message) -> None:
    """Mark the sender of a request as admitted: its connection is not dropped to make room for others."""
    if (admitted := scope.get("extensions", {}).get(_ADMITTED)) is not None:
        admitted()


def cut_off(scope: Message) -> None:
    """Close the connection of a request at once, if the server can: its client does not read."""
    if (close := scope.get("extensions", {}).get(_CUT_OFF)) is not None:
        close()


async def read_body(receive: Receive, most: int, seconds: float) -> bytes | None:
    """The body of a request; None if the client left before it was complete, `Refused` if it is too large."""
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                body += message.get("body", b"")
                if len(body) > most:
                    raise Refused(413, f"the request is larger than {most} bytes")
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        raise Refused(408, "the request did not arrive in time") from None


class _Exchange:
    """One request and its answer, translated to ASGI."""

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self.response: web.StreamResponse | None = None
        self._head: Message = {}
        self._read_all = False

    def scope(self) -> Message:
        request = self._request
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": f"{request.version.major}.{request.version.minor}",
            "method": request.method,
            "scheme": request.scheme,
            "path": request.path,
            "raw_path": request.rel_url.raw_path.encode(),
            "query_string": request.query_string.encode(),
            "headers": [(name.lower(), value) for name, value in request.raw_headers],
            "client": request.transport.get_extra_info("peername")[:2] if request.transport else None,
            "server": None,
        }

    async def receive(self) -> Message:
        if self._read_all:
            # Nothing more comes; when the client disconnects, aiohttp cancels the call.
            return await asyncio.get_running_loop().create_future()
        chunk = await self._request.content.readany()
        self._read_all = self._request.content.at_eof()
        return {"type": "http.request", "body": chunk, "more_body": not self._read_all}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._head = message
            return
        response = self.response
        if response is None:
            given = self._head.get("headers", ())
            headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in given]
            response = self.response = web.StreamResponse(status=self._head["status"], headers=headers)
            await response.prepare(self._request)
        # A body after HEAD would be read as the answer to the next request of the connection.
        body: bytes = b"" if self._request.method == "HEAD" else message.get("body", b"")
        is_last = not message.get("more_body", False)
        transport = self._request.transport
        if len(body) < AT_ONCE and transport is not None and not transport.get_write_buffer_size():
            await _write(response, body, is_last)  # takes no time, and a timer would
            return
        try:
            async with asyncio.timeout(SEND_SECONDS):
                await _write(response, body, is_last)
        except TimeoutError:
            self.cut_off()
            raise ConnectionAbortedError("the client does not read its answer") from None

    def cut_off(self) -> None:
        """Close the connection, whatever waits to be sent."""
        if self._request.transport is not None:
            self._request.transport.abort()


async def _write(response: web.StreamResponse, body: bytes, is_last: bool) -> None:
    if is_last:
        await response.write_eof(body)
    elif body:
        await response.write(body)
