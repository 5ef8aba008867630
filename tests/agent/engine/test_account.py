"""The account of a run: every attempt is counted once, whatever becomes of it, and what is unknown is never 0."""

import asyncio
from datetime import datetime
from fractions import Fraction
from itertools import permutations
from math import fsum
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import tried

from swink import (
    Agent,
    AgentContext,
    AgentLoopConfig,
    ExponentialBackoff,
    ModelSpec,
    Price,
    ToolCall,
    ToolContext,
    agent_loop,
    tool,
)
from swink.agent.engine.account import Account, total_cost
from swink.errors import (
    AuthError,
    ContextWindowOverflow,
    ModelError,
    ModelThrottled,
    NetworkError,
    StreamError,
)
from swink.events import AgentEvent, MessageDiscarded, MessageEnd, MessageUpdate
from swink.messages import AssistantMessage, Cost, Usage
from swink.models.catalog import price_of
from swink.policies import Budget
from swink.stream import (
    UNREPORTED,
    Assembly,
    Done,
    Error,
    LlmContext,
    Start,
    StreamOptions,
    TextDelta,
    TextEnd,
    TextStart,
    Timeout,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageUpdate,
)
from swink.teams import agent_tool, loop, parallel, sequential
from swink.testing import Pause, ScriptedModel

PRICE = Price(input=3.0, output=15.0, cache_read=0.3)
PRICED = ModelSpec("test", "priced", price=PRICE)
AT_ONCE = ExponentialBackoff(max_attempts=8, base_delay=0)


# One attempt


async def cut(*pieces: Any, **options: Any) -> AssistantMessage:
    """The reply of a run that is aborted at its first delta."""
    agent = Agent(PRICED, stream_fn=ScriptedModel([[*pieces, "par", Pause(60)]]), **options)
    agent.subscribe(lambda event: agent.abort() if isinstance(event, MessageUpdate) else None)
    result = await agent.run("Go.")
    message = result.messages[-1]
    assert isinstance(message, AssistantMessage)
    assert (message.usage, message.cost) == (result.usage, result.cost)
    return message


async def test_what_was_reported_before_an_abort_is_kept_and_priced():
    message = await cut(UsageUpdate(Usage(100, 1)), UsageUpdate(Usage(100, 20, 50)))
    assert message.stop_reason == "aborted"
    assert message.usage == Usage(100, 20, 50, unknown=True)
    assert message.cost == PRICE.cost(Usage(100, 20, 50))


async def test_an_abort_before_any_report_is_unknown_and_not_free():
    message = await cut()
    assert (message.usage, message.cost) == (Usage(unknown=True), None)


async def test_a_cost_that_the_stream_gave_before_an_abort_wins():
    assert (await cut(UsageUpdate(Usage(100), Cost(total=0.5)))).cost == Cost(total=0.5)
    assert (await cut(UsageUpdate(UNREPORTED, Cost()))).cost == Cost(), "free, however many tokens it was"


async def test_the_watchdog_keeps_what_was_reported():
    model = ScriptedModel([[UsageUpdate(Usage(100, 2)), "par", Pause(60)]])
    options = StreamOptions(timeout=Timeout(idle=0.2, first=60))
    retry = ExponentialBackoff(max_attempts=1)
    result = await Agent(PRICED, stream_fn=model, options=options, retry=retry).run("Go.")
    assert result.error_kind == "network"
    assert (result.usage, result.cost) == (Usage(100, 2, unknown=True), PRICE.cost(Usage(100, 2)))


async def test_a_reply_without_figures_is_unknown():
    result = await Agent(PRICED, stream_fn=ScriptedModel([["hi", Done("stop")]])).run("Go.")
    assert (result.text, result.usage, result.cost) == ("hi", Usage(unknown=True), None)


async def test_the_last_report_of_a_complete_reply_is_its_usage():
    script = [Start(), UsageUpdate(Usage(5, 6)), TextStart(0), TextDelta(0, "hi"), Done("length")]
    result = await Agent(PRICED, stream_fn=ScriptedModel([script])).run("Go.")
    assert (result.usage, result.cost) == (Usage(5, 6), PRICE.cost(Usage(5, 6)))


