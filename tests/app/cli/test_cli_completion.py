"""Shell completion: made from the parser, tried in the shells that are here."""

import os
import pty
import select
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.counts import left_to_more

from swink.app.cli.commands import make_parser
from swink.app.cli.completion import _bash, _fish, _zsh, walk

COMMANDS = list(walk(make_parser()))


def needs(shell: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not here")


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], Path]:
    def write(shell: str) -> Path:
        path = tmp_path / f"swink.{shell}"
        path.write_text({"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](COMMANDS), "utf-8")
        return path

    return write


@pytest.mark.parametrize("make", [_bash, _zsh, _fish])
def test_every_command_and_option_is_in_the_script(make: Callable[..., str]):
    text = make(COMMANDS)
    for command in COMMANDS:
        assert all(word in text for word, _ in command.words)
        assert all(name.lstrip("-") in text for option in command.options for name in option.names)


def test_no_option_that_takes_a_key_exists():
    found = {name for command in COMMANDS for option in command.options for name in option.names}
    assert [name for name in found if "key" in name] == ["--key-env"], "which takes the name of a variable"


CASES = [
    ("swink mo", ["models"]),
    ("swink models ", ["list", "pull", "rm", "show", "update"]),
    ("swink keys set anth", ["anthropic"]),
    ("swink run --output ", ["json", "text"]),
    ("swink run --appr", ["--approve"]),
    ("swink run --model openai:gpt-4o-mi", ["openai:gpt-4o-mini", "openai:gpt-4o-mini-audio-preview"]),
    ("swink sessions ex", ["export"]),
    ("swink sessions export --format ", ["html", "json", "md"]),
    ("swink completion ", ["bash", "fish", "zsh"]),
]


@needs("bash")
def test_bash_completes(script: Callable[[str], Path]):
    lines = [f"source {shlex.quote(str(script('bash')))}"]
    for line, _ in CASES:
        lines.append(
            f'COMP_LINE="{line}"; COMP_POINT=${{#COMP_LINE}}; COMPREPLY=(); _swink; echo "${{COMPREPLY[*]}}"'
        )
    done = subprocess.run(
        ["bash", "--norc", "-c", "\n".join(lines)], capture_output=True, text=True, timeout=30
    )
    assert done.stderr == ""
    for (line, wanted), got in zip(CASES, done.stdout.splitlines(), strict=True):
        # readline has already taken what stands before a colon.
        expected = [name.partition(":")[2] or name for name in wanted]
        assert [
            word for word in sorted(got.split()) if not word.startswith("-") or line.endswith("--appr")
        ] == expected, line


@needs("fish")
def test_fish_completes(script: Callable[[str], Path], tmp_path: Path):
    lines = [
        f"source {shlex.quote(str(script('fish')))}",
        *(f"echo '== '; complete -C '{line}'" for line, _ in CASES),
    ]
    done = subprocess.run(
        ["fish", "--no-config", "-c", "\n".join(lines)],
        capture_output=True,
        text=True,
        timeout=30,
        env=_env(tmp_path),
    )
    assert done.stderr == ""
    answers = done.stdout.split("== \n")[1:]
    for (line, wanted), got in zip(CASES, answers, strict=True):
        assert sorted(answer.split("\t")[0] for answer in got.splitlines()) == wanted, line


@left_to_more
@needs("zsh")
def test_zsh_completes(script: Callable[[str], Path], tmp_path: Path):
    path = script("zsh")
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe("zsh", ["zsh", "-f", "-i"], _env(tmp_path))
    try:
        os.write(
            terminal,
            f"autoload -Uz compinit; compinit -u -D; source {shlex.quote(str(path))}; echo rea''dy\n".encode(),
        )
        _read_until(terminal, "ready\r")
        for typed, completed in (
            ("swink mo", "swink models "),
            ("swink run --model openai:gpt-5-mi", "openai:gpt-5-mini "),
        ):
            os.write(terminal, f"{typed}\t".encode())
            _read_until(terminal, completed)
            os.write(terminal, b"\x15")
        os.write(terminal, b"exit\n")
        while _read(terminal):
            pass
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)


def _env(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "dumb", "PS1": "% ", "LANG": "C.UTF-8"}


def _read_until(terminal: int, wanted: str) -> None:
    shown = ""
    while wanted not in shown:
        read = _read(terminal)
        assert read, shown
        shown += read


def _read(terminal: int) -> str:
    if not select.select([terminal], [], [], 30)[0]:
        return ""
    try:
        return os.read(terminal, 4096).decode("utf-8", "replace")
    except OSError:  # the shell is gone
        return ""
