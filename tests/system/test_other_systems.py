"""Without the modules of POSIX: what works there, and what is said of the rest. The table is docs/reference/platforms.md."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.counts import left_to_more
from tests.pages import ROOT

from swink.tools.coding import process
from swink.tools.coding.process import Launch

AS_ON_WINDOWS = Path(__file__).with_name("windowslike.py")
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
    model = ScriptedModel([ToolCall("1", "bash", {"command": "ls"}), "done"])
    result = await Agent("test:m", stream_fn=model, tools=coding_tools("."), approve=lambda call: True).run("hi")
    print(result.messages[2].text)

asyncio.run(main())
"""


def run(code: str, directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program as on Windows, in a home of its own."""
    program = directory / "program.py"
    program.write_text(code, "utf-8")
    env = {**os.environ, "HOME": str(directory), "LOCALAPPDATA": str(directory), "APPDATA": str(directory)}
    command = [sys.executable, str(AS_ON_WINDOWS), str(program), *arguments]
    return subprocess.run(
        command, cwd=directory, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


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


def test_a_command_of_the_model_is_refused_in_one_sentence(tmp_path: Path):
    said = run(TOOLS, tmp_path).stdout
    assert any(sentence in said for sentence in quoted()), said


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
