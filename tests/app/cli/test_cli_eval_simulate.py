"""`swink eval simulate`: the conversation is shown, and kept as cases that can be run."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from swink.app.cli.simulating import simulate
from swink.errors import MisuseError

FACTORY = '''
from swink import Agent, ToolCall, tool
from swink.testing import ScriptedModel

@tool
def weather(city: str) -> str:
    """The weather."""
    return "rain"

def factory(case):
    replies = {"agent": ScriptedModel([ToolCall("1", "weather", {"city": "Oslo"}), "Take a jacket."]),
               "user": ScriptedModel(["What do I wear in Oslo?", "###STOP###"])}
    def ask(model, context, options):
        role = "user" if "play a user" in (context.system_prompt or "") else "agent"
        return replies[role](model, context, options)
    return Agent("test:agent", stream_fn=ask, tools=[weather])

def other(case):
    return "no agent"
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "simulated_here.py").write_text(FACTORY, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "simulated_here", raising=False)
    return "simulated_here"


def arguments(**changes: Any) -> argparse.Namespace:
    given = {"agent": None, "model": None, "goal": "dress for Oslo", "persona": "", "max_turns": 3}
    return argparse.Namespace(**{**given, "user_model": None, "repeat": 1, "output": None, **changes})


def test_a_conversation_is_shown_and_kept_as_a_case(
    module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    output = tmp_path / "cases.json"
    assert simulate(arguments(agent=f"{module}:factory", output=str(output), repeat=2)) == 0
    shown = capsys.readouterr()
    assert "> What do I wear in Oslo?" in shown.err
    assert "Take a jacket." in shown.out
    first, second = json.loads(output.read_text("utf-8"))["cases"]
    assert (first["id"], second["id"]) == ("simulated-1", "simulated-2")
    assert first["user_messages"] == ["What do I wear in Oslo?"]
    assert first["expected_trajectory"] == [{"tool_name": "weather", "arguments": {"city": "Oslo"}}]


def test_turns_that_run_out_are_a_failure(module: str):
    assert simulate(arguments(agent=f"{module}:factory", max_turns=1)) == 1


def test_what_cannot_work_is_refused_before_anything_is_asked(module: str, tmp_path: Path):
    (tmp_path / "there.json").write_text("{}", "utf-8")
    with pytest.raises(MisuseError, match="is there already"):
        simulate(arguments(agent=f"{module}:factory", output=str(tmp_path / "there.json")))
    with pytest.raises(MisuseError, match="in no directory"):
        simulate(arguments(agent=f"{module}:factory", output=str(tmp_path / "none" / "x.json")))
    with pytest.raises(MisuseError, match="returns an Agent"):
        simulate(arguments(agent=f"{module}:other"))
    with pytest.raises(MisuseError, match="--model or --agent"):
        simulate(arguments())
