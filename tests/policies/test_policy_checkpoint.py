"""Checkpoint: what is saved after a turn brings the conversation back, and a broken store breaks nothing."""

import asyncio
import json
import logging
from typing import Any

import pytest
from scenes import Scene, call

from swink import Agent
from swink.policies import Checkpoint
from swink.testing import ScriptedModel


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
    def broken(data: Any) -> None:
        raise OSError("disk full")

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
