"""Other systems: what works without the modules of POSIX, what is said of the rest, and on macOS without its sandbox.

The table is docs/reference/platforms.md.
"""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from tests.answering import TEXT, answering_model
from tests.counts import left_to_more
from tests.pages import ROOT

from swink.tools import workers
from swink.tools.coding import process
from swink.tools.coding.process import Launch

FOREIGN = Path(__file__).with_name("foreign.py")
PAGE = (ROOT / "docs/reference/platforms.md").read_text("utf-8")
COMMAND = "import sys\nfrom swink.app.cli import main\nsys.exit(main(sys.argv[1:]))\n"
IMPORTS = "import pkgutil, sys, swink, {names}\nprint(sys.platform)\n"
LIBRARY = (
    "eval", "events", "local", "mcp", "memory", "messages", "models", "policies", "providers", "serve",
    "stream", "teams", "telemetry", "testing", "tools",
)  # fmt: skip
SESSIONS = """
import asyncio
from swink import Agent, ToolCall, tool
from swink.memory import JsonlStore, SqliteStore
from swink.testing import ScriptedModel

@tool
def double(number: int) -> int:
    return 2 * number

async def main():
    for store in (JsonlStore("sessions"), SqliteStore("sessions.db")):
        async with store:
            session = await store.create()
            model = ScriptedModel([ToolCall("1", "double", {"number": 21}), "done"])
            await Agent("test:m", stream_fn=model, tools=[double], session=session).run("hi")
            print([message.text for message in (await store.open(session.id)).messages])

asyncio.run(main())
"""
TOOLS = """
import asyncio
from swink import Agent, ToolCall
from swink.testing import ScriptedModel
from swink.tools import coding_tools

async def main():
    calls = [ToolCall("1", "bash", {"command": "ls"}), ToolCall("2", "write_file", {"path": "a", "content": "b"})]
    model = ScriptedModel([calls, "done"])
    result = await Agent("test:m", stream_fn=model, tools=coding_tools("."), approve=lambda call: True).run("hi")
    for message in result.messages[2:4]:
        print(message.text)

asyncio.run(main())
"""
HOOK = """
import asyncio
from pathlib import Path
from swink import Agent, ToolCall, tool
from swink.policies import Hook, ShellHook
from swink.policies.hooks import HookGroup
from swink.testing import ScriptedModel

@tool
def double(number: int) -> int:
    "Twice."
    return 2 * number

async def main():
    model = ScriptedModel([ToolCall("1", "double", {"number": 21}), "done"])
    hook = ShellHook(HookGroup((Hook("PreToolUse", "exit 0", ""),), Path(".")))
    result = await Agent("test:m", stream_fn=model, tools=[double], policies=[hook]).run("hi")
    print(result.messages[2].text)

asyncio.run(main())
"""
AGENTS = """
from swink import Agent
from swink.testing import ScriptedModel

def make(request):
    return Agent("test:m", stream_fn=ScriptedModel(["Hello."]))
"""
SAID = {
    "run": (["run", "-m", "openai:gpt-5-mini", "hi"], TEXT),
    "sessions": (["sessions", "list", "--json"], ""),
    "models": (["models", "show", "openai:gpt-5-mini"], "openai:gpt-5-mini"),
    "keys": (["keys", "list"], "OPENAI_API_KEY"),
    "docs": (["docs"], "reference/platforms"),
}
"""Commands of the table, how each is tried, and something that it prints."""


def command_of(
    directory: Path, code: str, *arguments: str, system: str = "win32"
) -> tuple[list[str], dict[str, str]]:
    """The command line that runs a program as on Windows, and its variables, with a home of its own."""
    program = directory / "program.py"
    program.write_text(code, "utf-8")
    env = {**os.environ, "HOME": str(directory), "LOCALAPPDATA": str(directory), "APPDATA": str(directory)}
    return [sys.executable, str(FOREIGN), system, str(program), *arguments], env


