"""The terminal while it is taken: stopped and continued, left to the shell, written to by others, gone."""

import os
import re
import shutil
import signal
import sys
import termios

import pytest
from command_line import STALL, Call, Place, Provider
from terminal import SECONDS, Terminal
from tests.counts import MORE, left_to_more

ON = {"alternate screen", "mouse", "paste", "focus", "no cursor"}
TOOLS = '''
import os, subprocess, time
from swink import tool

def noisy() -> str:
    """Write in every way there is."""
    print("printed by Python")
    os.write(1, b"written to 1\\x1b[2J\\n")
    os.write(2, b"written to 2\\n")
    subprocess.run(["sh", "-c", "echo echoed; echo echoed >&2; cat"], timeout=50)
    return "done"

@tool(requires_approval=True)
def delete(path: str) -> str:
    """Delete a file."""
    return "deleted"

async def stuck() -> str:
    """Block the event loop."""
    open("stuck", "w").close()
    time.sleep(1000)
'''


def shell(place: Place, provider: Provider, *command: str) -> Terminal:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    words = [bash, "--norc", "--noprofile", "--noediting", "-i"]
    terminal = Terminal(place, env={**provider.env, "PS1": "$ ", "HISTFILE": ""}, command=words)
    terminal.wait_for("$")
    terminal.type(" ".join([*command, "\r"]))
    return terminal


def swink(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "swink", "--model", "openai:m", *arguments]


@left_to_more
@pytest.mark.more
@pytest.mark.parametrize("how", ["under make", *(["alone"] if MORE else [])])
def test_ctrl_z_gives_the_shell_a_sane_terminal_and_fg_comes_back(place: Place, provider: Provider, how: str):
    command = swink()
    if how == "under make":
        make = shutil.which("make")
        if make is None:
            pytest.skip("make is not installed")
        place.write("Makefile", f"run:\n\t@{' '.join(command)}\n")
        command = [make, "run"]
    with shell(place, provider, *command) as terminal:
        terminal.wait_for("idle")
        terminal.press("ctrl+z")
        terminal.wait_for("Stopped")
        assert terminal.modes == set()
        assert terminal.settings()[3] & termios.ECHO
        terminal.type("echo sh''ell\r")
        terminal.wait_for("shell")
        terminal.type("fg\r")
        terminal.wait_for("idle")
        assert terminal.modes >= ON
        terminal.type("hi\r")
        terminal.wait_for("Hello there.", "idle")
        terminal.press("ctrl+c", "ctrl+c")
        terminal.wait_for("To go on")
        terminal.type("echo ended with $?\r")
        terminal.wait_for("ended with 0")
        assert terminal.modes == set()
        assert "Error" not in terminal.shown
        terminal.type("exit\r")
        terminal.wait_for_end()
        assert terminal.settings() == terminal.before


@left_to_more
def test_a_shell_is_usable_after_sigkill(place: Place, provider: Provider):
    with shell(place, provider, "sh", "-c", f"'echo $$ > pid; exec {' '.join(swink())}'") as terminal:
        terminal.wait_for("idle")
        os.kill(int((place.here / "pid").read_text()), signal.SIGKILL)
        is_put_back = lambda: not terminal.modes and terminal.settings() == terminal.before  # noqa: E731
        terminal.wait_until(is_put_back, "the restorer")  # what is typed before that is thrown away
        terminal.type("echo al''ive\r")
        terminal.wait_for("alive")
        terminal.type("exit\r")
        terminal.wait_for_end()
        assert terminal.settings() == terminal.before


def test_nothing_that_tools_and_their_processes_write_reaches_the_screen(place: Place, provider: Provider):
    place.write("tools.py", TOOLS)
    provider.replies = [[Call("noisy")], ["All done."]]
    with Terminal(place, "--model", "openai:m", "--tool", "tools:noisy", env=provider.env) as terminal:
        terminal.wait_for("idle")
        terminal.type("hi\r")
        terminal.wait_for("All done.", "idle")
        terminal.wait_for("written to 1")
        assert "\x1b[2J" not in terminal.text
        terminal.press("ctrl+q")
        assert terminal.wait_for_end() == 0
        terminal.assert_is_as_before()


@left_to_more
def test_the_second_signal_leaves_at_once(place: Place, provider: Provider):
    place.write("tools.py", TOOLS)
    provider.replies = [[Call("stuck")]]
    with Terminal(place, "--model", "openai:m", "--tool", "tools:stuck", env=provider.env) as terminal:
        terminal.wait_for("idle")
        terminal.type("hi\r")
        terminal.wait_until((place.here / "stuck").exists)
        while terminal.process.poll() is None:  # signals within 0.3 s count as one
            terminal.process.send_signal(signal.SIGTERM)
            terminal.pause(0.4)
        assert terminal.wait_for_end() == 143
        terminal.assert_is_as_before()


def test_ctrl_c_again_and_again_ends_a_program_that_hears_nothing(place: Place, provider: Provider):
    place.write("tools.py", TOOLS)
    provider.replies = [[Call("stuck")]]
    with Terminal(place, "--model", "openai:m", "--tool", "tools:stuck", env=provider.env) as terminal:
        terminal.wait_for("idle")
        terminal.type("hi\r")
        terminal.wait_until((place.here / "stuck").exists)
        while terminal.process.poll() is None:
            terminal.press("ctrl+c")
            terminal.pause(0.1)
        assert terminal.wait_for_end() == 130
        terminal.assert_is_as_before()


@left_to_more
def test_a_terminal_that_is_gone_ends_it_even_where_sighup_is_ignored(place: Place, provider: Provider):
    provider.replies = [["Once ", STALL]]
    command = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *swink()]
    terminal = Terminal(place, env=provider.env, command=command)
    terminal.wait_for("idle")
    terminal.type("hi\r")
    terminal.wait_for("Once")
    terminal.hang_up()
    assert terminal.process.wait(SECONDS) == 129
    terminal.wait_until(lambda: not terminal.left_behind())


HOSTILE = "before\x1b]52;c;aGFja2Vk\x07\x1b[2J\x1b[?1049l\x1b]2;title\x07\x1bP$q\x1b\\\x9b31mafter"


def test_the_mouse_is_released_a_user_elsewhere_is_called_and_a_reply_controls_nothing(
    place: Place, provider: Provider
):
    provider.replies = [[HOSTILE, Call("delete", path="x")], ["Done."]]
    place.write("tools.py", TOOLS)
    with Terminal(place, "--model", "openai:m", "--tool", "tools:delete", env=provider.env) as terminal:
        terminal.wait_for("idle")
        terminal.press("f6")
        terminal.wait_until(
            lambda: not any("mouse" in mode for mode in terminal.modes), "the mouse's release"
        )
        terminal.press("f6")
        terminal.wait_until(lambda: "mouse" in terminal.modes, "the mouse")
        terminal.press("blur")
        terminal.type("hi\r")
        terminal.wait_for("before", "after", "delete")
        terminal.wait_until(lambda: "\x1b]2;⏸" in terminal.text, "the title")
        terminal.wait_until(lambda: "\x07" in re.sub(r"\x1b\][^\x07]*\x07", "", terminal.text), "the bell")
        assert "\x1b]52" not in terminal.text
        assert "\x1b]2;title" not in terminal.text
        assert terminal.modes >= ON
        terminal.press("ctrl+q")
        assert terminal.wait_for_end() == 0
        terminal.assert_is_as_before()
