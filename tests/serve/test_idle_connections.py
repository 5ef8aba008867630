"""Connections of strangers: however many are open and say nothing, those who have a token are served."""

import asyncio
import os
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import trustme
from tests.counts import MORE

from swink.messages import ModelSpec
from swink.serve.asgi import serve_app
from swink.serve.connections import MOST_CONNECTIONS, Connections
from swink.serve.modelserver import serve_stream_fn
from swink.serve.proxyserver import proxy_app, serve_proxy
from swink.stream import Done, Start, TextDelta, TextStart
from swink.testing import ScriptedModel

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs more loopback addresses than one")

TOKEN = "a-token-for-tests"
BODY = b'{"version": 2, "model": {"provider": "scripted", "model_id": "one"}}'
MOST = 60
"""Connections of the servers here; a real one has more, and `make test-more` opens more than it has."""


class Held:
    """A stream function that says one word, waits, and ends."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    async def __call__(self, model: Any, context: Any, options: Any) -> AsyncIterator[Any]:
        yield Start()
        yield TextStart(0)
        yield TextDelta(0, "first ")
        await self.go_on.wait()
        yield TextDelta(0, "last")
        yield Done("stop")


@asynccontextmanager
async def opened(port: int, addresses: list[str]) -> AsyncIterator[list[Any]]:
    """Connections that say nothing, one from each of these addresses."""
    held: list[Any] = []
    try:
        for address in addresses:
            with suppress(ConnectionError):
                held.append(await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0)))
        yield held
    finally:
        for _, writer in held:
            writer.transport.abort()


async def ask(port: int, address: str, token: str = TOKEN, tls: ssl.SSLContext | None = None) -> bytes:
    """The whole answer to a client at an address."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0), ssl=tls)
    try:
        writer.write(request(token))
        async with asyncio.timeout(60):
            return await reader.read()
    finally:
        writer.transport.abort()


def request(token: str = TOKEN) -> bytes:
    head = f"POST /v1/stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


