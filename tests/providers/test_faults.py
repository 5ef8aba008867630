"""Every adapter against servers and networks that misbehave: a typed outcome, in time, cancellable, and nothing left open."""

import asyncio
import gc
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.utils import formatdate
from typing import Any

import pytest
import trustme
from adapters import ADAPTERS, KEY, PIECES, AdapterCase
from faults import (
    FaultServer,
    Talk,
    answering,
    bomb,
    dropping,
    flooding,
    hanging_up,
    pinging,
    replying,
    resetting,
    silent,
    stalling,
    stalling_in_a_refusal,
)
from loopback import Read, read
from tests.counts import crossed, in_cells

from swink import Agent, ExponentialBackoff
from swink.agent.agentresult import AgentResult
from swink.stream import Done, Error, StreamOptions, Timeout

SHORT = 0.2
SOON = 10.0
"""Seconds in which a test must be over where the limits are `SHORT`: far more than it takes, far less than the defaults."""

each = pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=ADAPTERS)


@asynccontextmanager
async def facing(
    adapter: AdapterCase, talk: Talk, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[Any, FaultServer]]:
    """A stream function and the server it talks to. On the way out: its connections are closed, and no task is left."""
    before = asyncio.all_tasks()
    async with FaultServer(talk, tls=tls) as server:
        fn = adapter.make(server.url, KEY)
        yield fn, server
        await fn.aclose()
        await server.all_closed()
    gc.collect(1)  # an unclosed client warns here, and warnings are errors
    for _ in range(6_000):
        if not (left := asyncio.all_tasks() - before):
            break
        await asyncio.sleep(0.005)
    assert not left, left


async def ask(fn: Any, adapter: AdapterCase, timeout: Timeout | None = None) -> Read:
    """One request, straight to the stream function, which has to end by itself."""
    async with asyncio.timeout(SOON):
        return await read(fn, adapter.model, options=StreamOptions(timeout=timeout))


def agent_for(fn: Any, adapter: AdapterCase, timeout: Timeout | None = None) -> Agent:
    limits = timeout or Timeout(idle=SHORT, first=SHORT, connect=SOON)
    return Agent(
        adapter.model,
        stream_fn=fn,
        options=StreamOptions(timeout=limits),
        retry=ExponentialBackoff(max_attempts=1),
    )


async def run(fn: Any, adapter: AdapterCase) -> AgentResult:
    """One run of an agent, whose watchdog counts content."""
    async with asyncio.timeout(SOON):
        return await agent_for(fn, adapter).run("Hello")


def failed(result: Read, kind: str) -> Error:
    """The error that a reply ended with, free of the key."""
    assert isinstance(result.terminal, Error), result.terminal
    assert result.terminal.kind == kind, result.terminal
    assert KEY not in repr(result)
    return result.terminal


@each
async def test_a_healthy_server_is_understood(adapter: AdapterCase):
    async with facing(adapter, replying(adapter)) as (fn, server):
        result = await run(fn, adapter)
    assert result.text == "".join(PIECES)
    assert result.stop_reason == "stop"
    assert (result.usage.input, result.usage.output) == (10, 5)
    assert len(server.requests) == 1


# --- below HTTP ------------------------------------------------------------------------------------------------------


@each
async def test_a_refused_connection_is_a_network_error(adapter: AdapterCase):
    with socket.socket() as reserved:
        reserved.bind(
            ("127.0.0.1", 0)
        )  # bound and not listening: nobody else gets the port, and nobody answers on it
        fn = adapter.make(f"http://127.0.0.1:{reserved.getsockname()[1]}", KEY)
        error = failed(await ask(fn, adapter), "network")
        await fn.aclose()
    assert "127.0.0.1" in error.message


@pytest.fixture(scope="module")
def unknown_authority() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    return context


@each
async def test_a_certificate_that_nobody_vouches_for_is_a_network_error_and_no_key_is_sent(
    adapter: AdapterCase, unknown_authority: ssl.SSLContext
):
    async with facing(adapter, replying(adapter), tls=unknown_authority) as (fn, server):
        error = failed(await ask(fn, adapter), "network")
        assert server.requests == []
    assert "certificate" in error.message.lower()


@each
async def test_a_server_that_does_not_speak_tls_is_a_network_error(adapter: AdapterCase):
    async with FaultServer(silent) as server:
        fn = adapter.make(server.url.replace("http:", "https:"), KEY)
        # The server reads a handshake where it waits for a request, and never answers it.
        failed(await ask(fn, adapter, Timeout(connect=SHORT)), "network")
        await fn.aclose()
        await server.all_closed()


@crossed(adapter=ADAPTERS, how=["close", "reset"])
async def test_a_kept_connection_that_the_server_had_given_up_is_not_an_error(adapter: AdapterCase, how: str):
    async with facing(adapter, hanging_up(adapter, 1, how)) as (fn, server):
        for _ in range(2):
            assert (await ask(fn, adapter)).message.text == "".join(PIECES)
    assert (len(server.requests), server.connections) == (3, 2)


