"""The served agent: an ASGI application that has one agent behind several protocols.

    app = agent_app(lambda request: Agent("openai:gpt-5", tools=[…]), store=SqliteStore("agents.db"))

`app` is mounted in FastAPI or Starlette, or runs under any ASGI server; `swink serve agent` runs it too.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress

from swink import __version__
from swink.errors import InvalidInput, MisuseError
from swink.memory import Store
from swink.messages.redact import describe_traceback
from swink.serve.agui.door import AguiDoor
from swink.serve.asgi import Message, Receive, Send, admit
from swink.serve.hosting import LOCAL, Caller, Factory, FolderClaims, Host, ServeLimits
from swink.serve.native import NativeDoor
from swink.serve.openai import OpenAIDoor
from swink.serve.page import PageDoor
from swink.serve.vercel.door import VercelDoor
from swink.serve.web import ClientGone, Door, Exchange, Refused, Route, Router, WebRequest
from swink.serve.web.openapi import describe
from swink.serve.web.request import check_origin, read_request
from swink.serve.web.route import MethodRefused
from swink.tools.definition import call_off_loop

log = logging.getLogger("swink.serve")

Authorize = Callable[[WebRequest], str | Caller | Awaitable[str | Caller | None] | None]
"""Says who a request comes from; None: nobody who is let in."""

DOORS: dict[str, Callable[[Host], Door]] = {
    "native": NativeDoor,
    "openai": OpenAIDoor,
    "ag-ui": AguiDoor,
    "vercel": VercelDoor,
}
"""The protocols by their names."""
_OPEN = (
    "anybody who reaches the proxy for %s may use the agent: behind a proxy on this machine every request "
    "counts as local; pass authorize= to agent_app, or start swink serve agent with --token"
)


def agent_app(
    factory: Factory,
    *,
    store: Store,
    authorize: Authorize | None = None,
    protocols: Sequence[str] = ("native",),
    origins: Collection[str] = (),
    hosts: Collection[str] = (),
    limits: ServeLimits = ServeLimits(),
    directory: str | None = None,
    claims: FolderClaims | None = None,
    page: bool | Callable[[Host], Door] = False,
) -> "AgentApp":
    """An application that serves the agents of `factory`, with its conversations in `store`.

    `authorize(request)` names the caller, who sees its own conversations alone; without it programs on this
    machine are let in. `origins` are web pages elsewhere that may ask, `hosts` the names of a proxy in front.
    With `page` there is a page at `/`, which needs the native protocol; a function makes one of its own.

    Args:
        factory: makes the agent of a conversation, given an `AgentRequest`
        store: where conversations are kept
        protocols: "native", "openai", "ag-ui", "vercel"
        limits: what is allowed, such as runs at the same time
        directory: groups the conversations in the store
        claims: lets one process at a time run a conversation, for a store that cannot do so itself
    """
    host = Host(factory, store, limits, directory=directory, claims=claims)
    for name in protocols:
        if name not in DOORS:
            raise InvalidInput(f"there is no protocol {name!r}; there are {', '.join(DOORS)}")
    doors = [DOORS[name](host) for name in protocols]
    if page is not False:
        if "native" not in protocols:
            raise InvalidInput("the page talks the native protocol; add it to protocols, or leave page out")
        doors.append(PageDoor(host) if page is True else page(host))
    if hosts and authorize is None:
        log.warning(_OPEN, ", ".join(hosts))
    return AgentApp(host, doors, authorize, origins, hosts)


class AgentApp:
    """The ASGI application; `host` has its conversations.

    Args:
        doors: the protocols
        authorize: names the caller of a request
        origins: web pages elsewhere that may ask
        hosts: names of a proxy in front
    """

    def __init__(
        self,
        host: Host,
        doors: Sequence[Door],
        authorize: Authorize | None,
        origins: Collection[str],
        hosts: Collection[str],
    ) -> None:
        self.host = host
        self._authorize = authorize
        self._origins = frozenset(origins)
        self._hosts = hosts
        described = _Description()
        self._router = Router([*doors, described])
        described.routes_of = [route for door in doors for route in door.routes()]

    def __repr__(self) -> str:
        return f"agent_app({type(self.host.store).__name__})"

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1003})
        else:
            raise MisuseError(f"the application answers HTTP only, not {scope['type']}")

    async def aclose(self) -> None:
        """Begin no more runs, let those under way end their turn, and save them; the lifespan does it too."""
        await self.host.aclose()

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self.host.take_up_soon()
            elif message["type"] == "lifespan.shutdown":
                await self.aclose()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return

    async def _answer(self, scope: Message, receive: Receive, send: Send) -> None:
        door = self._router.door_at("/")
        exchange = Exchange(
            WebRequest("", "", {}, {}, None), LOCAL, {}, self.host.limits, scope, receive, send
        )
        try:
            request = read_request(scope)
            door = self._router.door_at(request.path)
            headers = self._headers_for(request)
            exchange = Exchange(request, LOCAL, {}, self.host.limits, scope, receive, send, headers=headers)
            check_origin(request, self._hosts, self._origins, is_open=self._authorize is not None)
            if request.method == "OPTIONS" and headers:
                await _allow(exchange)
                return
            exchange.caller = await self._caller(request)
            admit(scope)
            route, door, exchange.path = self._router.find(request.method, request.path)
            await _carry_out(route, exchange)
        except Refused as refused:
            await _refuse(exchange, door, refused)
        except ClientGone:
            pass
        except Exception as error:
            # A door, or what it calls of the application's, failed: the client is told only that.
            log.error("%s %s failed\n%s", scope["method"], scope["path"], describe_traceback(error))
            await _refuse(exchange, door, Refused(500, "the request failed; the server's log says why"))

    async def _caller(self, request: WebRequest) -> Caller:
        if self._authorize is None:
            return LOCAL
        try:
            caller = await call_off_loop(self._authorize, request, name="authorize")
        except Refused:
            raise
        except Exception as error:
            # It is the application's code, and lets nobody in when it fails.
            log.error("authorize failed\n%s", describe_traceback(error))
            raise Refused(500, "nobody can be let in now; the server's log says why") from None
        if isinstance(caller, Caller):
            return caller
        if isinstance(caller, str) and caller.isprintable() and caller:
            return Caller(caller)
        raise Refused(401, "nobody is let in like this; send the header Authorization that this server wants")

    def _headers_for(self, request: WebRequest) -> tuple[tuple[bytes, bytes], ...]:
        """What a page of another origin needs to read the answer, if it may."""
        origin = request.headers.get("origin")
        if origin is None or origin not in self._origins:
            return ()
        return ((b"access-control-allow-origin", origin.encode("latin-1")), (b"vary", b"Origin"))


class _Description:
    """`/openapi.json`: what the application answers."""

    def __init__(self) -> None:
        self.routes_of: Sequence[Route] = ()

    def failure(self, status: int, message: str) -> object:
        return {"error": {"message": message}}

    def routes(self) -> Sequence[Route]:
        return [Route("GET", "/openapi.json", self._describe, "This description")]

    async def _describe(self, exchange: Exchange) -> None:
        await exchange.send_json(200, describe([*self.routes_of, *self.routes()], "swink", __version__))


async def _carry_out(route: Route, exchange: Exchange) -> None:
    try:
        await route.answer(exchange)
        await exchange.end()
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if not exchange.gone or current is None:
            raise
        current.uncancel()  # the client has left, and nobody waits for the answer any more
    finally:
        await exchange.close()


async def _allow(exchange: Exchange) -> None:
    """Answer a browser that asks whether a page may send its request."""
    headers = {
        "access-control-allow-methods": "GET, POST, DELETE",
        "access-control-allow-headers": "authorization, content-type, idempotency-key, last-event-id",
        "access-control-max-age": "600",
    }
    await exchange.send(204, b"", "text/plain", headers)


async def _refuse(exchange: Exchange, door: Door, refused: Refused) -> None:
    if exchange.has_begun:
        return  # a stream that ends without its last piece says that something is wrong
    headers: dict[str, str] = {}
    if refused.status in (408, 413):
        headers["connection"] = "close"
    if refused.status == 401:
        headers["www-authenticate"] = "Bearer"
    if isinstance(refused, MethodRefused):
        headers["allow"] = refused.allowed
    with suppress(ClientGone):
        await exchange.send_json(refused.status, door.failure(refused.status, str(refused)), headers)
