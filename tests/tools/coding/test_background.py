"""Commands in the background: begun there or sent there, read, stopped, and ended with the program."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from calling import call, complaint, eventually, named

from swink.tools import Tool
from swink.tools.coding import background as backgrounds
from swink.tools.coding.background import Background
from swink.tools.coding.bash import bash_tools
from swink.tools.coding.process import Limits
from swink.tools.coding.sandbox import Sandbox
from swink.tools.coding.workspace import Workspace

WAIT = "until [ -e go ]; do sleep 0.02; done; "


@pytest.fixture
async def background() -> AsyncIterator[Background]:
    background = Background()
    yield background
    await background.aclose()


@pytest.fixture
def tools(tmp_path: Path, background: Background, monkeypatch: pytest.MonkeyPatch) -> list[Tool]:
    monkeypatch.setattr(backgrounds, "_FIRST", 0.0)
    return bash_tools(
        Workspace(tmp_path), Sandbox(tmp_path, "none"), limits=Limits(wall=20), background=background
    )


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_command_begins_in_the_background_is_read_and_ends(
    tools: list[Tool], background: Background, tmp_path: Path
):
    bash, output, _ = tools
    result = await call(bash, command=f"echo one; {WAIT} echo two; exit 3", background=True)
    assert result.text.endswith("[goes on in the background as b1; background_output reads what it writes]")
    assert result.details["background"] == "b1"
    job = background.jobs["b1"]
    await eventually(lambda: job.output() == "one\n")
    assert job.state == "running"
    assert (await call(output, id="b1")).text.startswith("one\n[b1 is running: echo one;")
    (tmp_path / "go").touch()
    await eventually(lambda: job.state == "ended")
    assert (await call(output, id="b1")).text == "two\n[b1 has ended: exit code 3]"
    assert (await call(output)).text == "[b1 has ended: exit code 3]"
    assert "there is no background command 'b9'; there are: b1" in await complaint(output, id="b9")


async def test_a_running_command_is_sent_to_the_background_and_its_call_returns(
    tools: list[Tool], background: Background, tmp_path: Path
):
    assert background.send() is None
    updates: list[str] = []
    running = asyncio.create_task(call(tools[0], updates, command=f"echo one; {WAIT} echo two"))
    await eventually(lambda: updates)
    job = background.send("call")
    assert job is not None
    result = await running
    assert result.text.startswith("one\n[goes on in the background as b1")
    (tmp_path / "go").touch()
    await eventually(lambda: job.state == "ended")
    assert job.unread() == "two\n"


async def test_one_that_ends_in_time_gives_its_output_as_ever(tools: list[Tool], background: Background):
    assert (await call(tools[0], command="echo hi")).text == "hi\n[exit code 0]"
    assert (await call(tools[0], command="echo hi; sleep 60", timeout=2)).text == (
        "hi\n[timed out after 2 s; the command and everything it started were ended]\n"
        "[set a longer timeout, up to 20 s, if it needs one]"
    )
    assert background.jobs == {}


async def test_they_are_numbered_from_b1_and_commands_in_front_do_not_count(
    tools: list[Tool], background: Background, tmp_path: Path
):
    for _ in range(3):
        await call(tools[0], command="echo in front")
    assert background.running == 0
    running = asyncio.create_task(call(tools[0], command=WAIT))
    await eventually(lambda: background.in_front)
    sent = background.send()
    assert sent is not None
    assert sent.id == "b1"
    assert (await running).details["background"] == "b1"
    await call(tools[0], command="echo in front")
    assert (await call(tools[0], command=WAIT, background=True)).details["background"] == "b2"
    assert background.running == 2
    (tmp_path / "go").touch()
    await eventually(lambda: background.running == 0)
    assert [*background.jobs] == ["b1", "b2"]


async def test_stopping_one_ends_all_it_started(tools: list[Tool], background: Background):
    await call(tools[0], command="sleep 600 & echo $!; wait", background=True)
    job = background.jobs["b1"]
    await eventually(lambda: job.output().endswith("\n"))
    child = int(job.output())
    assert (await call(named(tools, "background_stop"), id="b1")).text == (
        f"{child}\n[b1 has ended: ended from outside]"
    )
    await eventually(lambda: not is_alive(child))


async def test_aborting_a_call_ends_its_command_and_leaves_the_background_alone(
    tools: list[Tool], background: Background
):
    await call(tools[0], command="sleep 600", background=True)
    updates: list[str] = []
    running = asyncio.create_task(call(tools[0], updates, command="echo $$; sleep 600"))
    await eventually(lambda: updates)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not is_alive(int(updates[0]))
    assert background.in_front == ()
    assert [job.state for job in background.jobs.values()] == ["running"]


async def test_closing_ends_everything(tools: list[Tool], background: Background):
    await call(tools[0], command="echo $$; sleep 600", background=True)
    job = background.jobs["b1"]
    await eventually(lambda: job.output().endswith("\n"))
    await background.aclose()
    assert not is_alive(int(job.output()))
    assert job.describe() == "[b1 failed: it was ended with the program]"


async def test_there_are_only_so_many(
    tools: list[Tool], background: Background, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(backgrounds, "MOST", 1)
    await call(tools[0], command="sleep 600", background=True)
    assert "stop one first" in await complaint(tools[0], command="sleep 600", background=True)
    assert (await call(tools[0], command="echo hi")).text == "hi\n[exit code 0]"


async def test_of_much_output_the_end_is_kept(tools: list[Tool], background: Background):
    await call(tools[0], command="yes | head -c 300000; echo end", background=True)
    job = background.jobs["b1"]
    await eventually(lambda: job.state == "ended")
    text = job.output()
    assert len(text) < 70_000
    assert text.startswith("[... 236,004 bytes cut here ...]\n")
    assert text.endswith("y\nend\n")
