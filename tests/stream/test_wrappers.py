"""Wrappers: fallback, recorded, replayed, cached, rate_limited."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from swink import Agent, AuthError, CacheMiss, ExponentialBackoff, NetworkError, ToolCall, ToolResult, tool
from swink.errors import InvalidInput
from swink.events import MessageUpdate
from swink.messages import Cost, ModelSpec, Price, Usage
from swink.stream import Done, Error, PromptProgress, Start, UsageUpdate
from swink.stream.wrappers import cached, fallback, rate_limited, recorded, replayed
from swink.testing import Pause, ScriptedModel, history_problems

NO_RETRY = ExponentialBackoff(max_attempts=1)


@tool
async def weather(city: str) -> str:
    """Weather."""
    return f"clear in {city}"


def agent_on(stream_fn: Any, **options: Any) -> Agent:
    return Agent("test:m", stream_fn=stream_fn, tools=[weather], retry=NO_RETRY, **options)


async def test_fallback_asks_the_next_after_a_retryable_failure_without_content():
    read = PromptProgress(1, 2)
    for failure in (NetworkError("down"), [Start(), read, Error("overloaded", "network")]):
        second = ScriptedModel(["from the second"])
        result = await agent_on(fallback(ScriptedModel([failure]), second)).run("hi")
        assert result.text == "from the second"


async def test_fallback_lets_other_failures_and_broken_replies_through():
    result = await agent_on(fallback(ScriptedModel([AuthError("bad key")]), ScriptedModel(["no"]))).run("hi")
    assert result.error_kind == "auth"
    result = await agent_on(
        fallback(ScriptedModel([["par", NetworkError("cut")]]), ScriptedModel(["no"]))
    ).run("hi")
    assert result.error_kind == "network"
    assert result.text == "par"


async def test_fallback_of_the_last_one_is_its_own_failure():
    result = await agent_on(
        fallback(ScriptedModel([NetworkError("a")]), ScriptedModel([NetworkError("b")]))
    ).run("hi")
    assert "b" in (result.error or "")


@pytest.mark.parametrize("ending", [ConnectionResetError("gone"), None])
async def test_fallback_asks_the_next_after_a_dropped_connection_and_a_reply_that_never_came(
    ending: Exception | None,
):
    async def broken(*call: Any) -> Any:
        yield Start()
        if ending is not None:
            raise ending

    agent = agent_on(fallback(broken, ScriptedModel(["two"])))
    assert (await agent.run("hi")).text == "two"


async def test_a_recorded_run_replays_to_the_same_messages(tmp_path: Path):
    cassette = tmp_path / "deep" / "run.jsonl"
    script = [["hm ", ToolCall("1", "weather", {"city": "Oslo"})], "wear a coat"]
    first = await agent_on(recorded(ScriptedModel(script), cassette)).run("what to wear?")
    second = await agent_on(replayed(cassette)).run("what to wear?")
    assert first.messages == second.messages


async def test_results_with_details_that_are_no_json_are_recorded_like_any_other(tmp_path: Path):
    @tool
    async def odd(city: str) -> ToolResult:
        """Look."""
        return ToolResult("fine", details={(1, 2): object()})

    script: list[Any] = [[ToolCall("1", "odd", {"city": "x"})], "done"]
    agent = Agent("test:m", stream_fn=recorded(ScriptedModel(script), tmp_path / "c.jsonl"), tools=[odd])
    assert (await agent.run("hi")).text == "done"
    again = Agent("test:m", stream_fn=replayed(tmp_path / "c.jsonl"), tools=[odd])
    assert (await again.run("hi")).text == "done"


async def test_a_recorded_failure_is_replayed_as_that_failure(tmp_path: Path):
    cassette = tmp_path / "run.jsonl"
    await agent_on(recorded(ScriptedModel([NetworkError("down", retry_after=3)]), cassette)).run("hi")
    result = await agent_on(replayed(cassette)).run("hi")
    assert result.error_kind == "network"


async def test_replay_of_something_else_fails_with_a_diff_of_the_request(tmp_path: Path):
    cassette = tmp_path / "run.jsonl"
    await agent_on(recorded(ScriptedModel(["a"]), cassette)).run("hello")
    result = await agent_on(replayed(cassette)).run("goodbye")
    assert result.error_kind == "cache_miss"
    assert '-      "text": "hello"' in result.error.replace("   ", "   ") or "hello" in result.error
    assert "goodbye" in result.error


async def test_replay_asked_twice_for_one_recording_fails(tmp_path: Path):
    cassette = tmp_path / "run.jsonl"
    await agent_on(recorded(ScriptedModel(["a"]), cassette)).run("hello")
    play = replayed(cassette)
    assert (await agent_on(play).run("hello")).text == "a"
    assert (await agent_on(play).run("hello")).error_kind == "cache_miss"


def test_replay_without_a_cassette_says_so(tmp_path: Path):
    with pytest.raises(CacheMiss, match="no cassette"):
        replayed(tmp_path / "none.jsonl")


async def test_a_cassette_holds_no_secrets(tmp_path: Path):
    cassette = tmp_path / "run.jsonl"
    key = "sk-proj-abcdefghijklmnop123456"
    await agent_on(recorded(ScriptedModel([f"your key is {key}"]), cassette)).run(f"my key is {key}")
    assert key not in cassette.read_text()
    assert "[redacted]" in cassette.read_text()


async def test_an_aborted_exchange_is_not_recorded(tmp_path: Path):
    cassette = tmp_path / "run.jsonl"
    agent = agent_on(recorded(ScriptedModel([["par", Pause(5), "is"]]), cassette))
    await agent.run("hi", deadline=0.02)
    assert not cassette.exists()


async def test_cached_asks_once_and_keeps_no_failure(tmp_path: Path):
    cassette = tmp_path / "cache.jsonl"
    model = ScriptedModel([NetworkError("down"), "answer"])
    fn = cached(model, cassette)
    assert (await agent_on(fn).run("q")).stop_reason == "error"
    assert (await agent_on(fn).run("q")).text == "answer"
    assert (await agent_on(fn).run("q")).text == "answer"
    assert len(model.calls) == 2
    assert (await agent_on(cached(ScriptedModel([]), cassette)).run("q")).text == "answer"


async def test_rate_limited_spaces_requests_and_bounds_how_many_run_at_once():
    at_once, most = 0, 0

    async def counting(model: Any, context: Any, options: Any) -> Any:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        try:
            async for event in ScriptedModel([[Pause(0.01), "ok"]])(model, context, options):
                yield event
        finally:
            at_once -= 1

    fn = rate_limited(counting, concurrent=2)
    await asyncio.gather(*(agent_on(fn).run("q") for _ in range(6)))
    assert most == 2
    model = ScriptedModel(["a", "b", "c"])
    fn = rate_limited(model, per_minute=1)
    running = [asyncio.create_task(agent_on(fn).run("q")) for _ in range(3)]
    await asyncio.wait(running, return_when="FIRST_COMPLETED")
    await asyncio.sleep(0.05)
    assert [len(model.calls), sum(task.done() for task in running)] == [1, 1]
    for task in running:
        task.cancel()
    await asyncio.wait(running)
    fn = rate_limited(ScriptedModel(["a", "b", "c"]), per_minute=60 / 0.001)
    await asyncio.gather(*(agent_on(fn).run("q") for _ in range(3)))


async def test_cancelling_a_waiting_request_frees_its_place():
    fn = rate_limited(ScriptedModel([[Pause(0.05), "one"], "two"]), concurrent=1)
    first = asyncio.create_task(agent_on(fn).run("a"))
    await asyncio.sleep(0)
    waiting = agent_on(fn)
    result = await waiting.run("b", deadline=0.01)
    assert result.stop_reason == "aborted"
    assert history_problems(waiting.messages) == []
    assert (await first).text == "one"
    assert (await agent_on(fn).run("c")).text == "two"


@pytest.mark.parametrize(
    "limits",
    [{"per_minute": 0}, {"per_minute": -1}, {"per_minute": float("nan")}, {"per_minute": float("inf")},
     {"per_minute": "9"}, {"concurrent": 0}, {"concurrent": -2}, {"concurrent": 1.5}, {"concurrent": True}],
)  # fmt: skip
def test_a_rate_limit_that_limits_nothing_is_refused(limits: dict[str, Any]):
    [name] = limits
    with pytest.raises(InvalidInput, match=name):
        rate_limited(ScriptedModel([]), **limits)


def test_a_fallback_of_nothing_is_refused():
    with pytest.raises(InvalidInput, match=r"fallback\(first, second"):
        fallback()


async def test_wrappers_take_streams_that_cannot_be_closed(tmp_path: Any):
    class Plain:
        def __init__(self) -> None:
            self.events = iter([Start(), Done()])

        def __aiter__(self) -> "Plain":
            return self

        async def __anext__(self) -> Any:
            try:
                return next(self.events)
            except StopIteration:
                raise StopAsyncIteration from None

    for wrap in (recorded, cached):
        agent = Agent("test:m", stream_fn=wrap(lambda *call: Plain(), tmp_path / wrap.__name__))
        assert (await agent.run("go")).stop_reason == "stop"


async def test_a_cache_holds_no_secrets(tmp_path: Any):
    path = tmp_path / "cache.jsonl"
    await Agent("test:m", stream_fn=cached(ScriptedModel(["sk-proj-abcdefghijklmnop123456"]), path)).run("go")
    assert "abcdefghijklmnop" not in path.read_text()


# What they cost

PRICED = ModelSpec("test", "priced", price=Price(1.0, 1.0))


async def test_an_answer_from_the_cassette_costs_nothing(tmp_path: Path):
    fn = cached(ScriptedModel(["answer"], usage=Usage(5, 7)), tmp_path / "c.jsonl")
    first = await Agent(PRICED, stream_fn=fn).run("q")
    assert first.cost == Cost(5e-6, 7e-6)
    second = await Agent(PRICED, stream_fn=fn).run("q")
    assert (second.text, second.usage, second.cost) == ("answer", Usage(5, 7), Cost())


async def test_a_replayed_answer_costs_what_was_recorded(tmp_path: Path):
    script = ["so", UsageUpdate(Usage(5, 1), Cost(total=0.25)), " far"]
    original = await Agent(PRICED, stream_fn=recorded(ScriptedModel([script]), tmp_path / "c.jsonl")).run("q")
    again = await Agent(PRICED, stream_fn=replayed(tmp_path / "c.jsonl")).run("q")
    assert (again.usage, again.cost) == (original.usage, original.cost) == (Usage(5, 1), Cost(total=0.25))


@pytest.mark.parametrize(
    ("failure", "usage"),
    [
        ([Start(), UsageUpdate(Usage(10)), Error("lost", "network")], Usage(15, 7, unknown=True)),
        ([Start(), Error("lost", "network", usage=Usage(10))], Usage(15, 7)),
        ([Start(), Error("busy", "throttled")], Usage(5, 7)),
        (NetworkError("lost"), Usage(5, 7, unknown=True)),
    ],
)
async def test_a_fallback_counts_what_was_asked_in_vain(failure: Any, usage: Usage):
    fn = fallback(ScriptedModel([failure]), ScriptedModel(["answer"], usage=Usage(5, 7)))
    result = await Agent(PRICED, stream_fn=fn).run("q")
    assert (result.text, result.usage) == ("answer", usage)
    assert result.cost == PRICED.price.cost(usage)


async def test_a_fallback_that_is_cut_off_counts_what_was_asked_in_vain():
    first = ScriptedModel([[Start(), Error("lost", "network", usage=Usage(10))]])
    fn = fallback(first, ScriptedModel([[UsageUpdate(Usage(5)), "par", Pause(60)]]))
    agent = Agent(PRICED, stream_fn=fn)
    agent.subscribe(lambda event: agent.abort() if isinstance(event, MessageUpdate) else None)
    result = await agent.run("q")
    assert (result.text, result.usage) == ("par", Usage(15, unknown=True))
