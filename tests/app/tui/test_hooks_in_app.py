"""Hooks on the screen: what they block is told, and a prompt that one blocked is there to be written anew."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from apps import screen_text, until

from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.savedconversation import SavedConversation, open_store
from swink.app.assistant.settings import load_settings
from swink.app.assistant.trust import answer, look_up
from swink.app.tui import ConversationDriver, SessionSwitcher, SwinkApp
from swink.messages import ModelSpec
from swink.testing import ScriptedModel

pytestmark = pytest.mark.skipif(os.name != "posix", reason="commands need a POSIX system")
SIZE = (110, 30)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in {
        "HOME": "home",
        "XDG_CONFIG_HOME": "config",
        "SWINK_SESSIONS_DIR": "sessions",
    }.items():
        monkeypatch.setenv(name, str(tmp_path / value))
    (tmp_path / "project/.claude").mkdir(parents=True)
    (tmp_path / "project/main.py").write_text("x = 1\n")
    return tmp_path / "project"


def give(project: Path, **commands: str) -> None:
    hooks = {
        event: [{"hooks": [{"type": "command", "command": command}]}] for event, command in commands.items()
    }
    (project / ".claude/settings.json").write_text(json.dumps({"hooks": hooks}))


def app_in(project: Path, *replies: Any) -> tuple[SwinkApp, ScriptedModel]:
    environment = AgentEnvironment(project, look_up(project), load_settings())
    permissions = Permissions()
    environment.attend(permissions)
    model, saved = ScriptedModel(replies), SavedConversation(open_store())
    spec = ModelSpec("scripted", "model", context_window=200_000)
    agent = environment.make_agent(
        spec, approve=permissions, approval_mode="on", stream_fn=model, session=saved.session
    )
    driver = ConversationDriver(agent)
    sessions = SessionSwitcher(driver, open_store(), saved, environment=environment)
    return SwinkApp(driver, permissions, sessions=sessions, environment=environment), model


async def test_a_blocked_prompt_is_told_and_put_back_and_no_model_ever_sees_it(place: Path):
    give(
        place,
        UserPromptSubmit="""grep -q '"prompt":"my password' && { echo no secrets >&2; exit 2; }; exit 0""",
    )
    answer(look_up(place), "y")
    app, model = app_in(place, "Hello.", "And you?")
    async with app.run_test(size=SIZE) as pilot:
        app.driver.send("hi")
        await until(pilot, lambda: "Hello." in screen_text(app))
        app.driver.send("my password is tulip")
        await until(pilot, lambda: "no secrets" in screen_text(app))
        await until(pilot, lambda: app.editor.text == "my password is tulip")
        assert [message.text for message in app.driver.agent.messages] == ["hi", "Hello."]
        await until(pilot, lambda: not app.driver.is_running)
        app.driver.send("how are you?")
        await until(pilot, lambda: "And you?" in screen_text(app))
        assert [message.text for message in model.calls[-1].messages] == ["hi", "Hello.", "how are you?"]
        app.leave()
    id = open_store().list()[0].id
    assert not any(
        "tulip" in message.text
        for message in SavedConversation(open_store(), open_store().read(id)).session.messages
    )


async def test_hooks_are_listed(place: Path):
    give(place, Stop="make test", PreToolUse="./check.sh")
    answer(look_up(place), "y")
    app, _ = app_in(place)
    async with app.run_test(size=SIZE) as pilot:
        app.obey("/hooks")
        await until(pilot, lambda: "Stop (.claude/settings.json): make test" in screen_text(app))
        app.leave()


async def test_where_there_are_no_hooks_it_is_said_where_they_stand(place: Path):
    answer(look_up(place), "y")
    app, _ = app_in(place)
    async with app.run_test(size=SIZE) as pilot:
        app.obey("/hooks")
        await until(pilot, lambda: "no hooks; [[hooks]] in config.toml" in screen_text(app))
        app.leave()


async def test_a_hook_blocks_a_compaction_and_the_person_reads_why(place: Path):
    give(place, PreCompact="echo the plan is not written yet >&2; exit 2")
    answer(look_up(place), "y")
    app, model = app_in(place, "Hello.")
    async with app.run_test(size=SIZE) as pilot:
        app.driver.send("hi")
        await until(pilot, lambda: "Hello." in screen_text(app))
        await until(pilot, lambda: not app.driver.is_running)
        app.obey("/compact")
        await until(pilot, lambda: "a hook blocked it: the plan is not written yet" in screen_text(app))
        assert len(model.calls) == 1
        assert len(app.driver.agent.messages) == 2
        app.leave()


async def test_another_conversation_is_told_to_hooks(place: Path):
    log = "cat >> log; echo >> log"
    give(place, SessionStart=log, SessionEnd=log)
    answer(look_up(place), "y")
    app, _ = app_in(place, "Hello.")

    def told() -> list[str]:
        lines = (place / "log").read_text().split("\n")[:-1] if (place / "log").exists() else []
        return [found.get("source") or found["reason"] for found in map(json.loads, lines)]

    async with app.run_test(size=SIZE) as pilot:
        app.driver.send("hi")
        await until(pilot, lambda: "Hello." in screen_text(app))
        await until(pilot, lambda: not app.driver.is_running)
        app.obey("/new")
        await until(pilot, lambda: told() == ["startup", "clear", "clear"])
        app.leave()
        await until(pilot, lambda: told() == ["startup", "clear", "clear", "prompt_input_exit"])


async def test_a_hook_that_appears_is_asked_about_on_the_screen_and_counts_after_a_yes(place: Path):
    answer(look_up(place), "y")
    app, model = app_in(place, "Hello.", "Bye.")
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: app.environment is not None and app.environment.skills is not None)
        give(place, UserPromptSubmit="echo On release.")
        app.driver.send("hi")
        await until(pilot, lambda: "have not seen this in it yet" in screen_text(app))
        assert "echo On" in screen_text(app)
        assert model.calls == []
        await pilot.pause(1.0)  # keys that were typed before it was seen do not count
        await pilot.press("y")
        await until(pilot, lambda: "Hello." in screen_text(app))
        assert "On release." in model.calls[0].messages[-1].text
        app.leave()


async def test_an_abort_takes_the_question_away(place: Path):
    answer(look_up(place), "y")
    app, model = app_in(place, "Hello.")
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: app.environment is not None and app.environment.skills is not None)
        give(place, Stop="true")
        app.driver.send("hi")
        await until(pilot, lambda: "have not seen this in it yet" in screen_text(app))
        app.driver.abort()
        await until(pilot, lambda: not app.driver.is_running)
        await until(pilot, lambda: "have not seen this in it yet" not in screen_text(app))
        assert model.calls == []
        app.leave()
