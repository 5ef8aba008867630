"""Diagnostics: what is new in an edited file is told with the edit, and a checker never costs the edit."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from swink import Agent, ToolCall, ToolResultMessage
from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.checkers import (
    CheckerFinding,
    find_checkers,
    new_findings,
    parse_findings,
    with_sources,
)
from swink.app.assistant.diagnostics import Diagnostics
from swink.app.assistant.settings import CheckerSettings, UserSettings
from swink.app.assistant.trust import Trust
from swink.messages import ModelSpec
from swink.testing import ScriptedModel
from swink.tools import coding_tools
from swink.tools.coding.sandbox import Sandbox

linux = pytest.mark.skipif(sys.platform != "linux", reason="sandboxes are Linux's")
FIND = 'find() { grep -nH BAD "$1" || :; }; find'
GREP = CheckerSettings(f"echo run >> runs; {FIND}", "*.txt")
"""Finds lines with BAD, and counts how often it ran."""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    place = tmp_path / "here"
    place.mkdir()
    return place


class Bench:
    """A directory with tools whose edits are checked."""

    def __init__(self, here: Path, chosen: Any = None, seconds: float = 30.0) -> None:
        self.here = here
        self.told: list[str] = []
        chosen = {"grep": GREP} if chosen is None else chosen
        checks = Diagnostics(here, chosen, Sandbox(here, "none"), self.told.append, seconds)
        self.tools = checks.checking(coding_tools(here, sandbox="none"))

    async def call(self, *calls: tuple[str, dict[str, Any]]) -> list[str]:
        """The results of calls of one reply."""
        asked = [ToolCall(str(number), *call) for number, call in enumerate(calls)]
        model = ScriptedModel([asked, "Done."])
        agent = Agent("test:m", stream_fn=model, tools=self.tools, approval_mode="off")
        await agent.run("go")
        return [message.text for message in agent.messages if isinstance(message, ToolResultMessage)]

    async def write(self, name: str, content: str) -> str:
        return (await self.call(("write_file", {"path": name, "content": content})))[0]

    async def edit(self, name: str, old: str, new: str) -> str:
        edits = [{"old": old, "new": new}]
        return (await self.call(("edit_file", {"path": name, "edits": edits})))[0]

    @property
    def runs(self) -> int:
        path = self.here / "runs"
        return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.mark.parametrize("command", ["/nowhere/checker", "exit 7 #", "echo something is wrong; false #"])
async def test_a_checker_that_cannot_work_is_told_once_and_the_edit_is_made(here: Path, command: str):
    bench = Bench(here, {"mine": CheckerSettings(command, "*")})
    assert "created a.txt" in await bench.write("a.txt", "one\n")
    assert "edited a.txt" in await bench.edit("a.txt", "one", "two")
    assert (here / "a.txt").read_text() == "two\n"
    assert len(bench.told) == 1
    assert "mine" in bench.told[0]
    assert "/reload" in bench.told[0]


async def test_one_that_takes_too_long_is_ended_and_left_alone(here: Path):
    bench = Bench(here, {"slow": CheckerSettings("echo run >> runs; sleep 1000;:", "*")}, seconds=0.5)
    assert "created a.txt" in await bench.write("a.txt", "one\n")
    assert "edited" in await bench.edit("a.txt", "one", "two")
    assert bench.told == [
        "edits are not checked with slow any more: took longer than 0.5 s; "
        "/reload tries again, slow = false below [diagnostics] in config.toml does not"
    ]
    assert bench.runs == 1


async def test_what_is_new_is_told_with_the_edit_once_and_what_was_there_is_not(here: Path):
    (here / "a.txt").write_text("BAD old\nfine\n")
    bench = Bench(here)
    told = await bench.edit("a.txt", "fine", "BAD new")
    assert "- grep: a.txt:2: BAD new" in told
    assert "BAD old" not in told
    again = await bench.edit("a.txt", "BAD old", "more\nBAD old")
    assert "grep" not in again
    assert bench.runs == 3  # before the first edit, and after each
    assert bench.told == []


async def test_a_new_file_has_nothing_old(here: Path):
    bench = Bench(here)
    assert "- grep: b.txt:1: BAD" in await bench.write("b.txt", "BAD\n")
    assert bench.runs == 1
    assert "grep" not in await bench.write("b.py", "BAD\n")
    assert bench.runs == 1


async def test_what_somebody_else_changed_meanwhile_is_not_new(here: Path):
    bench = Bench(here)
    await bench.write("a.txt", "fine\n")
    (here / "a.txt").write_text("fine\nBAD theirs\n")
    assert "grep" not in await bench.edit("a.txt", "fine", "good")


async def test_at_most_a_few_are_told(here: Path):
    told = await Bench(here).write("a.txt", "BAD\n" * 40)
    assert told.count("- grep") == 10
    assert told.endswith("[and 30 more]")


async def test_several_edits_of_one_reply_tell_each_finding_once(here: Path):
    (here / "a.txt").write_text("one\ntwo\n")
    bench = Bench(here)
    edits = [{"path": "a.txt", "edits": [{"old": old, "new": f"BAD {old}"}]} for old in ("one", "two")]
    results = await bench.call(*[("edit_file", edit) for edit in edits])
    text = "\n".join(results)
    assert text.count("BAD one") == text.count("BAD two") == 1


async def test_an_edit_that_fails_is_as_before(here: Path):
    (here / "a.txt").write_text("BAD\n")
    told = await Bench(here).edit("a.txt", "nowhere", "x")
    assert "grep" not in told


async def test_cancelled_while_it_is_checked_the_edit_is_reported_and_the_checker_ended(
    here: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("swink.agent.engine.dispatch.GRACE", 30)  # a busy machine needs a while to kill it
    (here / "a.txt").write_text("one\n")
    script = "test -e started || { touch started; exit 0; }; echo $$ > pid; sleep 1000;:"
    bench = Bench(here, {"slow": CheckerSettings(script, "*.txt")})
    call = ToolCall("1", "edit_file", {"path": "a.txt", "edits": [{"old": "one", "new": "two"}]})
    agent = Agent("test:m", stream_fn=ScriptedModel([[call]]), tools=bench.tools, approval_mode="off")
    run = asyncio.ensure_future(agent.run("go"))
    while not (here / "pid").exists() or not (here / "pid").read_text().strip():
        await asyncio.sleep(0.01)
    agent.abort()
    await run
    results = [message for message in agent.messages if isinstance(message, ToolResultMessage)]
    assert "edited a.txt" in results[0].text
    assert not Path("/proc", (here / "pid").read_text().strip()).exists()
    assert bench.told == []


async def test_cancelled_before_the_edit_nothing_is_changed(here: Path):
    (here / "a.txt").write_text("one\n")
    bench = Bench(here, {"slow": CheckerSettings("echo $$ > pid; sleep 1000;:", "*.txt")})
    call = ToolCall("1", "edit_file", {"path": "a.txt", "edits": [{"old": "one", "new": "two"}]})
    agent = Agent("test:m", stream_fn=ScriptedModel([[call]]), tools=bench.tools, approval_mode="off")
    run = asyncio.ensure_future(agent.run("go"))
    while not (here / "pid").exists():
        await asyncio.sleep(0.01)
    agent.abort()
    await run
    assert (here / "a.txt").read_text() == "one\n"


@linux
async def test_in_the_sandbox_a_checker_has_no_network_and_finds_the_same(here: Path):
    told: list[str] = []
    script = CheckerSettings(f"grep -c : /proc/net/dev > devices; {FIND}", "*.txt")
    checks = Diagnostics(here, {"grep": script}, Sandbox(here), told.append)
    tools = checks.checking(coding_tools(here, sandbox="none"))
    call = ToolCall("1", "write_file", {"path": "a.txt", "content": "BAD\n"})
    agent = Agent("test:m", stream_fn=ScriptedModel([[call], "Done."]), tools=tools, approval_mode="off")
    await agent.run("go")
    assert "grep: a.txt:1: BAD" in str(agent.messages)
    assert told == []
    assert (here / "devices").read_text().strip() == "1"


def program(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)


def test_checkers_are_those_that_the_project_configures_and_the_user_leaves(here: Path):
    assert find_checkers(here, True) == ([], [])
    (here / "pyproject.toml").write_text("[tool.ruff]\n[tool.mypy]\n")
    (here / "tsconfig.json").write_text("{}")
    program(here / ".venv/bin/ruff")
    program(here / "node_modules/.bin/tsc")
    found, notices = find_checkers(here, {"mypy": False})
    assert [(one.name, one.program) for one in found] == [
        ("ruff", str(here / ".venv/bin/ruff")),
        ("tsc", str(here / "node_modules/.bin/tsc")),
    ]
    assert notices == []
    own = CheckerSettings("lint {x}", "src/*.c")
    found, _ = find_checkers(here, {"mypy": False, "tsc": False, "ruff": own})
    assert [one.command_for(["a b.c"]) for one in found] == ["lint {x} 'a b.c'"]
    assert find_checkers(here, False) == ([], [])


def test_a_configuration_that_is_a_pipe_configures_none(here: Path):
    for name in ("pyproject.toml", "tsconfig.json", "go.mod"):
        os.mkfifo(here / name)
    assert find_checkers(here, True) == ([], [])


def test_one_that_is_not_installed_is_told(here: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", os.devnull)
    (here / "go.mod").write_text("module x\n")
    assert find_checkers(here, True) == (
        [], ["go is configured here but not installed: edits are checked without it"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("checker", "output", "line", "text"),
    [
        ("ruff", "a.py:3:8: F401 [*] `os` imported but unused\n", 3, "F401 [*] `os` imported but unused"),
        ("mypy", "a.py:3: error: Bad  [assignment]\na.py:3: note: See\n", 3, "error: Bad [assignment]"),
        ("pyright", "{here}/a.py\n  {here}/a.py:3:5 - error: Bad (reportBad)\n1 error\n", 3, "error: Bad (reportBad)"),
        ("tsc", "a.py(3,5): error TS2322: Type 'string' is bad.\n", 3, "error TS2322: Type 'string' is bad."),
        ("cargo", "a.py:3:5: error[E0425]: cannot find value\n", 3, "error[E0425]: cannot find value"),
        ("go", "# pkg\n./a.py:3:2: unreachable code\nvet: exit\n", 3, "unreachable code"),
        ("eslint", '[{{"filePath": "{here}/a.py", "messages": [{{"ruleId": "no-x", "line": 3, "message": "Bad."}}]}}]',
         3, "Bad. (no-x)"),
        ("mine", "a.py:3: \x1b[31mbad\n", 3, "[31mbad"),
    ],
)  # fmt: skip
def test_what_they_write_is_understood(here: Path, checker: str, output: str, line: int, text: str):
    found = parse_findings(checker, output.format(here=here) if "{here}" in output else output, str(here))
    assert found == {str(here / "a.py"): [CheckerFinding(checker, line, text)]}


def test_findings_move_with_their_lines_and_a_second_one_is_new():
    old = with_sources([CheckerFinding("c", 1, "bad")], "x = 1\n")
    moved = with_sources([CheckerFinding("c", 3, "bad")], "\n\nx = 1\n")
    assert new_findings(old, moved) == []
    both = with_sources([CheckerFinding("c", 1, "bad"), CheckerFinding("c", 2, "bad")], "y = 2\nx = 1\n")
    assert [one.line for one in new_findings(old, both)] == [1]
    reworded = with_sources([CheckerFinding("c", 1, "bad")], "x = 3\n")
    assert new_findings(old, reworded) == []
    assert new_findings([], moved) == moved


@linux
@pytest.mark.parametrize(
    ("standing", "chosen", "is_told"),
    [("trusted", True, True), ("refused", True, False), ("trusted", False, False)],
)
async def test_only_a_trusted_folder_is_checked_and_only_where_it_is_not_switched_off(
    here: Path, standing: Any, chosen: bool, is_told: bool
):
    program(here / ".venv/bin/ruff")
    (here / ".venv/bin/ruff").write_text('#!/bin/sh\nfor file; do :; done\ngrep -nH BAD "$file"\n')
    (here / "ruff.toml").write_text("")
    settings = UserSettings(here / "config.toml", diagnostics={"grep": GREP} if chosen else False)
    environment = AgentEnvironment(here, Trust(here, standing), settings)
    call = ToolCall("1", "write_file", {"path": "a.py", "content": "BAD\n"})
    model = ScriptedModel([[call], "Done."])
    agent = environment.make_agent(
        ModelSpec("test", "m", context_window=200_000), stream_fn=model, approval_mode="off"
    )
    try:
        await agent.run("go")
    finally:
        await environment.aclose()
    assert ("ruff: a.py:1: BAD" in str(agent.messages)) == is_told
