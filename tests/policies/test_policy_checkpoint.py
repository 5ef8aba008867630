"""Checkpoint: what is saved after a turn brings the conversation back, and a broken store breaks nothing."""

import asyncio
import contextlib
import json
import logging
import threading
import time
from typing import Any

import pytest
from scenes import Scene, call
from tests.patience import until

from swink import Agent, AuthError, Policy, Stop, ToolResult
from swink.policies import Checkpoint
from swink.testing import Pause, ScriptedModel


class Store:
    def __init__(self) -> None:
        self.saved: list[dict[str, Any]] = []

    async def save(self, data: dict[str, Any]) -> None:
        self.saved.append(json.loads(json.dumps(data)))


async def test_every_turn_is_saved_and_can_be_gone_on_with():
    store = Store()
    scene = Scene(Checkpoint(store), [call(1), "done"], state={"n": 1}, system_prompt="Be brief.")
    await scene.run()
    assert [len(data["messages"]) for data in store.saved] == [3, 4]
    midway = Agent.restore(store.saved[0], stream_fn=ScriptedModel(["went on"]))
    assert (midway.state, midway.system_prompt, str(midway.model)) == ({"n": 1}, "Be brief.", "test:priced")
    assert (await midway.run()).text == "went on"
    assert Agent.restore(store.saved[1], stream_fn=ScriptedModel([])).messages == scene.agent.messages


async def test_a_plain_function_is_a_store():
    saved: list[Any] = []
    await Scene(Checkpoint(saved.append), ["done"]).run()
    assert len(saved) == 1


async def test_a_failing_store_is_reported_and_never_fatal(caplog: pytest.LogCaptureFixture):
    for failure in (OSError("disk full"), TimeoutError("disk full"), RuntimeError("disk full")):
        await _survives(failure, caplog)


async def _survives(failure: Exception, caplog: pytest.LogCaptureFixture) -> None:
    def broken(data: Any) -> None:
        raise failure

    caplog.clear()
    with caplog.at_level(logging.ERROR):
        assert (await Scene(Checkpoint(broken), [call(1), "done"]).run()).text == "done"
    assert caplog.text.count("Checkpoint failed") == 2
    assert "disk full" in caplog.text


async def test_a_store_that_hangs_is_left_after_its_time(caplog: pytest.LogCaptureFixture):
    async def slow(data: Any) -> None:
        await asyncio.sleep(60)

    with caplog.at_level(logging.ERROR):
        assert (await Scene(Checkpoint(slow, timeout=0.01), ["done"]).run()).text == "done"
    assert "Checkpoint failed" in caplog.text


async def test_a_plain_store_that_blocks_holds_neither_the_event_loop_nor_the_run(
    caplog: pytest.LogCaptureFixture,
):
    released, started = threading.Event(), []

    def slow(data: Any) -> None:
        started.append(data)
        released.wait(60)

    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.005)

    ticking = asyncio.create_task(tick())
    with caplog.at_level(logging.ERROR):
        scene = Scene(Checkpoint(slow, timeout=0.2), [call(1), call(2), "done"])
        assert (await asyncio.wait_for(scene.run(), 20)).text == "done"
    ticking.cancel()
    released.set()
    assert ticks > 10
    assert caplog.text.count("Checkpoint failed") == 3
    assert "did not save within 0.2 s" in caplog.text
    assert len(started) == 1, "no thread more is begun while one is stuck"


async def test_a_store_that_is_slow_once_is_used_again():
    saved: list[Any] = []

    def slow_at_first(data: Any) -> None:
        if not saved:
            time.sleep(0.15)
        saved.append(data)

    scene = Scene(
        Checkpoint(slow_at_first, timeout=0.05),
        [call(1), call(2), "done"],
        answer=lambda _: time.sleep(0.5) or "ok",
    )
    await scene.run()
    assert len(saved) >= 2
    assert len(saved[-1]["messages"]) == 6


async def test_an_async_store_that_ignores_its_cancellation_does_not_hold_the_run(
    caplog: pytest.LogCaptureFixture,
):
    released = asyncio.Event()

    async def stubborn(data: Any) -> None:
        while not released.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await released.wait()

    with caplog.at_level(logging.ERROR):
        assert (
            await asyncio.wait_for(Scene(Checkpoint(stubborn, timeout=0.05), [call(1), "done"]).run(), 20)
        ).text == "done"
    assert "did not save within" in caplog.text
    released.set()
    await asyncio.sleep(0.01)


async def test_a_function_that_returns_a_coroutine_is_awaited():
    store = Store()
    await Scene(Checkpoint(lambda data: store.save(data)), ["done"]).run()
    assert len(store.saved) == 1


async def test_a_turn_that_failed_is_saved_too():
    store = Store()
    scene = Scene(Checkpoint(store), [call(1), ["par", AuthError("no")]])
    await scene.run()
    assert [len(data["messages"]) for data in store.saved] == [3, 4]
    again = Agent.restore(store.saved[-1], stream_fn=ScriptedModel(["went on"]))
    assert (await again.run()).text == "went on"


async def test_a_turn_that_was_aborted_or_stopped_is_saved_too():
    class Stopping(Policy):
        def post_turn(self, ctx: Any, turn: Any) -> Stop:
            return Stop("enough")

    store = Store()
    await Scene([Stopping(), Checkpoint(store)], [call(1), "done"]).run()
    assert [len(data["messages"]) for data in store.saved] == [3]
    agent = Agent("test:slow", stream_fn=ScriptedModel([["par", Pause(60)]]), policies=[Checkpoint(store)])
    task = asyncio.create_task(agent.run("Go."))
    await until(lambda: agent.streaming_message and agent.streaming_message.text)
    agent.abort()
    await task
    assert [message["role"] for message in store.saved[-1]["messages"]] == ["user", "assistant"]


async def test_details_that_are_no_json_do_not_cost_the_checkpoint():
    store = Store()
    scene = Scene(Checkpoint(store), [call(1), "done"], answer=ToolResult("ok", details=object()))
    await scene.run()
    assert [len(data["messages"]) for data in store.saved] == [3, 4]


async def test_one_checkpoint_serves_many_agents_at_once():
    store = Store()
    policy = Checkpoint(store)
    scenes = [Scene(policy, [call(1), "done"]) for _ in range(5)]
    await asyncio.gather(*(scene.run(f"Task {number}.") for number, scene in enumerate(scenes)))
    assert sorted(len(data["messages"]) for data in store.saved) == [3] * 5 + [4] * 5
