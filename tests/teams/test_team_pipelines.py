"""Pipelines: one face, summed results, and failures in every place."""

import asyncio
import gc
from typing import Any

import pytest
from casts import agent, check_idle, model_of

from swink import Agent, AgentError, AuthError, ExponentialBackoff, NetworkError, SyncInAsyncContext, Usage
from swink.errors import AlreadyRunning, MisuseError
from swink.events import AgentEnd, MessageUpdate
from swink.policies import MaxTurns
from swink.teams import NestedEvent, Team, agent_tool, loop, parallel, sequential
from swink.testing import Pause, ScriptedModel


async def test_sequential_hands_each_answer_on():
    first, second = agent("a draft"), agent("a text")
    result = await sequential({"draft": first, "edit": second}).run("Tea.")
    assert (result.text, result.stop_reason, result.usage.total, result.error) == ("a text", "stop", 4, None)
    assert result.cost.total == pytest.approx(4e-6)
    assert [message.text for message in result.messages] == ["Tea.", "a draft", "a draft", "a text"]
    check_idle(first, second)


async def test_what_is_handed_on_can_be_chosen():
    first, second = agent("a draft"), agent("a text")
    await sequential(first, second, hand_on=lambda result: f"Edit this: {result.text}").run("Tea.")
    assert second.messages[0].text == "Edit this: a draft"


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_a_failure_anywhere_in_a_sequence_ends_it_and_says_where(place: int):
    agents = [
        agent("ok") if number != place else agent(AuthError("wrong key"), "later") for number in range(3)
    ]
    result = await sequential(*agents).run("Go.")
    assert (result.stop_reason, result.error_kind) == ("error", "auth")
    assert result.error.startswith(f"{place + 1}: ")
    assert [len(model_of(item).calls) for item in agents] == [1] * (place + 1) + [0] * (2 - place)
    assert result.usage.total == 2 * place
    check_idle(*agents)
    assert (await agents[place].run("Again.")).text == "later"


async def test_a_policy_stop_ends_a_sequence():
    first = agent("ok", policies=[MaxTurns(1)])
    await first.run("Before.")
    stopped = agent("x", policies=[_Never()])
    result = await sequential({"a": stopped, "b": agent("never")}).run("Go.")
    assert result.reason == "a: never"


class _Never(MaxTurns):
    def __init__(self) -> None:
        super().__init__(1)

    def pre_turn(self, ctx: Any) -> Any:
        from swink import Stop

        return Stop("never")


async def test_a_step_that_says_nothing_is_a_clear_error():
    first, second = agent(""), agent("never")
    result = await sequential({"a": first, "b": second}).run("Go.")
    assert (result.stop_reason, result.error) == ("error", "a: gave nothing to hand on")
    assert (await sequential(agent("x"), agent("")).run("Go.")).stop_reason == "stop", (
        "the last one may be silent"
    )
    check_idle(first, second)


async def test_parallel_asks_all_at_once():
    together = asyncio.Barrier(3)

    async def meet(messages: Any, overflow: bool) -> Any:
        async with asyncio.timeout(60):
            await together.wait()
        return messages

    agents = {name: agent(name.upper(), transform_context=meet) for name in ("x", "y", "z")}
    result = await parallel(agents).run("Go.")
    assert result.text == "x:\nX\n\ny:\nY\n\nz:\nZ"
    assert (result.usage.total, result.stop_reason, result.cost.total) == (6, "stop", pytest.approx(6e-6))
    check_idle(*agents.values())


async def test_parallel_answers_can_be_joined_otherwise():
    result = await parallel(
        agent("3"), agent("4"), join=lambda results: str(max(int(item.text) for item in results.values()))
    ).run("Go.")
    assert result.text == "4"


async def test_failures_in_parallel_are_named_and_do_not_disturb_the_others():
    good, bad, cut = (
        agent("fine"),
        agent(AuthError("wrong key")),
        agent(["par", NetworkError("gone")], retry=ExponentialBackoff(max_attempts=1)),
    )
    result = await parallel({"good": good, "bad": bad, "cut": cut}).run("Go.")
    assert (result.stop_reason, result.error_kind) == ("error", "auth")
    assert "bad: " in result.error
    assert "cut: " in result.error
    assert "good:\nfine" in result.text
    assert "cut:\npar" in result.text
    check_idle(good, bad, cut)


