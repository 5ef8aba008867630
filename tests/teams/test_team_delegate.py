"""An agent as a tool: what flows up, what flows down, and what each failure leaves behind."""

import asyncio
import gc
from typing import Any

import pytest
from casts import PRICED, agent, check_idle, model_of, task

from swink import (
    Agent,
    AuthError,
    ExponentialBackoff,
    InvalidTool,
    NetworkError,
    Policy,
    Stop,
    ToolCall,
    ToolContext,
    Usage,
    tool,
)
from swink.events import (
    MessageEnd,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionUpdate,
    decode_agent_event,
    encode_agent_event,
)
from swink.messages import Cost
from swink.policies import Budget, MaxTurns
from swink.stream import Done, Error, Start
from swink.teams import NestedEvent, agent_tool, sequential
from swink.testing import EventCollector, Pause, ScriptedModel


def lead(*tools: Any, replies: list[Any] | None = None, **options: Any) -> Agent:
    return agent(*(replies or [task("research"), "done"]), tools=tools, **options)


def result_text(parent: Agent) -> str:
    return next(message.text for message in parent.messages if message.role == "tool_result")


async def test_a_task_is_given_and_its_answer_comes_back():
    child = agent("42", system_prompt="You research.")
    parent = lead(
        agent_tool(child, "research", "Finds things."), replies=[task("research", "the answer"), "It is 42."]
    )
    result = await parent.run("What is it?")
    assert (result.text, result_text(parent)) == ("It is 42.", "42")
    (seen,) = model_of(child).calls
    assert (seen.system_prompt, [message.text for message in seen.messages]) == (
        "You research.",
        ["the answer"],
    )
    check_idle(parent, child)


async def test_usage_and_cost_flow_up_at_every_depth():
    inner = agent("c", usage=Usage(input=100))
    middle = agent(task("inner"), "b", tools=[agent_tool(inner, "inner", "i")], usage=Usage(input=10))
    parent = lead(agent_tool(middle, "research", "r"))
    result = await parent.run("Go.")
    assert result.usage.total == 2 * 2 + 2 * 10 + 100
    assert result.cost.total == pytest.approx(124e-6)


async def test_attempts_that_failed_inside_are_charged_too():
    replies = [[Start(), Error("busy", "network", usage=Usage(input=50))], "ok"]
    parent = lead(agent_tool(agent(*replies, retry=ExponentialBackoff(base_delay=0)), "research", "r"))
    assert (await parent.run("Go.")).usage.total == 4 + 50 + 2


async def test_an_unknown_price_inside_makes_the_cost_unknown():
    parent = lead(agent_tool(agent("ok", model="test:unpriced"), "research", "r"))
    assert (await parent.run("Go.")).cost is None


async def test_events_carry_their_path_and_arrive_live():
    inner = agent("deep")
    middle = agent(task("inner", number=7), "mid", tools=[agent_tool(inner, "inner", "i")])
    parent = lead(agent_tool(middle, "research", "r"))
    events = EventCollector()
    parent.subscribe(events)
    await parent.run("Go.")
    events.check()
    nested = [event.update for event in events.of(ToolExecutionUpdate)]
    assert all(isinstance(update, NestedEvent) for update in nested)
    deep = [update for update in nested if update.path == ("research", "inner")]
    assert {update.calls for update in deep} == {("call_1", "call_7")}
    assert [update.event.delta.text for update in deep if isinstance(update.event, MessageUpdate)] == ["deep"]
    assert [update.event.message.text for update in nested if isinstance(update.event, MessageEnd)] == [
        "do it",
        "",
        "do it",
        "deep",
        "deep",
        "mid",
    ]
    for event in events.of(ToolExecutionUpdate):
        assert decode_agent_event(encode_agent_event(event)).call_id == "call_1"  # type: ignore[union-attr]


async def test_each_call_gets_a_fresh_agent():
    child = agent("one", "two", "three")
    child_tool = agent_tool(child, "research", "r")
    parent = agent(
        [task("research", "a", 1), task("research", "b", 2)],
        "done",
        task("research", "c", 3),
        "done",
        tools=[child_tool],
    )
    await parent.run("Go.")
    await parent.run("Again.")
    seen = [[message.text for message in context.messages] for context in model_of(child).calls]
    assert seen == [["a"], ["b"], ["c"]]
    assert len(child.messages) == 0, "the agent given is only a pattern"


