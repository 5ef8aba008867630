"""/init: AGENTS.md is proposed as a diff, asked about, and nothing else is written."""

from pathlib import Path
from typing import Any

import pytest
from apps import app_of, screen_text, until
from command_line import Call, Place, Provider
from terminal import Terminal
from tests.counts import in_cells
from textual.pilot import Pilot

from swink import ToolCall
from swink.app.assistant.approvalmodes import ApprovalWord
from swink.app.assistant.projectguide import GuideTools
from swink.app.assistant.toolcalls import SessionTrust
from swink.app.tui import SwinkApp
from swink.testing import Pause, ScriptedModel
from swink.tools import Workspace, coding_tools

WRITE = ToolCall("1", "write_file", {"path": "AGENTS.md", "content": "# Here\n"})


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "main.py").write_text("print(1)\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def app_at(here: Path, replies: Any, word: ApprovalWord = "smart") -> SwinkApp:
    app = app_of(replies, workspace=Workspace(here), tools=coding_tools(here, sandbox="none"))
    app.permissions.word = word
    return app


async def begin(pilot: Pilot[Any], app: SwinkApp) -> None:
    app.obey("/init")
    await until(pilot, lambda: bool(app.driver.agent.messages))


async def end(pilot: Pilot[Any], app: SwinkApp) -> None:
    await until(pilot, lambda: not app.driver.is_running and not app.permissions.asks_about)


@in_cells("word", ["edits", "on", "smart"], every=3)
async def test_it_is_asked_about_in_every_mode_also_where_writing_is_trusted(here: Path, word: ApprovalWord):
    app = app_at(here, [[WRITE], "Done."], word)
    app.permissions.trusted[SessionTrust("write_file")] = None
    async with app.run_test(size=(100, 40)) as pilot:
        await begin(pilot, app)
        await until(pilot, lambda: bool(app.permissions.waiting) and "# Here" in screen_text(app))
        assert not (here / "AGENTS.md").exists()
        app.driver.abort()
        await end(pilot, app)
        assert not (here / "AGENTS.md").exists()


async def test_off_writes_without_a_question_and_deny_writes_nothing(here: Path):
    for word, is_there in (("deny", False), ("off", True)):
        app = app_at(here, [[WRITE], "Done."], word)
        async with app.run_test() as pilot:
            await begin(pilot, app)
            await end(pilot, app)
        assert (here / "AGENTS.md").exists() == is_there


async def test_other_files_are_refused_before_anybody_is_asked_and_the_tools_come_back(here: Path):
    calls = [
        ToolCall("1", "write_file", {"path": "main.py", "content": "evil"}),
        ToolCall("2", "bash", {"command": "touch evil"}),
        ToolCall("3", "write_file", {"path": "x/../main.py", "content": "evil"}),
    ]
    model = ScriptedModel([calls, "Done.", "Hello."])
    app = app_at(here, model, "off")
    async with app.run_test() as pilot:
        await begin(pilot, app)
        await end(pilot, app)
        assert [path.name for path in here.iterdir()] == ["main.py"]
        assert (here / "main.py").read_text() == "print(1)\n"
        names = {tool.name for tool in model.calls[0].tools}
        assert {"read_file", "write_file", "edit_file"} <= names
        assert not names & {"bash", "delete_file"}
        app.driver.send("hi")
        await app.driver.wait()
        assert {"bash", "delete_file"} <= {tool.name for tool in model.calls[-1].tools}


async def test_one_that_is_there_is_edited_and_cannot_be_replaced(here: Path):
    (here / "AGENTS.md").write_text("# Mine\nold\n")
    edit = ToolCall("2", "edit_file", {"path": "AGENTS.md", "edits": [{"old": "old", "new": "new"}]})
    model = ScriptedModel([[WRITE], [edit], "Done."])
    app = app_at(here, model, "off")
    async with app.run_test() as pilot:
        await begin(pilot, app)
        await end(pilot, app)
        assert "write_file" not in {tool.name for tool in model.calls[0].tools}
        assert "improve the AGENTS.md that is there" in str(model.calls[0].messages)
        assert (here / "AGENTS.md").read_text() == "# Mine\nnew\n"


async def test_in_plan_mode_at_work_and_without_tools_it_says_why_not(here: Path):
    app = app_of([[Pause(1000)]])
    async with app.run_test(size=(150, 30)) as pilot:
        app.obey("/init")
        await until(pilot, lambda: "the agent has no tools for files" in screen_text(app))
        app.driver.set_planning(True)
        app.obey("/init")
        await until(pilot, lambda: "Shift+Tab leaves it, then /init" in screen_text(app))
        app.driver.set_planning(False)
        app.driver.send("work")
        app.obey("/init")
        await until(pilot, lambda: "Esc stops it, then /init" in screen_text(app))
        app.driver.abort()
        await app.driver.wait()


async def test_aborted_or_planned_meanwhile_the_tools_come_back(here: Path):
    app = app_at(here, [[Pause(1000)], "Planned."])
    offers = app.driver.agent.tools
    async with app.run_test() as pilot:
        await begin(pilot, app)
        assert isinstance(app.driver.agent.tools[0], GuideTools)
        app.driver.set_planning(True)
        await pilot.press("escape")
        await end(pilot, app)
        app.driver.set_planning(False)
        assert app.driver.agent.tools == offers


def test_in_a_terminal_the_proposal_is_shown_and_taken(place: Place, provider: Provider):
    place.write("main.py", "print(1)\n")
    provider.replies = [
        [Call("read_file", path="main.py")],
        [Call("write_file", path="AGENTS.md", content="# A program\nRun it with python main.py\n")],
        ["It is there."],
    ]
    with Terminal(
        place, "--model", "openai:m", "--approve", "edits", env=provider.env, size=(100, 36)
    ) as terminal:
        terminal.wait_for("idle", "Execute")
        terminal.type("/init\r")
        terminal.wait_for("Run write_file?", "AGENTS.md", "+ # A program")
        names = {tool["function"]["name"] for tool in provider.requests[0]["tools"]}
        assert not names & {"bash", "task", "delete_file"}
        terminal.pause(0.4)
        terminal.press("y")
        terminal.wait_for("It is there.", "AGENTS.md is written", "idle")
        assert (place.here / "AGENTS.md").read_text().startswith("# A program")
        terminal.press("ctrl+q")
        assert terminal.wait_for_end() == 0
        terminal.assert_is_as_before()
