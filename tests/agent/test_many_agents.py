"""Many agents at once, many runs in a row: equal results, no growth, nothing left."""

import asyncio
import gc
import weakref
from typing import Any

import pytest
from tests.counts import MORE, left_to_more

from swink import Agent, ToolCall, tool
from swink.agent.engine.run import Run
from swink.testing import ScriptedModel


@tool
async def double(n: int) -> int:
    """Twice."""
    await asyncio.sleep(0)
    return 2 * n


def agent_of(n: int) -> Agent:
    script = [
        [f"agent {n} ", ToolCall("1", "double", {"n": n}), ToolCall("2", "double", {"n": -n})],
        f"done {n}",
    ]
    return Agent("test:m", stream_fn=ScriptedModel(script), tools=[double], state={"n": n})


async def test_200_agents_at_once_give_what_200_in_a_row_give():
    serial = [(await agent_of(n).run(f"go {n}")).messages for n in range(200)]
    agents = [agent_of(n) for n in range(200)]
    at_once = [
        result.messages
        for result in await asyncio.gather(*(agent.run(f"go {n}") for n, agent in enumerate(agents)))
    ]
    assert serial == at_once
    assert [agent.state for agent in agents] == [{"n": n} for n in range(200)]


async def test_nothing_of_a_finished_run_survives():
    runs: list[weakref.ref[Run]] = []
    agent = Agent("test:m", stream_fn=lambda *call: ScriptedModel(["ok"])(*call))
    agent.subscribe(
        lambda event: (
            runs.append(weakref.ref(agent._running.active)) if agent._running.active is not None else None
        )
    )
    for _ in range(5):
        await agent.run("hi")
        async with agent.stream("hi") as stream:
            async for _ in stream:
                pass
        del stream
    await asyncio.sleep(0)
    gc.collect()
    assert runs
    assert [run() for run in runs if run() is not None] == []


@left_to_more
@pytest.mark.more
async def test_thousands_of_runs_do_not_grow_memory():
    resource = pytest.importorskip("resource", reason="Windows counts memory in another way")

    async def one(*call: Any) -> Any:
        async for event in ScriptedModel([[ToolCall("1", "double", {"n": 1})], "ok"])(*call):
            yield event

    async def batch(count: int) -> None:
        for n in range(count):
            script = [[ToolCall("1", "double", {"n": n})], "ok"]
            await Agent("test:m", stream_fn=ScriptedModel(script), tools=[double]).run("hi")

    await batch(1_000)
    gc.collect()
    objects, before = len(gc.get_objects()), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    await batch(9_000 if MORE else 2_000)
    gc.collect()
    assert len(gc.get_objects()) - objects < 200
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 8_000, f"peak memory grew by {grown} KiB"
