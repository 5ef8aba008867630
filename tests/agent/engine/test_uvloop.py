"""Another event loop: everything that reaches into asyncio works on uvloop too."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests import worker_tools
from tests.scripted import echo, make

from swink import ToolCall, tool
from swink.events import MessageUpdate
from swink.memory import JsonlStore
from swink.testing import Pause, history_problems

uvloop: Any = pytest.importorskip("uvloop")


def test_a_run_with_tools_and_a_session(tmp_path: Path):
    @tool
    def blocking(text: str) -> str:
        """Say it back, from a thread."""
        return text

    async def main() -> None:
        async with JsonlStore(tmp_path) as store:
            session = await store.create()
            calls = [ToolCall("1", "echo", {"text": "a"}), ToolCall("2", "blocking", {"text": "b"})]
            agent, _ = make([calls, "done"], tools=[echo, blocking], session=session)
            assert (await agent.run("go")).text == "done"
            assert (await store.open(session.id)).messages == agent.messages

    uvloop.run(main())


def test_an_abort_keeps_what_arrived():
    async def main() -> None:
        agent, _ = make([["par", Pause(60), "is"]])
        async with agent.stream("go") as run:
            async for event in run:
                if isinstance(event, MessageUpdate):
                    agent.abort()
        assert agent.messages[-1].text == "par"
        assert history_problems(agent.messages) == []
        assert len(asyncio.all_tasks()) == 1

    uvloop.run(main())


def test_a_deadline_ends_a_tool_that_hangs():
    @tool
    async def hang() -> str:
        """Hang."""
        await asyncio.sleep(600)
        return ""

    async def main() -> None:
        agent, _ = make([ToolCall("1", "hang", {}), "done"], tools=[hang])
        assert (await agent.run("go", deadline=0.05)).stop_reason == "aborted"

    uvloop.run(main())


def test_an_isolated_tool_that_is_killed_is_an_error_result_and_the_run_goes_on():
    async def main() -> None:
        calls = [ToolCall("1", "fail", {"how": "kill"}), ToolCall("2", "add", {"a": 1})]
        agent, _ = make([calls, "done"], tools=[worker_tools.fail, worker_tools.add])
        assert (await agent.run("go")).text == "done"
        killed, added = agent.messages[2:4]
        assert "ended with code -9" in killed.text
        assert added.text == "3"

    uvloop.run(main())
