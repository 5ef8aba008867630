"""How commands end: signals at any time, outputs that cannot be written, streams that are closed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import termios
from collections.abc import Mapping
from pathlib import Path

import pytest
from command_line import SECONDS, STALL, Call, Done, Place, Provider, Screen
from tests.counts import MORE, cell_of_more, in_cells

from swink.app.cli.jsonlines import encode_line
from swink.events import ToolExecutionEnd
from swink.messages import Text, ToolResult

SIGNAL_AT = """
import os, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["SIGNAL_AT"]:
            os.kill(os.getpid(), int(os.environ["SIGNAL"]))
sys.meta_path.insert(0, Interrupting())
"""
"""A sitecustomize that sends the process a signal when it imports a certain module."""
WAYS = {"module": [sys.executable, "-m", "swink"], "script": [str(Path(sys.executable).with_name("swink"))]}


def with_signal_at(place: Place, module: str, number: int = signal.SIGINT) -> dict[str, str]:
    place.write("sitecustomize.py", SIGNAL_AT)
    return {"PYTHONPATH": str(place.here), "SIGNAL_AT": module, "SIGNAL": str(int(number))}


def start(place: Place, words: list[str], env: Mapping[str, str] | None = None) -> Done:
    done = subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS,
        cwd=place.here,
        env={**place.environ, **(env or {})},
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def in_shell(place: Place, line: str, env: Mapping[str, str] | None = None) -> Done:
    return start(place, ["sh", "-c", f"{shutil.which('env')} {sys.executable} -m swink {line}"], env)


IMPORTED = ["swink.agent", "swink.app.cli", "swink.app.cli.run_command", "swink.app.assistant.modelchoice"]


@pytest.mark.more
@pytest.mark.parametrize(
    ("way", "module"),
    [
        (way, module)
        for number, way in enumerate(WAYS)
        for module in (IMPORTED if MORE else [IMPORTED[number]])
    ],
)
def test_ctrl_c_while_the_command_is_imported_ends_it_without_a_word(place: Place, way: str, module: str):
    done = start(place, [*WAYS[way], "run", "hi"], with_signal_at(place, module))
    assert (done.code, done.out, done.err) == (130, "", "")


@in_cells("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], every=3)
def test_a_signal_before_the_run_is_a_result_in_json_too(place: Place, number: int):
    env = with_signal_at(place, "swink.local", number)
    done = start(place, [*WAYS["module"], "run", "--output", "json", "hi"], env)
    assert done.code == 128 + number
    result = json.loads(done.out)
    assert (result["type"], result["stop_reason"]) == ("result", "aborted")
    assert "Traceback" not in done.err


def test_ctrl_c_while_the_chat_is_imported_leaves_the_terminal_as_it_was(place: Place):
    screen = Screen(place, env=with_signal_at(place, "swink.app.cli.chat"))
    assert screen.end() == 130
    assert screen.text == ""


def test_importing_swink_elsewhere_leaves_signals_alone(place: Place):
    code = (
        "import signal, swink.app.cli; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    )
    assert start(place, [sys.executable, "-c", code]).out == "True\n"
    place.write("swink", code)
    assert start(place, [sys.executable, "swink"]).out == "True\n"


@pytest.mark.parametrize("number", [cell_of_more(signal.SIGTERM), signal.SIGHUP])
def test_a_chat_that_is_terminated_leaves_the_terminal_as_it_was(
    place: Place, provider: Provider, number: int
):
    screen = Screen(place, "--model", "openai:m", env=provider.env)
    before = termios.tcgetattr(screen.fd)
    screen.wait_for_prompt()
    assert termios.tcgetattr(screen.fd)[3] != before[3], "while it reads a line, readline has the terminal"
    screen.process.send_signal(number)
    screen.wait_for_end()
    assert termios.tcgetattr(screen.fd)[3] == before[3]
    assert screen.end() == 128 + number


@in_cells(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], every=3)
def test_a_signal_ends_a_run_with_what_had_arrived(place: Place, provider: Provider, number: int, code: int):
    provider.replies = [["Once", STALL]]
    process = place.start("run", "--model", "openai:m", "hi", env=provider.env)
    assert process.stdout is not None
    assert os.read(process.stdout.fileno(), 100) == b"Once"
    process.send_signal(number)
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out, err) == (code, b"\n", b"swink: interrupted\n")


def test_a_signal_that_is_ignored_from_the_start_stays_ignored(place: Place, provider: Provider):
    provider.replies = [["Once ", STALL]]
    words = [sys.executable, "-m", "swink", "run", "--model", "openai:m", "hi"]
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=place.here,
        env={**place.environ, **provider.env},
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    place.started.append(process)
    assert process.stdout is not None
    assert os.read(process.stdout.fileno(), 100) == b"Once "
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=SECONDS)
    assert process.returncode == 143


STUCK = '''
import time

async def stuck() -> str:
    """Block the event loop."""
    print("stuck", flush=True)
    time.sleep(1000)
'''


def test_the_second_signal_ends_a_run_that_is_stuck_and_json_has_its_result(place: Place, provider: Provider):
    place.write("tools.py", STUCK)
    provider.replies = [[Call("stuck")]]
    words = ("run", "--output", "json", "--tool", "tools:stuck", "--model", "openai:m", "hi")
    process = place.start(*words, env=provider.env)
    assert process.stderr is not None
    assert process.stderr.readline() == b"stuck\n", "what a tool prints goes to stderr"
    process.send_signal(signal.SIGINT)
    while process.poll() is None:  # signals within 0.3 s count as one
        try:
            process.wait(0.5)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    lines = [json.loads(line) for line in out.splitlines()]
    assert (lines[-1]["type"], lines[-1]["stop_reason"]) == ("result", "aborted")
    assert [line["type"] for line in lines].count("result") == 1


def test_the_second_ctrl_c_under_make_leaves_at_once(place: Place, provider: Provider):
    make = shutil.which("make")
    if make is None:
        pytest.skip("make is not installed")
    place.write("tools.py", STUCK)
    place.write("Makefile", f"run:\n\t@{sys.executable} -m swink --tool tools:stuck --model openai:m\n")
    provider.replies = [[Call("stuck")]]
    screen = Screen(place, command=[make, "run"], env=provider.env)
    screen.wait_for("> ")
    screen.type("go\n")
    screen.wait_for("stuck\n")
    screen.press_until_it_ends("\x03")
    modes = termios.tcgetattr(screen.fd)[3]
    assert modes & termios.ECHO
    assert modes & termios.ICANON
    screen.end()


@pytest.mark.parametrize(
    "line",
    [
        "run --model openai:m hi",
        "--version",
        *map(cell_of_more, ("models", "run --help", "completion bash")),
    ],
)
def test_a_full_disk_is_said_in_one_line(place: Place, provider: Provider, line: str):
    done = in_shell(place, f"{line} > /dev/full", provider.env)
    assert (done.code, done.err) == (1, "swink: error: cannot write the output: No space left on device\n")
    assert provider.requests == [], "found out before anything was paid for"


@pytest.mark.parametrize(
    "line",
    [
        "chat --model openai:m",
        *map(cell_of_more, ("run --model openai:m hi", "run --output json --model openai:m hi", "keys")),
    ],
)
def test_a_closed_standard_output_is_said_in_one_line(place: Place, provider: Provider, line: str):
    done = in_shell(place, f"{line} >&-", provider.env)
    assert (done.code, done.err) == (1, "swink: error: cannot write the output: it is closed\n")
    assert provider.requests == []


REDIRECTIONS = ["2>&-", "2>/dev/full", "<&-", "<&- 2>&-"]


@pytest.mark.more
@in_cells("redirection", REDIRECTIONS, every=2)
def test_a_run_works_without_its_other_streams(place: Place, provider: Provider, redirection: str):
    outputs = [("text", "Hello there."), ("json", "result")]
    if not MORE:  # every day each output without either stream
        outputs = [outputs[(REDIRECTIONS.index(redirection) // 2 + REDIRECTIONS.index(redirection)) % 2]]
    for output, last in outputs:
        done = in_shell(place, f"run --output {output} hi {redirection}", provider.env)
        assert done.code == 0
        assert last in done.out.splitlines()[-1]
    if MORE or redirection == REDIRECTIONS[0]:
        done = in_shell(place, f"run --model nobody:m hi {redirection}")
        assert done.code == 2


@pytest.mark.parametrize("output", ["text", cell_of_more("json")])
def test_a_reader_that_closes_the_pipe_ends_a_run_quietly(place: Place, provider: Provider, output: str):
    provider.replies = [["word "] * 20_000]
    process = place.start("run", "--output", output, "--model", "openai:m", "hi", env=provider.env)
    assert process.stdout is not None
    process.stdout.read(5)
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait(SECONDS) == 141
    process.stderr.close()


CHATTY = '''
import os, subprocess

def chatty() -> str:
    """Print in every way there is."""
    print("printed")
    os.write(1, b"written\\n")
    subprocess.run(["echo", "echoed"], check=True)
    return "done"

def odd() -> dict:
    """Return what JSON does not have."""
    raise ValueError("half a character: \\ud800")
'''


def test_what_tools_and_their_processes_print_is_not_between_the_lines_of_json(
    place: Place, provider: Provider
):
    place.write("tools.py", CHATTY)
    provider.replies = [[Call("chatty"), Call("odd")], ["Done."]]
    words = (
        "run",
        "--output",
        "json",
        "--tool",
        "tools:chatty",
        "--tool",
        "tools:odd",
        "--model",
        "openai:m",
        "hi",
    )
    done = place.swink(*words, env=provider.env)
    assert done.code == 0
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert (lines[-1]["type"], lines[-1]["text"]) == ("result", "Done.")
    assert {"printed", "written", "echoed"} <= {*done.err.splitlines()}


def test_a_deadline_ends_a_run_with_a_result(place: Place, provider: Provider):
    provider.replies = [["Once", STALL]]
    words = ("run", "--output", "json", "--deadline", "0.5", "--model", "openai:m", "hi")
    done = place.swink(*words, env=provider.env)
    assert done.code == 1
    assert json.loads(done.out.splitlines()[-1])["stop_reason"] == "aborted"
    assert "deadline" in done.err


def nested(levels: int) -> object:
    value: object = "end"
    for _ in range(levels):
        value = {"x": [value]}
    return value


class Rude:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "details",
    [
        nested(10_000),
        {1: "a", None: 2},
        "\ud800",
        {"\udfff": float("nan")},
        Rude(),
        {2**70},
        b"\xff",
        [object()],
    ],
    ids=["deep", "keys", "surrogate", "key of surrogates", "rude", "large", "bytes", "object"],
)
def test_whatever_a_tool_returns_is_one_line_of_json(details: object):
    event = ToolExecutionEnd("1", "tool", ToolResult((Text("\ud800 fine"),), details), False)
    line = encode_line(event)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert (
        json.loads(line)["type"]
        == json.loads(encode_line(ToolExecutionEnd("1", "t", ToolResult(()), False)))["type"]
    )


@pytest.mark.parametrize(
    ("command", "code", "shown"),
    [("models", 0, "LOCAL MODEL"), ("keys", 0, "PROVIDER"), ("serve", 2, "swink serve agent MODULE:FACTORY")],
)
def test_a_command_without_its_second_word_does_the_obvious(
    place: Place, command: str, code: int, shown: str
):
    done = place.swink(command)
    assert done.code == code
    assert shown in done.out + done.err