@crossed(adapter=ADAPTERS, how=["close", "reset"])
async def test_a_new_connection_that_is_dropped_is_not_tried_again_by_the_adapter(
    adapter: AdapterCase, how: str
):
    async with facing(adapter, hanging_up(adapter, 0, how)) as (fn, server):
        failed(await ask(fn, adapter), "network")
    assert len(server.requests) == 1


@crossed(adapter=ADAPTERS, how=["close", "reset"])
async def test_a_whole_reply_whose_framing_ends_badly_is_kept(adapter: AdapterCase, how: str):
    async with facing(adapter, dropping(adapter, how)) as (fn, server):
        result = await ask(fn, adapter)
    assert isinstance(result.terminal, Done)
    assert result.message.text == "".join(PIECES)
    assert len(server.requests) == 1


# --- silence: through an agent, whose watchdog counts content ----------------------------------------------------------


@each
async def test_headers_that_never_come_are_given_up(adapter: AdapterCase):
    async with facing(adapter, silent) as (fn, server):
        result = await run(fn, adapter)
        await server.all_closed()
    assert result.error_kind == "network", result.error
    assert "no content" in str(result.error)


@each
async def test_pings_without_content_are_given_up(adapter: AdapterCase):
    async with facing(adapter, pinging(adapter)) as (fn, server):
        result = await run(fn, adapter)
        await server.all_closed()
    assert result.error_kind == "network", result.error
    assert "no content" in str(result.error)


@each
async def test_a_stall_inside_an_event_is_given_up_and_what_arrived_is_kept(adapter: AdapterCase):
    async with facing(adapter, stalling(adapter)) as (fn, server):
        result = await run(fn, adapter)
        await server.all_closed()
    assert result.error_kind == "network", result.error
    assert result.messages[-1].text == PIECES[0]


@each
async def test_a_reset_is_a_network_error_and_what_arrived_is_kept(adapter: AdapterCase):
    async with facing(adapter, resetting(adapter)) as (fn, _):
        result = await run(fn, adapter)
    assert result.error_kind == "network", result.error
    assert result.messages[-1].text == PIECES[0]
    assert KEY not in repr(result)


HANGING = {
    "headers": lambda adapter: silent,
    "pings": pinging,
    "event": stalling,
    "refusal": lambda adapter: stalling_in_a_refusal,
}


@crossed(adapter=ADAPTERS, where=[*HANGING])
async def test_an_abort_wins_at_once_and_drops_the_connection(adapter: AdapterCase, where: str):
    async with facing(adapter, HANGING[where](adapter)) as (fn, server):
        agent = agent_for(fn, adapter, Timeout(idle=60, first=60))
        running = asyncio.ensure_future(agent.run("Hello"))
        async with asyncio.timeout(SOON):
            await server.asked.wait()
            if where == "event":
                while not (agent.streaming_message and agent.streaming_message.text):
                    await asyncio.sleep(0.005)
            else:
                await asyncio.sleep(0.02)
            agent.abort()
            result = await running
        assert result.stop_reason == "aborted"
        await server.all_closed()
        if where == "event":
            assert result.messages[-1].text == PIECES[0]


@each
async def test_an_abort_wins_over_a_handshake_that_hangs(adapter: AdapterCase):
    async with FaultServer(silent) as server:
        fn = adapter.make(server.url.replace("http:", "https:"), KEY)
        agent = agent_for(fn, adapter, Timeout(idle=60, first=60, connect=60))
        running = asyncio.ensure_future(agent.run("Hello"))
        async with asyncio.timeout(SOON):
            while not server.connections:
                await asyncio.sleep(0.005)
            agent.abort()
            assert (await running).stop_reason == "aborted"
            await server.all_closed()
        await fn.aclose()


# --- refusals ----------------------------------------------------------------------------------------------------------


def in_an_hour() -> str:
    return formatdate(time.time() + 3600, usegmt=True)


THROTTLED = {
    "nothing": (dict, None),
    "seconds": (lambda: {"retry_after": "7"}, 7.0),
    "milliseconds": (lambda: {"retry_after_ms": "1500", "retry_after": "2"}, 1.5),
    "date": (lambda: {"retry_after": in_an_hour()}, 3600.0),
    "nonsense": (lambda: {"retry_after": "soon"}, None),
}


@crossed(adapter=ADAPTERS, form=[*THROTTLED])
async def test_throttling_says_how_long_to_wait(adapter: AdapterCase, form: str):
    headers, seconds = THROTTLED[form]
    async with facing(adapter, answering(429, b'{"error": {"message": "slow down"}}', **headers())) as (
        fn,
        _,
    ):
        result = await ask(fn, adapter)
    error = failed(result, "throttled")
    assert [type(event).__name__ for event in result.events] == ["Start", "Error"]
    assert "slow down" in error.message
    assert error.retry_after == (pytest.approx(seconds, abs=60) if form == "date" else seconds)


