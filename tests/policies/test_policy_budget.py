"""Budget and MaxTurns: what a run may cost."""

import asyncio
import logging
from typing import Any

import pytest
from scenes import PRICED, Scene, call
from tests.patience import until

from swink import (
    Agent,
    AssistantMessage,
    AuthError,
    Cost,
    ExponentialBackoff,
    Image,
    ModelSpec,
    NetworkError,
    Price,
    StreamOptions,
    Tool,
    ToolContext,
    Usage,
    UserMessage,
    tool,
)
from swink.errors import MisuseError
from swink.events import TurnEnd
from swink.messages import Base64Source
from swink.policies import Budget, MaxTurns
from swink.stream import UNREPORTED, Done, Error, Start, TextDelta, TextStart
from swink.testing import Pause, ScriptedModel

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
    scene = Scene(
        Budget(max_cost=1.0, max_tokens=100_000, max_input_tokens=90_000, max_output_tokens=10_000),
        [*CALLS[:3], "done"],
    )
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
    assert len(scene.model.calls) == 2
    assert "tokens 120 of 100" in result.reason


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
    scene = Scene(
        Budget(max_tokens=50, reserve=False), [CALLS[0], "one", CALLS[1], "two"], usage=Usage(input=20)
    )
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
    assert sum(bool(result.text) for result in results) == 2, (
        "two calls are held at once; a third could pass the limit"
    )


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
    result = await Agent(PRICED, stream_fn=model, tools=[unpriced], policies=[Budget(max_cost=1.0)]).run(
        "Go."
    )
    assert len(model.calls) == 1
    assert "unknown" in result.reason


async def test_a_retried_failure_does_not_free_what_is_held():
    budget = Budget(max_tokens=10_000, scope="session")
    unsent = [Start(), Error("down", "network", usage=Usage())]
    scene = Scene(budget, [unsent, "done"], retry=ExponentialBackoff(base_delay=0))
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


# The real next request


async def _refused(budget: Budget, text: Any = "Go.", **options: Any) -> bool:
    model = ScriptedModel(["done"])
    result = await Agent(options.pop("model", PRICED), stream_fn=model, policies=[budget], **options).run(
        text
    )
    assert bool(model.calls) == (result.reason is None)
    return not model.calls


def described(words: int) -> Any:
    return Tool.raw(
        "big",
        "A tool. " * words,
        {"type": "object", "properties": {"x": {"description": "About x. " * words}}},
        None,
    )  # type: ignore[arg-type]


async def test_the_schemas_of_tools_count():
    assert not await _refused(Budget(max_tokens=5_000), tools=[described(10)])
    assert await _refused(Budget(max_tokens=5_000), tools=[described(1_500)])


async def test_the_system_prompt_counts():
    assert await _refused(Budget(max_tokens=5_000), system_prompt="Be brief. " * 2_000)


async def test_tools_that_were_added_after_a_reply_count():
    scene = Scene(Budget(max_tokens=5_000), ["one", "two"], usage=Usage(input=10, output=10))
    await scene.run()
    scene.agent.tools = [described(3_000)]
    assert "may need" in (await scene.run()).reason


@pytest.mark.parametrize(
    "text",
    ["\u4f60\u597d\u4e16\u754c", "\u3053\u308c\u306f\u65e5", "\U0001f642\U0001f680", "\uc624\ub298\uc740"],
)
async def test_a_character_of_other_scripts_counts_for_more_than_a_letter(text: str):
    assert not await _refused(Budget(max_tokens=4_000), "word " * 1_600)
    assert await _refused(Budget(max_tokens=4_000), (text * 8_000)[:8_000])


async def test_an_image_counts():
    assert await _refused(
        Budget(max_tokens=4_000), [UserMessage((Image(Base64Source("AAAA")),)) for _ in range(4)]
    )


async def test_the_output_that_is_asked_for_counts():
    assert not await _refused(Budget(max_output_tokens=5_000), options=StreamOptions(max_tokens=4_000))
    assert await _refused(Budget(max_output_tokens=5_000), options=StreamOptions(max_tokens=6_000))
    assert not await _refused(
        Budget(max_output_tokens=5_000, expected_output=100), options=StreamOptions(max_tokens=6_000)
    )


async def test_the_thinking_budget_counts():
    thinking = ModelSpec("test", "priced", thinking_level="high", price=Price(1.0, 1.0))
    own = ModelSpec(
        "test", "priced", thinking_level="high", thinking_budgets={"high": 3_000}, price=Price(1.0, 1.0)
    )
    assert await _refused(Budget(max_output_tokens=5_000), model=thinking)
    assert not await _refused(Budget(max_output_tokens=5_000), model=own)