def run(code: str, directory: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program as on Windows, in a home of its own."""
    command, env = command_of(directory, code, *arguments)
    return subprocess.run(
        command,
        cwd=directory,
        env={**env, **variables},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )


def run_as_on_macos(code: str, directory: Path) -> str:
    """What a program prints as on macOS; there it must not complain."""
    command, env = command_of(directory, code, system="darwin")
    done = subprocess.run(command, cwd=directory, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def quoted() -> list[str]:
    """The sentences that the page says are said."""
    return re.findall(r"^> (.*)$", PAGE, re.MULTILINE)


@left_to_more
def test_the_library_is_imported_without_the_modules_of_posix(tmp_path: Path):
    done = run(IMPORTS.format(names=", ".join(f"swink.{name}" for name in LIBRARY)), tmp_path)
    assert (done.stdout, done.stderr) == ("win32\n", "")


def test_an_agent_with_a_tool_keeps_its_sessions_without_them(tmp_path: Path):
    done = run(SESSIONS, tmp_path)
    assert done.stdout == "['hi', '', '42', 'done']\n" * 2, done.stderr


def test_the_command_tells_its_help_without_them(tmp_path: Path):
    done = run(COMMAND, tmp_path, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: swink")


@left_to_more
@pytest.mark.parametrize("name", SAID)
def test_the_command_works_without_them(name: str, tmp_path: Path):
    words, said = SAID[name]
    with answering_model() as model:
        done = run(COMMAND, tmp_path, *words, **model)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout


@left_to_more
def test_a_suite_is_evaluated_without_them(tmp_path: Path):
    assert run(COMMAND, tmp_path, "eval", "init").returncode == 0
    done = run(COMMAND, tmp_path, "eval", "run")
    assert "3 cases: 3 passed" in done.stdout, done.stderr


@left_to_more
def test_an_agent_is_served_without_them(tmp_path: Path):
    (tmp_path / "agents.py").write_text(AGENTS, "utf-8")
    command, env = command_of(tmp_path, COMMAND, "serve", "agent", "agents:make", "--port", "0")
    with subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        with urlopen(f"{address}/conversations") as answer:
            assert answer.status == 200
        server.kill()


def test_the_commands_that_are_tried_are_those_of_the_table():
    (row,) = re.findall(r"^\| (`swink run`.*?) \| yes \| yes \| yes \| yes \|$", PAGE, re.MULTILINE)
    assert {name.removeprefix("swink ") for name in re.findall(r"`(.*?)`", row)} == {
        *SAID,
        "eval",
        "serve agent",
    }


async def test_a_tool_in_a_process_of_its_own_ends_alone_where_there_is_no_keeper(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(workers, "_run_kept", workers._run)
    called: Any = workers.run_in_process("tests.worker_tools", "add", {"a": 1})
    assert await called == 3
    ended: list[bytes] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected.set()
        ended.append(await reader.read())
        gone.set()
        writer.close()

    connected, gone = asyncio.Event(), asyncio.Event()
    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        holding = workers.run_in_process("tests.worker_tools", "wait", {"port": port})
        task = asyncio.create_task(holding)
        await connected.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(60):
            await gone.wait()


def test_the_library_is_imported_as_on_macos(tmp_path: Path):
    names = ", ".join(f"swink.{name}" for name in LIBRARY)
    assert run_as_on_macos(IMPORTS.format(names=names), tmp_path) == "darwin\n"


def test_an_agent_with_a_tool_keeps_its_sessions_as_on_macos(tmp_path: Path):
    assert run_as_on_macos(SESSIONS, tmp_path) == "['hi', '', '42', 'done']\n" * 2


def test_without_seatbelt_a_command_is_refused_as_on_macos(tmp_path: Path):
    assert "cannot be had here, so the command was not run" in run_as_on_macos(TOOLS, tmp_path)
    assert (tmp_path / "a").read_text("utf-8") == "b", "file tools need no sandbox there"


def test_what_the_model_may_not_do_is_refused_in_one_sentence(tmp_path: Path):
    of_command, of_file = run(TOOLS, tmp_path).stdout.splitlines()
    assert any(sentence in of_command for sentence in quoted()), of_command
    assert of_file in quoted()
    assert not (tmp_path / "a").exists()


def test_a_hook_that_cannot_be_asked_lets_no_call_run(tmp_path: Path):
    said = run(HOOK, tmp_path).stdout.strip()
    assert said.startswith("tool call not run")
    assert any(said.endswith(sentence) for sentence in quoted()), said


async def test_a_system_that_is_not_posix_starts_no_command(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(process, "_POSIX", False)
    with pytest.raises(process.CannotStart) as refused:
        await process.run(Launch(("true",), "/", {}), lambda data: None)
    assert str(refused.value) in quoted()


@left_to_more
def test_the_screen_says_why_it_is_the_chat_line_by_line(tmp_path: Path):
    code = "import argparse, sys\nfrom swink.app.cli.screen import why_plain\n"
    code += "sys.stdin.isatty = sys.stdout.isatty = lambda: True\n"
    code += "sys.stderr.write(why_plain(argparse.Namespace(plain=False)))\n"
    assert run(code, tmp_path).stderr in quoted()


def test_the_page_quotes_what_the_source_says():
    places = [ROOT / "src/swink/app/cli", ROOT / "src/swink/tools/coding"]
    source = "".join(path.read_text("utf-8") for place in places for path in place.glob("*.py"))
    source = re.sub(r'"\s+f?"', "", source)
    missing = [sentence for sentence in quoted() if sentence not in source]
    assert not missing, missing