@pytest.mark.parametrize("error", [AuthError("no"), ModelThrottled("slow"), ContextWindowOverflow("long")])
async def test_a_refusal_has_used_nothing(error: ModelError):
    for failure in (error, [Start(), Error.of(error)]):
        model = ScriptedModel([failure])
        result = await Agent(PRICED, stream_fn=model, retry=ExponentialBackoff(max_attempts=1)).run("Go.")
        assert (result.stop_reason, result.usage, result.cost) == ("error", Usage(), Cost())


@pytest.mark.parametrize("error", [NetworkError("lost"), StreamError("broken"), ValueError("a bug")])
async def test_any_other_failure_is_unknown(error: Exception):
    model = ScriptedModel([error])
    result = await Agent(PRICED, stream_fn=model, retry=ExponentialBackoff(max_attempts=1)).run("Go.")
    assert (result.usage, result.cost) == (Usage(unknown=True), None)


async def test_an_abort_before_anybody_is_asked_has_used_nothing():
    async def key(provider: str) -> str | None:
        agent.abort()
        await asyncio.sleep(60)
        return None

    agent = Agent("test:unpriced", stream_fn=ScriptedModel([]), get_api_key=key)
    result = await agent.run("Go.")
    assert (result.stop_reason, result.usage, result.cost) == ("aborted", Usage(), Cost())


async def test_the_price_is_known_before_the_message_ends():
    agent = Agent(PRICED, stream_fn=ScriptedModel(["hi"], usage=Usage(10, 1)))
    async with agent.stream("Go.") as run:
        ends = [event.message async for event in run if isinstance(event, MessageEnd)]
    assert ends[-1].cost == PRICE.cost(Usage(10, 1))


async def test_reports_are_not_shown_as_updates_of_the_message():
    model = ScriptedModel([[UsageUpdate(Usage(1)), "hi"]])
    async with Agent(PRICED, stream_fn=model).stream("Go.") as run:
        deltas = [event.delta async for event in run if isinstance(event, MessageUpdate)]
    assert deltas == [TextDelta(0, "hi")]


def test_an_unknown_usage_round_trips_and_an_older_one_is_known():
    for usage in (Usage(3, unknown=True), Usage(3)):
        assert msgspec.json.decode(msgspec.json.encode(usage), type=Usage) == usage
    assert b"unknown" not in msgspec.json.encode(Usage(3))
    assert msgspec.json.decode(b'{"input": 3}', type=Usage) == Usage(3)
    assert Usage(1, unknown=True) + Usage(2) == Usage(2) + Usage(1, unknown=True) == Usage(3, unknown=True)


# Prices


async def bare(model: ModelSpec, **options: Any) -> Cost | None:
    config = AgentLoopConfig(model=model, stream_fn=ScriptedModel(["hi"], usage=Usage(1000, 10)), **options)
    async with agent_loop("Go.", AgentContext(), config) as run:
        return (await run.result()).cost


async def test_a_bare_loop_prices_by_the_catalog():
    known = ModelSpec("anthropic", "claude-sonnet-4-5")
    price = price_of(known)
    assert price is not None
    assert await bare(known) == price.cost(Usage(1000, 10))
    assert await bare(known, price=lambda model: PRICE) == PRICE.cost(Usage(1000, 10))
    assert await bare(known, price=lambda model: None) == price.cost(Usage(1000, 10))
    assert await bare(PRICED) == PRICE.cost(Usage(1000, 10))
    assert await bare(ModelSpec("test", "nobody-knows")) is None


async def test_a_tier_is_reached_by_one_request_and_not_by_all_of_a_run():
    price = Price(1.0, 1.0, tiers=((1000, Price(10.0, 10.0)),))
    agent = Agent(
        ModelSpec("test", "m", price=price),
        stream_fn=ScriptedModel(["one", "two", "three"], usage=Usage(600, 1)),
    )
    agent.follow_up("Again.")
    result = await agent.run("Go.")
    assert result.cost == Cost(1200 / 1e6, 2 / 1e6, total=1202 / 1e6)