async def test_a_fresh_agent_has_the_history_and_state_it_was_made_with():
    @tool
    async def count(ctx: ToolContext) -> str:
        """Counts."""
        ctx.state["n"] += 1
        return str(ctx.state["n"])

    child = agent(
        ToolCall("x", "count", {}), "one", ToolCall("x", "count", {}), "two", tools=[count], state={"n": 5}
    )
    parent = agent(
        task("research", number=1),
        task("research", number=2),
        "done",
        tools=[agent_tool(child, "research", "r")],
    )
    await parent.run("Go.")
    assert [
        message.text
        for context in model_of(child).calls
        for message in context.messages
        if message.role == "tool_result"
    ] == [
        "6",
        "6",
    ]
    assert child.state == {"n": 5}


async def test_a_factory_makes_an_agent_per_call():
    made: list[Agent] = []

    async def make() -> Agent:
        made.append(agent(f"answer {len(made)}"))
        return made[-1]

    parent = agent(
        [task("research", number=1), task("research", number=2)],
        "done",
        tools=[agent_tool(make, "research", "r")],
    )
    await parent.run("Go.")
    assert len(made) == 2
    check_idle(*made)


async def test_an_agent_can_be_told_to_remember():
    child = agent("one", "two")
    child_tool = agent_tool(child, "research", "r", remember=True)
    parent = agent([task("research", "a", 1), task("research", "b", 2)], "done", tools=[child_tool])
    await parent.run("Go.")
    assert [message.text for message in child.messages] == ["a", "one", "b", "two"]
    with pytest.raises(InvalidTool):
        agent_tool(lambda: child, "research", "r", remember=True)


async def test_an_agent_that_is_busy_says_so():
    child = agent(["slow", Pause(0.2)])
    parent = lead(agent_tool(child, "research", "r", remember=True))
    busy = asyncio.create_task(child.run("mine"))
    await asyncio.sleep(0)
    await parent.run("Go.")
    assert "is busy" in result_text(parent)
    assert (await busy).text == "slow"


async def test_typed_output_comes_back_as_data():
    child = agent(ToolCall("x", "final_output", {"value": [1, 2]}))
    parent = lead(agent_tool(child, "research", "r", output=list[int]))
    await parent.run("Go.")
    assert result_text(parent) == "[1,2]"
    with pytest.raises(InvalidTool):
        agent_tool(sequential(child), "research", "r", output=int)


@pytest.mark.parametrize(
    ("replies", "options", "said"),
    [
        ([AuthError("wrong key")], {}, "'research' failed: test:priced: wrong key"),
        (
            [["part", NetworkError("cut")]],
            {"retry": ExponentialBackoff(max_attempts=1)},
            "What it said so far:\npart",
        ),
        ([ToolCall("x", "missing", {}), "recovered"], {}, "recovered"),
        ([""], {}, "(it gave no answer)"),
        ([["half", Done("length")]], {}, "half\n[cut off"),
        ([ToolCall("x", "a", {}), "never"], {"policies": [MaxTurns(1)]}, "'research' was stopped: max turns"),
    ],
)
async def test_what_goes_wrong_inside_is_a_result_the_caller_can_act_on(
    replies: list[Any], options: dict[str, Any], said: str
):
    child = agent(*replies, **options)
    parent = lead(agent_tool(child, "research", "r"))
    result = await parent.run("Go.")
    assert result.text == "done"
    assert said in result_text(parent)
    check_idle(parent, child)


async def test_a_hook_that_raises_inside_is_an_error_result():
    def broken(messages: Any, overflow: bool) -> Any:
        raise RuntimeError("hook broke")

    parent = lead(agent_tool(agent("x", transform_context=broken), "research", "r"))
    assert (await parent.run("Go.")).text == "done"
    assert "RuntimeError: hook broke" in result_text(parent)


async def test_a_factory_that_raises_is_an_error_result():
    def broken() -> Agent:
        raise ValueError("no agent today")

    parent = lead(agent_tool(broken, "research", "r"))
    assert (await parent.run("Go.")).text == "done"
    assert "no agent today" in result_text(parent)


async def test_a_tool_that_raises_inside_is_the_inner_agents_matter():
    @tool
    async def broken() -> str:
        """Breaks."""
        raise ValueError("boom")

    child = agent(ToolCall("x", "broken", {}), "worked around it", tools=[broken])
    parent = lead(agent_tool(child, "research", "r"))
    await parent.run("Go.")
    assert result_text(parent) == "worked around it"


