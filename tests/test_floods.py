"""Much of everything: what is read, counted or kept again and again must not cost its square."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from swink import Agent, Tool, ToolCall, ToolError, ToolResultMessage, tool
from swink.stream import Done, Start, ToolCallDelta, ToolCallEnd, ToolCallStart
from swink.testing import ScriptedModel, history_problems


async def seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    await work()
    return time.perf_counter() - started


async def test_a_thousand_calls_of_one_id_are_told_apart_in_time() -> None:
    @tool
    async def look() -> str:
        """Look."""
        return "seen"

    model = ScriptedModel([[ToolCall("", "look", {})] * 4_000, "done"])
    agent = Agent("test:model", stream_fn=model, tools=[look])
    assert await seconds(lambda: agent.run("go")) < 1.5
    assert history_problems(agent.messages) == []
    ids = [getattr(message, "tool_call_id", None) for message in agent.messages[2:5]]
    assert ids == ["", "_2", "_3"]


async def test_an_id_made_unique_is_no_id_of_another_call() -> None:
    @tool
    async def look() -> str:
        """Look."""
        return "seen"

    calls = [ToolCall(id, "look", {}) for id in ("a", "a_2", "a", "a", "a_2")]
    agent = Agent("test:model", stream_fn=ScriptedModel([calls, "done"]), tools=[look])
    await agent.run("go")
    ids = [getattr(message, "tool_call_id", None) for message in agent.messages[2:7]]
    assert len(set(ids)) == 5


async def test_ten_thousand_steering_messages_enter_in_time() -> None:
    agent = Agent("test:model", stream_fn=ScriptedModel(["one"]), steering_mode="all")
    for number in range(20_000):
        agent.steer(str(number))
    assert await seconds(lambda: agent.run("go")) < 0.8
    assert len(agent.messages) == 20_002


async def test_a_long_output_grows_in_time_whatever_its_pieces() -> None:
    text = msgspec.json.encode({"value": ["word"] * 60_000}).decode()
    pieces = [ToolCallDelta(0, text[start : start + 8]) for start in range(0, len(text), 8)]
    events = [Start(), ToolCallStart(0, "1", "final_output"), *pieces, ToolCallEnd(0), Done("tool_use")]
    agent = Agent("test:model", stream_fn=ScriptedModel([events]))
    shown = 0

    async def read() -> None:
        nonlocal shown
        async with agent.stream("go", output=list[str]) as run:
            async for value in run.output():
                shown += 1
                last = value
            assert len(last) == 60_000

    assert await seconds(read) < 4
    assert shown > 50


async def test_a_delta_that_is_no_text_fails_the_run_and_not_the_reader() -> None:
    broken: Any = 5
    events = [
        [Start(), ToolCallStart(0, "1", "final_output"), ToolCallDelta(0, broken), ToolCallEnd(0)],
        [ToolCall("1", "final_output", {"value": [1]})],
    ]
    agent = Agent("test:model", stream_fn=ScriptedModel(events))
    with pytest.raises(Exception, match="stream protocol"):
        async with agent.stream("go", output=list[int]) as run:
            async for _ in run.output():
                pass


def raising(error: Exception) -> Tool:
    @tool(max_result=1_000)
    async def fail() -> None:
        """Fail."""
        raise error

    return fail


@pytest.mark.parametrize("error", [ToolError("x" * 50_000), ValueError("x" * 50_000)])
async def test_an_error_is_cut_like_a_result(error: Exception) -> None:
    agent = Agent(
        "test:model", stream_fn=ScriptedModel([ToolCall("1", "fail", {}), "ok"]), tools=[raising(error)]
    )
    result = await agent.run("go")
    failed = result.messages[2]
    assert isinstance(failed, ToolResultMessage)
    assert failed.is_error
    assert 1_000 < len(failed.text) < 1_200


async def test_thousands_of_wrong_arguments_are_told_with_the_first_of_them() -> None:
    @tool
    async def add(numbers: list[int]) -> int:
        """Add."""
        return sum(numbers)

    call = ToolCall("1", "add", {"numbers": ["a"] * 100_000})
    agent = Agent("test:model", stream_fn=ScriptedModel([call, "ok"]), tools=[add])
    result = await agent.run("go")
    told = result.messages[2]
    assert isinstance(told, ToolResultMessage)
    assert told.text.count("is not of type") == 100
    assert told.text.endswith("- and more of the same")
    assert len(asyncio.all_tasks()) == 1