@pytest.mark.parametrize(("extra", "tools"), [({"web_search": 3}, 0.03), ({"code_execution": 1}, None)])
async def test_uses_of_hosted_tools_are_priced_or_make_the_cost_unknown(extra: dict[str, int], tools: float):
    searching = ScriptedModel(["found"], usage=Usage(1000, 10, extra=extra))
    inner = Agent("anthropic:claude-sonnet-4-5", stream_fn=searching)
    call = ToolCall("c1", "ask", {"task": "Search."})
    outer = Agent(
        PRICED,
        tools=[agent_tool(inner, "ask", "asks")],
        stream_fn=ScriptedModel([call, "done"], usage=Usage(10)),
    )
    result = await outer.run("Go.")
    assert result.usage.extra == extra
    if tools is None:
        assert result.cost is None
    else:
        assert result.cost is not None
        assert result.cost.tools == tools
        assert result.cost.total == fsum([0.003, 0.00015, 0.03, 0.00006])


def test_a_request_has_the_price_of_the_time_at_which_it_was_sent():
    account, spec = Account(price_of), ModelSpec("deepseek", "deepseek-v4-pro")
    times = ["2026-11-16T00:59:59+00:00", "2026-11-16T01:00:00+00:00", "2026-11-16T12:00:00+09:00"]
    costs: list[Cost | None] = []
    for at in times:
        assembly = Assembly()
        assembly.began = datetime.fromisoformat(at).timestamp()
        assembly.feed(Start())
        assembly.feed(Done("stop", Usage(1_000_000)))
        costs.append(account.attempt(spec, assembly)[1])
    assert costs == [Cost(0.66), Cost(1.32), Cost(1.32)]


def test_uses_of_tools_cost_even_where_no_tokens_were_counted():
    account = Account(None)
    spec = ModelSpec("test", "m", price=Price(1, 1, uses={"web_search": 0.01}))
    assert account.price(spec, Usage(extra={"web_search": 2})) == Cost(tools=0.02)
    assert account.price(spec, Usage(extra={"reasoning": 2})) == Cost()


# Sums


def test_sums_do_not_depend_on_the_order_of_addition():
    amounts = [Cost(total=amount) for amount in (0.1, 0.2, 0.3, 1e-9, 1e9)]
    sums: set[float] = set()
    for order in permutations(amounts):
        account = Account(None)
        for cost in order:
            account.charge(Usage(1), cost)
            assert account.totals[1] is not None
        total, same = account.totals[1], total_cost(order)
        assert total is not None
        assert same is not None
        sums |= {total.total, same.total}
    assert sums == {fsum(cost.total for cost in amounts)}


@tried(30, 300)
@given(st.lists(st.floats(0, 1e6), max_size=60))
def test_sums_are_exact(amounts: list[float]):
    account = Account(None)
    for amount in amounts:
        account.charge(Usage(1), Cost(total=amount))
        assert account.totals[0].total
    total = account.totals[1]
    assert total is not None
    assert total.total == float(sum(map(Fraction, amounts)))


def test_a_cost_without_end_does_not_hang_the_sum():
    for amount in (float("inf"), float("nan")):
        account = Account(None)
        for _ in range(3):
            account.charge(Usage(1), Cost(total=amount))
            assert account.totals[1] is not None


# Many attempts, nested

ENDS = ("done", "silent_done", "error", "known_error", "refused", "raised", "eof")


class Attempt(msgspec.Struct, frozen=True):
    """What one request of a script reports, and how it ends."""

    reports: tuple[int, ...] = ()
    end: str = "done"
    final: int = 0
    talks: bool = True

    @property
    def succeeds(self) -> bool:
        return self.end in ("done", "silent_done")

    @property
    def figures(self) -> tuple[int, bool]:
        """The oracle: tokens of output that count, and whether there may be more."""
        last = self.reports[-1] if self.reports else 0
        match self.end:
            case "done" | "known_error":
                return self.final, False
            case "silent_done":
                return last, not self.reports
            case "refused":
                return 0, False
            case _:
                return last, True

    @property
    def is_lost(self) -> bool:
        """Whether nothing is known of it, so that no sum can be told."""
        tokens, unknown = self.figures
        return unknown and not tokens


attempts = st.builds(
    Attempt,
    st.lists(st.integers(1, 10**6), max_size=3).map(sorted).map(tuple),
    st.sampled_from(ENDS),
    st.integers(0, 10**6),
    st.booleans(),
)


