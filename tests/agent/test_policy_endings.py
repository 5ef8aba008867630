"""What policies hear of requests that are repeated and of runs that end badly, and how they tell who spoke."""

import asyncio
import logging
from typing import Any

import pytest
from tests.patience import until

from swink import (
    Agent,
    AssistantMessage,
    AuthError,
    ContextWindowOverflow,
    ExponentialBackoff,
    Inject,
    NetworkError,
    Policy,
    Replace,
    Stop,
    StreamOptions,
    ToolCall,
    UserMessage,
    tool,
)
from swink.agent.policy import Ending, PolicyContext
from swink.testing import Pause, ScriptedModel

QUICK = ExponentialBackoff(base_delay=0)


@tool
async def act(value: int = 0) -> str:
    """Acts."""
    await asyncio.sleep(0)
    return "ok"


@tool
async def hang() -> str:
    """Takes long."""
    await asyncio.sleep(60)
    return "never"


class Witness(Policy):
    def __init__(self) -> None:
        self.endings: list[tuple[PolicyContext, Ending]] = []
        self.turns: list[PolicyContext] = []

    def pre_turn(self, ctx: PolicyContext) -> None:
        self.turns.append(ctx)

    async def post_run(self, ctx: PolicyContext, ending: Ending) -> None:
        await asyncio.sleep(0.01)
        self.endings.append((ctx, ending))


class Stopping(Policy):
    def post_turn(self, ctx: PolicyContext, turn: Any) -> Stop:
        return Stop("enough")


def agent(model: ScriptedModel, *policies: Policy, **options: Any) -> Agent:
    return Agent("test:one", stream_fn=model, tools=[act, hang], policies=policies, retry=QUICK, **options)


@pytest.mark.parametrize(
    ("script", "stop_reason", "reason"),
    [
        (["done"], "stop", "complete"),
        ([ToolCall("1", "act"), "done"], "stop", "complete"),
        ([AuthError("no")], "error", "error"),
        ([ToolCall("1", "act"), AuthError("no")], "error", "error"),
    ],
)
async def test_whoever_awaits_a_run_finds_its_end_told(script: list[Any], stop_reason: str, reason: str):
    witness = Witness()
    await agent(ScriptedModel(script), witness).run("Go.")
    ((ctx, ending),) = witness.endings
    assert ending.stop_reason == stop_reason
    assert ending.turn is not None
    assert ending.turn.reason == reason
    assert ctx.run is witness.turns[0].run is not None


async def test_the_end_of_a_run_that_another_policy_stopped_is_told():
    witness = Witness()
    await agent(ScriptedModel([ToolCall("1", "act"), "done"]), Stopping(), witness).run("Go.")
    ((_, ending),) = witness.endings
    assert (ending.reason, ending.turn and ending.turn.reason) == ("enough", "tools_executed")


async def test_the_end_of_an_aborted_run_is_told_with_the_turn_it_was_in():
    witness = Witness()
    running = agent(ScriptedModel([ToolCall("1", "hang")]), witness)
    task = asyncio.create_task(running.run("Go."))
    await until(lambda: running.pending_tool_calls)
    running.abort()
    await task
    ((_, ending),) = witness.endings
    assert (ending.stop_reason, ending.turn and ending.turn.reason) == ("aborted", "aborted")
    assert ending.turn is not None
    assert "cancelled" in ending.turn.tool_results[0].text


def test_the_end_of_a_run_is_told_when_the_event_loop_ends():
    witness = Witness()

    async def leave() -> None:
        running = agent(ScriptedModel([["a", Pause(60)]]), witness)
        task = asyncio.create_task(running.run("Go."))
        await asyncio.sleep(0.05)
        assert not task.done()

    asyncio.run(leave())
    assert [ending.stop_reason for _, ending in witness.endings] == ["aborted"]


