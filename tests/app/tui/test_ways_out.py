"""Every way out, from every state, leaves the terminal as it was, with a true exit code and no process behind."""

import signal
from collections.abc import Callable

import pytest
from command_line import STALL, Call, Place, Provider
from terminal import Terminal
from tests.counts import MORE, in_cells

TOOLS = '''
import asyncio, os, signal, subprocess, sys, threading, time
from pathlib import Path
from swink import tool
from swink.app.tui.terminal.terminalapp import TerminalApp

async def slow() -> str:
    """Take long."""
    process = await asyncio.create_subprocess_exec("sleep", "1000", stdin=subprocess.DEVNULL)
    try:
        await process.wait()
    finally:
        process.kill()
    return "late"

@tool(requires_approval=True)
def delete(path: str) -> str:
    """Delete a file."""
    return "deleted"

both = [slow, delete]

async def raise_error():
    raise ValueError("planted")

def raise_now():
    raise ValueError("planted")

def edit(app):
    with app.suspended():
        subprocess.run([sys.executable, "editor.py"])

app, live = None, TerminalApp.live

def seen(self, guard):
    global app
    app = self
    return live(self, guard)

TerminalApp.live = seen

def explode():
    """What a test plants, as soon as it says so by a file."""
    while not (found := [*Path().glob("explode-*")]):
        time.sleep(0.02)
    kind = found[0].name.removeprefix("explode-")
    found[0].unlink()
    if kind == "worker":
        app.call_from_thread(app.run_worker, raise_error())
    elif kind == "message":
        app.call_later(raise_now)
    elif kind == "callback":
        app._loop.call_soon_threadsafe(raise_now)
    elif kind == "failure":
        app._loop.call_soon_threadsafe(app.fail, ValueError("planted"))
    elif kind == "editor":
        app.call_from_thread(edit, app)

threading.Thread(target=explode, daemon=True).start()
'''
EDITOR = """
import os, signal, sys, termios, tty
tty.setraw(0)
os.write(1, b"\\x1b[?1049h\\x1b[?1000h\\x1b[?2004h\\x1b[?25l\\x1b[2Jan editor")
os.kill(os.getpid(), signal.SIGKILL)
"""
"""An editor that dies in the middle of its work."""


def at_rest(terminal: Terminal, provider: Provider) -> None:
    pass


def streaming(terminal: Terminal, provider: Provider) -> None:
    provider.replies = [["Once ", STALL]]
    terminal.type("hi\r")
    terminal.wait_for("Once", "running")


def in_a_tool(terminal: Terminal, provider: Provider) -> None:
    provider.replies = [[Call("slow")], ["Done."]]
    terminal.type("hi\r")
    terminal.wait_for("slow", "running")
    terminal.wait_until(lambda: len(terminal.left_behind()) == 2, "the tool's process beside the restorer")


def asking(terminal: Terminal, provider: Provider) -> None:
    provider.replies = [[Call("delete", path="notes.txt")], ["Done."]]
    terminal.type("hi\r")
    terminal.wait_for("delete", "notes.txt", "running")


def leave(terminal: Terminal, place: Place) -> None:
    terminal.press("ctrl+q")


def signalled(number: int) -> Callable[[Terminal, Place], None]:
    return lambda terminal, place: terminal.process.send_signal(number)


def failing(kind: str) -> Callable[[Terminal, Place], None]:
    return lambda terminal, place: (place.here / f"explode-{kind}").touch()


def enduring(kind: str) -> Callable[[Terminal, Place], None]:
    """An unexpected error is told, and ends nothing."""

    def go_on(terminal: Terminal, place: Place) -> None:
        failing(kind)(terminal, place)
        terminal.wait_for("an unexpected error: ValueError: planted", "Execute")
        terminal.press("ctrl+q")

    return go_on


def stopped(terminal: Terminal, place: Place) -> None:
    terminal.process.send_signal(signal.SIGSTOP)
    terminal.process.send_signal(signal.SIGCONT)
    back(terminal)


def editor_dies(terminal: Terminal, place: Place) -> None:
    failing("editor")(terminal, place)
    back(terminal)


