"""A call is on the screen once, and what goes on beside the conversation is counted."""

import asyncio
from pathlib import Path

import pytest
from apps import screen_text, until

from swink import Agent
from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.settings import load_settings
from swink.app.assistant.trust import answer, look_up
from swink.app.tui import ConversationDriver, SwinkApp
from swink.testing import ScriptedModel
from swink.tools.coding.background import Job
from swink.tools.coding.command import Completed
from swink.tools.coding.process import ExitStatus


async def test_commands_in_the_background_are_counted_on_the_status_bar_until_they_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("HOME", "XDG_CONFIG_HOME", "SWINK_SESSIONS_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    project = tmp_path / "project"
    project.mkdir()
    answer(look_up(project), "y")
    environment = AgentEnvironment(project, look_up(project), load_settings())
    agent = Agent("scripted:model", stream_fn=ScriptedModel([]))
    app = SwinkApp(ConversationDriver(agent), Permissions(), environment=environment)

    async def start(job: Job) -> Completed:
        await job.stop
        return Completed(ExitStatus(0), "", {})

    async with app.run_test(size=(120, 24)) as pilot:
        background = environment.background
        call = asyncio.create_task(background.run("1", "sleep 600", str(project), start, 600))
        await until(pilot, lambda: bool(background.in_front))
        await pilot.press("ctrl+b")
        await until(pilot, lambda: "goes on in the background as b1: sleep 600" in screen_text(app))
        await until(pilot, lambda: "1 in background" in screen_text(app))
        assert (await call) is background.jobs["b1"]
        app.obey("/background stop b1")
        await until(pilot, lambda: "b1 has ended (exit code 0)" in screen_text(app))
        await until(pilot, lambda: "in background" not in screen_text(app))
        app.leave()
