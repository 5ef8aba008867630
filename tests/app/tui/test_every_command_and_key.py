"""Every command of the table and every key of the table, in every state: the program lives, and what is
typed afterwards is in the editor.

What is new in the tables is tried without being named here.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from apps import screen_text, until
from command_line import STALL, Call, Place, Provider
from terminal import KEYS as SEQUENCES
from terminal import Terminal
from test_conversations import THREE, Desk
from tests.counts import MORE, cell_of_more, left_to_more
from textual.pilot import Pilot

from swink import tool
from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.settings import load_settings
from swink.app.assistant.trust import answer, look_up
from swink.app.tui import SwinkApp
from swink.app.tui.commands import COMMANDS
from swink.app.tui.commands.commandtable import SlashCommand
from swink.app.tui.keys import KEYS
from swink.messages import ToolCall
from swink.testing import Pause

LEAVING = {"/quit"}
"""Commands that end the program; they are tried last. Ctrl+Z has its own test, with a shell around it."""
PRESSED = {key.name: key.keys for key in KEYS if key.name not in ("leave", "suspend")}
OPENING = [
    "/help",
    "/theme",
    "/model",
    "/thinking",
    "/permissions",
    "/sessions",
    "/tree",
    "/rewind",
    "/trust",
]
"""Commands that open a screen without an argument, and keys that do."""
ESCAPE = "\x1b[27u"
"""Esc as terminals send it that tell it from the beginning of another key."""
WRONG = "nonsense [/b] ␛ * 🙂"


def lines_of(command: SlashCommand) -> Iterator[str]:
    """The command without an argument, with each one that its usage names, and with one that is wrong."""
    yield command.name
    yield f"{command.name} {WRONG}"
    for words in command.usage.strip("[]").split("|"):
        if words.strip():
            yield f"{command.name} {words.strip()}"


LINES = [line for name, each in COMMANDS.items() if name not in LEAVING for line in lines_of(each)]


# In `make test`, by a pilot


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and a project of their own, and an editor that writes nothing."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("EDITOR", "true")
    project = tmp_path / "work"
    project.mkdir()
    (project / "AGENTS.md").write_text("Be brief.")
    monkeypatch.chdir(project)
    return tmp_path


@tool(requires_approval=True)
def deploy(where: str) -> str:
    """Deploy it."""
    return "deployed"


async def full_app(home: Path, *replies: Any) -> SwinkApp:
    """An app with everything that the program gives it: settings, environment, saved conversations."""
    answer(look_up(home / "work"), "y")
    settings, permissions = load_settings(), Permissions()
    desk = Desk(home, *THREE, *replies, *["fine"] * 60, tools=[deploy], approve=permissions)
    await desk.say("one", "two", "three")
    environment = AgentEnvironment(home / "work", look_up(home / "work"), settings)
    return SwinkApp(
        desk.driver, permissions, environment=environment, sessions=desk.conversations, settings=settings
    )


async def assert_it_can_be_typed(pilot: Pilot[Any], app: SwinkApp, what: str) -> None:
    """Back to the conversation, without two Esc in a row; then what is typed is in the editor."""
    for _ in range(200):
        if len(app.screen_stack) == 1 and not app.driver.is_running and app.editor.has_focus:
            break
        await pilot.press("escape", "right")
        await pilot.pause(0.02)
    assert len(app.screen_stack) == 1, what
    assert "failed unexpectedly" not in str(app.driver.transcript.blocks[-3:]), what
    before = app.editor.text
    await pilot.press("Z", "9")
    assert app.editor.text.replace(before, "", 1) == "Z9", what
    app.editor.clear()


@left_to_more
async def test_every_command_with_and_without_arguments(home: Path):
    app = await full_app(home)
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: app.environment is not None and app.environment.instructions is not None)
        for line in LINES:
            worker = app.run_worker(app._obey(line))
            await until(pilot, lambda: worker.is_finished or len(app.screen_stack) > 1)
            await assert_it_can_be_typed(pilot, app, line)
            await until(pilot, lambda: worker.is_finished)
        app.obey("/quit")
        await until(pilot, lambda: not app.is_running)
    assert app.failure is None


STATES = ["idle", "running", "asking", "/model"]


@pytest.mark.more
@pytest.mark.parametrize("state", [*STATES, *map(cell_of_more, OPENING)])
async def test_every_key_in_every_state(home: Path, state: str):
    first, step = (0, 1) if MORE else (STATES.index(state), len(STATES))  # each day each key in one state
    replies = {"running": [["Once ", Pause(600)]], "asking": [ToolCall("9", "deploy", {"where": "moon"})]}
    app = await full_app(home, *replies.get(state, []))
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: app.environment is not None and app.environment.instructions is not None)
        if state in replies:
            app.driver.send("go on")
            await until(pilot, lambda: bool(app.permissions.waiting) or "Once" in screen_text(app))
        elif state != "idle":
            app.obey(state)
            await until(pilot, lambda: len(app.screen_stack) > 1)
        for name, key in [*PRESSED.items()][first::step]:
            await pilot.press(key)
            await pilot.pause(0.01)
            assert app.is_running, name
            assert screen_text(app), name
        for size in ((60, 15), (20, 5), (200, 60))[first::step]:
            await pilot.resize_terminal(*size)
            await pilot.pause(0.01)
            assert screen_text(app), size
        await assert_it_can_be_typed(pilot, app, state)
        await pilot.press("ctrl+q")
        await until(pilot, lambda: not app.is_running)
    assert app.failure is None


def test_every_key_can_be_pressed_in_a_terminal():
    assert [key.keys for key in KEYS if key.keys not in SEQUENCES] == []


# In `make test-more`, in a terminal

TOOLS = '''
from swink import tool

@tool(requires_approval=True)
def deploy(where: str) -> str:
    """Deploy it."""
    return "deployed"
'''
SETTINGS = """
theme = "light"
thinking = "shown"
notifications = true
[keys]
toggle_todo = "ctrl+x"
"""


def begin(place: Place, provider: Provider) -> Terminal:
    """The real program with settings, instructions, a custom command, and a conversation before this one."""
    subprocess.run(["git", "init", "-q", "."], cwd=place.here, check=True)
    place.write("tools.py", TOOLS)
    place.write("AGENTS.md", "Be brief.")
    place.config.mkdir(parents=True, exist_ok=True)
    (place.config / "config.toml").write_text(SETTINGS)
    (place.config / "commands").mkdir(exist_ok=True)
    (place.config / "commands" / "ship.md").write_text("Ship $ARGUMENTS.")
    env = {**provider.env, "EDITOR": "true"}
    terminal = Terminal(place, "--model", "openai:m", "--tool", "tools:deploy", env=env, size=(100, 30))
    terminal.wait_for("idle", "Execute")
    terminal.type("a first prompt\r")
    terminal.wait_for("Hello there.", "idle")
    return terminal


def come_back(terminal: Terminal) -> None:
    """To the conversation at rest: never two Esc in a row, which would open rewind."""
    for number in range(200):
        if number >= 4 and re.match(" (idle|aborted|error) ", terminal.lines[-1]):
            return
        terminal.type(f"{SEQUENCES['ctrl+e']}{ESCAPE}")
        terminal.pause(0.1)
    raise AssertionError(f"it did not come to rest:\n{terminal.shown}")


def stands_in_the_editor(terminal: Terminal, word: str) -> bool:
    """Whether it comes to stand there within a while, which a busy program needs."""
    for _ in range(100):
        if re.search(rf"│.*{word}", "\n".join(terminal.lines[-12:])) is not None:
            return True
        terminal.pause(0.1)
    return False


def assert_it_is_typed(terminal: Terminal, word: str) -> None:
    """What is typed stands in the editor, at the bottom of the screen, and nothing was told to have failed."""
    for _ in range(3):  # a screen that opens only now takes the word: it is left, and the word typed anew
        come_back(terminal)
        terminal.type(word)
        if stands_in_the_editor(terminal, word):
            break
        terminal.press("ctrl+u")
    else:
        raise AssertionError(f"{word} did not come; the screen shows:\n{terminal.shown}")
    assert terminal.process.poll() is None
    assert "unexpected" not in terminal.shown, terminal.shown


def assert_it_is_sent(terminal: Terminal, provider: Provider, word: str) -> None:
    """What is typed and sent reaches the model: no screen was left that took it."""
    provider.replies = [["Hello there."]]
    assert_it_is_typed(terminal, word)
    terminal.press("enter")
    terminal.wait_until(lambda: any(word in str(each) for each in provider.requests), f"{word} at the model")
    terminal.wait_for("idle")


def enter_state(terminal: Terminal, provider: Provider, state: str) -> None:
    if state == "running":
        provider.replies = [["Once ", STALL]]
        terminal.type("go on\r")
        terminal.wait_for("Once", "running")
    elif state == "asking":
        provider.replies = [[Call("deploy", where="moon")], ["Done."]]
        terminal.type("go on\r")
        terminal.wait_for("deploy", "moon", "running")
        terminal.pause(0.4)
    elif state != "idle":
        shown = terminal.shown
        terminal.type(f"{state}{ESCAPE}")  # the list of commands is closed
        terminal.pause(0.1)
        terminal.type("\r")
        terminal.wait_until(lambda: terminal.shown != shown, state)
        terminal.pause(0.3)


@left_to_more
@pytest.mark.parametrize("state", ["idle", "running", "asking", *OPENING])
def test_every_key_in_every_state_of_the_real_program(place: Place, provider: Provider, state: str):
    with begin(place, provider) as terminal:
        for number, key in enumerate(PRESSED.values()):
            enter_state(terminal, provider, state)
            terminal.type(ESCAPE if key == "escape" else SEQUENCES[key])
            terminal.pause(0.1)
            terminal.resize(*((60, 15), (120, 40), (100, 30))[number % 3])
            assert terminal.process.poll() is None, key
            assert_it_is_sent(terminal, provider, f"word{number}x")
            if "Plan" in terminal.lines[-1]:
                terminal.press("shift+tab")
                terminal.wait_for("Execute")
                come_back(terminal)
        terminal.press("ctrl+q")
        assert terminal.wait_for_end() == 0
        terminal.assert_is_as_before()


@left_to_more
@pytest.mark.parametrize("part", range(6))
def test_every_command_in_the_real_program(place: Place, provider: Provider, part: int):
    with begin(place, provider) as terminal:
        for number, line in enumerate(LINES[part::6]):
            terminal.type(f"{line}{ESCAPE}")
            terminal.pause(0.1)
            terminal.type("\r")
            terminal.pause(0.3)
            assert_it_is_typed(terminal, f"word{number}x")
            terminal.press("ctrl+u")
            terminal.wait_until_gone(f"word{number}x")
        terminal.type("/quit \r")
        assert terminal.wait_for_end() == 0
        terminal.assert_is_as_before()
