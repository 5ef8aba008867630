"""A machine on which no sandbox works: every command asks, says so, and the rest of the agent works."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commandscene import Scene

from swink.app.assistant.person import Always, Refuse
from swink.app.assistant.rules import parse_rule
from swink.app.assistant.settings import CheckerSettings, UserSettings
from swink.tools.coding import backends


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file, on a machine with neither bubblewrap nor Landlock."""
    monkeypatch.setattr("swink.tools.coding.landlock.read_abi", lambda: 0)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "sh", "touch", "ls", "cat"):
        programs.joinpath(name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(backends, "_verdicts", {})
    work = tmp_path / "work"
    work.mkdir()
    (work / "notes.txt").write_text("hello\n")
    return work


async def test_every_command_asks_and_the_question_says_not_sandboxed(bare: Path):
    scene = Scene(bare)
    looked, made = await scene.call(("bash", {"command": "ls"}), ("bash", {"command": "touch made"}))
    assert [q.request.arguments["command"] for q in scene.asked] == ["ls", "touch made"]
    assert all(
        q.notice.startswith("Not sandboxed: it can read and change all your files") for q in scene.asked
    )
    assert "bwrap is not installed" in scene.asked[0].notice
    assert looked == "notes.txt\n[exit code 0]"
    assert made == "[exit code 0]"
    assert (bare / "made").exists()


async def test_it_is_told_once_at_the_start(bare: Path):
    scene = Scene(bare)
    await scene.call(("bash", {"command": "ls"}))
    (told,) = scene.environment.take_notices()
    assert told.startswith(
        "commands are not sandboxed on this machine, so every one of them asks (bubblewrap: "
    )
    await scene.environment.open()
    assert scene.environment.take_notices() == []
    await scene.environment.aclose()


async def test_the_other_tools_work_without_a_question(bare: Path):
    scene = Scene(bare, word="edits")
    read, _ = await scene.call(
        ("read_file", {"path": "notes.txt"}), ("write_file", {"path": "new.txt", "content": "x"})
    )
    assert "hello" in read
    assert (bare / "new.txt").read_text() == "x"
    assert scene.asked == []


async def test_edits_are_not_checked_and_that_is_told_once(bare: Path):
    """Checkers run unasked, and code of the project with them."""
    scene = Scene(bare, word="edits")
    checker = CheckerSettings("touch checked; cat", "*.txt")
    scene.environment.settings = UserSettings(bare / "config.toml", diagnostics={"mine": checker})
    edits = [("write_file", {"path": f"{name}.txt", "content": "x"}) for name in "ab"]
    await scene.call(*edits)
    assert sorted(os.listdir(bare)) == ["a.txt", "b.txt", "notes.txt"]
    told = [notice for notice in scene.environment.take_notices() if "not checked with mine" in notice]
    assert len(told) == 1
    assert "bwrap is not installed" in told[0]


async def test_the_model_is_told_that_commands_are_not_sandboxed(bare: Path):
    scene = Scene(bare)
    await scene.environment.open()
    (bash,) = [tool for tool in scene.environment.tools() if tool.name == "bash"]
    assert "It is not sandboxed." in bash.description
    await scene.environment.aclose()


async def test_a_refusal_runs_nothing(bare: Path):
    scene = Scene(bare, reply=Refuse("not now"))
    (told,) = await scene.call(("bash", {"command": "touch made"}))
    assert "not now" in told
    assert not (bare / "made").exists()


@pytest.mark.parametrize(("rule", "asked"), [("bash(touch *)", 1), ("bash", 1), ("bash(touch made)", 0)])
async def test_a_saved_rule_answers_only_for_the_command_that_it_names_whole(
    bare: Path, rule: str, asked: int
):
    scene = Scene(bare)
    scene.permissions.rules.add([parse_rule(rule)], "user")
    await scene.call(("bash", {"command": "touch made"}))
    assert len(scene.asked) == asked


async def test_what_is_always_allowed_in_the_session_was_asked_about_once(bare: Path):
    scene = Scene(bare, reply=Always())
    await scene.call(("bash", {"command": "ls"}), ("bash", {"command": "ls"}))
    assert len(scene.asked) == 1


async def test_the_mode_off_asks_for_none(bare: Path):
    scene = Scene(bare, word="off")
    (text,) = await scene.call(("bash", {"command": "ls"}))
    assert text == "notes.txt\n[exit code 0]"
    assert scene.asked == []


async def test_a_denial_stays_one(bare: Path):
    scene = Scene(bare)
    scene.permissions.rules.add([parse_rule("deny bash(touch *)")], "user")
    (told,) = await scene.call(("bash", {"command": "touch made"}))
    assert "deny bash(touch *)" in told
    assert scene.asked == []


async def test_a_folder_without_trust_runs_no_command_and_says_how_to_change_that(bare: Path):
    scene = Scene(bare, trusted=False)
    (told,) = await scene.call(("bash", {"command": "touch made"}))
    assert "so the command was not run" in told
    assert not (bare / "made").exists()
    assert any(
        "only in a folder that you trust: /trust" in notice for notice in scene.environment.take_notices()
    )


async def test_where_a_sandbox_works_nothing_of_this_is_said(tmp_path: Path):
    (tmp_path / "notes.txt").write_text("hello\n")
    if await backends.find_machine_trouble(backends.USUAL, network=False):
        pytest.skip("no sandbox works here")
    scene = Scene(tmp_path)
    (text,) = await scene.call(("bash", {"command": "cat notes.txt"}))
    assert text == "hello\n[exit code 0]"
    assert scene.asked == []
    assert scene.environment.take_notices() == []


async def test_a_workspace_that_no_sandbox_can_protect_is_refused_as_before(
    bare: Path, monkeypatch: pytest.MonkeyPatch
):
    """Otherwise a model could make such a workspace, and commands that are allowed would leave the sandbox."""
    monkeypatch.setattr(backends, "_judge_machine", _works)
    monkeypatch.setattr(backends, "_trouble_with", lambda backend, plan: "it is odd")
    scene = Scene(bare)
    (told,) = await scene.call(("bash", {"command": "touch made"}))
    assert "cannot be had here, so the command was not run (bubblewrap: it is odd" in told


async def _works(backend: Any, network: bool) -> backends.Verdict:
    await asyncio.sleep(0)
    return backends.Verdict(backend)


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_no_module_of_the_agent_needs_what_only_linux_has(system: str):
    """The standard library is loaded first, as this system has it; then the agent, as the other would."""
    blocked = {"darwin": [], "win32": ["fcntl", "termios", "resource", "pwd", "grp", "tty", "pty"]}[system]
    code = f"""
import asyncio, ctypes, tempfile, subprocess, socket, concurrent.futures, multiprocessing, sys
import msgspec, importlib.util, types
sys.modules["msvcrt"] = types.ModuleType("msvcrt")
for name in {blocked}:
    sys.modules[name] = None
sys.platform = {system!r}
import swink.tools.coding, swink.app.assistant.agentenvironment, swink.app.assistant.cautions
import swink.tools.coding.seatbelt, swink.app.cli.terminalquestions
from swink.tools.coding.backends import USUAL, find_machine_trouble
print(USUAL, asyncio.run(find_machine_trouble(USUAL, network=False)))
"""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert ("sandbox-exec is not there" if system == "darwin" else "this is win32") in done.stdout