async def test_a_hook_that_raises_in_parallel_ends_the_others_and_is_raised_as_it_is():
    def broken(messages: Any, overflow: bool) -> Any:
        raise RuntimeError("hook broke")

    slow, bad = agent(["part", Pause(30)]), agent("x", transform_context=broken)
    flow = parallel(slow, bad)
    with pytest.raises(RuntimeError, match="hook broke"):
        await flow.run("Go.")
    assert not flow.is_running
    check_idle(slow, bad)


async def test_loop_goes_on_until_it_is_done():
    writer = agent("v1", "v2", "v3 APPROVED", "never")
    result = await loop(writer, until=lambda result: "APPROVED" in result.text).run("Go.")
    assert (result.text, result.usage.total, result.reason) == ("v3 APPROVED", 6, None)


async def test_loop_takes_an_async_condition():
    async def done(result: Any) -> bool:
        return result.text == "v2"

    assert (await loop(agent("v1", "v2"), until=done).run("Go.")).text == "v2"


async def test_loop_ends_after_its_rounds_and_says_so():
    writer = agent(*["again"] * 5)
    result = await loop(writer, until=lambda result: False, max_rounds=3).run("Go.")
    assert (result.reason, len(model_of(writer).calls)) == ("not done after 3 rounds", 3)


async def test_a_failure_in_a_round_ends_the_loop_and_names_it():
    writer = agent("v1", AuthError("wrong key"), "later")
    result = await loop(writer, until=lambda result: False).run("Go.")
    assert result.error.startswith("round 2: ")
    assert (
        await loop(agent("v1", ""), until=lambda result: False).run("Go.")
    ).error == "round 2: gave nothing to hand on"
    check_idle(writer)


