"""The tools in an agent's hands: abort, steering and deadlines end commands, approvals are asked for, work gets done."""

import asyncio
import os
from pathlib import Path

import pytest
from tests.counts import cell_of_more
from tests.patience import until

from swink import Agent
from swink.events import ToolExecutionEnd, ToolExecutionUpdate
from swink.messages import ToolCall, ToolResultMessage
from swink.testing import ScriptedModel
from swink.tools import coding_tools
from swink.tools.coding.sandbox import Level

DEAF = "trap '' TERM; (setsid sh -c 'trap \"\" TERM HUP; echo $$ > daemon; sleep 60; sleep 60' &); echo $$ > shell; sleep 60; sleep 60"


@pytest.fixture(params=["none", "workspace"])
def level(request: pytest.FixtureRequest, troubles: dict[str, str]) -> Level:
    if request.param == "workspace" and troubles["bubblewrap"] and troubles["landlock"]:
        pytest.skip(troubles["bubblewrap"])
    return request.param


in_one_level = pytest.mark.parametrize("level", [cell_of_more("none"), "workspace"], indirect=True)
"""For the ways to end a command: in each level it ends as by an abort."""


def agent_with(root: Path, level: Level, replies: list, **options) -> Agent:
    return Agent(
        "test:model",
        stream_fn=ScriptedModel(replies),
        tools=coding_tools(root, sandbox=level),
        approval_mode="off",
        **options,
    )


async def started(root: Path) -> None:
    async with asyncio.timeout(20):
        while not all((root / name).exists() and (root / name).read_text() for name in ("shell", "daemon")):
            await asyncio.sleep(0.01)


def family_of(root: Path) -> list[str]:
    """Living processes whose working directory is the workspace."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (
                    os.readlink(entry / "cwd") == str(root)
                    and "Z" not in (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
                ):
                    found.append((entry / "cmdline").read_text())
            except OSError:
                continue
    return found


async def none_left(root: Path) -> None:
    await until(lambda: not family_of(root), lambda: family_of(root))


async def test_abort_ends_everything(tmp_path: Path, level: Level):
    agent = agent_with(tmp_path, level, [[ToolCall("1", "bash", {"command": DEAF})]])
    run = asyncio.create_task(agent.run("go"))
    await started(tmp_path)
    assert len(family_of(tmp_path)) >= 3
    agent.abort()
    result = await run
    await none_left(tmp_path)
    assert result.stop_reason == "aborted"
    assert isinstance(agent.messages[-1], ToolResultMessage)


@in_one_level
async def test_steering_ends_the_command_and_keeps_finished_results(tmp_path: Path, level: Level):
    agent = agent_with(
        tmp_path,
        level,
        [
            [
                ToolCall("1", "bash", {"command": DEAF}),
                ToolCall("2", "bash", {"command": "until [ -s daemon ]; do sleep 0.01; done; echo quick"}),
            ],
            "understood",
        ],
    )

    def steer(event: object) -> None:
        if isinstance(event, ToolExecutionUpdate):
            agent.steer("stop that")

    agent.subscribe(steer)
    result = await agent.run("go")
    await none_left(tmp_path)
    results = {
        message.tool_call_id: message for message in agent.messages if isinstance(message, ToolResultMessage)
    }
    assert "quick" in results["2"].text
    assert results["1"].is_error
    assert result.text == "understood"


@in_one_level
async def test_a_deadline_ends_the_command(tmp_path: Path, level: Level):
    agent = agent_with(tmp_path, level, [[ToolCall("1", "bash", {"command": DEAF})]])
    await agent.run("go", deadline=0.8)
    await none_left(tmp_path)


@in_one_level
async def test_leaving_the_stream_ends_the_command(tmp_path: Path, level: Level):
    agent = agent_with(tmp_path, level, [[ToolCall("1", "bash", {"command": DEAF})]])
    async with agent.stream("go") as run:
        reading = asyncio.create_task(anext(aiter(run)))
        await started(tmp_path)
        reading.cancel()
    await none_left(tmp_path)


def test_an_event_loop_that_ends_mid_command_leaves_nothing(tmp_path: Path):
    async def main() -> None:
        agent = agent_with(tmp_path, "none", [[ToolCall("1", "bash", {"command": DEAF})]])
        task = asyncio.create_task(agent.run("go"))
        await started(tmp_path)
        assert not task.done()

    asyncio.run(main())
    assert family_of(tmp_path) == []


async def test_a_session_of_real_work(tmp_path: Path, level: Level):
    agent = agent_with(
        tmp_path,
        level,
        [
            [
                ToolCall(
                    "1", "write_file", {"path": "src/add.py", "content": "def add(a, b):\n    return a - b\n"}
                )
            ],
            [ToolCall("2", "search_text", {"pattern": "return"}), ToolCall("3", "list_files", {"depth": 2})],
            [ToolCall("4", "edit_file", {"path": "src/add.py", "edits": [{"old": "a - b", "new": "a + b"}]})],
            [
                ToolCall(
                    "5", "bash", {"command": "cd src && python3 -c 'from add import add; print(add(2, 3))'"}
                )
            ],
            [ToolCall("6", "edit_file", {"path": "src/add.py", "edits": [{"old": "a * b", "new": "x"}]})],
            [ToolCall("7", "read_file", {"path": "../../etc/passwd"}), ToolCall("8", "bash", {"command": 5})],
            "done",
        ],
    )
    ends: dict[str, ToolExecutionEnd] = {}
    agent.subscribe(
        lambda event: ends.__setitem__(event.call_id, event) if isinstance(event, ToolExecutionEnd) else None
    )
    assert (await agent.run("fix it")).text == "done"
    texts = {
        message.tool_call_id: message.text
        for message in agent.messages
        if isinstance(message, ToolResultMessage)
    }
    assert texts["2"] == "src/add.py:2:     return a - b"
    assert texts["3"] == "src/\nsrc/add.py"
    assert texts["5"] == "5\n[exit code 0]"
    assert "The nearest text is:\n  line 2:     return a + b" in texts["6"]
    assert "out of the workspace" in texts["7"]
    assert "$.command" in texts["8"]
    assert [ends[number].is_error for number in "12345678"] == [False] * 5 + [True] * 3


async def test_only_what_changes_something_asks(tmp_path: Path):
    asked: list[str] = []

    def approve(request) -> bool:
        asked.append(request.name)
        return False

    calls = [
        ToolCall("1", "read_file", {"path": "x"}),
        ToolCall("2", "bash", {"command": "ls"}),
        ToolCall("3", "bash", {"command": "rm x"}),
        ToolCall("4", "write_file", {"path": "x", "content": ""}),
        ToolCall("5", "todo", {}),
        ToolCall("6", "fetch_url", {"url": "http://example.com"}),
    ]
    agent = Agent(
        "test:model",
        stream_fn=ScriptedModel([calls, "ok"]),
        tools=coding_tools(tmp_path, sandbox="none"),
        approve=approve,
    )
    await agent.run("go")
    assert asked == ["bash", "write_file", "fetch_url"]
    assert not (tmp_path / "x").exists()