@asynccontextmanager
async def serving(
    stream_fn: Any = None, most: int = MOST, tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    app = proxy_app({"scripted": stream_fn or ScriptedModel(["hello"] * 50)}, {TOKEN: ["*"]})
    async with serve_app(app, tls=tls, connections=Connections(most, 600)) as url:
        yield port_of(url)


async def open_ones(held: list[Any]) -> int:
    """How many of the connections the server has not closed."""
    await asyncio.sleep(0.1)
    return sum(not reader.at_eof() and reader.exception() is None for reader, _ in held)


FLOODS = {
    "one address": ["127.0.0.1"] * (MOST + 1),
    "many addresses": [f"127.0.1.{number}" for number in range(1, MOST + 2)],
    "the client's own": ["127.0.0.2"] * (2 * MOST),
}


@pytest.mark.parametrize("flood", FLOODS)
async def test_strangers_who_say_nothing_make_room(flood: str):
    async with serving() as port, opened(port, FLOODS[flood]):
        for _ in range(3):
            answer = await ask(port, "127.0.0.2")  # a stranger may stay for 600 seconds
            assert answer.startswith(b"HTTP/1.1 200")
            assert b"hello" in answer


async def test_strangers_with_a_wrong_token_make_room_too():
    async with serving() as port, opened(port, FLOODS["one address"]) as held:
        for _, writer in held:
            writer.write(request("wrong-token").replace(b"Connection: close\r\n", b""))
        await asyncio.sleep(0.2)
        assert (await ask(port, "127.0.0.2")).startswith(b"HTTP/1.1 200")


async def test_a_stream_is_not_cut_off_for_strangers():
    held = Held()
    async with serving(held) as port:
        asked = asyncio.create_task(ask(port, "127.0.0.1"))
        await asyncio.sleep(0.1)
        async with opened(port, ["127.0.0.1"] * (3 * MOST)):
            held.go_on.set()
            assert b"last" in await asked


async def test_a_request_that_is_still_being_sent_is_no_strangers_once_its_token_was_read():
    async with serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head, _, _ = request().partition(BODY)
        writer.write(head)
        await asyncio.sleep(0.1)
        async with opened(port, ["127.0.0.1"] * (2 * MOST)):
            writer.write(BODY)
            async with asyncio.timeout(60):
                assert b"hello" in await reader.read()
        writer.close()


async def test_where_everybody_was_let_in_the_next_is_told_to_come_again():
    held = Held()
    async with serving(held, most=3) as port:
        asked = [asyncio.create_task(ask(port, "127.0.0.1")) for _ in range(3)]
        await asyncio.sleep(0.2)
        answer = await ask(port, "127.0.0.2")
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"try again" in answer
        held.go_on.set()
        assert all([b"last" in await one for one in asked])
        assert b"last" in await ask(port, "127.0.0.2")


async def test_one_address_has_its_share_and_no_more(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("swink.serve.connections._GRACE", 0.0)
    async with serving() as port, opened(port, ["127.0.0.1"] * (MOST // 2)) as held:
        assert await open_ones(held) == MOST // 4
        async with opened(port, ["127.0.0.2"]) as other:
            assert await open_ones(other) == 1


async def test_many_clients_that_come_at_once_from_one_address_are_all_served():
    async with serving() as port:
        answers = await asyncio.gather(*(ask(port, "127.0.0.1") for _ in range(MOST // 2)))
    assert all(b"hello" in answer for answer in answers)


def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    authority = trustme.CA()
    tls, trusting = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    authority.configure_trust(trusting)
    return tls, trusting


async def test_a_handshake_that_is_never_begun_makes_room_too():
    tls, trusting = contexts()
    async with serving(tls=tls) as port, opened(port, ["127.0.0.1"] * (2 * MOST)) as held:
        assert await open_ones(held) <= MOST
        assert b"hello" in await ask(port, "127.0.0.2", tls=trusting)


async def test_nothing_of_strangers_is_left_when_the_server_ends():
    tls, _ = contexts()
    for secure in (None, tls):
        tasks, files = len(asyncio.all_tasks()), len(os.listdir("/proc/self/fd"))
        async with serving(tls=secure) as port, opened(port, ["127.0.0.1"] * (2 * MOST)):
            assert len(asyncio.all_tasks()) > tasks
        async with asyncio.timeout(60):
            while len(asyncio.all_tasks()) > tasks or len(os.listdir("/proc/self/fd")) > files:
                await asyncio.sleep(0.01)


async def test_strangers_lock_nobody_out_of_a_served_model():
    model = ModelSpec("local", "m")
    key = "a-key-for-this-test"
    async with serve_stream_fn(ScriptedModel([]), model, api_key=key) as served:
        port = port_of(served.address)
        count = min(MOST_CONNECTIONS, _files() // 4) + 1 if MORE else MOST
        async with opened(port, ["127.0.0.1"] * count):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0))
            writer.write(f"GET /v1/models HTTP/1.1\r\nHost: x\r\nX-Api-Key: {key}\r\n\r\n".encode())
            async with asyncio.timeout(60):
                assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            writer.close()


@pytest.mark.more
@pytest.mark.skipif(not MORE, reason="make test-more runs it")
async def test_1001_idle_sockets_lock_nobody_out_of_the_real_server(
    more_files: None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("swink.serve.connections.IDLE_SECONDS", 600.0)
    monkeypatch.setattr(Connections.__init__, "__defaults__", (None, 600.0, None))
    async with serve_proxy("127.0.0.1", 0, {"scripted": ScriptedModel(["hello"] * 3)}, {TOKEN: ["*"]}) as url:
        port = port_of(url)
        async with opened(port, ["127.0.0.1"] * 1001):
            for address in ("127.0.0.2", "127.0.0.1"):
                assert b"hello" in await ask(port, address)


@pytest.fixture
def more_files():
    """Enough files for both ends of the connections of a real server."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4096:
        pytest.skip("needs 4,096 open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _files() -> int:
    import resource

    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def test_a_server_takes_no_more_connections_than_the_system_has_files(more_files: None):
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (264, hard))
    try:
        assert Connections()._most == 100
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert Connections()._most == MOST_CONNECTIONS
