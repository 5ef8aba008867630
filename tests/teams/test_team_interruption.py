"""Every kind of team, interrupted at every turn of the event loop: everybody ends idle, with a sound history."""

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest
from casts import agent, check_idle, hand_over, task

from swink import Agent, ToolCall, tool
from swink.policies import Budget
from swink.teams import Team, agent_tool, loop, parallel, sequential, transfer_tool


@tool
async def look(n: int) -> str:
    """Looks."""
    await asyncio.sleep(0)
    return "seen"


def looks(number: int) -> ToolCall:
    return ToolCall(f"look_{number}", "look", {"n": number})


def delegating() -> tuple[Any, list[Agent]]:
    inner = agent([looks(1), looks(2)], "c", "later", tools=[look])
    middle = agent(task("inner"), "b", "later", tools=[agent_tool(inner, "inner", "i", remember=True)])
    outer = agent(
        [task("research"), looks(3)],
        "a",
        "later",
        tools=[agent_tool(middle, "research", "r", remember=True), look],
        policies=[Budget(max_tokens=50_000)],
    )
    return outer, [outer, middle, inner]


def handing_over() -> tuple[Any, list[Agent]]:
    first = agent([looks(1), hand_over("b")], "later", "later", tools=[look, transfer_tool(["b"])])
    second = agent(looks(2), "b", "later", tools=[look])
    return Team({"a": first, "b": second}), [first, second]


def in_sequence() -> tuple[Any, list[Agent]]:
    agents = [agent(looks(1), "x", "later", "later", tools=[look]) for _ in range(2)]
    return sequential(*agents), agents


def at_once() -> tuple[Any, list[Agent]]:
    agents = [agent(looks(1), "x", "later", "later", tools=[look]) for _ in range(3)]
    return parallel(*agents), agents


def again() -> tuple[Any, list[Agent]]:
    one = agent(looks(1), "x", looks(2), "y", "later", "later", "later", tools=[look])
    return loop(one, until=lambda result: result.text == "y"), [one]


SCENES = [delegating, handing_over, in_sequence, at_once, again]


async def interrupt(make: Callable[[], tuple[Any, list[Agent]]], step: int, how: str) -> bool:
    """Interrupt a run after some turns of the event loop; False once it was over before."""
    runnable, agents = make()
    running = asyncio.create_task(runnable.run("Go."))
    for _ in range(step):
        await asyncio.sleep(0)
    early = not running.done()
    if how == "cancel":
        running.cancel()
    else:
        runnable.abort()
    (outcome,) = await asyncio.gather(running, return_exceptions=True)
    for item in agents:
        await asyncio.wait_for(item.wait_for_idle(), 20)
    check_idle(*agents)
    assert not runnable.is_running
    if isinstance(outcome, BaseException):
        assert isinstance(outcome, asyncio.CancelledError), outcome
    elif how == "abort" and step > 0 and early and len(outcome.messages) > 0:
        assert outcome.stop_reason in ("aborted", "stop")
    for item in agents:
        # Whatever the script has left, a new prompt is taken and answered.
        result = await item.run("Still there?")
        assert result.stop_reason in ("stop", "error", "transfer")
        check_idle(item)
    return early


@pytest.mark.parametrize("how", ["cancel", "abort"])
@pytest.mark.parametrize("make", SCENES, ids=lambda make: make.__name__)
async def test_an_interruption_anywhere_leaves_everybody_idle_and_sound(make: Any, how: str):
    step = 0
    while await interrupt(make, step, how):
        step += 1
    assert step > 10
    gc.collect()
    await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) == 1
