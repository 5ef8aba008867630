"""Event loops that are closed under a run, or that begin tasks at once."""

import asyncio
import gc
from typing import Any

import pytest
from tests.scripted import make

from swink import (
    Agent,
    ToolCall,
    tool,
)
from swink.events import MessageUpdate
from swink.testing import Pause, ScriptedModel, history_problems, nesting_problems


def test_an_agent_whose_event_loop_died_is_free_again():
    agent, seen = make([["par", Pause(600)], "ok"])
    loop = asyncio.new_event_loop()
    task = loop.create_task(agent.run("one"))
    spoke = asyncio.Event()
    agent.subscribe(lambda event: spoke.set() if isinstance(event, MessageUpdate) else None)
    loop.run_until_complete(spoke.wait())
    for left in asyncio.all_tasks(loop):
        left._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.close()
    agent.abort()
    assert agent.run_sync("two").text == "ok"
    assert [message.text for message in agent.messages] == ["one", "par", "two", "ok"]
    del task
    gc.collect()


def test_a_stream_dropped_after_its_loop_was_closed_ends_its_run_without_a_word(
    recwarn: pytest.WarningsRecorder,
):
    agent = Agent("test:m", stream_fn=ScriptedModel([["x", Pause(600)], "later"]))
    loop = asyncio.new_event_loop()

    async def leave() -> Any:
        stream = agent.stream("hi")
        await stream.__aenter__()
        await asyncio.sleep(0)
        for task in asyncio.all_tasks():
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        return stream

    stream = loop.run_until_complete(leave())
    loop.close()
    del stream
    gc.collect()
    assert not agent.is_running
    assert agent.run_sync("more").text == "later"
    assert [warning for warning in recwarn if "ignored" in str(warning.message)] == []


@pytest.mark.parametrize("then", ["run", "abort", "reset", "wait"])
def test_a_loop_closed_under_running_tools_and_a_reader_frees_the_agent(then: str):
    @tool
    async def hang(text: str) -> str:
        """Hang."""
        started.append(text)
        await asyncio.Event().wait()
        return text

    started: list[str] = []
    calls = [ToolCall(str(number), "hang", {"text": "x"}) for number in range(2)]
    agent, seen = make([calls, "later", "later"], tools=[hang])
    loop = asyncio.new_event_loop()

    async def read() -> None:
        async for _ in agent.stream("hi"):
            pass

    async def leave() -> None:
        asyncio.create_task(read())  # noqa: RUF006
        while len(started) < 2:
            await asyncio.sleep(0.01)
        for task in asyncio.all_tasks():
            task._log_destroy_pending = False  # type: ignore[attr-defined]

    loop.run_until_complete(leave())
    loop.close()
    match then:
        case "abort":
            agent.abort()
        case "reset":
            agent.reset()
        case "wait":
            asyncio.run(asyncio.wait_for(agent.wait_for_idle(), 60))
        case _:
            assert agent.run_sync("more").text == "later"
    assert not agent.is_running
    assert history_problems(agent.messages) == []
    assert nesting_problems(seen.events) == []


if hasattr(asyncio, "eager_task_factory"):  # Python 3.12 and later

    async def test_tasks_that_begin_at_once_change_nothing():
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        ran: list[str] = []

        @tool
        async def work(text: str) -> str:
            """Work."""
            ran.append(text)
            if text == "steer":
                agent.steer("stop it")
            return text

        calls = [
            [ToolCall(f"{first}{number}", "work", {"text": first}) for number in range(3)]
            for first in ("go", "steer")
        ]
        agent, seen = make([calls[0], calls[1], "heard"], tools=[work])
        assert (await agent.run("hi")).text == "heard"
        assert ran == ["go", "go", "go", "steer"]
        assert history_problems(agent.messages) == []
        assert nesting_problems(seen.events) == []
