"""Agents on the screen: those of files are completed after an @, those in the background are shown."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from apps import screen_text, until

from swink import Price
from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.settings import load_settings
from swink.app.assistant.trust import answer, look_up
from swink.app.tui import ConversationDriver, SwinkApp
from swink.app.tui.screens.whole import Whole
from swink.messages import ModelSpec, ToolCall, Usage
from swink.testing import Pause, ScriptedModel

SIZE = (100, 30)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trusted project with an agent."""
    for name, value in {
        "HOME": "home",
        "XDG_CONFIG_HOME": "config",
        "SWINK_SESSIONS_DIR": "sessions",
    }.items():
        monkeypatch.setenv(name, str(tmp_path / value))
    folder = tmp_path / "project" / ".claude" / "agents"
    folder.mkdir(parents=True)
    (folder / "reviewer.md").write_text("---\ndescription: Looks for bugs.\n---\nYou review.")
    answer(look_up(tmp_path / "project"), "y")
    return tmp_path / "project"


def app_in(project: Path, stream_fn: Any = None) -> SwinkApp:
    environment = AgentEnvironment(project, look_up(project), load_settings())
    permissions = Permissions()
    model = ModelSpec("scripted", "model", context_window=200_000, price=Price(10.0, 10.0))
    agent = environment.make_agent(model, approve=permissions, stream_fn=stream_fn or ScriptedModel([]))
    return SwinkApp(ConversationDriver(agent), permissions, environment=environment)


async def test_an_agent_is_completed_after_an_at_sign(place: Path):
    app = app_in(place)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: app.environment is not None and bool(app.environment.sub_agents.files))
        await pilot.press("@", "r", "e")
        await until(pilot, lambda: "Looks for bugs." in screen_text(app))
        await pilot.press("tab")
        await until(pilot, lambda: app.editor.text == "@reviewer ")
        app.leave()


async def test_agents_are_listed_with_their_files(place: Path):
    app = app_in(place)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: app.environment is not None and bool(app.environment.sub_agents.files))
        app.obey("/agents")
        await until(pilot, lambda: "@reviewer" in screen_text(app))
        app.leave()


async def test_a_background_agent_is_listed_shown_and_its_report_begins_a_run(place: Path):
    gate = asyncio.Event()

    async def stream(model: Any, context: Any, options: Any) -> Any:
        if context.messages[0].text == "dig":
            await gate.wait()
        async for event in scripted(model, context, options):
            yield event

    def reply(context: Any) -> Any:
        if context.messages[0].text == "dig":
            return "found a coin"
        if len(context.messages) == 1:
            return ToolCall("call_1", "task", {"task": "dig", "background": True})
        return "So it is a coin." if "found a coin" in context.messages[-1].text else "I go on."

    scripted = ScriptedModel([reply] * 10, usage=Usage(input=1_000, output=100))
    app = app_in(place, stream)
    app.permissions.word = "off"
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: app.environment is not None and bool(app.environment.sub_agents.files))
        app.driver.send("Hi")
        await until(pilot, lambda: "I go on." in screen_text(app))
        app.obey("/agents")
        await until(pilot, lambda: "task in the background, running" in screen_text(app))
        app.obey("/agents show 1")
        await until(pilot, lambda: isinstance(app.screen, Whole) and "dig" in screen_text(app))
        assert "found a coin" not in screen_text(app)
        gate.set()
        await until(pilot, lambda: "found a coin" in screen_text(app))  # while it is open
        await pilot.press("escape")
        await until(pilot, lambda: "So it is a coin." in screen_text(app))
        app.obey("/agents show 1")
        await until(pilot, lambda: isinstance(app.screen, Whole) and "found a coin" in screen_text(app))
        await pilot.press("escape")
        app.obey("/usage")
        await until(pilot, lambda: "of it by sub-agents" in screen_text(app))
        assert "in the background)" in screen_text(app)
        app.leave()


async def test_leaving_the_program_ends_background_agents(place: Path):
    def reply(context: Any) -> Any:
        if context.messages[0].text == "dig":
            return ["…", Pause(600)]
        if len(context.messages) == 1:
            return ToolCall("call_1", "task", {"task": "dig", "background": True})
        return "I go on."

    app = app_in(place, ScriptedModel([reply] * 10))
    app.permissions.word = "off"
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: app.environment is not None and bool(app.environment.sub_agents.files))
        app.driver.send("Hi")
        await until(pilot, lambda: "I go on." in screen_text(app))
        app.leave()
    await app.wind_up()
    assert [task for task in asyncio.all_tasks() if task.get_name().startswith("swink-agent")] == []


async def test_what_is_written_wrong_after_the_command_is_told(place: Path):
    app = app_in(place)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: app.environment is not None and bool(app.environment.sub_agents.files))
        app.obey("/agents stop 7")
        await until(pilot, lambda: "there is no sub-agent 7" in screen_text(app))
        app.leave()
