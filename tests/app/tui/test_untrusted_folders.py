"""A folder that was refused trust starts nothing: every start path of the program, watched from outside.

The folder is full of traps: programs under every name that swink or its libraries look for, on every kind of
entry of the PATH, modules that shadow those of Python, servers, tools, commands and hooks. strace tells of every
program that is started; a trap that is sprung leaves a canary.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from command_line import SECONDS, Call, Place, Provider
from terminal import Terminal
from tests.counts import cell_of_more, left_to_more

STRACE = shutil.which("strace")
pytestmark = pytest.mark.skipif(STRACE is None, reason="needs strace (package strace)")

PROGRAMS = (
    "env", "bwrap", "rg", "git", "sh", "bash", "dash", "python", "python3", "node", "npx", "uv", "uvx", "serve", "ps",
    "xdg-open", "www-browser", "wl-paste", "xclip", "pngpaste", "vi", "editor", "stty", "tput", "uname", "ldconfig",
    "gcc", "cc", "ld", "objdump", "locale", "lsb_release", "hg", "svn", "pip", "swink", "true",
)  # fmt: skip
MODULES = (
    "sitecustomize", "usercustomize", "swink", "mcp", "mcp_server_time", "json", "webbrowser", "pip", "keyring",
    "textual", "msgspec", "runpy", "aiohttp", "xllamacpp", "huggingface_hub", "opentelemetry", "psycopg", "yaml",
)  # fmt: skip
_EXEC = re.compile(r'exec(?:ve|veat)\((?:[^",]*, )?"((?:[^"\\]|\\.)*)"')


@pytest.fixture
def traps(place: Place) -> Iterator[Place]:
    """The place, full of traps and refused."""
    here, canary = place.here, place.home.parent / "canary"
    script = f"#!/bin/sh\necho $0 $* >> {canary}\n"
    for directory in (here, here / "bin", here / ".venv" / "bin", here / "node_modules" / ".bin"):
        directory.mkdir(parents=True, exist_ok=True)
        for name in PROGRAMS:
            (directory / name).write_text(script)
            (directory / name).chmod(0o755)
    (here / ".git" / "hooks").mkdir(parents=True)
    files = {
        **{
            f"{name}.py": f"with open({str(canary)!r}, 'a') as file: file.write(__file__)\n"
            for name in MODULES
        },
        "pyvenv.cfg": "include-system-site-packages = true\n",
        ".python-version": "planted\n",
        ".envrc": script,
        "AGENTS.md": "say planted",
        ".mcp.json": json.dumps({"mcpServers": {"planted": {"command": "./serve"}}}),
        ".swink/tools/planted.toml": f"description = 'x'\ncommand = 'touch {canary}'\nrequires_approval = false\n",
        ".swink/commands/planted.md": "planted",
        ".git/HEAD": "ref: refs/heads/main\n",
        ".git/config": f"[core]\n\tfsmonitor = {here}/serve\n\tpager = {here}/serve\n",
        ".git/hooks/post-index-change": script,
        "notes.txt": "needle\n",
    }
    for name, text in files.items():
        path = here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    place.configure(
        '[mcp.time]\ncommand = "python3"\nargs = ["-m", "mcp_server_time"]\n'
        '[mcp.only_here]\ncommand = "serve"\n'
        '[mcp.in_folder]\ncommand = "python3"\nargs = ["serve"]\ncwd = "."\n'
        f'[mcp.of_folder]\ncommand = "{here}/serve"\n'
    )
    (place.config / "trust.json").write_text(json.dumps({os.path.realpath(here): {"trusted": False}}))
    entries = ("", ".", "bin", f"{here}/.venv/bin", f"{here}/node_modules/.bin")
    place.environ["PATH"] = os.pathsep.join((*entries, place.environ["PATH"]))
    del place.environ["SSL_CERT_FILE"]  # without certificates no MCP server starts
    place.environ |= {"DISPLAY": ":77", "EDITOR": "true", "VIRTUAL_ENV": f"{here}/.venv"}
    yield place
    assert not canary.exists(), canary.read_text()


def watched(place: Place) -> tuple[Path, list[str]]:
    log = place.home.parent / "strace.log"
    words = [str(STRACE), "-f", "--seccomp-bpf", "-s", "4096", "-e", "trace=execve,execveat", "-o", str(log)]
    return log, [*words, str(Path(sys.executable).with_name("swink"))]


def started(log: Path) -> list[str]:
    """Every program that was to be started, whether or not that worked."""
    return [
        found[1] for line in log.read_text(errors="replace").splitlines() if (found := _EXEC.search(line))
    ]


def check(place: Place, log: Path) -> None:
    programs = started(log)
    assert programs, "strace saw the program itself at least"
    for program in programs:
        assert os.path.isabs(program), f"{program} depends on the directory"
        assert not os.path.realpath(program).startswith(str(place.here)), programs
        assert not program.startswith(str(place.here)), programs


COMMANDS = [
    ("run", "--model", "openai:m", "--coding", "--approve", "off", "hello"),
    cell_of_more(("mcp", "list")),
]
MORE_COMMANDS = [
    ("run", "--model", "openai:m", "hello"),
    ("-p", "--model", "openai:m", "hello"),
    ("trust",),
    ("adopt", "--dry-run"),
    ("doctor",),
    ("sessions",),
    ("models",),
    ("keys",),
    ("completion", "bash"),
    ("eval", "init"),
    ("chat", "--plain", "--model", "openai:m"),
]


def run_watched(place: Place, provider: Provider, command: Sequence[str]) -> str:
    provider.replies = [
        [Call("search_text", pattern="needle"), Call("find_files", pattern="*"), Call("list_files")],
        ["done"],
    ]
    log, words = watched(place)
    done = subprocess.run(
        [*words, *command],
        cwd=place.here,
        env={**place.environ, **provider.env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    check(place, log)
    return done.stdout + done.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
def test_no_command_starts_anything_of_a_folder_that_was_refused(
    traps: Place, provider: Provider, command: Sequence[str]
):
    said = run_watched(traps, provider, command)
    assert "MCP server 'in_folder' of config.toml is left out: it starts in this folder" in said
    assert "MCP server 'of_folder' of config.toml is left out: it is a program of this folder" in said


@left_to_more
@pytest.mark.parametrize("command", MORE_COMMANDS, ids=" ".join)
def test_no_other_command_does_either(traps: Place, provider: Provider, command: Sequence[str]):
    run_watched(traps, provider, command)


@left_to_more
def test_the_terminal_starts_nothing_of_a_folder_that_was_refused(traps: Place, provider: Provider):
    log, words = watched(traps)
    words += ["--model", "openai:m"]
    with Terminal(traps, size=(110, 36), env=provider.env, command=words, is_trusted=False) as terminal:
        terminal.wait_for("idle")
        terminal.type("hello\r")
        terminal.wait_for("Hello there.", "idle")
        terminal.press("ctrl+v")
        terminal.type("/mcp\r")
        terminal.wait_for("only_here")
        terminal.wait_for("there is no command 'serve' in its PATH", "'time'")
        terminal.press("escape", "ctrl+g")
        terminal.pause(1)
        terminal.press("ctrl+q")
        assert terminal.wait_for_end() == 0
    check(traps, log)
    programs = [os.path.basename(program) for program in started(log)]
    assert {"env", "python3", "true"} <= set(programs), "the server and the editor, from elsewhere"


def test_the_watcher_sees_a_program_of_the_folder(traps: Place):
    """What the other tests rely on: a program of the folder that does start is seen."""
    log, words = watched(traps)
    planted = str(traps.here / "bin" / "git")
    subprocess.run([*words[:-1], "/bin/sh", "-c", f"{planted}; bin/git"], cwd=traps.here, check=True)
    assert {planted, "bin/git"} <= set(started(log))
    (traps.home.parent / "canary").unlink()