class Playing:
    """A stream function that plays attempts, and then answers; `asked` has those that were begun."""

    def __init__(self, *plan: Attempt, call: ToolCall | None = None) -> None:
        self.plan = list(plan)
        self.call = call
        self.asked: list[Attempt] = []
        self.said: list[tuple[int, bool]] = []
        """Of each request, how many tokens were reported so far, and whether there may be more."""

    async def __call__(self, model: ModelSpec, context: LlmContext, options: StreamOptions) -> Any:
        attempt = self.plan.pop(0) if self.plan else Attempt()
        self.asked.append(attempt)
        self.said.append((0, True))
        if attempt.end == "refused":
            self.said[-1] = attempt.figures
            raise ModelThrottled("slow down")
        yield Start()
        for tokens in attempt.reports:
            self.said[-1] = (tokens, True)
            yield UsageUpdate(Usage(output=tokens))
            await asyncio.sleep(0)
        if attempt.talks or attempt.succeeds:
            yield TextStart(0)
            yield TextDelta(0, "some words")
            await asyncio.sleep(0)
        if attempt.end == "hangs":
            await asyncio.sleep(3600)
        if attempt.end == "raised":
            raise NetworkError("lost")
        if attempt.end in ("error", "known_error"):
            self.said[-1] = attempt.figures
            usage = Usage(output=attempt.final) if attempt.end == "known_error" else UNREPORTED
            yield Error("lost", "network", usage=usage)
        if attempt.succeeds:
            *blocks, end = script_end(self.call, attempt)
            for event in blocks:
                yield event
            self.said[-1] = attempt.figures
            yield end
            self.call = None


def script_end(call: ToolCall | None, attempt: Attempt) -> list[Any]:
    usage = Usage(output=attempt.final) if attempt.end == "done" else UNREPORTED
    if call is None:
        return [TextEnd(0), Done("stop", usage)]
    arguments = msgspec.json.encode(call.arguments).decode()
    opened = [ToolCallStart(1, call.id, call.name), ToolCallDelta(1, arguments), ToolCallEnd(1)]
    return [TextEnd(0), *opened, Done("tool_use", usage)]


def check(result: Any, asked: list[Attempt]) -> None:
    """The totals of a run are the sum over everything that was asked, by the oracle."""
    figures = [attempt.figures for attempt in asked]
    assert result.usage.output == sum(tokens for tokens, _ in figures)
    assert result.usage.unknown == any(unknown for _, unknown in figures)
    if any(attempt.is_lost for attempt in asked):
        assert result.cost is None
    else:
        exact = fsum(PRICE.cost(Usage(output=tokens)).total for tokens, _ in figures)
        assert result.cost is not None
        assert result.cost.total == exact


@tried(60, 600)
@given(st.lists(attempts, max_size=7), st.lists(attempts, max_size=4))
def test_every_attempt_is_counted_once_whatever_becomes_of_it(first: list[Attempt], second: list[Attempt]):
    model, other = Playing(*first), Playing(*second)

    async def run() -> Any:
        retry = ExponentialBackoff(max_attempts=3, base_delay=0)
        agent = Agent(PRICED, stream_fn=model, fallback_models=[(PRICED, other)], retry=retry)
        return await agent.run("Go."), agent

    result, agent = asyncio.run(run())
    check(result, [*model.asked, *other.asked])
    reply = agent.messages[-1]
    last = (other.asked or model.asked)[-1]
    assert (reply.usage.output, reply.usage.unknown) == last.figures


def nest(plans: list[list[Attempt]]) -> tuple[Agent, list[Playing]]:
    """Agents as tools of agents: the first plan is the outermost agent's."""
    models: list[Playing] = []
    inner: Agent | None = None
    for depth, plan in reversed(list(enumerate(plans))):
        call = ToolCall(f"c{depth}", "inner", {"task": "go"}) if inner is not None else None
        models.append(Playing(*plan, call=call))
        tools = [agent_tool(inner, "inner", "The inner agent.")] if inner is not None else []
        inner = Agent(PRICED, stream_fn=models[-1], retry=AT_ONCE, tools=tools)
    assert inner is not None
    return inner, models


