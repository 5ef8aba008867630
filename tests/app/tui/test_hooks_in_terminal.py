"""Hooks of the real program: killed or interrupted it leaves nothing running, and those that people have work."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from command_line import SECONDS, Call, Place, Provider
from terminal import Terminal
from tests.counts import in_cells, left_to_more

pytestmark = pytest.mark.skipif(os.name != "posix", reason="commands need a POSIX system")
MODEL = ["--model", "openai:gpt-4.1"]
EVENTS = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"]


def hang(place: Place, event: str, mark: str) -> Path:
    """A hook of the user that never ends and starts something in a session of its own; what tells it runs."""
    ready = place.here / "ready"
    place.configure(
        f"[[hooks]]\nevent = '{event}'\ncommand = '(setsid sleep {mark} &); touch {ready}; sleep {mark}'\n"
    )
    return ready


def alive(mark: str) -> list[str]:
    found = subprocess.run(["ps", "-eo", "stat=,args="], capture_output=True, text=True, check=True).stdout
    return [line for line in found.splitlines() if f"sleep {mark}" in line and not line.startswith("Z")]


def wait_until(condition: object, what: str) -> None:
    for _ in range(int(SECONDS * 20)):
        if condition():  # type: ignore[operator]
            return
        time.sleep(0.05)
    pytest.fail(what)


def start_in(place: Place, provider: Provider, event: str, mark: str) -> "subprocess.Popen[bytes]":
    """The program, in a hook for this event."""
    ready = hang(place, event, mark)
    (place.here / "main.py").write_text("x = 1\n")
    provider.replies = [[Call("read_file", path="main.py")], ["Done."]]
    process = place.start("-p", "Go.", "--approve", "off", *MODEL, env=provider.env)
    wait_until(lambda: ready.exists() or process.poll() is not None, f"{event} runs")
    assert process.poll() is None
    assert alive(mark)
    return process


@left_to_more
@in_cells("event", ["PreToolUse", "Stop", "SessionEnd"], every=3)
def test_a_killed_program_leaves_no_hook_running(place: Place, provider: Provider, event: str):
    mark = f"4{os.getpid()}.{EVENTS.index(event)}"
    process = start_in(place, provider, event, mark)
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_until(lambda: not alive(mark), "nothing is left")


@left_to_more
@pytest.mark.parametrize("event", EVENTS)
def test_an_interrupt_ends_the_hook_and_the_program(place: Place, provider: Provider, event: str):
    mark = f"5{os.getpid()}.{EVENTS.index(event)}"
    process = start_in(place, provider, event, mark)
    process.send_signal(signal.SIGINT)
    assert process.wait(SECONDS) != 0 or event == "SessionEnd"
    wait_until(lambda: not alive(mark), "nothing is left")


BLOCK = """\
import json, sys
if "rm -rf" in json.load(sys.stdin)["tool_input"]["command"]:
    print("rm -rf is not allowed here", file=sys.stderr)
    sys.exit(2)
"""
FORMAT = """\
import json, pathlib, sys
path = pathlib.Path(json.load(sys.stdin)["tool_input"]["file_path"])
path.write_text("".join(line.rstrip() + "\\n" for line in path.read_text().splitlines()))
"""


@left_to_more
def test_three_hooks_as_people_have_them_work_in_the_terminal(place: Place, provider: Provider):
    def entry(command: str, matcher: str = "") -> dict[str, object]:
        return {"matcher": matcher, "hooks": [{"type": "command", "command": command}]}

    hooks = {
        "PostToolUse": [entry('python3 "$CLAUDE_PROJECT_DIR"/.claude/hooks/format.py', "Edit|Write")],
        "PreToolUse": [entry("python3 $CLAUDE_PROJECT_DIR/.claude/hooks/block.py", "Bash")],
        "UserPromptSubmit": [entry("echo The branch is release.")],
    }
    (place.here / ".claude/hooks").mkdir(parents=True)
    (place.here / ".claude/hooks/block.py").write_text(BLOCK)
    (place.here / ".claude/hooks/format.py").write_text(FORMAT)
    (place.here / ".claude/settings.json").write_text(json.dumps({"hooks": hooks}))
    provider.replies = [
        [Call("write_file", path="new.py", content="y = 2   \nz = 3  \n")],
        [Call("bash", command="rm -rf build")],
        ["All done."],
    ]
    with Terminal(place, *MODEL, "--approve", "off", env=provider.env, size=(110, 40)) as terminal:
        terminal.wait_for("idle")
        terminal.type("go\r")
        terminal.wait_for("All done.", "idle")
        assert (place.here / "new.py").read_text() == "y = 2\nz = 3\n"
        assert "rm -rf is not allowed here" in json.dumps(provider.requests[-1])
        assert "The branch is release." in json.dumps(provider.requests[0])
        terminal.type("/hooks\r")
        terminal.wait_for("PreToolUse of Bash", "UserPromptSubmit")
        terminal.press("ctrl+q")
        terminal.wait_for_end()
