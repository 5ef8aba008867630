"""Connections: how many a server holds at once, and how long each may take to send its first request."""

import asyncio
import ssl
from typing import Any, cast

from aiohttp import web

HEAD_SECONDS = 10.0
IDLE_SECONDS = 15.0
MOST_CONNECTIONS = 1000


class Connections:
    """The open connections of one server; one too many is dropped, and one whose first request is late."""

    def __init__(self, most: int = MOST_CONNECTIONS, head_seconds: float = HEAD_SECONDS) -> None:
        self._most = most
        self._head_seconds = head_seconds
        self._waiting: dict[Any, asyncio.TimerHandle] = {}
        self._open = 0

    def protocol(self, server: web.Server) -> asyncio.Protocol:
        """The protocol of a new connection."""
        return _Watched(cast(asyncio.Protocol, server()), self)

    def opened(self, protocol: Any, transport: asyncio.Transport) -> None:
        """Count a connection, and start the timer for its first request."""
        self._open += 1
        if self._open > self._most:
            transport.abort()
        else:
            self._waiting[protocol] = asyncio.get_running_loop().call_later(
                self._head_seconds, transport.abort
            )

    def began(self, protocol: Any) -> None:
        """The head of a request has arrived."""
        if (timer := self._waiting.pop(protocol, None)) is not None:
            timer.cancel()

    def closed(self, protocol: Any) -> None:
        """Forget a connection."""
        self._open -= 1
        self.began(protocol)


class Site(web.BaseSite):
    """An address that a server listens on."""

    def __init__(
        self,
        runner: web.AppRunner,
        host: str,
        port: int,
        connections: Connections,
        tls: ssl.SSLContext | None,
    ) -> None:
        super().__init__(runner, ssl_context=tls)
        self._address = host, port
        self._tls = tls
        self._connections = connections

    @property
    def name(self) -> str:
        """The address as a URL."""
        return f"{'https' if self._tls else 'http'}://{self._address[0]}:{self._address[1]}"

    async def start(self) -> None:
        """Listen."""
        await super().start()
        server = self._runner.server
        assert server is not None
        handshake = None if self._tls is None else HEAD_SECONDS
        self._server = await asyncio.get_running_loop().create_server(
            lambda: self._connections.protocol(server),
            *self._address,
            ssl=self._tls,
            ssl_handshake_timeout=handshake,
        )


class _Watched(asyncio.Protocol):
    """aiohttp's protocol with a timer; by itself it would wait for the first request for ever."""

    def __init__(self, inner: asyncio.Protocol, connections: Connections) -> None:
        self._inner = inner
        self._connections = connections
        self.data_received = inner.data_received
        self.pause_writing = inner.pause_writing
        self.resume_writing = inner.resume_writing
        self.eof_received = inner.eof_received

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._inner.connection_made(transport)
        self._connections.opened(self._inner, cast(asyncio.Transport, transport))

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.closed(self._inner)
        self._inner.connection_lost(exc)