@tried(30, 300)
@given(st.lists(st.lists(attempts, max_size=3), min_size=2, max_size=4))
def test_what_sub_agents_spend_is_counted_once_at_every_depth(plans: list[list[Attempt]]):
    async def run() -> Any:
        return await agent.run("Go.")

    agent, models = nest(plans)
    result = asyncio.run(run())
    check(result, [attempt for model in models for attempt in model.asked])


class Cutter:
    """Ends a run at the n-th event, in one of the ways that runs are ended."""

    def __init__(self, agent: Agent, how: str, after: int) -> None:
        self.agent, self.how, self.left = agent, how, after

    def __call__(self, event: AgentEvent) -> None:
        self.left -= 1
        if self.left == 0:
            self.agent.abort() if self.how == "abort" else self.agent.steer("Something else.")


@tried(40, 400)
@given(
    st.lists(st.lists(attempts, max_size=2), min_size=1, max_size=3),
    st.integers(1, 60),
    st.sampled_from(("abort", "steer")),
)
def test_wherever_a_run_is_cut_nothing_is_lost_or_counted_twice(
    plans: list[list[Attempt]], after: int, how: str
):
    """The innermost request hangs after its reports; the cut comes at any event, or when it hangs."""
    agent, models = nest([*plans, [Attempt((5, 7), "hangs")]])

    async def run() -> Any:
        agent.subscribe(Cutter(agent, how, after))
        async with asyncio.TaskGroup() as group:
            hung = group.create_task(abort_when_hung())
            result = await agent.run("Go.")
            hung.cancel()
        return result

    async def abort_when_hung() -> None:
        while models[0].said[-1:] != [(7, True)]:
            await asyncio.sleep(0)
        agent.abort()

    result = asyncio.run(asyncio.wait_for(run(), 60))
    said = [figures for model in models for figures in model.said]
    assert result.usage.output == sum(tokens for tokens, _ in said)
    assert result.usage.unknown >= any(unknown for _, unknown in said)


async def until_hung(model: Playing) -> None:
    while model.said[-1:] != [(7, True)]:
        await asyncio.sleep(0)


@pytest.mark.parametrize("how", ["abort", "steer", "timeout"])
async def test_a_sub_agent_three_deep_that_is_cut_off_is_paid_for_by_all(how: str):
    inner, models = nest([[Attempt(final=100)], [Attempt(final=20)], [Attempt((5, 7), "hangs")]])

    @tool
    async def cut_it() -> str:
        """Ends the other call, unless that has a time limit."""
        await until_hung(models[0])
        if how == "steer":
            outer.steer("Something else.")
        elif how == "abort":
            outer.abort()
        return "ok"

    calls = [ToolCall("a", "inner", {"task": "go"}), ToolCall("b", "cut_it", {})]
    outer = Agent(
        PRICED,
        stream_fn=ScriptedModel([calls, "done"], usage=Usage(output=1000)),
        tools=[agent_tool(inner, "inner", "i", timeout=1.0 if how == "timeout" else None), cut_it],
    )
    result = await outer.run("Go.")
    parts = [1000, 100, 20, 7] if how == "abort" else [1000, 100, 20, 7, 1000]
    assert result.usage == Usage(output=sum(parts), unknown=True)
    assert result.cost is not None
    assert result.cost.total == fsum(PRICE.cost(Usage(output=part)).total for part in parts)


async def test_a_caller_that_is_aborted_has_paid_for_a_discarded_attempt_inside():
    agent, _ = nest([[Attempt(final=1)], [Attempt((50,), "raised"), Attempt((), "hangs")]])

    def abort_when_discarded(event: AgentEvent) -> None:
        if isinstance(getattr(getattr(event, "update", None), "event", None), MessageDiscarded):
            agent.abort()

    agent.subscribe(abort_when_discarded)
    assert (await agent.run("Go.")).usage == Usage(output=51, unknown=True)


