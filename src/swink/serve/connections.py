"""Connections: how many a server holds at once, and which are dropped when there are more.

A connection is a stranger's until the application has admitted a request of it: `admitted`. Strangers make
room first: the oldest of the address that has most of them. So nobody who opens connections and says nothing,
from however many addresses, keeps out those who have a token, and no stream of theirs is cut off for a
stranger. TLS is begun here too, so that a handshake that never ends is a stranger like any other.
"""

import asyncio
import ipaddress
import ssl
import sys
from functools import partial
from typing import Any, cast

from aiohttp import web

HEAD_SECONDS = 10.0
IDLE_SECONDS = 15.0
MOST_CONNECTIONS = 1000
_GRACE = 1.0
"""Seconds for which an address may have more than its share: many clients of one address may come at once."""
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Type: text/plain\r\n\r\nall connections are taken; try again soon\n"
)


class Connections:
    """The open connections of one server; one whose first request is late is dropped."""

    def __init__(
        self, most: int | None = None, head_seconds: float = HEAD_SECONDS, each: int | None = None
    ) -> None:
        """At most `most` in all, and `each` strangers of one address: a quarter of all by default."""
        self._most = most or min(MOST_CONNECTIONS, _room())
        self._each = each or max(1, self._most // 4)
        self._head_seconds = head_seconds
        self._open: dict[Any, _Watched] = {}
        self._strangers: dict[str, dict[_Watched, None]] = {}
        self._closing = False
        self.handshakes: set[asyncio.Task[None]] = set()

    def protocol(self, server: web.Server, tls: ssl.SSLContext | None) -> asyncio.Protocol:
        """The protocol of a new connection."""
        return _Watched(cast(asyncio.Protocol, server()), self, tls)

    def opened(self, connection: "_Watched") -> bool:
        """Count a connection and start the timer for its first request; False if there is no room for it."""
        if self._closing:
            return False
        self._open[connection.inner] = connection
        group = self._strangers.setdefault(connection.group, {})
        group[connection] = None
        oldest = next(iter(group))
        if len(group) > self._each and connection.since - oldest.since > _GRACE:
            oldest.drop()
        if len(self._open) > self._most:
            victim = next(iter(max(self._strangers.values(), key=len)))
            if victim is connection:
                self.closed(connection)
                return False
            victim.drop()
        connection.timer = asyncio.get_running_loop().call_later(self._head_seconds, connection.drop)
        return True

    def request_began(self, inner: Any) -> None:
        """The head of a request has arrived."""
        if (connection := self._open.get(inner)) is not None:
            connection.stop_timer()

    def admitted(self, inner: Any) -> None:
        """A request was let in: its sender is no stranger."""
        if (connection := self._open.get(inner)) is not None:
            self._forget_stranger(connection)

    def closed(self, connection: "_Watched") -> None:
        if self._open.pop(connection.inner, None) is not None:
            connection.stop_timer()
            self._forget_stranger(connection)

    async def close(self) -> None:
        """Take no more, and drop every stranger."""
        self._closing = True
        for group in list(self._strangers.values()):
            for connection in list(group):
                connection.drop()
        await asyncio.gather(*self.handshakes)

    def _forget_stranger(self, connection: "_Watched") -> None:
        group = self._strangers.get(connection.group, {})
        group.pop(connection, None)
        if not group:
            self._strangers.pop(connection.group, None)


class Site(web.BaseSite):
    """An address that a server listens on."""

    def __init__(
        self, runner: web.AppRunner, at: tuple[str, int], connections: Connections, tls: ssl.SSLContext | None
    ) -> None:
        super().__init__(runner, ssl_context=tls)
        self._address = at
        self._tls = tls
        self._connections = connections

    @property
    def name(self) -> str:
        """The address as a URL."""
        return f"{'https' if self._tls else 'http'}://{self._address[0]}:{self._address[1]}"

    async def start(self) -> None:
        await super().start()
        server = self._runner.server
        assert server is not None
        make = partial(self._connections.protocol, server, self._tls)
        self._server = await asyncio.get_running_loop().create_server(make, *self._address)


class _Watched(asyncio.Protocol):
    """aiohttp's protocol, which by itself would wait for the first request for ever."""

    def __init__(self, inner: asyncio.Protocol, connections: Connections, tls: ssl.SSLContext | None) -> None:
        self.inner = inner
        self.group = ""
        self.since = asyncio.get_running_loop().time()
        self.timer: asyncio.TimerHandle | None = None
        self._connections = connections
        self._tls = tls
        self._transport: asyncio.Transport | None = None
        self._is_securing = False
        self._is_begun = False
        self._early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.group = _group(transport.get_extra_info("peername"))
        if not self._connections.opened(self):
            if self._tls is None:
                self._transport.write(_FULL)
                self._transport.close()
            else:
                self._transport.abort()
        elif self._tls is None:
            self._begin_requests(transport)
        else:
            self._is_securing = True
            task = asyncio.get_running_loop().create_task(self._secure(self._transport, self._tls))
            self._connections.handshakes.add(task)
            task.add_done_callback(self._connections.handshakes.discard)

    def data_received(self, data: bytes) -> None:
        if self._is_begun:
            self.inner.data_received(data)
        elif self._is_securing:
            self._early.append(data)  # it came with the end of the handshake

    def eof_received(self) -> bool | None:
        return self.inner.eof_received() if self._is_begun else None

    def pause_writing(self) -> None:
        if self._is_begun:
            self.inner.pause_writing()

    def resume_writing(self) -> None:
        if self._is_begun:
            self.inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.closed(self)
        if self._is_begun:
            self.inner.connection_lost(exc)

    def drop(self) -> None:
        """Close it at once, whatever the other side does."""
        self._connections.closed(self)
        if self._transport is not None:
            self._transport.abort()

    def stop_timer(self) -> None:
        """The first request is there, or the connection gone."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    async def _secure(self, transport: asyncio.Transport, tls: ssl.SSLContext) -> None:
        try:
            secure = await asyncio.get_running_loop().start_tls(
                transport, self, tls, server_side=True, ssl_handshake_timeout=HEAD_SECONDS
            )
        except (OSError, TimeoutError):
            secure = None  # the other side spoke no TLS, or left
        if secure is None:
            self.drop()
        else:
            self._begin_requests(secure)

    def _begin_requests(self, transport: asyncio.BaseTransport) -> None:
        self._is_begun = True
        self.inner.connection_made(transport)
        for data in self._early:
            self.inner.data_received(data)
        self._early.clear()


def _group(peer: Any) -> str:
    """Whom an address belongs to: a network of 64 bits is one customer's in IPv6."""
    if not isinstance(peer, tuple):
        return ""
    host = str(cast("tuple[Any, ...]", peer)[0]).partition("%")[0]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.version == 6 and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return host


def _room() -> int:
    """How many connections the system lets a process have, with one to a provider for each."""
    if sys.platform == "win32":
        return MOST_CONNECTIONS
    import resource

    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST_CONNECTIONS if allowed == resource.RLIM_INFINITY else max(16, (allowed - 64) // 2)
