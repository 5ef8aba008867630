"""Hand-over: the conversation passes on, chains end, and every refusal and failure leaves sound agents."""

import asyncio
from typing import Any

import pytest
from casts import agent, check_idle, hand_over, model_of

from swink import Agent, AuthError, Stop, ToolCall, Transfer, tool
from swink.errors import AlreadyRunning, MisuseError
from swink.events import MessageUpdate, TurnEnd
from swink.policies import MaxTurns
from swink.teams import Team, agent_tool, transfer_tool
from swink.testing import Pause


def member(*replies: Any, to: tuple[str, ...] = ("a", "b", "c"), **options: Any) -> Agent:
    return agent(*replies, tools=[transfer_tool(to), *options.pop("tools", ())], **options)


async def test_the_conversation_passes_on_and_the_other_answers():
    support = member(
        ["One moment.", hand_over("billing", message="double charge")],
        to=("billing",),
        system_prompt="Support.",
    )
    billing = agent("Refunded.", "Anything else?", system_prompt="Billing.")
    team = Team({"support": support, "billing": billing})
    result = await team.run("I was charged twice.")
    assert (result.text, result.stop_reason, team.active) == ("Refunded.", "stop", "billing")
    (seen,) = model_of(billing).calls
    assert seen.system_prompt == "Billing."
    assert [message.text for message in seen.messages] == [
        "I was charged twice.",
        "One moment.",
        "Handed over to billing. double charge",
    ]
    assert result.usage.total == 4
    assert [message.role for message in result.messages] == ["user", "assistant", "tool_result", "assistant"]
    assert (await team.run("Thanks.")).text == "Anything else?", (
        "whoever has the conversation answers from then on"
    )
    assert len(team.messages) == 6
    check_idle(support, billing)


async def test_reset_begins_with_the_first_agent_again():
    a, b = member(hand_over("b"), "a again"), member("b here")
    team = Team({"a": a, "b": b})
    await team.run("Go.")
    team.reset()
    assert (team.active, len(b.messages)) == ("a", 0)
    assert (await team.run("Go.")).text == "a again"


async def test_a_cycle_is_refused_and_the_model_can_go_on():
    a, b = member(hand_over("b")), member(hand_over("a"), "I will do it then.")
    team = Team({"a": a, "b": b})
    result = await team.run("Go.")
    assert result.text == "I will do it then."
    assert "'a' has had the conversation already (a → b)" in b.messages[4].text
    check_idle(a, b)


async def test_a_cycle_can_be_allowed():
    a, b = member(hand_over("b"), "back with a"), member(hand_over("a"))
    assert (await Team({"a": a, "b": b}, allow_cycles=True).run("Go.")).text == "back with a"
    check_idle(a, b)


async def test_a_chain_has_at_most_five_hand_overs():
    names = [f"n{number}" for number in range(7)]
    agents = {
        name: member(hand_over(after), f"{name} answers", to=tuple(names))
        for name, after in zip(names, [*names[1:], "n0"], strict=True)
    }
    result = await Team(agents).run("Go.")
    assert result.text == "n5 answers"
    assert "5 handoffs are the limit" in agents["n5"].messages[-2].text
    check_idle(*agents.values())


async def test_even_with_cycles_a_chain_ends():
    a, b = member(*[hand_over("b")] * 3, "tired"), member(*[hand_over("a")] * 3, "tired")
    result = await Team({"a": a, "b": b}, allow_cycles=True).run("Go.")
    assert result.text == "tired"
    assert len(model_of(a).calls) + len(model_of(b).calls) == 7


async def test_handing_over_to_oneself_or_to_two_at_once_is_refused():
    a, b, c = member(hand_over("a"), [hand_over("b", 1), hand_over("c", 2)]), member("b here"), member()
    assert (await Team({"a": a, "b": b, "c": c}).run("Go.")).text == "b here"
    assert "answer yourself" in a.messages[2].text
    assert "already being handed off to 'b'" in a.messages[5].text
    check_idle(a, b, c)


@tool
async def wander(to: str) -> Transfer:
    """Hands over without asking the team."""
    return Transfer(to)


@pytest.mark.parametrize(
    ("to", "said"), [("nobody", "there is no agent 'nobody'"), ("a", "'a' has the conversation already")]
)
async def test_a_hand_over_the_team_cannot_follow_ends_in_a_clear_error(to: str, said: str):
    a, b = agent(ToolCall("x", "wander", {"to": to}), "later", tools=[wander]), agent()
    team = Team({"a": a, "b": b})
    result = await team.run("Go.")
    assert result.stop_reason == "error"
    assert said in result.error
    check_idle(a, b)
    assert (await team.run("Still there?")).text == "later"


async def test_a_busy_target_ends_in_a_clear_error():
    a, b = member(hand_over("b")), agent(["busy", Pause(0.2)])
    elsewhere = asyncio.create_task(b.run("mine"))
    await asyncio.sleep(0)
    result = await Team({"a": a, "b": b}).run("Go.")
    assert "'b' is busy elsewhere" in result.error
    assert (await elsewhere).text == "busy", "an agent's other run is not disturbed"