@pytest.mark.parametrize("kind", ["sequential", "parallel", "loop"])
async def test_flows_count_every_attempt_and_as_tools_charge_their_caller(kind: str):
    plan = [Attempt((40,), "raised"), Attempt(final=2)]
    members = [Agent(PRICED, stream_fn=Playing(*plan), retry=AT_ONCE) for _ in range(3)]
    match kind:
        case "sequential":
            flow, runs = sequential(*members), 3
        case "parallel":
            flow, runs = parallel(*members), 3
        case _:
            flow, runs = loop(members[0], until=lambda result: True), 1
    result = await flow.run("Go.")
    assert result.usage == Usage(output=42 * runs, unknown=True)
    caller = Agent(
        PRICED,
        stream_fn=Playing(Attempt(final=1), call=ToolCall("c", "inner", {"task": "go"})),
        tools=[agent_tool(lambda: sequential(agent_of(plan), agent_of(plan)), "inner", "i")],
    )
    assert (await caller.run("Go.")).usage == Usage(output=1 + 2 * 42, unknown=True)


def agent_of(plan: list[Attempt]) -> Agent:
    return Agent(PRICED, stream_fn=Playing(*plan), retry=AT_ONCE)


async def test_a_tool_that_runs_an_agent_itself_is_charged_what_it_says_and_no_more():
    inner = agent_of([Attempt(final=30)])

    @tool
    async def ask(ctx: ToolContext) -> str:
        """Asks another."""
        result = await inner.run("Go.")
        ctx.charge(result.usage, result.cost)
        return result.text

    middle = Agent(PRICED, stream_fn=Playing(Attempt(final=5), call=ToolCall("c", "ask", {})), tools=[ask])
    outer = Agent(
        PRICED,
        stream_fn=Playing(Attempt(final=1), call=ToolCall("d", "inner", {"task": "go"})),
        tools=[agent_tool(middle, "inner", "i")],
    )
    middle_alone = 5 + 30
    assert (await outer.run("Go.")).usage == Usage(output=1 + middle_alone)


# Budgets


async def test_a_budget_counts_what_was_reported_before_a_cut():
    budget = Budget(max_tokens=100_000, scope="session")
    await cut(UsageUpdate(Usage(5_000, 300)), policies=[budget])
    assert budget.spent.usage == Usage(5_000, 300, unknown=True)
    assert budget.spent.cost == PRICE.cost(Usage(5_000, 300))


@pytest.mark.parametrize("reserve", [True, False])
async def test_a_budget_estimates_what_nobody_reported(reserve: bool):
    budget = Budget(max_cost=1.0, scope="session", reserve=reserve)
    message = await cut(policies=[budget])
    assert message.cost is None
    assert budget.spent.usage.total > 0
    assert budget.spent.cost is not None
    assert budget.spent.cost.total > 0


async def test_a_budget_lets_a_run_go_on_after_a_lost_reply_until_the_estimates_reach_it():
    lost = [Start(), TextStart(0), TextDelta(0, "word " * 400), Error("lost", "network")]
    retry = ExponentialBackoff(max_attempts=50, base_delay=0)
    model = ScriptedModel([lost] * 50)
    budget = Budget(max_tokens=5_000)
    result = await Agent(PRICED, stream_fn=model, policies=[budget], retry=retry).run("Go.")
    assert 1 < len(model.calls) < 12
    assert "budget" in (result.reason or "")


async def test_a_session_budget_estimates_the_lost_replies_of_a_restored_history():
    lost = Agent(PRICED, stream_fn=ScriptedModel([["word " * 400, Pause(60)]]))
    lost.subscribe(lambda event: lost.abort() if isinstance(event, MessageUpdate) else None)
    await lost.run("word " * 400)
    budget = Budget(max_cost=1.0, scope="session")
    agent = Agent(PRICED, stream_fn=ScriptedModel(["hi"]), messages=lost.messages, policies=[budget])
    assert (await agent.run("Go on.")).text == "hi"
    assert budget.spent.usage.input >= 400
    assert budget.spent.usage.output >= 400


def test_an_attempt_without_a_price_is_lost_only_if_nothing_of_it_was_reported():
    """What was reported without a price is unpriced: a budget must not go on as if the rest were all."""
    for usage, is_lost in (
        (Usage(unknown=True), True),
        (Usage(input=5, unknown=True), False),
        (Usage(), False),
    ):
        account = Account(lambda model: None)
        account.charge(Usage(input=1), Cost(input=1.0))
        account.charge(usage, None)
        assert account.totals[1] is None
        assert (account.reported_cost is not None) is is_lost