@crossed(adapter=ADAPTERS, status=[408, 500, 502, 503, 504, 529])
async def test_trouble_on_the_other_side_is_a_network_error(adapter: AdapterCase, status: int):
    async with facing(
        adapter, answering(status, b'{"error": {"message": "overloaded"}}', retry_after="3")
    ) as (fn, _):
        result = await ask(fn, adapter)
    error = failed(result, "network")
    assert [type(event).__name__ for event in result.events] == ["Start", "Error"]
    assert str(status) in error.message
    assert error.retry_after == 3


@crossed(adapter=ADAPTERS, status=[401, 403])
async def test_a_refused_key_is_an_auth_error_that_does_not_repeat_it(adapter: AdapterCase, status: int):
    body = f'{{"error": {{"message": "Incorrect key provided: {KEY}. See \\"{KEY}\\""}}}}'.encode()
    async with facing(adapter, answering(status, body)) as (fn, server):
        error = failed(await ask(fn, adapter), "auth")
    assert "Incorrect key provided" in error.message
    assert KEY.encode() in server.requests[0]


PAGE = b"<!DOCTYPE html><html><head><style>p {color: red}</style></head><body><h1>502</h1><p>Bad gateway at the edge</p></body></html>"


@each
async def test_an_error_page_is_read_as_text(adapter: AdapterCase):
    async with facing(adapter, answering(502, PAGE, "text/html")) as (fn, _):
        error = failed(await ask(fn, adapter), "network")
    assert "Bad gateway at the edge" in error.message
    assert "<" not in error.message
    assert "color" not in error.message


@each
async def test_a_page_instead_of_a_stream_says_that_the_url_is_wrong(adapter: AdapterCase):
    async with facing(adapter, answering(200, PAGE, "text/html; charset=utf-8")) as (fn, _):
        error = failed(await ask(fn, adapter), "stream")
    assert "base_url" in error.message


@crossed(adapter=ADAPTERS, media_type=["application/json", "text/plain", "application/octet-stream", ""])
async def test_an_answer_that_is_something_else_is_an_error_and_no_empty_reply(
    adapter: AdapterCase, media_type: str
):
    async with facing(
        adapter, answering(200, b'{"hello": ["world"], "padding": "0123456789abcdef"}', media_type)
    ) as (fn, _):
        result = await ask(fn, adapter)
    assert isinstance(result.terminal, Error)
    assert result.terminal.kind in ("stream", "network")
    assert result.message.content == ()


@each
async def test_a_stream_under_another_name_is_still_read(adapter: AdapterCase):
    async with facing(adapter, answering(200, b"".join(adapter.text), "application/octet-stream")) as (fn, _):
        assert (await ask(fn, adapter)).message.text == "".join(PIECES)


@crossed(adapter=ADAPTERS, status=[301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed_and_the_key_goes_nowhere(adapter: AdapterCase, status: int):
    async with FaultServer(replying(adapter)) as other:
        elsewhere = f"http://localhost:{other.port}/?key={KEY}"
        async with facing(adapter, answering(status, b"", location=elsewhere)) as (fn, server):
            error = failed(await ask(fn, adapter), "stream")
        assert len(server.requests) == 1
        assert other.connections == 0
    assert "redirect" in error.message


# --- too much ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def packed() -> bytes:
    return bomb()


def peak() -> int:
    """The most memory this process has held, in KiB on Linux and bytes on macOS; either way it only grows."""
    resource = pytest.importorskip("resource", reason="Windows counts memory in another way")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@each
async def test_a_line_without_an_end_is_given_up_long_before_it_ends(adapter: AdapterCase):
    holder: list[FaultServer] = []
    async with facing(adapter, flooding(holder, adapter.media_type)) as (fn, server):
        holder.append(server)
        result = await ask(fn, adapter)
        await server.all_closed()
    assert isinstance(result.terminal, Error)
    assert result.terminal.kind in ("stream", "network")
    assert server.sent < 40 * 2**20


@each
async def test_a_refusal_without_an_end_is_cut_short(adapter: AdapterCase):
    holder: list[FaultServer] = []
    async with facing(adapter, flooding(holder, "text/plain", status=500)) as (fn, server):
        holder.append(server)
        error = failed(await ask(fn, adapter), "network")
        await server.all_closed()
    assert server.sent < 20 * 2**20
    assert len(error.message) < 4096


@each
@in_cells("status", [200, 500], every=5)
async def test_a_gzip_bomb_goes_off_nowhere(adapter: AdapterCase, status: int, packed: bytes):
    before = peak()
    async with facing(adapter, answering(status, packed, adapter.media_type, content_encoding="gzip")) as (
        fn,
        server,
    ):
        result = await ask(fn, adapter)
        await server.all_closed()
    assert isinstance(result.terminal, Error)
    assert result.terminal.kind in ("stream", "network")
    assert len(result.terminal.message) < 4096
    unit = 1024 if before < 2**31 else 1
    assert (peak() - before) * unit < 90 * 2**20
