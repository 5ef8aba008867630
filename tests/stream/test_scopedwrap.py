"""Through: every model in a block of code is asked through a wrapper."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from swink import Agent, CacheMiss, ExponentialBackoff, NetworkError, tool
from swink.messages import ToolCall
from swink.stream import StreamFn
from swink.stream.wrappers import recorded, replayed, through
from swink.testing import ScriptedModel


def counted(into: list[str], name: str) -> Any:
    def wrap(stream_fn: StreamFn) -> StreamFn:
        async def stream(model: Any, context: Any, options: Any) -> Any:
            into.append(f"{name} {model}")
            async for event in stream_fn(model, context, options):
                yield event

        return stream

    return wrap


async def test_a_run_in_the_block_asks_through_the_wrapper_and_one_after_it_does_not():
    asked: list[str] = []
    agent = Agent("test:m", stream_fn=ScriptedModel(["a", "b"]))
    with through(counted(asked, "inner")):
        assert (await agent.run("1")).text == "a"
    assert (await agent.run("2")).text == "b"
    assert asked == ["inner test:m"]


async def test_blocks_nest_and_the_outer_one_is_asked_first():
    asked: list[str] = []
    with through(counted(asked, "outer")), through(counted(asked, "inner")):
        await Agent("test:m", stream_fn=ScriptedModel(["a"])).run("1")
    assert asked == ["outer test:m", "inner test:m"]


async def test_sub_agents_and_fallbacks_are_asked_through_it_too():
    asked: list[str] = []
    inner = Agent("test:inner", stream_fn=ScriptedModel(["found"]))

    @tool
    async def research() -> str:
        """Ask another agent."""
        return (await inner.run("look")).text

    down = ScriptedModel([NetworkError("down"), NetworkError("down")])
    second = ScriptedModel([ToolCall("1", "research", {}), "done"])
    agent = Agent(
        "test:first",
        stream_fn=down,
        tools=[research],
        fallback_models=[("test:second", second)],
        retry=ExponentialBackoff(max_attempts=1),
    )
    with through(counted(asked, "in")):
        assert (await agent.run("go")).text == "done"
    assert {"in test:first", "in test:second", "in test:inner"} == set(asked)


async def test_a_wrapper_is_made_once_for_a_stream_function_and_kept_from_turn_to_turn():
    made: list[StreamFn] = []

    def wrap(stream_fn: StreamFn) -> StreamFn:
        made.append(stream_fn)
        return stream_fn

    model = ScriptedModel(["a", "b"])
    agent = Agent("test:m", stream_fn=model)
    with through(wrap):
        await agent.run("1")
        await agent.run("2")
    assert made == [model]


async def test_tasks_of_the_block_have_its_wrapper_and_others_do_not():
    asked: list[str] = []

    async def run(name: str) -> None:
        await Agent(f"test:{name}", stream_fn=ScriptedModel(["a"])).run("1")

    with through(counted(asked, "in")):
        task = asyncio.create_task(run("inside"))
    await asyncio.gather(task, run("outside"))
    assert asked == ["in test:inside"]


def test_a_run_that_was_recorded_in_a_block_is_replayed_in_one_without_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "cassette.jsonl"
    scripted = ScriptedModel(["18 degrees"])
    with through(lambda _: recorded(scripted, path)):
        first = Agent("openai:gpt-5-mini").run_sync("Weather?")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with through(lambda _: replayed(path)):
        second = Agent("openai:gpt-5-mini").run_sync("Weather?")
        with pytest.raises(CacheMiss, match="Wether"):
            Agent("openai:gpt-5-mini").run_sync("Wether?").raise_for_error()
    assert first.text == second.text == "18 degrees"
