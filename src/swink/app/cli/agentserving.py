"""`swink serve agent`: an agent of the user's own, over HTTP, until a signal comes."""

import argparse
import asyncio
import hmac
import inspect
import os
from collections.abc import Awaitable, Callable
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

from swink.agent.agent import Agent
from swink.app.cli.terminal import say
from swink.errors import MisuseError
from swink.memory import Store
from swink.system.interrupts import interruptible
from swink.system.loading import load_object
from swink.system.places import data_dir, expand
from swink.system.threads import run_to_end

if TYPE_CHECKING:
    from swink.serve.page import Entry

_TOKEN = "SWINK_SERVE_TOKEN"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_SHORTEST = 8
_STORES = "sqlite:FILE, postgresql://USER:PASSWORD@HOST/DATABASE, jsonl:DIRECTORY or memory:"


def serve_agent_command(arguments: argparse.Namespace) -> int:
    """Serve an agent until a signal comes."""
    factory = as_factory(load_object(arguments.factory, "swink serve agent"))
    token = arguments.token or os.environ.get(_TOKEN, "").strip() or None
    authorize = None
    if arguments.authorize is not None:
        authorize = load_object(arguments.authorize, "--authorize")
    elif token is not None:
        authorize = holder_of(token)
    if authorize is None and arguments.host not in _LOOPBACK:
        remedy = f"give clients a token (--token, or set {_TOKEN}), or name them with --authorize"
        raise MisuseError(f"serving on {arguments.host} lets the whole network use the agent; {remedy}")
    return run_to_end(_serve(arguments, factory, open_served_store(arguments.store), authorize))


def as_factory(made: Any) -> Callable[[Any], Any]:
    """What was named as a function of the request: an agent, or a function that makes one."""
    if isinstance(made, Agent):
        return lambda request: cast(Any, made)
    if not callable(made):
        raise MisuseError(f"{made!r} is neither an Agent nor a function that makes one")
    try:
        parameters = inspect.signature(made).parameters
    except (TypeError, ValueError):
        return made
    if [*parameters] == ["scope", "receive", "send"]:
        raise MisuseError(
            f"{type(made).__name__} is an ASGI application: serve it with uvicorn, or name the function that"
            " makes the agent instead"
        )
    return made if parameters else lambda request: made()


def holder_of(token: str) -> Callable[[Any], Awaitable[str | None]]:
    """Lets in who sends this bearer token; all of them are one caller."""
    if len(token) < _SHORTEST:
        raise MisuseError(f"a token has at least {_SHORTEST} characters; take a long random one")
    wanted = sha256(token.encode()).digest()

    async def authorize(request: Any) -> str | None:
        given = sha256(request.token.encode("utf-8", "replace")).digest()
        return "token" if hmac.compare_digest(given, wanted) else None

    return authorize


def open_served_store(url: str | None) -> Store:
    """The store that a URL names; without one a SQLite file of swink's own."""
    from swink.memory import JsonlStore, MemoryStore, PostgresStore, SqliteStore

    if url is None:
        place = data_dir() / "served.db"
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return SqliteStore(place)
    kind, _, where = url.partition(":")
    match kind:
        case "sqlite" if path := where.removeprefix("//"):
            return SqliteStore(expand(path))
        case "jsonl" if path := where.removeprefix("//"):
            return JsonlStore(expand(path))
        case "postgresql" | "postgres":
            return PostgresStore(url)
        case "memory":
            return MemoryStore()
        case _:
            raise MisuseError(
                f"--store {kind}: is not known; write {_STORES}"
            )  # the rest may hold a password


async def _serve(
    arguments: argparse.Namespace, factory: Callable[[Any], Any], store: Store, authorize: Any
) -> int:
    from swink.serve.agentapp import DOORS, agent_app
    from swink.serve.asgi import serve_app
    from swink.serve.page import Entry, PageDoor

    page: Any = arguments.page
    entry: Entry | None = None
    if page and authorize is not None and arguments.authorize is None:
        entry = Entry()  # a browser sends no bearer token by itself
        page, authorize = partial(PageDoor, entry=entry), _by_either(entry, authorize)
    app = agent_app(
        factory,
        store=store,
        authorize=authorize,
        protocols=tuple(DOORS),
        hosts=arguments.allow_host,
        origins=arguments.allow_origin,
        page=page,
    )
    stopped = asyncio.Event()
    host, port = arguments.host, arguments.port
    try:
        with interruptible(stopped.set):
            async with serve_app(app, host, port) as url:
                print(url if entry is None else f"{url}/?token={entry.token}", flush=True)
                if entry is not None:
                    say("open this address in a browser: it works once, for one browser")
                say(f"serving {arguments.factory} ({', '.join(DOORS)}); Ctrl-C stops it")
                if host not in _LOOPBACK:
                    remedy = "put a reverse proxy with https in front"
                    say(f"tokens and prompts travel in clear text; {remedy}", "warning")
                app.host.take_up_soon()
                await stopped.wait()
                await app.aclose()
    except OSError as error:
        raise MisuseError(f"{host}:{port} cannot be served: {error.strerror or error}") from error
    finally:
        await store.aclose()
    say("stopped")
    return 0


def _by_either(
    entry: "Entry", holder: Callable[[Any], Awaitable[str | None]]
) -> Callable[[Any], Awaitable[str | None]]:
    """Lets in the browser that opened the page by its address, as the same caller as holders of the token."""

    async def authorize(request: Any) -> str | None:
        return await holder(request) or ("token" if entry.authorize(request) is not None else None)

    return authorize