async def test_an_inner_agent_that_is_aborted_says_so_and_the_caller_goes_on():
    child = agent(["thinking", Pause(5)])
    parent = lead(agent_tool(child, "research", "r", remember=True))
    parent.subscribe(
        lambda event: (
            child.abort() if isinstance(event, ToolExecutionUpdate) and "thinking" in str(event) else None
        )
    )
    result = await parent.run("Go.")
    assert result.text == "done"
    assert "'research' was aborted" in result_text(parent)
    assert "thinking" in result_text(parent)
    check_idle(parent, child)


def abort_when(parent: Agent, wanted: str) -> None:
    parent.subscribe(
        lambda event: (
            parent.abort() if isinstance(event, ToolExecutionUpdate) and wanted in str(event) else None
        )
    )


async def test_the_callers_abort_ends_the_inner_agent_and_what_it_spent_is_counted():
    inner = agent(["working", Pause(30)])
    middle = agent(
        [task("inner")], tools=[agent_tool(inner, "inner", "i", remember=True)], usage=Usage(input=70)
    )
    parent = lead(agent_tool(middle, "research", "r", remember=True))
    abort_when(parent, "working")
    result = await parent.run("Go.")
    await asyncio.gather(middle.wait_for_idle(), inner.wait_for_idle())
    assert result.stop_reason == "aborted"
    assert result.usage.total == 2 + 70
    assert inner.messages[-1].stop_reason == "aborted"
    check_idle(parent, middle, inner)


async def test_cancelling_the_caller_ends_the_inner_agent():
    child = agent(["working", Pause(30)])
    parent = lead(agent_tool(child, "research", "r", remember=True))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await parent.run("Go.")
    await child.wait_for_idle()
    check_idle(parent, child)
    assert child.messages[-1].text == "working"


async def test_the_callers_deadline_binds_the_inner_agent():
    child = agent(["working", Pause(30)])
    parent = lead(agent_tool(child, "research", "r", remember=True))
    result = await parent.run("Go.", deadline=0.05)
    await child.wait_for_idle()
    assert (result.stop_reason, "deadline" in result.reason) == ("aborted", True)
    check_idle(parent, child)


async def test_the_tools_own_timeout_ends_the_inner_agent():
    child = agent(["working", Pause(30)])
    parent = lead(agent_tool(child, "research", "r", remember=True, timeout=0.05))
    assert (await parent.run("Go.")).text == "done"
    await child.wait_for_idle()
    assert "timed out" in result_text(parent)
    check_idle(parent, child)


async def test_steering_the_caller_ends_the_inner_agent():
    child = agent(["working", Pause(30)])

    @tool
    async def quick() -> str:
        """Quick."""
        await asyncio.sleep(0.02)
        parent.steer("Stop that.")
        return "ok"

    parent = agent(
        [task("research"), ToolCall("q", "quick", {})],
        "steered",
        tools=[agent_tool(lambda: child, "research", "r"), quick],
    )
    assert (await parent.run("Go.")).text == "steered"
    await child.wait_for_idle()
    assert child.messages[-1].text == "working"
    check_idle(parent, child)


async def test_nesting_has_a_limit_and_says_so():
    depths: list[int] = []

    def make() -> Agent:
        depths.append(1)
        return agent(
            task("deeper"),
            lambda context: f"got: {context.messages[-1].text}",
            tools=[agent_tool(make, "deeper", "d", max_depth=3)],
        )

    parent = make()
    result = await parent.run("Go.")
    assert len(depths) == 1 + 3
    assert "nested 3 deep already" in result.text
    check_idle(parent)


async def test_the_callers_budget_binds_the_inner_agent():
    replies = [ToolCall(f"x{number}", "look", {"n": number}) for number in range(50)]

    @tool
    async def look(n: int) -> str:
        """Looks."""
        return "nothing"

    child = agent(*replies, "found", tools=[look], usage=Usage(input=100))
    budget = Budget(max_tokens=500, reserve=False)
    parent = lead(agent_tool(child, "research", "r"), policies=[budget])
    result = await parent.run("Go.")
    assert len(model_of(child).calls) == 5
    assert "budget: tokens" in result.reason
    assert result.usage.total == 502
    assert "was stopped: budget" in result_text(parent)
    assert all(policy is not budget for policy in child._config.policies)


