"""Budget and MaxTurns: what a run may cost."""

import asyncio
import logging
from typing import Any

import pytest
from scenes import PRICED, Scene, call

from swink import Agent, AssistantMessage, Cost, ExponentialBackoff, ModelSpec, NetworkError, Price, ToolContext, Usage, UserMessage, tool
from swink.errors import MisuseError
from swink.policies import Budget, MaxTurns
from swink.stream import Done, Error, Start
from swink.testing import ScriptedModel

CALLS = [call(number, n=number) for number in range(20)]


@pytest.mark.parametrize(
    ("limit", "usage", "allowed"),
    [
        ({"max_tokens": 100}, Usage(input=20, output=10), 4),
        ({"max_input_tokens": 100}, Usage(input=30, output=1), 4),
        ({"max_input_tokens": 100}, Usage(input=10, cache_read=10, cache_write=10), 4),
        ({"max_output_tokens": 100}, Usage(input=1, output=25), 4),
        ({"max_cost": 0.0001}, Usage(input=15, output=10), 4),
    ],
)
async def test_a_run_stops_when_a_limit_is_reached(limit: dict[str, Any], usage: Usage, allowed: int):
    scene = Scene(Budget(**limit, reserve=False), [*CALLS, "done"], usage=usage)
    result = await scene.run()
    assert len(scene.model.calls) == allowed
    assert "budget" in result.reason


async def test_a_run_within_the_limits_is_let_pass():
    scene = Scene(Budget(max_cost=1.0, max_tokens=100_000, max_input_tokens=90_000, max_output_tokens=10_000), [*CALLS[:3], "done"])
    result = await scene.run()
    assert (result.text, result.reason) == ("done", None)


async def test_the_next_call_is_not_made_if_it_may_pass_the_limit():
    scene = Scene(Budget(max_cost=0.002), [CALLS[0], "done"], usage=Usage(input=600, output=300))
    result = await scene.run()
    assert len(scene.model.calls) == 1, "0.0009 spent, and the next call is expected to cost 0.0019"
    assert "may need" in result.reason
    assert result.cost.total < 0.002


async def test_a_big_first_call_is_not_made():
    scene = Scene(Budget(max_tokens=5_000), ["done"])
    result = await scene.run("word " * 5_000)
    assert not scene.model.calls
    assert "may need" in result.reason


async def test_expected_output_is_held_too():
    assert not (await _calls_made(Budget(max_tokens=5_000, expected_output=6_000)))
    assert await _calls_made(Budget(max_tokens=5_000, expected_output=4_000))


async def _calls_made(budget: Budget) -> int:
    scene = Scene(budget, ["done"])
    await scene.run()
    return len(scene.model.calls)


async def test_failed_attempts_count():
    failure = [Start(), Error("busy", "network", usage=Usage(input=60))]
    scene = Scene(
        Budget(max_tokens=100, reserve=False),
        [failure, failure, [call(), Done("tool_use", Usage(input=1))], "done"],
        retry=ExponentialBackoff(base_delay=0),
    )
    result = await scene.run()
    assert len(scene.model.calls) == 3
    assert "tokens 121 of 100" in result.reason


@tool
async def nested(ctx: ToolContext) -> str:
    """Spends on a model of its own."""
    ctx.charge(Usage(input=1_000), Cost(input=1.0))
    return "ok"


async def test_what_tools_charge_counts():
    model = ScriptedModel([call(name="nested"), "done"])
    agent = Agent(PRICED, stream_fn=model, tools=[nested], policies=[Budget(max_cost=0.5)])
    result = await agent.run("Go.")
    assert len(model.calls) == 1
    assert "cost 1" in result.reason


async def test_every_run_has_its_own_budget():
    scene = Scene(Budget(max_tokens=50, reserve=False), [CALLS[0], "one", CALLS[1], "two"], usage=Usage(input=20))
    assert (await scene.run()).text == "one"
    assert (await scene.run()).text == "two"


async def test_a_session_budget_adds_up_runs():
    budget = Budget(max_tokens=50, scope="session", reserve=False)
    scene = Scene(budget, [CALLS[0], "one", CALLS[1], "two"], usage=Usage(input=20))
    assert (await scene.run()).text == "one"
    assert budget.spent.usage.total == 40
    result = await scene.run()
    assert (result.text, len(scene.model.calls)) == ("", 3)
    assert budget.spent.usage.total == 60


