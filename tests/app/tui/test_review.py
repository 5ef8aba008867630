"""Reviews on the screen and in a terminal: asked for, shown, stopped, and sent to be fixed."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from apps import app_of, screen_text, until
from command_line import STALL, Call, Place, Provider
from terminal import Terminal
from tests.counts import cell_of_more, in_cells, left_to_more

from swink import ToolCall
from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.customcommands import CustomCommand
from swink.app.tui import SwinkApp
from swink.app.tui.firststeps import tell_unused
from swink.app.tui.screens.findingslist import FindingsList
from swink.events.transcript import ToolBlock
from swink.messages import UserMessage
from swink.testing import Pause, ScriptedModel
from swink.tools import FINAL_OUTPUT, coding_tools

FINDINGS = [
    {"file": "notes.txt", "line": 2, "severity": "low", "text": "A number is no word."},
    {"file": "notes.txt", "line": 1, "severity": "critical", "text": "The first line is lost."},
]
ANSWER = [ToolCall("9", FINAL_OUTPUT, {"findings": FINDINGS})]


@pytest.fixture
def changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a change."""
    subprocess.run(["git", "init", "-q", "."], cwd=tmp_path, check=True)
    (tmp_path / "notes.txt").write_text("one\n2\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def blocks(app: SwinkApp) -> list[ToolBlock]:
    return [block for block in app.driver.transcript.blocks if isinstance(block, ToolBlock)]


def is_reviewed(app: SwinkApp, state: str = "done") -> Callable[[], bool]:
    return lambda: [block.state for block in blocks(app)] == [state]


async def test_without_a_repository_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    app = app_of([])
    async with app.run_test() as pilot:
        app.obey("/review")
        await until(pilot, lambda: "not a git repository" in screen_text(app))
        app.obey("/findings")
        await until(pilot, lambda: "/review looks for some" in screen_text(app))


async def test_findings_are_a_table_and_the_conversation_stays_as_it_is(changed: Path):
    model = ScriptedModel([[ToolCall("1", "read_file", {"path": "notes.txt"})], ANSWER])
    app = app_of(model, tools=coding_tools(changed, sandbox="none"))
    async with app.run_test(size=(100, 40)) as pilot:
        app.obey("/review")
        await until(pilot, lambda: "nd sends them to be fixed" in screen_text(app))
        text = screen_text(app)
        assert "2 findings in the working tree" in text
        assert text.index("The first line is lost.") < text.index("A number is no word.")
        assert "notes.txt:2" in text
        assert not app.driver.agent.messages
        assert app.driver.transcript.totals.usage.total == 4
        assert "write_file" not in {tool.name for tool in model.calls[0].tools}
        assert "read_file notes.txt" in blocks(app)[0].output


async def test_escape_ends_it_and_nothing_is_left(changed: Path):
    app = app_of([[Pause(1000)], "Fine."])
    async with app.run_test() as pilot:
        app.obey("/review")
        await until(pilot, is_reviewed(app, "running"))
        await pilot.press("escape")
        await until(pilot, is_reviewed(app, "cancelled"))
        assert not app.driver.commands.tasks
        app.driver.send("and now?")
        await app.driver.wait()
        assert app.driver.agent.messages[-1].text == "Fine."


async def test_the_program_can_be_left_in_the_midst_of_it(changed: Path):
    app = app_of([[Pause(1000)]])
    async with app.run_test() as pilot:
        app.obey("/review")
        await until(pilot, is_reviewed(app, "running"))
        app.leave()
    assert not app.driver.commands.tasks


async def test_a_model_that_gives_no_findings_fails_the_review_alone(changed: Path):
    app = app_of(["I would rather talk."] * 9)
    async with app.run_test() as pilot:
        app.obey("/review")
        await until(pilot, is_reviewed(app, "failed"))
        assert app.driver.findings == ()


@in_cells(
    ("keys", "said"),
    [(["enter"], ["lost"]), (["down", "enter"], ["word"]), (["a"], ["lost", "word"]), (["escape"], [])],
    every=4,
)
async def test_chosen_findings_are_sent_to_be_fixed(changed: Path, keys: list[str], said: list[str]):
    app = app_of([ANSWER, "Mended."])
    async with app.run_test(size=(120, 40)) as pilot:
        app.obey("/review")
        await until(pilot, is_reviewed(app))
        app.obey("/findings")
        await until(pilot, lambda: isinstance(app.screen, FindingsList) and "1  one" in screen_text(app))
        await pilot.press(*keys)
        await until(pilot, lambda: not isinstance(app.screen, FindingsList))
        await pilot.pause()
        await app.driver.wait()
        sent = [
            str(message.content) for message in app.driver.agent.messages if isinstance(message, UserMessage)
        ]
        assert len(sent) == bool(said)
        assert all(word in sent[0] for word in said)
        assert "lost" not in str(sent) or "lost" in said


async def test_findings_are_sent_by_number_too(changed: Path):
    app = app_of([ANSWER, "Mended."])
    async with app.run_test() as pilot:
        app.obey("/review")
        await until(pilot, is_reviewed(app))
        for wrong in ("0", "3", "x", "1 9"):
            app.obey(f"/findings {wrong}")
        await until(pilot, lambda: screen_text(app).count("numbers from 1 to 2") == 4)
        app.obey("/findings 2")
        await until(pilot, lambda: bool(app.driver.agent.messages))
        await app.driver.wait()
        assert "A number is no word." in str(app.driver.agent.messages[0])
        assert "lost" not in str(app.driver.agent.messages[0])


async def test_while_the_agent_works_there_is_no_review(changed: Path):
    app = app_of([[Pause(1000)]])
    async with app.run_test() as pilot:
        app.driver.send("work")
        await until(pilot, lambda: app.driver.is_running)
        app.obey("/review")
        await until(pilot, lambda: "Esc stops it, then /review" in screen_text(app))
        app.driver.abort()


def offered(request: dict[str, Any]) -> set[str]:
    return {tool["function"]["name"] for tool in request.get("tools", ())}


@pytest.mark.parametrize("is_trusted", [True, cell_of_more(False)])
def test_a_review_in_a_terminal_whose_findings_are_fixed(place: Place, provider: Provider, is_trusted: bool):
    subprocess.run(["git", "init", "-q", "."], cwd=place.here, check=True)
    place.write("notes.txt", "one\n2\n")
    finding = Call(FINAL_OUTPUT, findings=FINDINGS)
    change = Call("edit_file", path="notes.txt", edits=[{"old": "2", "new": "two"}])
    provider.replies = [[Call("read_file", path="notes.txt")], [finding], [change], ["Mended."]]
    with Terminal(
        place, "--model", "openai:m", env=provider.env, size=(110, 36), is_trusted=is_trusted
    ) as terminal:
        if not is_trusted:
            terminal.wait_for("trust")
            terminal.pause(0.4)
            terminal.press("n")
        terminal.wait_for("idle", "Execute")
        terminal.type("/review\r")
        terminal.wait_for("2 findings in the working tree", "The first line is lost.", "/findings")
        assert not offered(provider.requests[0]) & {"bash", "write_file", "edit_file", "task"}
        assert "+2" in str(provider.requests[0]["messages"])
        terminal.type("/findings\r")
        terminal.wait_for("Enter has this one fixed")
        terminal.press("down", "enter")
        terminal.wait_for("Run edit_file?")
        terminal.pause(0.4)
        terminal.press("y")
        terminal.wait_for("Mended.", "idle")
        assert (place.here / "notes.txt").read_text() == "one\ntwo\n"
        terminal.press("ctrl+q")
        assert terminal.wait_for_end() == 0
        terminal.assert_is_as_before()


@left_to_more
def test_escape_ends_a_review_in_a_terminal(place: Place, provider: Provider):
    subprocess.run(["git", "init", "-q", "."], cwd=place.here, check=True)
    place.write("notes.txt", "one\n2\n")
    provider.replies = [[STALL], ["Hello."]]
    with Terminal(place, "--model", "openai:m", env=provider.env, size=(100, 30)) as terminal:
        terminal.wait_for("idle", "Execute")
        terminal.type("/review\r")
        terminal.wait_for("review", "the working tree, 1 file")
        terminal.press("escape")
        terminal.wait_for("stopped")
        terminal.type("hi\r")
        terminal.wait_for("Hello.", "idle")
        terminal.press("ctrl+q")
        assert terminal.wait_for_end() == 0
        assert terminal.left_behind() == []


async def test_a_command_of_ones_own_that_has_the_name_of_ours_is_told(tmp_path: Path):
    environment = AgentEnvironment(tmp_path)
    path = tmp_path / "review.md"
    environment.commands = {name: CustomCommand(name, "", "Look.", path) for name in ("/review", "/mine")}
    app = app_of([])
    async with app.run_test(size=(200, 30)) as pilot:
        tell_unused(app, environment)
        await until(pilot, lambda: "is not used: swink has a command /review" in screen_text(app))
        assert "command /mine" not in screen_text(app)