def back(terminal: Terminal) -> None:
    """It shows itself once more, has its modes again, and can be left."""
    terminal.wait_until(lambda: terminal.text.count("\x1b[?1049h") > 2, "its second coming")
    terminal.wait_for("Execute")
    assert {"alternate screen", "mouse", "paste", "focus", "no cursor"} <= terminal.modes
    assert terminal.settings() != terminal.before
    terminal.press("ctrl+q")


STATES = {each.__name__: each for each in (at_rest, streaming, in_a_tool, asking)}
WAYS: dict[str, tuple[Callable[[Terminal, Place], None], int]] = {
    "quit": (leave, 0),
    "failure": (failing("failure"), 1),
    "worker": (enduring("worker"), 0),
    "callback": (enduring("callback"), 0),
    "message": (enduring("message"), 0),
    "SIGINT": (signalled(signal.SIGINT), 130),
    "SIGTERM": (signalled(signal.SIGTERM), 143),
    "SIGHUP": (signalled(signal.SIGHUP), 129),
    "SIGKILL": (signalled(signal.SIGKILL), -signal.SIGKILL),
    "SIGSTOP": (stopped, 0),
    "editor": (editor_dies, 0),
}
EVERY_DAY = {
    ("failure", "streaming"),
    ("worker", "at_rest"),
    ("callback", "streaming"),
    ("SIGINT", "in_a_tool"),
    ("SIGTERM", "asking"),
    ("SIGHUP", "streaming"),
    ("SIGKILL", "in_a_tool"),
    ("SIGSTOP", "at_rest"),
    ("editor", "asking"),
}
CELLS = [(way, state) for way in WAYS for state in STATES if MORE or (way, state) in EVERY_DAY]


@pytest.mark.more
@in_cells(("way", "state"), CELLS, every=3)
def test_the_terminal_is_as_it_was(place: Place, provider: Provider, way: str, state: str):
    go, code = WAYS[way]
    place.write("tools.py", TOOLS)
    place.write("editor.py", EDITOR)
    with Terminal(place, "--model", "openai:m", "--tool", "tools:both", env=provider.env) as terminal:
        terminal.wait_for("idle")
        STATES[state](terminal, provider)
        go(terminal, place)
        assert terminal.wait_for_end(with_others=way != "SIGKILL") == code
        terminal.assert_is_as_before()
        if code == 1:
            terminal.wait_for("swink: error: this should not happen: ValueError: planted")
        if state != "at_rest" and way != "SIGKILL":
            terminal.wait_for("swink --resume ")
        if state == "streaming" and way != "SIGKILL":
            terminal.wait_for("Once")


def test_after_sigkill_the_terminal_says_how_to_go_on(place: Place, provider: Provider):
    with Terminal(place, "--model", "openai:m", env=provider.env) as terminal:
        terminal.wait_for("idle")
        terminal.type("hi\r")
        terminal.wait_for("Hello there.", "idle")
        terminal.process.kill()
        terminal.wait_for("swink was killed.", "To go on: swink --resume ")


def test_leaving_without_a_word_saves_nothing_and_continue_finds_the_last_talk(
    place: Place, provider: Provider
):
    options = ["--model", "openai:m"]
    with Terminal(place, *options, env=provider.env) as terminal:
        terminal.wait_for("idle")
        terminal.type("hi\r")
        terminal.wait_for("Hello there.", "idle")
        terminal.type("/new\r")
        terminal.wait_for("goes on with the last one")
        terminal.press("ctrl+q")
        assert terminal.wait_for_end() == 0
        assert "To go on: swink --resume " in terminal.shown
    for _ in range(2):
        with Terminal(place, *options, env=provider.env) as terminal:
            terminal.wait_for("idle")
            terminal.type("/model openai:other\r")
            terminal.wait_for("the model is now openai:other")
            terminal.press("ctrl+q")
            assert terminal.wait_for_end() == 0
            assert "To go on" not in terminal.shown
    assert len([*place.sessions.glob("*.jsonl")]) == 1
    with Terminal(place, *options, "--continue", env=provider.env) as terminal:
        terminal.wait_for("Hello there.")
        terminal.press("ctrl+q")
        assert terminal.wait_for_end() == 0
