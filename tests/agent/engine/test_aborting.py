"""What an abort, a deadline or a cancellation starts no more, and what is kept of what was there."""

import asyncio
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import pytest
from tests.scripted import make

from swink import (
    Agent,
    AgentContext,
    AgentLoopConfig,
    ExponentialBackoff,
    ModelSpec,
    Policy,
    ToolCall,
    agent_loop,
    tool,
)
from swink.errors import NetworkError
from swink.events import (
    AgentEnd,
    AgentStart,
    ApprovalResolved,
    MessageStart,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
)
from swink.messages import Cost, Usage
from swink.stream import Done, Start, TextDelta, TextEnd, TextStart
from swink.testing import EventCollector, ScriptedModel, history_problems
from swink.tools import as_tools


@pytest.mark.parametrize("where", ["approve", "pre_dispatch"])
async def test_no_tool_starts_after_an_abort(where: str):
    ran: list[str] = []

    @tool(requires_approval=True)
    async def danger() -> str:
        ran.append("ran")
        return "x"

    class Abort(Policy):
        def pre_dispatch(self, ctx: Any, call: Any) -> None:
            if where == "pre_dispatch":
                agent.abort()

    async def approve(request: Any) -> bool:
        agent.abort()
        return True

    agent, seen = make(
        [[ToolCall("1", "danger")], "never"], tools=[danger], approve=approve, policies=[Abort()]
    )
    result = await agent.run("go")
    assert result.stop_reason == "aborted"
    assert not ran
    assert not seen.of(ToolExecutionStart)
    assert not any(event.approved for event in seen.of(ApprovalResolved))
    seen.check()


@pytest.mark.parametrize("hook", ["transform_context", "get_api_key"])
async def test_no_model_is_asked_after_an_abort(hook: str):
    def abort(*values: Any) -> Any:
        agent.abort()
        return values[0]

    model = ScriptedModel(["never"])
    agent = Agent("test:m", stream_fn=model, **{hook: abort})  # type: ignore[arg-type]
    assert (await agent.run("go")).stop_reason == "aborted"
    assert not model.calls


@pytest.mark.parametrize("kind", [AgentStart, MessageStart])
async def test_an_abort_at_the_very_first_event_counts(kind: type):
    agent, seen = make(["never"])
    agent.subscribe(lambda event: agent.abort() if isinstance(event, kind) else None)
    assert (await agent.run("go")).stop_reason == "aborted"
    assert [message.text for message in agent.messages] == ["go"]
    seen.check()


async def test_a_deadline_of_nothing_opens_no_turn():
    agent, seen = make(["never"])
    assert (await agent.run("go", deadline=0)).stop_reason == "aborted"
    assert "TurnStart" not in seen.names


async def test_a_stale_run_writes_nothing_into_a_newer_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("swink.agent.engine.run.ABANDON_AFTER", 0.03)
    asked, release, over = 0, asyncio.Event(), asyncio.Event()

    async def stubborn(model: Any, context: Any, options: Any) -> Any:
        nonlocal asked
        asked += 1
        yield Start()
        yield TextStart(0)
        if asked > 1:
            yield TextDelta(0, "new")
        else:
            yield TextDelta(0, "old")
            while not release.is_set():
                with suppress(asyncio.CancelledError):
                    await release.wait()
            over.set()
            yield TextDelta(0, "stale")
        yield TextEnd(0)
        yield Done()

    agent = Agent("test:m", stream_fn=stubborn)
    seen = EventCollector()
    agent.subscribe(seen)
    agent.subscribe(lambda event: agent.abort() if isinstance(event, MessageUpdate) and asked == 1 else None)
    await agent.run("one")
    await agent.run("two")
    release.set()
    await over.wait()
    for _ in range(20):
        await asyncio.sleep(0)
    assert [message.text for message in agent.messages] == ["one", "old", "two", "new"]
    seen.check()


async def test_usage_that_arrived_before_an_abort_is_kept():
    async def lingering(model: Any, context: Any, options: Any) -> Any:
        yield Start()
        yield Done(usage=Usage(10, 5), cost=Cost(1.0))
        agent.abort()
        await asyncio.sleep(1000)

    agent = Agent("test:m", stream_fn=lingering)
    assert (await agent.run("go")).usage.total == 15


@pytest.mark.parametrize("detached", [False, True])
async def test_a_run_whose_task_is_cancelled_before_its_first_step_is_over_like_any_other(detached: bool):
    agent, seen = make(["never", "later"])
    stream = agent.stream("hi")
    await stream.__aenter__()
    if detached:
        stream.detach()
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    async with asyncio.timeout(60):
        if not detached:
            assert [event async for event in stream][-1].stop_reason == "aborted"
        await agent.wait_for_idle()
    assert isinstance(seen.events[-1], AgentEnd)
    assert history_problems(agent.messages) == []
    assert (await agent.run("again")).stop_reason == "stop"


TENANT: ContextVar[str] = ContextVar("tenant")


async def test_what_a_timer_ends_still_sees_the_callers_context():
    @tool(timeout=0.05)
    async def stubborn(text: str) -> str:
        """Ignore everything."""
        while not over:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)
        return text

    over: list[bool] = []
    seen: list[tuple[type, str | None]] = []
    TENANT.set("acme")
    agent, _ = make([[ToolCall("1", "stubborn", {"text": "x"})], "done"], tools=[stubborn])
    agent.subscribe(lambda event: seen.append((type(event), TENANT.get(None))))
    await agent.run("go")
    over.append(True)
    await asyncio.sleep(0.05)
    assert (ToolExecutionEnd, "acme") in seen
    assert {tenant for _, tenant in seen} == {"acme"}


async def test_an_abort_does_not_wait_for_a_steering_provider_nor_leave_it_behind():
    asked = asyncio.Event()

    async def provider() -> Any:
        if not working:
            return []
        asked.set()
        await asyncio.Event().wait()
        return []

    working: list[bool] = []

    @tool
    async def work(text: str) -> str:
        """Work."""
        working.append(True)
        if text == "slow":
            await asyncio.Event().wait()
        return text

    model = ScriptedModel(
        [[ToolCall("1", "work", {"text": "fast"}), ToolCall("2", "work", {"text": "slow"})]]
    )
    config = AgentLoopConfig(model=ModelSpec("test", "m"), stream_fn=model, get_steering=provider)
    stream = agent_loop("go", AgentContext(tools=as_tools([work])), config)
    reader = asyncio.create_task(stream.result())
    await asked.wait()
    reader.cancel()
    async with asyncio.timeout(60):
        await asyncio.wait([reader])
        while asyncio.all_tasks() != {asyncio.current_task()}:
            await asyncio.sleep(0.01)


async def test_a_run_that_was_left_behind_asks_the_model_no_more(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("swink.agent.engine.run.ABANDON_AFTER", 0.03)
    asked, over = [0], asyncio.Event()

    async def deaf(*call: Any) -> Any:
        asked[0] += 1
        yield Start()
        while not over.is_set():
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)
        raise NetworkError("back again")

    agent = Agent("test:m", stream_fn=deaf, retry=ExponentialBackoff(base_delay=0.0))
    result = await agent.run("hi", deadline=0.02)
    over.set()
    await asyncio.sleep(0.05)
    assert result.stop_reason == "aborted"
    assert asked == [1]