async def test_a_failure_after_the_hand_over_names_the_agent_and_keeps_what_was_said():
    a, b = member(["Over to b.", hand_over("b")]), agent(AuthError("wrong key"), "now it works")
    team = Team({"a": a, "b": b})
    result = await team.run("Go.")
    assert (result.stop_reason, result.error_kind) == ("error", "auth")
    assert result.error.startswith("b: ")
    assert [message.role for message in result.messages] == ["user", "assistant", "tool_result", "assistant"]
    check_idle(a, b)
    assert (await team.run("Again.")).text == "now it works"


async def test_a_policy_stop_in_the_chain_is_named():
    a, b = member(hand_over("b")), agent(ToolCall("x", "none", {}), policies=[MaxTurns(1)])
    assert (await Team({"a": a, "b": b}).run("Go.")).reason.startswith("b: max turns")


async def test_a_policy_that_stops_at_the_hand_over_keeps_it_from_happening():
    class After(MaxTurns):
        def post_turn(self, ctx: Any, turn: Any) -> Stop:
            return Stop("enough")

    a, b = member(hand_over("b"), policies=[After(9)]), agent("never")
    result = await Team({"a": a, "b": b}).run("Go.")
    assert not model_of(b).calls
    assert result.reason == "a: enough"


async def test_abort_ends_whoever_has_the_conversation():
    a, b = member(hand_over("b")), agent(["part", Pause(30)])
    team = Team({"a": a, "b": b})
    async with team.stream("Go.") as run:
        async for nested in run:
            if nested.path == ("b",) and isinstance(nested.event, MessageUpdate):
                team.abort()
        result = await run.result()
    assert (result.stop_reason, result.text) == ("aborted", "part")
    assert not team.is_running
    check_idle(a, b)


async def test_abort_between_two_agents_starts_nobody():
    a, b = member(hand_over("b")), agent("never")
    team = Team({"a": a, "b": b})
    async with team.stream("Go.") as run:
        async for nested in run:
            if isinstance(nested.event, TurnEnd):
                team.abort()
        result = await run.result()
    assert result.stop_reason == "aborted"
    assert not model_of(b).calls
    check_idle(a, b)


async def test_cancelling_the_caller_ends_the_team():
    a, b = member(hand_over("b")), agent(["part", Pause(30)])
    team = Team({"a": a, "b": b})
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await team.run("Go.")
    assert not team.is_running
    check_idle(a, b)


async def test_a_deadline_bounds_the_whole_chain():
    a, b = member(hand_over("b")), agent(["part", Pause(30)])
    result = await Team({"a": a, "b": b}).run("Go.", deadline=0.05)
    assert (result.stop_reason, result.reason) == ("aborted", "deadline of 0.05 s passed")
    check_idle(a, b)


async def test_events_carry_the_agents_name():
    a, b = member(hand_over("b")), agent("hi")
    async with Team({"a": a, "b": b}).stream("Go.") as run:
        names = [(nested.path[0], type(nested.event).__name__) async for nested in run]
    assert [name for name, event in names if event == "AgentEnd"] == ["a", "b"]


async def test_a_second_run_at_once_is_refused():
    team = Team({"a": agent(["x", Pause(0.1)])})
    first = asyncio.create_task(team.run("Go."))
    await asyncio.sleep(0)
    with pytest.raises(AlreadyRunning):
        await team.run("Me too.")
    with pytest.raises(AlreadyRunning):
        team.reset()
    assert (await first).text == "x"


async def test_a_team_can_be_a_tool_and_its_chain_is_its_own():
    a, b = member(hand_over("b")), member("solved")
    outer_b = member("never")
    lead = member(
        ToolCall("t", "team", {"task": "solve it"}),
        "done",
        tools=[agent_tool(Team({"a": a, "b": b}), "team", "A team.")],
    )
    result = await Team({"lead": lead, "b": outer_b}).run("Go.")
    assert result.text == "done"
    assert lead.messages[2].text == "solved"
    assert len(a.messages) == len(b.messages) == 0, "a team that is a tool is fresh for each call"


async def test_a_hand_over_inside_a_lone_sub_agent_is_an_error_result_and_does_not_disturb_the_team():
    sub = agent_tool(member(hand_over("b")), "sub", "s")
    lead, b = member(ToolCall("t", "sub", {"task": "x"}), hand_over("b"), tools=[sub]), agent("b here")
    result = await Team({"lead": lead, "b": b}).run("Go.")
    assert "wanted to hand off to 'b', which only works in a team" in lead.messages[2].text
    assert result.text == "b here"


def test_teams_that_cannot_work_are_refused():
    with pytest.raises(MisuseError):
        Team({})
    with pytest.raises(MisuseError):
        Team({"a": agent()}, start="b")
    with pytest.raises(MisuseError):
        transfer_tool([])
    one = agent()
    with pytest.raises(MisuseError):
        Team({"a": one, "b": one})


def test_a_team_runs_without_an_event_loop():
    assert Team({"a": member(hand_over("b")), "b": agent("hi")}).run_sync("Go.").text == "hi"
