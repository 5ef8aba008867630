"""Streams of events that a middle man cuts anywhere, and very many of them at once."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from tests.counts import MORE
from tests.patience import until
from tests.serve.served import Client, served, types

from swink import Agent, tool
from swink.memory import MemoryStore
from swink.messages import ToolCall
from swink.serve.agentapp import agent_app
from swink.serve.asgi import serve_app
from swink.serve.connections import Connections
from swink.testing import ScriptedModel

WORDS = ["a ", "béta 🜂 ", "c\n\ndata: x ", "d"] * 5
IDLE = 1_000
FILES = 3 * IDLE
MOST = 100_000
"""Bytes in which every event has room."""


class MiddleMan:
    """Hands so many bytes of each answer on, then closes the connection."""

    def __init__(self, host: str, port: int) -> None:
        self._to = host, port
        self.most = 0
        self.tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def standing(self) -> AsyncGenerator[tuple[str, int]]:
        server = await asyncio.start_server(self._serve, "127.0.0.1")
        async with server:
            yield server.sockets[0].getsockname()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection(*self._to)
        try:
            forth.write(await reader.readuntil(b"\r\n\r\n"))
            left = self.most
            while left > 0 and (data := await back.read(left)):
                left -= len(data)
                writer.write(data)
                await writer.drain()
        finally:
            for each in (forth, writer):
                each.close()
                with suppress(ConnectionError):
                    await each.wait_closed()


async def read_raw(
    address: tuple[str, int], path: str, after: int | None = None
) -> AsyncIterator[tuple[int, Any]]:
    """The events that arrive whole, as a browser tells them: each at its empty line, until the end or a cut."""
    reader, writer = await asyncio.open_connection(*address)
    head = f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n"
    writer.write((head + ("" if not after else f"Last-Event-ID: {after}\r\n") + "\r\n").encode())
    try:
        assert b" 200 " in await reader.readline()
        number, data = 0, b""
        while (line := await reader.readline()).endswith(b"\n"):
            if line.startswith(b"id: "):
                number = int(line[4:])
            elif line.startswith(b"data: "):
                data = line[6:]
            elif line == b"\n" and data:
                yield number, json.loads(data)
                data = b""
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def read_through(cutting: MiddleMan, address: tuple[str, int], path: str, most: int) -> list[Any]:
    """All events, come back for after every cut; a little more is let through where nothing arrived."""
    seen: list[tuple[int, Any]] = []
    cutting.most = most
    while not seen or seen[-1][1]["type"] != "agent_end":
        before = len(seen)
        with suppress(ConnectionError):
            async for event in read_raw(address, path, seen[-1][0] if seen else None):
                assert event[0] == len(seen) + 1, "a gap, or a double"
                seen.append(event)
        assert len(seen) > before or cutting.most < MOST, "an event never arrives"
        cutting.most = most if len(seen) > before else cutting.most + 113
    return seen


async def assert_cut_anywhere(client: Client, sizes: range) -> None:
    id = await client.begin()
    run = await client.start(id)
    path = f"/conversations/{id}/runs/{run}/events"
    whole = await client.events(id, run)
    cutting = MiddleMan(str(client.base_url.host), client.base_url.port or 0)
    async with cutting.standing() as address:
        for most in sizes:
            assert await read_through(cutting, address, path, most) == whole
    assert types(whole).count("message_update") >= len(WORDS)


async def test_a_stream_that_is_cut_within_an_event_is_taken_up_without_gap_or_double():
    async with served([WORDS]) as client:
        await assert_cut_anywhere(client, range(400, 1_000, 150))


@pytest.mark.more
@pytest.mark.skipif(not MORE, reason="make test-more runs it")
async def test_a_stream_may_be_cut_after_any_byte():
    async with served([WORDS]) as client:
        await assert_cut_anywhere(client, range(300, 1_100, 7))


@pytest.fixture
def more_files() -> Iterator[int]:
    """How many clients there is room for."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield min(IDLE, (max(soft, wanted) - 200) // 2)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.more
@pytest.mark.skipif(not MORE or sys.platform == "win32", reason="make test-more runs it")
async def test_a_thousand_clients_that_wait_for_one_run_all_hear_its_end_and_leave_nothing(more_files: int):
    @tool
    async def wait() -> str:
        """Wait."""
        await opened.wait()
        return "over"

    opened = asyncio.Event()
    model = ScriptedModel([ToolCall("c1", "wait"), "done"])
    app = agent_app(lambda request: Agent("test:m", stream_fn=model, tools=[wait]), store=MemoryStore())
    connections = Connections(more_files + 20)
    async with serve_app(app, connections=connections) as url, Client(base_url=url, timeout=60) as client:
        id = await client.begin()
        run = await client.start(id)
        before = len(asyncio.all_tasks())
        path = f"/conversations/{id}/runs/{run}/events"
        address, waiting = (str(client.base_url.host), client.base_url.port or 0), 0

        async def read() -> list[tuple[int, Any]]:
            nonlocal waiting
            seen: list[tuple[int, Any]] = []
            async for event in read_raw(address, path):
                seen.append(event)
                waiting += event[1]["type"] == "tool_execution_start"
            return seen

        readers = [asyncio.create_task(read()) for _ in range(more_files)]
        await until(lambda: waiting == more_files or any(each.done() for each in readers), lambda: waiting)
        assert not [each for each in readers if each.done()]
        opened.set()
        told = await asyncio.gather(*readers)
        whole = await client.events(id, run)
        assert types(whole)[-1] == "agent_end"
        assert all(events == whole for events in told)
        await until(lambda: len(asyncio.all_tasks()) <= before, lambda: asyncio.all_tasks())
        await app.aclose()
    await until(lambda: len(asyncio.all_tasks()) == 1, lambda: asyncio.all_tasks())