async def test_a_session_budget_counts_a_reply_that_failed():
    budget = Budget(max_tokens=50, scope="session", reserve=False)
    scene = Scene(budget, [[Start(), Error("no", "auth", usage=Usage(input=60))], "two"])
    assert (await scene.run()).stop_reason == "error"
    assert "tokens 60 of 50" in (await scene.run()).reason


async def test_a_session_budget_begins_with_what_a_restored_history_cost():
    history = [UserMessage("hi"), AssistantMessage("hello", usage=Usage(input=60), cost=Cost(0.1))]
    scene = Scene(Budget(max_tokens=50, scope="session", reserve=False), ["more"], messages=history)
    assert "tokens 60 of 50" in (await scene.run()).reason


async def test_a_session_budget_adds_up_agents_that_run_at_once():
    budget = Budget(max_tokens=3_000, scope="session", expected_output=1_000)
    scenes = [Scene(budget, ["done"], usage=Usage(output=900)) for _ in range(5)]
    results = await asyncio.gather(*(scene.run() for scene in scenes))
    assert sum(bool(result.text) for result in results) == 2, "two calls are held at once; a third could pass the limit"


async def test_an_unknown_price_stops_a_run_with_a_cost_limit():
    scene = Scene(Budget(max_cost=1.0), ["done"], model="test:unpriced")
    result = await scene.run()
    assert not scene.model.calls
    assert "unknown" in result.reason


async def test_an_unknown_price_can_be_let_pass_with_a_warning(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        scene = Scene(Budget(max_cost=1.0, unknown_price="warn"), [*CALLS[:2], "done"], model="test:unpriced")
        assert (await scene.run()).text == "done"
    assert caplog.text.count("is unknown") == 1


async def test_an_unknown_price_does_not_matter_to_token_limits():
    assert (await Scene(Budget(max_tokens=9_000), ["done"], model="test:unpriced").run()).text == "done"


async def test_a_provider_that_prices_its_own_replies_is_held_to_its_prices():
    priced = [call(), Done("tool_use", Usage(input=10), Cost(input=0.6))]
    scene = Scene(Budget(max_cost=1.0, unknown_price="warn"), [priced, "done"], model="test:unpriced")
    result = await scene.run()
    assert "cost 0.6 of 1 used" in result.reason


async def test_an_unpriced_sub_agent_makes_the_cost_unknown_and_stops_the_run():
    @tool
    async def unpriced(ctx: ToolContext) -> str:
        """Charges without a price."""
        ctx.charge(Usage(input=1), None)
        return "ok"

    model = ScriptedModel([call(name="unpriced"), "done"])
    result = await Agent(PRICED, stream_fn=model, tools=[unpriced], policies=[Budget(max_cost=1.0)]).run("Go.")
    assert len(model.calls) == 1
    assert "unknown" in result.reason


async def test_a_retried_failure_does_not_free_what_is_held():
    budget = Budget(max_tokens=10_000, scope="session")
    scene = Scene(budget, [NetworkError("down"), "done"], retry=ExponentialBackoff(base_delay=0))
    assert (await scene.run()).text == "done"
    assert budget.spent.usage.total == 2, "nothing stays held after a run"


def test_a_budget_without_a_limit_is_refused():
    with pytest.raises(MisuseError):
        Budget()


async def test_max_turns_allows_exactly_that_many_calls():
    scene = Scene(MaxTurns(3), [*CALLS, "done"])
    result = await scene.run()
    assert len(scene.model.calls) == len(scene.ran) == 3
    assert "max turns" in result.reason


async def test_max_turns_lets_shorter_runs_pass_every_time():
    scene = Scene(MaxTurns(2), [CALLS[0], "one", CALLS[1], "two"])
    assert (await scene.run()).text == "one"
    assert (await scene.run()).text == "two"


def test_max_turns_of_nothing_is_refused():
    with pytest.raises(MisuseError):
        MaxTurns(0)


async def test_the_context_window_caps_the_estimate():
    small = ModelSpec("test", "small", context_window=2_000, price=Price(1.0, 1.0))
    scene = Scene(Budget(max_tokens=4_000), ["done"], model=small)
    assert (await scene.run("word " * 5_000)).text == "done", "no request can be larger than the window"
