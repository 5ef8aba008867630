"""Agents of files on the screen: completed after an @, and listed."""

from pathlib import Path

import pytest
from apps import screen_text, until

from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.settings import load_settings
from swink.app.assistant.trust import answer, look_up
from swink.app.tui import ConversationDriver, SwinkApp
from swink.messages import ModelSpec
from swink.testing import ScriptedModel

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


def app_in(project: Path) -> SwinkApp:
    environment = AgentEnvironment(project, look_up(project), load_settings())
    permissions = Permissions()
    model = ModelSpec("scripted", "model", context_window=200_000)
    agent = environment.make_agent(model, approve=permissions, stream_fn=ScriptedModel([]))
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