async def test_a_condition_that_raises_is_raised_and_leaves_everybody_idle():
    writer = agent("v1")
    flow = loop(writer, until=lambda result: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        await flow.run("Go.")
    assert not flow.is_running
    check_idle(writer)


async def test_pipelines_nest_and_their_events_show_the_path():
    flow = sequential({"ideas": parallel({"a": agent("A"), "b": agent("B")}), "pick": agent("A it is")})
    async with flow.stream("Go.") as run:
        paths = [nested.path async for nested in run if isinstance(nested.event, AgentEnd)]
        result = await run.result()
    assert sorted(paths[:2]) == [("ideas", "a"), ("ideas", "b")]
    assert paths[2] == ("pick",)
    assert (result.text, result.usage.total) == ("A it is", 6)


def make(kind: str) -> tuple[Any, list[Any]]:
    agents = [agent(["part", Pause(30)]), agent(["part", Pause(30)])]
    flows = {
        "sequential": lambda: sequential(*agents),
        "parallel": lambda: parallel(*agents),
        "loop": lambda: loop(agents[0], until=lambda result: False),
        "nested": lambda: sequential(parallel(*agents)),
    }
    return flows[kind](), agents


KINDS = ["sequential", "parallel", "loop", "nested"]


@pytest.mark.parametrize("kind", KINDS)
async def test_abort_keeps_what_arrived(kind: str):
    flow, agents = make(kind)
    async with flow.stream("Go.") as run:
        async for nested in run:
            if isinstance(nested.event, MessageUpdate):
                flow.abort()
        result = await run.result()
    assert (result.stop_reason, result.error_kind) == ("aborted", "aborted")
    assert "part" in result.text
    assert not flow.is_running
    check_idle(*agents)


@pytest.mark.parametrize("kind", KINDS)
async def test_abort_works_from_another_thread(kind: str):
    flow, agents = make(kind)
    async with flow.stream("Go.") as run:
        async for nested in run:
            if isinstance(nested.event, MessageUpdate):
                await asyncio.to_thread(flow.abort)
        assert (await run.result()).stop_reason == "aborted"
    check_idle(*agents)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_deadline_ends_it(kind: str):
    flow, agents = make(kind)
    result = await flow.run("Go.", deadline=0.03)
    assert (result.stop_reason, result.reason) == ("aborted", "deadline of 0.03 s passed")
    check_idle(*agents)


@pytest.mark.parametrize("kind", KINDS)
async def test_cancelling_the_caller_ends_it(kind: str):
    flow, agents = make(kind)
    caller = asyncio.create_task(flow.run("Go."))
    await asyncio.sleep(0.03)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert not flow.is_running
    check_idle(*agents)


@pytest.mark.parametrize("kind", KINDS)
async def test_leaving_the_stream_early_ends_it(kind: str):
    flow, agents = make(kind)
    async with flow.stream("Go.") as run:
        async for nested in run:
            assert isinstance(nested, NestedEvent)
            break
    assert not flow.is_running
    check_idle(*agents)


@pytest.mark.parametrize("kind", KINDS)
async def test_cancelling_the_reader_ends_it(kind: str):
    flow, agents = make(kind)

    async def read() -> None:
        async for _ in flow.stream("Go."):
            pass

    reader = asyncio.create_task(read())
    await asyncio.sleep(0.03)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert not flow.is_running
    check_idle(*agents)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_run_cancelled_before_its_first_step_leaves_everybody_idle(kind: str):
    flow, agents = make(kind)
    caller = asyncio.create_task(flow.run("Go."))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert not flow.is_running
    check_idle(*agents)


async def test_a_dropped_stream_ends_its_run():
    flow, agents = make("sequential")
    async for _ in flow.stream("Go."):
        break
    for _ in range(3_000):
        if not flow.is_running:
            break
        await asyncio.sleep(0.01)
    assert not flow.is_running
    check_idle(*agents)


async def test_a_failure_in_a_stream_is_raised_to_the_reader():
    flow = loop(agent("v1"), until=lambda result: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        async for _ in flow.stream("Go."):
            pass


async def test_abort_does_not_touch_a_member_that_works_for_somebody_else():
    first, second = agent(["part", Pause(30)]), agent(["mine", Pause(0.1)], "x")
    flow = sequential(first, second)
    elsewhere = asyncio.create_task(second.run("Mine."))
    running = asyncio.create_task(flow.run("Go."))
    await asyncio.sleep(0.02)
    flow.abort()
    assert (await running).stop_reason == "aborted"
    assert (await elsewhere).stop_reason == "stop"


async def test_a_member_that_is_busy_is_misuse():
    busy = agent(["mine", Pause(0.1)])
    elsewhere = asyncio.create_task(busy.run("Mine."))
    await asyncio.sleep(0)
    flow = sequential(agent("x"), busy)
    with pytest.raises(AlreadyRunning):
        await flow.run("Go.")
    assert not flow.is_running
    await elsewhere


async def test_one_run_at_a_time():
    flow = sequential(agent(["x", Pause(0.05)]))
    first = asyncio.create_task(flow.run("Go."))
    await asyncio.sleep(0)
    with pytest.raises(AlreadyRunning):
        await flow.run("Go.")
    with pytest.raises(SyncInAsyncContext):
        flow.run_sync("Go.")
    await first


def test_pipelines_run_without_an_event_loop():
    flow = sequential(agent("a", "c", usage=Usage(input=1)), agent("b", "d"))
    assert flow.run_sync("Go.").text == "b"
    assert flow.run_sync("Go.").text == "d"


def test_pipelines_that_cannot_work_are_refused():
    one = agent()
    with pytest.raises(MisuseError):
        sequential()
    with pytest.raises(MisuseError):
        parallel(one, one)
    with pytest.raises(MisuseError):
        loop(one, until=lambda result: True, max_rounds=0)
    with pytest.raises(MisuseError):
        sequential({"a": one}, {"a": one})


def test_a_flow_whose_event_loop_was_closed_can_be_used_again():
    flow = sequential(Agent("test:m", stream_fn=ScriptedModel([["a", Pause(60)], "b"])))
    loop = asyncio.new_event_loop()
    task = loop.create_task(flow.run("Go."))
    loop.run_until_complete(asyncio.sleep(0.02))
    assert flow.is_running
    for left in asyncio.all_tasks(loop):
        left._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.close()
    assert not flow.is_running
    assert flow.run_sync("Again.").text == "b"
    del task
    gc.collect()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Team([agent("a")]), "a dict of agents by name, not list"),
        (
            lambda: sequential([agent("a"), agent("b")]),
            "member '1' is an agent, a team or a pipeline, not list",
        ),
        (lambda: parallel({"a": "b"}), "member 'a' is an agent"),
        (lambda: loop(agent("a"), until="APPROVED"), "until is a function"),
        (lambda: agent_tool("a", "research", "Finds facts."), "an agent or a function that makes one"),
    ],
)
def test_what_is_no_member_is_refused_where_it_is_given(make: Any, said: str):
    with pytest.raises(AgentError, match=said):
        make()