async def test_the_dearest_of_the_fallbacks_counts():
    dear = ModelSpec("test", "dear", price=Price(1_000.0, 1_000.0))
    assert not await _refused(Budget(max_cost=0.1))
    assert await _refused(
        Budget(max_cost=0.1), fallback_models=[(PRICED, ScriptedModel([])), (dear, ScriptedModel([]))]
    )


async def test_a_cache_that_is_dear_to_write_counts():
    assert await _refused(
        Budget(max_cost=0.1),
        model=ModelSpec("test", "x", price=Price(1.0, 1.0, cache_write=1_000.0)),
        text="word " * 500,
    )


async def test_a_fallback_without_a_price_is_named():
    agent = Agent(
        PRICED,
        stream_fn=ScriptedModel([]),
        fallback_models=[("test:unpriced", ScriptedModel([]))],
        policies=[Budget(max_cost=1)],
    )
    assert "cost of test:unpriced is unknown" in ((await agent.run("Go.")).reason or "")


async def test_the_model_that_is_asked_next_counts_not_the_one_before():
    model = ScriptedModel([call(), "done"])
    agent = Agent(PRICED, stream_fn=model, tools=[], policies=[Budget(max_cost=0.1)])
    agent.subscribe(
        lambda event: (
            setattr(agent, "model", ModelSpec("test", "dear", price=Price(1e6, 1e6)))
            if isinstance(event, TurnEnd)
            else None
        )
    )
    assert "may need" in ((await agent.run("Go.")).reason or "")
    assert len(model.calls) == 1


# Failed runs


async def test_a_session_counts_the_attempts_of_a_turn_that_failed_in_the_end():
    budget = Budget(max_tokens=1_000, scope="session", reserve=False)
    failure = [Start(), Error("busy", "network", usage=Usage(input=60))]
    scene = Scene(budget, [failure, failure, failure, "more"], retry=ExponentialBackoff(base_delay=0))
    assert (await scene.run()).stop_reason == "error"
    assert budget.spent.usage.total == 180


async def test_a_session_counts_a_run_that_was_aborted_in_its_tools():
    budget = Budget(max_tokens=1_000, scope="session", reserve=False)

    @tool
    async def spend(ctx: ToolContext) -> str:
        """Spends, then hangs."""
        ctx.charge(Usage(input=100), Cost(input=0.1))
        charged.set()
        await asyncio.sleep(60)
        return "never"

    charged = asyncio.Event()
    agent = Agent(
        PRICED,
        stream_fn=ScriptedModel([call(name="spend")], usage=Usage(input=7)),
        tools=[spend],
        policies=[budget],
    )
    task = asyncio.create_task(agent.run("Go."))
    await charged.wait()
    agent.abort()
    await task
    assert budget.spent.usage.total == 107


async def test_a_reply_that_was_cut_off_without_figures_counts_as_estimated():
    budget = Budget(max_tokens=100_000, scope="session")
    agent = Agent(PRICED, stream_fn=ScriptedModel([["word " * 200, Pause(60)]]), policies=[budget])
    task = asyncio.create_task(agent.run("word " * 1_000))
    await until(lambda: agent.streaming_message and agent.streaming_message.text)
    agent.abort()
    await task
    assert 1_000 < budget.spent.usage.input < 1_200
    assert 200 < budget.spent.usage.output < 300
    assert budget.spent.cost is not None
    assert budget.spent.cost.total > 0.001


async def test_a_request_that_never_reached_anybody_costs_nothing():
    budget = Budget(max_tokens=100_000, scope="session")
    await Scene(budget, [AuthError("no")]).run()
    assert budget.spent.usage.total == 0


async def test_a_session_counts_what_a_failed_sub_agent_spent():
    budget = Budget(max_tokens=100_000, scope="session", reserve=False)
    failing = Agent(
        PRICED,
        stream_fn=ScriptedModel([[Start(), Error("no", "auth", usage=Usage(input=60))]]),
        policies=[budget],
    )

    @tool
    async def ask() -> str:
        """Asks another."""
        return (await failing.run("Help.")).stop_reason

    agent = Agent(
        PRICED,
        stream_fn=ScriptedModel([call(name="ask"), "done"], usage=Usage(input=5)),
        tools=[ask],
        policies=[budget],
    )
    await agent.run("Go.")
    assert budget.spent.usage.total >= 70


