"""The worktree of a conversation on the screen: looked at, taken part by part, committed."""

import subprocess
from pathlib import Path

import pytest
from apps import app_of, screen_text, until

from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.trust import answer, look_up
from swink.app.assistant.worktrees import find_tree, open_worktree
from swink.app.tui import ConversationDriver, SwinkApp
from swink.messages import ModelSpec
from swink.testing import ScriptedModel

SIZE = (110, 40)


def git(place: Path, *words: str) -> None:
    settings = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", *settings, *words], cwd=place, check=True, capture_output=True)


@pytest.fixture
def main(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "SWINK_SESSIONS_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    git(tmp_path, "init", "-q", "-b", "main", "main")
    (tmp_path / "main" / "a").write_text("".join(f"line {number}\n" for number in range(1, 31)))
    git(tmp_path / "main", "add", ".")
    git(tmp_path / "main", "commit", "-qm", "first")
    answer(look_up(tmp_path / "main"), "y")
    return tmp_path / "main"


def app_in(main: Path, script: ScriptedModel | None = None) -> SwinkApp:
    """A conversation in a worktree in which two places of a file and one new file are changed."""
    worktree = open_worktree(find_tree(main), "fix").worktree
    text = (worktree.path / "a").read_text().replace("line 3\n", "three\n").replace("line 20\n", "twenty\n")
    (worktree.path / "a").write_text(text)
    (worktree.path / "new").write_text("new\n")
    environment = AgentEnvironment(worktree.path, look_up(worktree.path))
    environment.work_in_tree(worktree)
    permissions = Permissions()
    model = ModelSpec("scripted", "model", context_window=200_000)
    agent = environment.make_agent(model, approve=permissions, stream_fn=script or ScriptedModel([]))
    return SwinkApp(ConversationDriver(agent), permissions, environment=environment)


async def test_outside_a_worktree_it_says_how_to_begin_one():
    app = app_of([])
    async with app.run_test(size=SIZE) as pilot:
        app.obey("/worktree take")
        await until(pilot, lambda: "swink -w NAME begins one" in screen_text(app))


async def test_it_says_where_it_is_what_is_changed_and_commits_it(main: Path):
    app = app_in(main)
    async with app.run_test(size=SIZE) as pilot:
        app.obey("/worktree")
        await until(pilot, lambda: "2 files changed: a, new" in screen_text(app))
        app.obey("/worktree drop")
        await until(pilot, lambda: "leaving asks what becomes of it" in screen_text(app))
        app.obey("/worktree keep")
        await until(pilot, lambda: "on the branch swink/fix" in screen_text(app).partition("committed as")[2])
    assert (main / "a").read_text().startswith("line 1\nline 2\nline 3\n")


async def test_parts_are_judged_as_those_of_a_call_and_reasons_go_to_the_agent(
    main: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("swink.app.tui.approval.askingpanel.GRACE", 0.0)
    script = ScriptedModel(["I see."])
    app = app_in(main, script)
    async with app.run_test(size=SIZE) as pilot:
        app.obey("/worktree take")
        await until(pilot, lambda: "Review the change part by part (2)" in screen_text(app))
        await pilot.press("alt+a")
        await until(pilot, lambda: "Enter takes the marked answer" in screen_text(app))
        await pilot.press("d")
        await until(pilot, lambda: "part 1 of 2" in screen_text(app))
        await pilot.press("y")
        await until(pilot, lambda: "part 2 of 2" in screen_text(app))
        await pilot.press("r")
        await until(pilot, lambda: "Enter leaves it out" in screen_text(app))
        await pilot.press(*"ugly", "enter")
        await until(pilot, lambda: "Enter done" in screen_text(app))
        assert "three" not in (main / "a").read_text()
        await pilot.press("enter")
        await until(pilot, lambda: "creates new" in screen_text(app) or "Take new" in screen_text(app))
        await pilot.press("alt+a")
        await until(pilot, lambda: "Enter takes the marked answer" in screen_text(app))
        await pilot.press("y")
        await until(pilot, lambda: "taken into" in screen_text(app))
        await until(pilot, lambda: len(script.calls) == 1)
    text = (main / "a").read_text()
    assert "three\n" in text
    assert "line 20\n" in text
    assert (main / "new").read_text() == "new\n"
    assert "because: ugly" in str(script.calls[0].messages[-1])


async def test_what_cannot_be_taken_is_told_and_the_conversation_goes_on(
    main: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("swink.app.tui.approval.askingpanel.GRACE", 0.0)
    app = app_in(main)
    (main / "new").write_text("mine\n")
    async with app.run_test(size=SIZE) as pilot:
        app.obey("/worktree take")
        for name in ("a", "new"):
            await until(pilot, lambda name=name: f"Take {name} into" in screen_text(app))
            await pilot.press("alt+a")
            await until(pilot, lambda: "Enter takes the marked answer" in screen_text(app))
            await pilot.press("y")
        await until(pilot, lambda: "nothing was taken" in screen_text(app))
    assert (main / "new").read_text() == "mine\n"
    assert "three" not in (main / "a").read_text()
