"""The collector: events in, a trajectory out."""

import asyncio
from typing import Any

import pytest

from swink import Agent, ToolError, tool
from swink.agent.policy import Policy, PolicyContext, Rewrite, Skip
from swink.eval import Collector, Trajectory
from swink.messages import ToolCall, Usage, UserMessage
from swink.testing import Pause, ScriptedModel


@tool
async def wait(seconds: float, name: str) -> str:
    """Wait."""
    await asyncio.sleep(seconds)
    if name == "bad":
        raise ToolError("it broke")
    return f"{name} done"


class Changing(Policy):
    """Runs calls otherwise than the model wrote them."""

    def pre_dispatch(self, ctx: PolicyContext, call: ToolCall) -> Any:
        match call.arguments["name"]:
            case "skipped":
                return Skip("not today")
            case "old":
                return Rewrite({"seconds": 0, "name": "new"})
            case _:
                return None


async def collected(*replies: Any, deadline: float | None = None) -> Trajectory:
    agent = Agent(
        "test:m", stream_fn=ScriptedModel(replies), tools=[wait], policies=[Changing()], system_prompt="Be."
    )
    collector = Collector()
    with agent.subscribe(collector):
        await agent.run("go", policies=[collector], deadline=deadline)
    return collector.trajectory()


def call(id: str, name: str, seconds: float = 0) -> ToolCall:
    return ToolCall(id, "wait", {"seconds": seconds, "name": name})


async def test_calls_are_in_the_models_order_with_the_arguments_that_ran():
    calls = [call("1", "slow", 0.02), call("2", "old"), call("3", "skipped"), call("4", "bad")]
    trajectory = await collected(calls, "done")
    assert [(item.id, item.arguments["name"], item.ran, item.is_error) for item in trajectory.calls] == [
        ("1", "slow", True, False),
        ("2", "new", True, False),
        ("3", "skipped", False, True),
        ("4", "bad", True, True),
    ]
    assert [item.result for item in trajectory.calls] == ["slow done", "new done", "not today", "it broke"]
    assert trajectory.calls[0].duration >= 0.02
    assert (trajectory.response, trajectory.stop_reason, trajectory.error) == ("done", "stop", None)
    assert (trajectory.system_prompt, trajectory.model, trajectory.tools) == ("Be.", "test:m", ("wait",))
    assert trajectory.usage == Usage(input=2, output=2)
    assert [turn.turn for turn in trajectory.turns] == [1, 2]
    for turn in trajectory.turns:
        assert turn.first_delta is not None
        assert turn.started <= turn.first_delta <= turn.replied <= turn.ended


async def test_a_run_that_was_cut_off_has_what_happened_until_then():
    trajectory = await collected([call("1", "slow", 60.0)], deadline=0.05)
    assert trajectory.stop_reason == "aborted"
    assert "deadline" in str(trajectory.reason)
    assert [(item.id, item.ran) for item in trajectory.calls] == [("1", True)]
    trajectory = await collected(["par", Pause(60)], deadline=0.05)
    assert [message.text for message in trajectory.messages] == ["go", "par"]


async def test_messages_that_the_agent_was_made_with_come_first():
    collector = Collector((UserMessage("before"),))
    agent = Agent("test:m", stream_fn=ScriptedModel(["hi"]))
    agent.subscribe(collector)
    await agent.run("go")
    trajectory = collector.trajectory()
    assert [message.text for message in trajectory.messages] == ["before", "go", "hi"]
    assert trajectory.usage == Usage(input=1, output=1)


def test_nothing_collected_is_an_attempt_that_never_began():
    trajectory = Collector().trajectory()
    assert (trajectory.messages, trajectory.stop_reason) == ((), "aborted")


@pytest.mark.parametrize("times", [1, 3])
async def test_turns_are_numbered_over_all_runs(times: int):
    collector = Collector()
    agent = Agent("test:m", stream_fn=ScriptedModel(["hi"] * times))
    agent.subscribe(collector)
    for _ in range(times):
        await agent.run("go", policies=[collector])
    assert [turn.turn for turn in collector.trajectory().turns] == list(range(1, times + 1))
