"""HTTP for adapters: the `HttpClient` protocol, and the default client on aiohttp.

    Request ──send──▶ Response(status, headers) ──async for──▶ bytes ──aclose──▶ connection back in the pool

`StreamOptions.http` may hold any `HttpClient`, for example one that replays bytes in a test. Adapters share
one connection pool per event loop, each through a client of its own (`shared_client`): the pool closes with
the last of them, or when its event loop shuts down, so nobody has to close anything.
"""

import asyncio
import atexit
import re
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextvars import ContextVar
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import urlsplit
from weakref import WeakSet

from msgspec import Struct, field

from swink.errors import NetworkError, StreamError
from swink.messages.redact import redact_text
from swink.stream import StreamOptions, Timeout
from swink.stream.urls import is_local
from swink.system import VERSION

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

_ESCAPED = re.compile(r"[!-~]*")


class Request(Struct, frozen=True):
    """One HTTP request; header names are lower-case.

    Args:
        url: where it goes
        headers: their names in lower case
        body: what is sent
        method: of HTTP
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    method: str = "POST"
    secrets: tuple[str, ...] = ()
    """What the body carries that nobody else may see."""

    def __repr__(self) -> str:
        return f"Request({self.method} {self.url}, {len(self.body)} bytes)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("method", self.method), ("url", self.url)]


class Unsent(NetworkError):
    """No connection came about: the request never reached anybody."""


class Response(Protocol):
    """An answer whose body is read by iterating over it; headers are found by their names in lower case."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    def __aiter__(self) -> AsyncIterator[bytes]: ...
    async def aclose(self) -> None:
        """Give the connection back, or drop it where the body was not read to its end."""
        ...


class HttpClient(Protocol):
    """Sends requests. Failures below HTTP raise `NetworkError`; redirects are answers, never followed."""

    async def send(self, request: Request, timeout: Timeout) -> Response: ...
    async def aclose(self) -> None: ...


def client_for(options: StreamOptions, own: HttpClient | None = None) -> HttpClient:
    """The caller's client, or else the adapter's own."""
    return cast(HttpClient, options.http) if options.http is not None else own or _default


def shared_client() -> "AiohttpClient":
    """A client on the pools that all adapters of the process share; closing it leaves the others theirs."""
    return AiohttpClient(_shared)


def timeout_for(options: StreamOptions, default: Timeout) -> Timeout:
    """The time limits of one call: the caller's, or else the adapter's own."""
    match options.timeout:
        case Timeout() as timeout:
            return timeout
        case None:
            return default
        case seconds:
            return Timeout(idle=seconds, first=seconds, connect=min(seconds, default.connect))


class AiohttpClient:
    """The default client: one session with a connection pool per event loop.

    Proxies come from the environment. aiohttp's own `trust_env` is not used for that: it also adds passwords
    from .netrc to requests that carry a key already, and costs two hops to a thread per request.
    """

    def __init__(self, pools: "Pools | None" = None) -> None:
        self._pools = Pools() if pools is None else pools

    async def send(self, request: Request, timeout: Timeout) -> Response:
        """Send one request and wait for the head of its answer."""
        import aiohttp
        from aiohttp.http_exceptions import HttpProcessingError

        pool = await self._pools.held_by(self)
        pool.active += 1
        try:
            answer = await pool.request(request, timeout)
        except BaseException as error:
            await pool.leave()
            if isinstance(error, aiohttp.ClientError | OSError):
                # No other time limit than that of connecting is set.
                unsent = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ServerTimeoutError)
                raise (Unsent if unsent else NetworkError)(_explain(request.url, error)) from error
            if isinstance(error, ValueError):  # a header that HTTP cannot carry
                raise StreamError(_explain(request.url, error)) from None
            raise
        return _AiohttpResponse(answer, pool, (aiohttp.ClientError, OSError, HttpProcessingError))

    async def aclose(self) -> None:
        """Let go of this event loop's session; it closes when no client holds it and every answer is read."""
        await self._pools.let_go(self)

    def __reduce__(self) -> tuple[Callable[[], "AiohttpClient"], tuple[()]]:
        return (shared_client if self._pools is _shared else AiohttpClient), ()


class Pools:
    """The connection pools of several clients: one for each event loop, closed when no client holds it."""

    def __init__(self) -> None:
        self._pools: dict[asyncio.AbstractEventLoop, _Pool] = {}

    def __len__(self) -> int:
        return len(self._pools)

    async def held_by(self, client: AiohttpClient) -> "_Pool":
        """The pool of the running event loop, which stays open until the client lets go of it."""
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is not None:
            pool.holders.add(client)
            return pool
        left = [self._pools.pop(known) for known in list(self._pools) if known.is_closed()]
        pool = self._pools[loop] = _Pool(lambda: self._forget(loop, pool))
        pool.holders.add(client)
        await anext(pool.keeper)
        for other in left:
            await other.session.close()
        return pool

    async def let_go(self, client: AiohttpClient) -> None:
        """The client is done with the pool of the running event loop."""
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is not None:
            pool.holders.discard(client)
            if not pool.holders:
                del self._pools[loop]
                await pool.retire()

    def _forget(self, loop: asyncio.AbstractEventLoop, closing: "_Pool | None") -> None:
        if self._pools.get(loop) is closing:  # a later request may have opened another
            del self._pools[loop]

    def close_at_exit(self) -> None:
        """Close the sessions of event loops that were never shut down."""
        for loop, pool in list(self._pools.items()):
            if loop.is_closed():
                asyncio.run(pool.session.close())
            elif not loop.is_running():
                loop.run_until_complete(pool.session.close())


