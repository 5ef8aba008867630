"""A call is on the screen once, and what goes on beside the conversation is counted."""

import asyncio
from pathlib import Path

import pytest
from apps import app_of, screen_text, until

from swink import Agent, tool
from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.forms import question_tools
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.settings import load_settings
from swink.app.assistant.trust import answer, look_up
from swink.app.tui import ConversationDriver, SwinkApp
from swink.app.tui.approval import ApprovalPanel, FormPanel
from swink.app.tui.view import ActiveTools
from swink.messages import ToolCall
from swink.testing import ScriptedModel
from swink.tools import todo_tools
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


@tool(requires_approval=True)
def push(branch: str) -> str:
    """Push a branch."""
    return "pushed"


async def test_a_call_that_a_panel_asks_about_is_not_listed_a_third_time():
    now = [1_000.0]
    question = ToolCall("1", "ask_user", {"questions": [{"question": "Which branch?", "choices": ["main"]}]})
    script = ScriptedModel([question, ToolCall("2", "push", {"branch": "main"}), "Done."])
    app = app_of(script, lambda: now[0], tools=[push])
    app.driver.agent.tools = [*question_tools(app.permissions.forms.ask), push]
    async with app.run_test(size=(100, 30)) as pilot:
        tools = app.query_one(ActiveTools)
        app.driver.send("push it")
        await until(pilot, lambda: "The agent asks" in screen_text(app))
        await until(pilot, lambda: app.query_one(FormPanel).guard.is_shown)
        now[0] += 60.0
        await until(pilot, lambda: "1 m 00 s" in screen_text(app))
        assert not tools.display
        app.view.action_scroll_home()
        assert screen_text(app).count("Which branch?") == 2  # what is asked, and the line of the call
        await pilot.press("1")
        await until(pilot, lambda: "Run push?" in screen_text(app))
        await until(pilot, lambda: app.query_one(ApprovalPanel).guard.is_shown)
        now[0] += 60.0
        app.updater.show_changes()
        await pilot.pause()
        assert not tools.display
        await pilot.press("y")
        await until(pilot, lambda: "Done." in screen_text(app))


async def test_a_list_of_tasks_is_shown_once_in_the_panel_or_in_the_newest_block():
    def wrote(number: str, *states: str) -> ToolCall:
        tasks = [{"text": f"task {place}", "status": state} for place, state in enumerate(states)]
        return ToolCall(number, "todo", {"tasks": tasks})

    first, second = wrote("1", "in_progress", "pending"), wrote("2", "done", "in_progress")
    app = app_of([first, second, "So far.", wrote("3", "done", "done"), "Done."], tools=todo_tools())
    app.permissions.word = "smart"

    def count(text: str) -> int:
        return screen_text(app).count(text)

    async with app.run_test(size=(100, 30)) as pilot:
        app.driver.send("begin")
        await until(pilot, lambda: "So far." in screen_text(app) and not app.driver.is_running)
        await until(pilot, lambda: count("✓ task 0") == 1 and count("0 of 2 done, now: task 0") == 1)
        assert "Tasks 1/2" in screen_text(app)
        await pilot.press("ctrl+t")
        await until(pilot, lambda: "│ ✓ task 0" in screen_text(app))
        assert "Tasks 1/2" not in screen_text(app)
        assert count("▸ task") == 1
        await pilot.press("ctrl+t")
        await until(pilot, lambda: "│ ✓ task 0" not in screen_text(app))
        assert count("▸ task") == 1
        app.driver.send("go on")
        await until(pilot, lambda: "Done." in screen_text(app) and "│ ✓ task 1" in screen_text(app))
        assert count("✓ task 0") == 1