async def test_a_remembered_agent_is_bound_only_while_it_works_for_the_caller():
    child = agent("one", "two", usage=Usage(input=100))
    parent = lead(
        agent_tool(child, "research", "r", remember=True), policies=[Budget(max_tokens=150, reserve=False)]
    )
    await parent.run("Go.")
    assert (await child.run("Mine.")).text == "two"
    assert child._config.policies == ()


async def test_inner_agents_that_run_at_once_cannot_pass_the_callers_budget_together():
    children = [agent("ok", usage=Usage(output=900)) for _ in range(5)]
    tools = [agent_tool(child, f"research{number}", "r") for number, child in enumerate(children)]
    parent = agent(
        [task(f"research{number}", number=number) for number in range(5)],
        "done",
        tools=tools,
        policies=[Budget(max_tokens=3_500)],
    )
    result = await parent.run("Go.")
    asked = sum(len(model_of(child).calls) for child in children)
    assert asked == 3, (
        "three calls of up to a thousand tokens each are held at once; a fourth could pass the limit"
    )
    assert result.usage.total <= 3_500


async def test_a_budget_binds_two_levels_down_and_their_spending_is_counted_once():
    inner = agent(
        *(ToolCall(f"x{number}", "none", {"n": number}) for number in range(20)), "c", usage=Usage(input=100)
    )
    middle = agent(task("inner"), "b", tools=[agent_tool(inner, "inner", "i")], usage=Usage(input=100))
    parent = lead(
        agent_tool(middle, "research", "r"),
        policies=[Budget(max_tokens=1_000, reserve=False)],
        usage=Usage(input=100),
    )
    result = await parent.run("Go.")
    assert len(model_of(inner).calls) == 8, "100 for the caller, 100 for the middle, 800 left"
    assert result.usage.total == 1_000


async def test_a_session_budget_counts_an_inner_agent_once():
    budget = Budget(max_tokens=10_000, scope="session")
    parent = lead(agent_tool(agent("ok", usage=Usage(input=100)), "research", "r"), policies=[budget])
    result = await parent.run("Go.")
    assert budget.spent.usage.total == result.usage.total == 104


async def test_an_inner_agents_own_budget_does_not_bind_the_caller():
    child = agent("ok", policies=[Budget(max_tokens=5_000)], usage=Usage(input=4_000))
    parent = lead(agent_tool(child, "research", "r"), usage=Usage(input=3_000))
    assert (await parent.run("Go.")).text == "done"


async def test_a_pipeline_can_be_a_tool_and_is_fresh_each_time():
    first, second = agent("draft 1", "draft 2"), agent("edited 1", "edited 2")
    child_tool = agent_tool(sequential({"draft": first, "edit": second}), "research", "r")
    parent = agent(task("research", number=1), task("research", number=2), "done", tools=[child_tool])
    events = EventCollector()
    parent.subscribe(events)
    result = await parent.run("Go.")
    assert [event.result.text for event in events.of(ToolExecutionEnd)] == ["edited 1", "edited 2"]
    assert result.usage.total == 7 * 2
    assert {event.update.path for event in events.of(ToolExecutionUpdate)} == {
        ("research", "draft"),
        ("research", "edit"),
    }
    assert [len(context.messages) for context in model_of(second).calls] == [1, 1]


async def test_a_policy_of_the_inner_agent_that_fails_closed_stops_only_it():
    class Guard(Policy):
        fail_closed = True

        def pre_turn(self, ctx: Any) -> Stop | None:
            raise RuntimeError("guard broke")

    parent = lead(agent_tool(agent("x", policies=[Guard()]), "research", "r"))
    assert (await parent.run("Go.")).text == "done"
    assert "was stopped: Guard failed" in result_text(parent)


async def test_nothing_is_left_behind():
    gc.collect()  # clients that other tests dropped close themselves in tasks of their own
    await asyncio.sleep(0.01)
    before = len(asyncio.all_tasks())
    parent = lead(agent_tool(agent("ok"), "research", "r"))
    await parent.run("Go.")
    gc.collect()
    await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) == before


async def test_costs_of_an_adapter_that_prices_itself_flow_up():
    child = Agent(
        "test:unpriced", stream_fn=ScriptedModel([["ok", Done("stop", Usage(input=5), Cost(input=0.25))]])
    )
    parent = Agent(
        PRICED,
        stream_fn=ScriptedModel([task("research"), "done"]),
        tools=[agent_tool(child, "research", "r")],
    )
    assert (await parent.run("Go.")).cost.total == pytest.approx(0.25 + 4e-6)
