"""The watchdog (S7): a stuck stream is given up in time, whatever it does about it, and nobody else notices."""

import asyncio
import contextlib
import contextvars
import gc
import weakref
from typing import Any

import pytest

from swink import Agent, ExponentialBackoff, ToolCall, tool
from swink.stream import (
    Assembly,
    Done,
    PromptProgress,
    Start,
    StreamOptions,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingStart,
    Timeout,
    ToolCallDelta,
    ToolCallStart,
)
from swink.stream.watch import Watch
from swink.testing import ScriptedModel, history_problems

SOON = 0.15
ONCE = ExponentialBackoff(max_attempts=1)


async def hangs(*call: Any) -> Any:
    yield Start()
    await asyncio.Event().wait()


async def hangs_after_content(*call: Any) -> Any:
    yield Start()
    yield TextStart(0)
    yield TextDelta(0, "so far")
    await asyncio.Event().wait()


class Deaf:
    """Goes on whatever it is told, until `over`."""

    def __init__(self) -> None:
        self.over = False

    async def __call__(self, *call: Any) -> Any:
        yield Start()
        while not self.over:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.02)


async def hangs_in_its_finally(*call: Any) -> Any:
    try:
        yield Start()
        await asyncio.Event().wait()
    finally:
        await asyncio.Event().wait()


async def hangs_after_its_end(*call: Any) -> Any:
    yield Start()
    yield TextStart(0)
    yield TextDelta(0, "whole")
    yield TextEnd(0)
    yield Done()
    await asyncio.Event().wait()


class HangsWhenClosed:
    def __init__(self, *call: Any) -> None:
        pass

    def __aiter__(self) -> "HangsWhenClosed":
        return self

    async def __anext__(self) -> Any:
        await asyncio.Event().wait()

    async def aclose(self) -> None:
        await asyncio.Event().wait()


def stuck_on(stream_fn: Any, timeout: Any = SOON) -> Agent:
    return Agent("test:m", stream_fn=stream_fn, retry=ONCE, options=StreamOptions(timeout=timeout))


