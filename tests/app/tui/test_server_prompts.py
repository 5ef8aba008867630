"""MCP servers on the screen: prompts as commands, resources as mentions, how they stand."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from apps import screen_text, until

from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.settings import load_settings
from swink.app.tui import ConversationDriver, SwinkApp
from swink.messages import ModelSpec
from swink.testing import ScriptedModel

RICH = Path(__file__).parents[2] / "mcp" / "rich_server.py"


@pytest.mark.skipif(find_spec("mcp") is None, reason="needs the extra mcp")
async def test_prompts_are_sent_resources_attached_and_servers_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    place = tmp_path / "place"
    place.mkdir()
    (tmp_path / "config" / "swink").mkdir(parents=True)
    (tmp_path / "config" / "swink" / "config.toml").write_text(
        f'[mcp.rich]\ncommand = {json.dumps(sys.executable)}\nargs = [{json.dumps(str(RICH))}, "2025-11-25"]\n'
        '[mcp.broken]\ncommand = "no-such-command-of-any-server"\n'
    )
    environment, permissions = AgentEnvironment(place, settings=load_settings()), Permissions()
    scripted = ScriptedModel(["One.", "Two.", "Three."])
    model = ModelSpec("scripted", "model", context_window=200_000)
    agent = environment.make_agent(model, approve=permissions, stream_fn=scripted)
    app = SwinkApp(ConversationDriver(agent), permissions, environment=environment)
    async with app.run_test(size=(120, 60)) as pilot:
        await until(pilot, lambda: len(environment.servers.states) == 2)
        await environment.servers.settle()
        app.obey("/mcp")
        await until(pilot, lambda: "2 prompts: /rich:greet, /rich:talk" in screen_text(app))
        await until(pilot, lambda: "install it, or give its whole path" in screen_text(app))
        app.obey("/rich:greet Ada")
        await until(pilot, lambda: len(scripted.calls) == 1 and not app.driver.is_running)
        assert scripted.calls[0].messages[0].text == "Greet Ada kindly."
        app.obey("/rich:greet")
        await until(pilot, lambda: "who is missing; write /rich:greet WHO [HOW]" in screen_text(app))
        app.editor.text = "what does @rich:note://one say?"
        app.editor.move_cursor((0, 31))
        await pilot.press("enter")
        await until(pilot, lambda: len(scripted.calls) == 2 and not app.driver.is_running)
        said = scripted.calls[1].messages[-1].text
        assert said.startswith("what does @rich:note://one say?")
        assert "what note://one says" in said
        app.editor.text = "what does @rich:note://gone say?"
        app.editor.move_cursor((0, 32))
        await pilot.press("enter")
        await until(pilot, lambda: len(scripted.calls) == 3 and not app.driver.is_running)
        assert scripted.calls[2].messages[-1].text == "what does @rich:note://gone say?"
        await until(pilot, lambda: "@rich:note://gone is not attached" in screen_text(app))
        app.leave()
    await environment.aclose()
