"""Much of everything: what is read, counted or kept again and again must not cost its square."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from tests.counts import left_to_more
from tests.linecount import lines_of_async

from swink import Agent, AssistantMessage, Tool, ToolCall, ToolError, ToolResultMessage, UserMessage, tool
from swink.errors import BrokenHistory
from swink.messages import as_messages
from swink.stream import Done, Start, ToolCallDelta, ToolCallEnd, ToolCallStart
from swink.testing import ScriptedModel, history_problems


async def grows_with_its_square(work: Callable[[int], Awaitable[Any]], size: int) -> bool:
    """Whether four times as much takes far more than four times the work."""
    await work(4)  # what is imported and remembered the first time
    return await lines_of_async(lambda: work(4 * size)) > 6 * await lines_of_async(lambda: work(size))


async def test_a_thousand_calls_of_one_id_are_told_apart_in_time() -> None:
    @tool
    async def look() -> str:
        """Look."""
        return "seen"

    async def ask(number: int) -> None:
        model = ScriptedModel([[ToolCall("", "look", {})] * number, "done"])
        agent = Agent("test:model", stream_fn=model, tools=[look])
        await agent.run("go")
        assert history_problems(agent.messages) == []
        ids = [getattr(message, "tool_call_id", None) for message in agent.messages[2:5]]
        assert ids == ["", "_2", "_3"]

    assert not await grows_with_its_square(ask, 100)


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
    async def steer(number: int) -> None:
        agent = Agent("test:model", stream_fn=ScriptedModel(["one"]), steering_mode="all")
        for each in range(number):
            agent.steer(str(each))
        await agent.run("go")
        assert len(agent.messages) == number + 2

    assert not await grows_with_its_square(steer, 500)


@left_to_more
async def test_a_long_output_grows_in_time_whatever_its_pieces() -> None:
    async def read(words: int) -> None:
        text = msgspec.json.encode({"value": ["word"] * words}).decode()
        pieces = [ToolCallDelta(0, text[start : start + 8]) for start in range(0, len(text), 8)]
        events = [Start(), ToolCallStart(0, "1", "final_output"), *pieces, ToolCallEnd(0), Done("tool_use")]
        agent = Agent("test:model", stream_fn=ScriptedModel([events]))
        async with agent.stream("go", output=list[str]) as run:
            shown = [len(value) async for value in run.output()]
        assert shown[-1] == words
        assert len(shown) > 50
        assert sum(shown) < 60 * words  # what was read each time, all of it together

    await read(60_000)


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
    assert told.text.count("is not of type") == 25
    assert told.text.endswith("- there may be more: only the first of its many values were looked at")
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize("messages", ["text", [UserMessage("a"), AssistantMessage("b", "test", "m")]])
async def test_messages_appended_one_by_one_while_idle_are_looked_at_once(messages: Any) -> None:
    async def add(number: int) -> None:
        agent = Agent("test:model", stream_fn=ScriptedModel([]))
        for _ in range(number):
            agent.append_messages(messages)
        assert len(agent.messages) == number * len(as_messages(messages))

    assert not await grows_with_its_square(add, 100)


async def test_what_is_appended_while_idle_leaves_earlier_snapshots_as_they_were() -> None:
    agent = Agent("test:model", stream_fn=ScriptedModel(["one"]))
    await agent.run("go")
    before = agent.messages
    agent.append_messages([AssistantMessage([ToolCall("c", "look", {})], "test", "m")])
    assert [message.role for message in before] == ["user", "assistant"]
    assert [message.role for message in agent.messages[2:]] == ["assistant", "tool_result"]
    with pytest.raises(BrokenHistory):
        agent.append_messages([ToolResultMessage("c", "look", "late")])
    assert len(agent.messages) == 4