# MaxTurns


async def test_max_turns_counts_requests_that_are_repeated():
    scene = Scene(
        MaxTurns(4),
        [NetworkError("down"), CALLS[0], NetworkError("down"), CALLS[1], "done"],
        retry=ExponentialBackoff(base_delay=0),
    )
    result = await scene.run()
    assert len(scene.model.calls) == 4
    assert "max turns" in result.reason


async def test_max_turns_ends_a_turn_that_would_be_repeated_for_ever():
    scene = Scene(
        MaxTurns(3), [NetworkError("down")] * 50, retry=ExponentialBackoff(max_attempts=50, base_delay=0)
    )
    result = await scene.run()
    assert len(scene.model.calls) == 3
    assert (result.stop_reason, result.error_kind) == ("error", "network")
    assert "max turns" in result.reason


async def test_max_turns_counts_fallbacks():
    first, second = ScriptedModel([NetworkError("down")] * 9), ScriptedModel([NetworkError("down")] * 9)
    agent = Agent(
        PRICED,
        stream_fn=first,
        fallback_models=[("test:second", second)],
        policies=[MaxTurns(4)],
        retry=ExponentialBackoff(max_attempts=3, base_delay=0),
    )
    await agent.run("Go.")
    assert (len(first.calls), len(second.calls)) == (3, 1)


async def test_max_turns_counts_each_run_by_itself_also_at_once():
    policy = MaxTurns(3)
    scenes = [Scene(policy, [*CALLS, "done"]) for _ in range(5)]
    await asyncio.gather(*(scene.run() for scene in scenes))
    assert [len(scene.model.calls) for scene in scenes] == [3] * 5


async def test_a_history_that_is_assigned_during_a_run_costs_nothing():
    budget = Budget(max_tokens=1_000_000, scope="session")

    @tool
    async def rewrite() -> str:
        """Replaces the history."""
        agent.messages = [
            UserMessage("hi"),
            AssistantMessage("hello", usage=Usage(input=5_000)),
            AssistantMessage("x", stop_reason="aborted"),
        ]
        return "ok"

    agent = Agent(
        PRICED,
        stream_fn=ScriptedModel([call(name="rewrite"), "done"], usage=Usage(input=5)),
        tools=[rewrite],
        policies=[budget],
    )
    await agent.run("Go.")
    assert budget.spent.usage.total == 10


@pytest.mark.parametrize(
    "usage", [Usage(input=500, output=1_000), UNREPORTED], ids=["reported", "not reported"]
)
async def test_requests_of_one_turn_that_fail_again_and_again_end_with_the_budget(usage: Usage):
    asked = 0

    async def breaks_off(model: Any, context: Any, options: Any) -> Any:
        nonlocal asked
        asked += 1
        yield Start()
        yield TextStart(0)
        yield TextDelta(0, "word " * 1_500)
        yield Error("cut off", "network", usage=usage)

    budget = Budget(max_tokens=5_000, scope="session")
    agent = Agent(
        PRICED,
        stream_fn=breaks_off,
        policies=[budget],
        retry=ExponentialBackoff(max_attempts=20, base_delay=0),
    )
    result = await agent.run("go")
    assert asked == 3
    assert result.stop_reason == "error"
    assert "budget: tokens" in result.reason
    assert 3_000 < budget.spent.usage.total <= 5_000, "every attempt is counted, and each once"
    assert "budget" in (await agent.run("again")).reason


async def test_requests_that_fail_before_they_cost_anything_are_retried():
    unsent = [Start(), Error("refused", "network", usage=Usage())]
    model = ScriptedModel([unsent, unsent, "done"])
    agent = Agent(
        PRICED, stream_fn=model, policies=[Budget(max_tokens=2_000)], retry=ExponentialBackoff(base_delay=0)
    )
    assert (await agent.run("go")).text == "done"


async def test_a_fallback_is_not_asked_when_the_budget_is_spent():
    first = ScriptedModel([[Start(), Error("cut off", "network", usage=Usage(input=900, output=900))]])
    second = ScriptedModel(["done"])
    agent = Agent(
        PRICED,
        stream_fn=first,
        fallback_models=[(PRICED, second)],
        policies=[Budget(max_tokens=2_000)],
        retry=ExponentialBackoff(max_attempts=1),
    )
    result = await agent.run("go")
    assert not second.calls
    assert result.usage.total == 1_800
    assert "budget" in result.reason