class _Pool:
    """One aiohttp session, held by an async generator, which `loop.shutdown_asyncgens()` closes."""

    def __init__(self, forget: Callable[[], Any]) -> None:
        from urllib.request import getproxies

        import aiohttp

        self.session = aiohttp.ClientSession(
            connector=_connector(),
            cookie_jar=aiohttp.DummyCookieJar(),
            # Compression would delay small events; an answer that is compressed all the same is decoded.
            headers={"accept-encoding": "identity", "user-agent": f"swink/{VERSION}"},
        )
        self.active = 0
        self.holders: WeakSet[AiohttpClient] = WeakSet()
        self._retired = False
        self._forget = forget
        self.keeper = self._keep()
        self._proxies = {scheme: url for scheme, url in getproxies().items() if scheme in ("http", "https")}

    async def request(self, request: Request, timeout: Timeout) -> "aiohttp.ClientResponse":
        """Send one request; if the server closes a kept connection without a byte, once more on a new one."""
        import aiohttp

        _route.set(route := _Route())
        try:
            return await self._send(request, timeout)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            if route.kept is None or route.kept.heard or route.renewed:
                raise
            lost = error
        try:
            return await self._send(request, timeout)
        except (aiohttp.ClientConnectorError, aiohttp.ServerTimeoutError) as error:
            raise lost from error  # nobody can tell whether the first one was read

    def _send(self, request: Request, timeout: Timeout) -> Awaitable["aiohttp.ClientResponse"]:
        return self.session.request(
            request.method,
            _url(request.url),
            data=request.body or None,
            headers=request.headers,
            allow_redirects=False,
            timeout=_client_timeout(timeout.connect),
            proxy=self.proxy(request.url),
        )

    async def retire(self) -> None:
        self._retired = True
        if not self.active:
            await self.keeper.aclose()

    async def leave(self) -> None:
        self.active -= 1
        if self._retired and not self.active:
            await self.keeper.aclose()

    def proxy(self, url: str) -> str | None:
        if not self._proxies:
            return None
        from urllib.request import proxy_bypass

        parts = urlsplit(url)
        host = parts.hostname or ""
        found = self._proxies.get(parts.scheme)
        if not found or is_local(host) or proxy_bypass(host):
            return None
        return found if "://" in found else f"http://{found}"

    async def _keep(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self._forget()
            await self.session.close()


@lru_cache(64)
def _url(text: str) -> "URL":
    """The URL to send; an escaped one stays as it is, because it was signed so, and %2F is not a slash."""
    from yarl import URL

    return URL(text, encoded=_ESCAPED.fullmatch(text) is not None)


@lru_cache(16)
def _client_timeout(connect: float) -> "aiohttp.ClientTimeout":
    import aiohttp

    return aiohttp.ClientTimeout(total=None, connect=connect, sock_connect=connect)


class _Route:
    """How a request travels: over which kept connection, and whether that was given up for a new one."""

    kept: Any = None
    renewed = False


_route: ContextVar[_Route] = ContextVar("swink.route")


def _connector() -> "aiohttp.BaseConnector":
    import aiohttp
    from aiohttp.client_proto import ResponseHandler

    class Protocol(ResponseHandler):
        """Notes whether anything came since a request was sent."""

        heard = False

        def data_received(self, data: bytes) -> None:
            self.heard = True
            ResponseHandler.data_received(self, data)  # for every packet, and `super()` is slow

    class Connector(aiohttp.TCPConnector):
        """Gives a request at most one kept connection; if that was dead, its host's others are closed."""

        def __init__(self) -> None:
            super().__init__(limit=0)  # pyright: ignore[reportUnknownMemberType]
            self._factory = partial(Protocol, loop=asyncio.get_running_loop())

        async def _get(self, key: Any, traces: Any) -> Any:
            route = _route.get()
            if route.kept is not None:  # aiohttp itself repeats a GET
                route.renewed = True
                for protocol, _ in self._conns.pop(key, ()):
                    protocol.close()
                return None
            connection = await super()._get(key, traces)
            if connection is not None:
                route.kept = connection.protocol
                route.kept.heard = False
            return connection

    return Connector()


class _AiohttpResponse:
    """An answer of aiohttp's as a `Response`; closing it gives the connection back to its pool."""

    def __init__(
        self, answer: "aiohttp.ClientResponse", pool: _Pool, failures: tuple[type[Exception], ...]
    ) -> None:
        self.status = answer.status
        self.headers: Mapping[str, str] = answer.headers
        self._answer = answer
        self._pool: _Pool | None = pool
        self._read = answer.content.readany
        self._failures = failures

    @property
    def ended(self) -> bool:
        """Whether the whole body has been read."""
        return self._answer.content.at_eof()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._read()
        except self._failures as error:
            raise NetworkError(_explain(str(self._answer.url), error)) from error
        if not chunk:
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        """Give the connection back, or drop it where the body was not read to its end."""
        pool, self._pool = self._pool, None
        if pool is not None:
            self._answer.release()
            await pool.leave()


def _explain(url: str, error: BaseException) -> str:
    """What went wrong with a request, in plain words where it is clear."""
    place = urlsplit(url).netloc
    cause = getattr(error, "os_error", None)  # of a connection that was not made
    if isinstance(cause, ConnectionRefusedError):
        return f"{place}: connection refused: nothing listens there; is the server running?"
    if isinstance(cause, socket.gaierror):
        return f"{place}: there is no host of this name, or it cannot be looked up from here"
    name, detail = type(error).__name__, redact_text(str(error))
    return f"{place}: {name}: {detail}" if detail else f"{place}: {name}"


_shared = Pools()
_default = AiohttpClient(_shared)
atexit.register(_shared.close_at_exit)