@pytest.mark.parametrize(
    "stream_fn",
    [hangs, hangs_after_content, hangs_after_its_end, hangs_in_its_finally, HangsWhenClosed, Deaf()],
)
async def test_a_stuck_stream_is_given_up_whatever_it_does_about_it(
    stream_fn: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("swink.stream.watch.AGAIN", 0.05)
    agent = stuck_on(stream_fn)
    async with asyncio.timeout(20):
        result = await agent.run("hi")
    if stream_fn is hangs_after_its_end:
        assert (result.stop_reason, result.text) == ("stop", "whole")
    else:
        assert (result.stop_reason, result.error_kind) == ("error", "network")
        assert "no content" in (result.error or "")
    assert history_problems(agent.messages) == []
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    if isinstance(stream_fn, Deaf):
        stream_fn.over = True
        await asyncio.sleep(0.1)


async def test_the_pause_between_words_is_watched_from_the_first_word_on():
    async def talks_late(*call: Any) -> Any:
        yield Start()
        await asyncio.sleep(0.2)
        yield TextStart(0)
        yield TextDelta(0, "so far")
        await asyncio.Event().wait()

    assert (await stuck_on(talks_late, Timeout(idle=0.1, first=600)).run("hi")).error_kind == "network"


async def test_a_short_limit_begun_after_a_long_one_is_kept():
    patient = asyncio.create_task(stuck_on(hangs, 60.0).run("hi"))
    await asyncio.sleep(0)
    async with asyncio.timeout(20):
        assert (await stuck_on(hangs).run("hi")).error_kind == "network"
    assert not patient.done()
    patient.cancel()
    await asyncio.wait([patient])


async def test_many_at_once_each_keep_their_own_limit():
    agents = [stuck_on(hangs, 0.05 + number % 5 / 20) for number in range(50)]
    alive = [Agent("test:m", stream_fn=ScriptedModel(["fine"])) for _ in range(50)]
    async with asyncio.timeout(20):
        ended = await asyncio.gather(*(agent.run("hi") for agent in [*agents, *alive]))
    assert [result.error_kind for result in ended[:50]] == ["network"] * 50
    assert [result.text for result in ended[50:]] == ["fine"] * 50


@pytest.mark.parametrize("limits", [float("nan"), -1, "soon"])
async def test_limits_that_are_none_fail_their_own_run_alone(limits: Any):
    class Odd:
        timeout = limits

        def __call__(self, *call: Any) -> Any:
            return hangs(*call)

    odd, other = Agent("test:m", stream_fn=Odd(), retry=ONCE), stuck_on(hangs)
    async with asyncio.timeout(20):
        first, second = await asyncio.gather(odd.run("hi"), other.run("hi"))
    assert first.stop_reason == "error"
    assert (second.stop_reason, second.error_kind) == ("error", "network")


async def test_a_number_of_seconds_on_the_stream_function_is_a_limit():
    class Slow:
        timeout = SOON

        def __call__(self, *call: Any) -> Any:
            return hangs(*call)

    async with asyncio.timeout(20):
        assert (await Agent("test:m", stream_fn=Slow(), retry=ONCE).run("hi")).error_kind == "network"


def test_an_event_loop_closed_under_a_run_is_freed_with_all_that_ran_on_it():
    loop = asyncio.new_event_loop()
    agent = stuck_on(hangs, 60.0)

    async def leave(agent: Agent) -> None:
        agent.stream("hi").detach()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for task in asyncio.all_tasks():
            task._log_destroy_pending = False  # type: ignore[attr-defined]  asyncio would warn of what this test is about

    loop.run_until_complete(leave(agent))
    loop.close()
    agent.abort()
    assert not agent.is_running
    assert history_problems(agent.messages) == []
    gone = [weakref.ref(loop), weakref.ref(agent)]
    del loop, agent
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


VALUE: contextvars.ContextVar[Any] = contextvars.ContextVar("value")


class Precious:
    pass


@pytest.mark.parametrize("options", [{}, {"tool_timeout": 600.0}])
async def test_the_context_of_a_finished_run_is_not_kept_by_any_timer(options: dict[str, Any]):
    @tool
    async def look(text: str) -> str:
        """Look."""
        return text

    async def one() -> "weakref.ref[Precious]":
        value = Precious()
        VALUE.set(value)
        script: Any = ScriptedModel([[ToolCall("1", "look", {"text": "x"})], "done"])
        await Agent("test:m", stream_fn=script, tools=[look], **options).run("hi", deadline=600.0)
        return weakref.ref(value)

    alive = await asyncio.create_task(one())
    await asyncio.sleep(0.01)
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize(
    "event",
    [TextDelta(0, ""), ThinkingDelta(1, ""), ToolCallDelta(2, ""), PromptProgress(1, 2)],
    ids=["text", "thinking", "call", "prompt"],
)
async def test_an_event_without_content_does_not_feed_the_watchdog(event: Any) -> None:
    async def empty(*call: Any) -> Any:
        yield Start()
        yield TextStart(0)
        yield ThinkingStart(1)
        yield ToolCallStart(2, "1", "look")
        while True:
            yield event
            await asyncio.sleep(0.01)

    agent = Agent("test:model", stream_fn=empty, retry=ONCE, options=StreamOptions(timeout=SOON))
    async with asyncio.timeout(60):
        result = await agent.run("go")
    assert "no content" in (result.error or "")


async def test_blocks_that_open_and_close_empty_do_not_feed_the_watchdog() -> None:
    async def empty(*call: Any) -> Any:
        yield Start()
        for index in range(100_000):
            yield TextStart(index)
            yield TextEnd(index)
            await asyncio.sleep(0.01)

    agent = Agent("test:model", stream_fn=empty, retry=ONCE, options=StreamOptions(timeout=SOON))
    async with asyncio.timeout(60):
        result = await agent.run("go")
    assert "no content" in (result.error or "")


async def test_a_prompt_of_which_more_is_read_is_not_stuck():
    watch = Watch(asyncio.get_running_loop(), lambda: None)
    reading = watch.task = asyncio.ensure_future(asyncio.Event().wait())
    assembly, now = Assembly(), asyncio.get_running_loop().time()
    watch.begin(assembly, Timeout(idle=10, first=10))
    assembly.feed(Start())
    for done in range(1, 10):
        assembly.feed(PromptProgress(done, 10))
        now += 9
        watch.look(now)
    assert reading.cancelling() == 0
    assembly.feed(PromptProgress(9, 10))
    watch.look(now + 11)
    assert reading.cancelling() == 1
    watch.end()
    reading.cancel()
    await asyncio.wait([reading])