async def test_a_policy_that_fails_or_hangs_at_the_end_of_a_run_does_not_hold_it(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    class Failing(Policy):
        def post_run(self, ctx: PolicyContext, ending: Ending) -> None:
            raise ValueError("broken")

    class Hanging(Policy):
        async def post_run(self, ctx: PolicyContext, ending: Ending) -> None:
            await asyncio.sleep(60)

    monkeypatch.setattr("swink.agent.engine.laststeps.SAVE_WITHIN", 0.05)
    witness = Witness()
    with caplog.at_level(logging.ERROR):
        result = await asyncio.wait_for(
            agent(ScriptedModel(["done"]), Failing(), Hanging(), witness).run("Go."), 5
        )
    assert result.text == "done"
    assert "Failing failed in post_run" in caplog.text
    assert "Hanging did not take the end of a run in time" in caplog.text


class NoRetries(Policy):
    def __init__(self) -> None:
        self.requests: list[int] = []

    def pre_retry(self, ctx: PolicyContext) -> Stop:
        self.requests.append(ctx.requests)
        return Stop("once is enough")


async def test_a_policy_may_forbid_that_a_failed_request_is_repeated():
    policy, model = NoRetries(), ScriptedModel([NetworkError("down"), "done"])
    result = await agent(model, policy).run("Go.")
    assert (result.stop_reason, result.reason, result.error_kind) == ("error", "once is enough", "network")
    assert (len(model.calls), policy.requests) == (1, [1])


async def test_a_policy_may_forbid_that_a_request_that_was_too_long_is_sent_again_with_less():
    policy, model = NoRetries(), ScriptedModel([ContextWindowOverflow("too long"), "done"])
    result = await Agent(
        "test:m",
        stream_fn=model,
        policies=[policy],
        messages=[UserMessage("long " * 200), AssistantMessage("ok")],
        transform_context=lambda messages, overflow: messages[-1:] if overflow else messages,
    ).run("Go.")
    assert (result.stop_reason, result.reason) == ("error", "once is enough")
    assert (len(model.calls), policy.requests) == (1, [1])


async def test_a_policy_may_forbid_a_fallback():
    model, second = ScriptedModel([NetworkError("down")] * 3), ScriptedModel(["done"])
    policy = NoRetries()
    never = ExponentialBackoff(max_attempts=1, base_delay=0)
    result = await Agent(
        "test:one", stream_fn=model, fallback_models=[("test:two", second)], policies=[policy], retry=never
    ).run("Go.")
    assert result.reason == "once is enough"
    assert not second.calls


async def test_a_failure_that_would_not_be_repeated_asks_nobody():
    policy = NoRetries()
    result = await agent(ScriptedModel([AuthError("no")]), policy).run("Go.")
    assert (result.reason, policy.requests) == (None, [])


async def test_policies_see_what_the_next_request_consists_of():
    witness = Witness()
    running = Agent(
        "test:one",
        stream_fn=ScriptedModel([NetworkError("down"), ToolCall("1", "act"), "done"]),
        fallback_models=[("test:two", ScriptedModel([]))],
        tools=[act],
        options=StreamOptions(max_tokens=77),
        policies=[witness],
        retry=QUICK,
    )
    await running.run("Go.")
    first, second = witness.turns
    assert [item.name for item in first.tools] == ["act"]
    assert [str(model) for model in first.models] == ["test:one", "test:two"]
    assert first.max_tokens == 77
    assert (first.requests, second.requests) == (0, 2)


async def test_messages_of_policies_are_told_from_those_that_were_sent():
    class Reminder(Policy):
        def post_turn(self, ctx: PolicyContext, turn: Any) -> Inject | None:
            return Inject("Remember.") if turn.message.tool_calls else None

    class Shouting(Policy):
        def pre_commit(self, message: Any) -> Replace | None:
            return Replace(UserMessage(message.text.upper())) if isinstance(message, UserMessage) else None

    witness = Witness()
    await agent(ScriptedModel([ToolCall("1", "act"), "done"]), Reminder(), Shouting(), witness).run("Go.")
    _, second = witness.turns
    assert [message.text for message in second.fresh] == ["REMEMBER."]
    assert all(any(message is item for item in second.injected) for message in second.fresh)
    assert not any(message.text == "GO." for message in second.injected)
