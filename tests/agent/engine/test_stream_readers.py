"""Who reads a run: one reader at a time, or none."""

import asyncio
from typing import Any

import pytest
from tests.scripted import make

from swink import (
    Agent,
)
from swink.errors import MisuseError
from swink.events import (
    MessageUpdate,
)
from swink.stream import Done, Start, TextDelta, TextEnd, TextStart
from swink.testing import Pause


async def test_a_second_reader_of_a_stream_is_refused():
    agent, _ = make([["a", Pause(600), "b"]])
    spoke = asyncio.Event()
    async with agent.stream("go") as run:

        async def read() -> None:
            async for event in run:
                if isinstance(event, MessageUpdate):
                    spoke.set()

        first = asyncio.create_task(read())
        await spoke.wait()
        await asyncio.sleep(0)
        with pytest.raises(MisuseError, match="two readers"):
            await run.__anext__()
        agent.abort()
        await first


async def test_a_second_reader_that_comes_just_as_the_first_wakes_is_told_so_or_reads():
    spoke = asyncio.Event()

    async def talk(*call: Any) -> Any:
        yield Start()
        yield TextStart(0)
        await asyncio.sleep(0.01)
        spoke.set()
        yield TextDelta(0, "x")
        await asyncio.sleep(0.01)
        yield TextEnd(0)
        yield Done()

    stream = Agent("test:m", stream_fn=talk).stream("hi")

    async def read(first: bool) -> int:
        if not first:
            await spoke.wait()
        return len([event async for event in stream])

    async with asyncio.timeout(60):
        ended = await asyncio.gather(read(True), read(False), return_exceptions=True)
    assert any(isinstance(outcome, MisuseError) for outcome in ended)


async def test_a_detached_stream_gathers_nothing():
    agent, _ = make([["a", Pause(0.02), "b"]])
    stream = agent.stream("go")
    async for event in stream:
        if isinstance(event, MessageUpdate):
            stream.detach()
    await agent.wait_for_idle()
    assert not stream._buffer.events
    assert agent.messages[-1].text == "ab"
