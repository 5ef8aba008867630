"""Every Python program of every page runs as it is pasted into a file, in an empty directory with an empty home.

What a page shows below a program, as a block of `text`, is what the program prints; `…` stands for anything. A program
that names a real model asks one on loopback, through the variable that names its address; what it prints is not compared.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from swink.app.assistant.settings import load_settings
from swink.eval import load_cases
from swink.system.places import config_dir
from tests.answering import answering_model
from tests.counts import cell_of_more
from tests.local.conftest import weights as weights
from tests.pages import FENCE, PAGES, ROOT, Block, files_before, files_of, matches, programs_of, run_block
from tests.postgres import postgres as postgres

REAL = re.compile(r"\"(?:anthropic|openai):")
SLOW = re.compile(r"^import ray\b|^from dbos |\bMcpServers\(\[time|^from swink\.serve\.mcp ", re.MULTILINE)
"""Imports that take seconds: `make test-more` runs these programs."""
LOCAL = re.compile(r"local:|swink\.local|serve_model")
"""Programs that load a model, or package weights."""
TOLD = ("the run failed: ", "the run was stopped before its answer: ", "audit log ")
"""What swink logs where a program means a run to end like that, or tries a guard of a log."""
PROGRAMS = {
    f"{page.relative_to(ROOT)}:{number}": block
    for page in PAGES
    for number, block in enumerate(programs_of(str(page.relative_to(ROOT))), 1)
}


def is_slow(block: Block) -> bool:
    return bool(SLOW.search(block.code) or LOCAL.search(block.code) or "PostgresStore" in block.code)


def every_day() -> set[str]:
    """Of every page the first program that is not slow, and each third of the others; the rest is of `make test-more`."""
    first: dict[str, str] = {}
    for name, block in PROGRAMS.items():
        if not is_slow(block):
            first.setdefault(name.rpartition(":")[0], name)
    others = [name for name, block in PROGRAMS.items() if not is_slow(block) and name not in first.values()]
    return {*first.values(), *others[::3]}


DAILY = every_day()


@pytest.fixture(scope="module")
def model() -> Iterator[dict[str, str]]:
    with answering_model() as variables:
        yield variables


def is_real(block: Block) -> bool:
    """Whether a program names a real model, itself or in a file before it."""
    return any(REAL.search(code) for code in (block.code, *block.files.values()))


def variables_of(block: Block, directory: Path, request: pytest.FixtureRequest) -> dict[str, str]:
    """What a program is given: a model, weights or a database, if it names one; no key where it shows that."""
    given: dict[str, str] = {}
    if is_real(block) and "MissingKey" not in block.code:
        given |= request.getfixturevalue("model")
    if LOCAL.search(block.code):
        weights: Path = request.getfixturevalue("weights")
        (directory / "cache" / "models").mkdir(parents=True)
        (directory / "cache" / "models" / weights.name).symlink_to(weights)  # one program deletes them
        given["SWINK_CACHE_DIR"] = str(directory / "cache")
    if "PostgresStore" in block.code:
        given["DATABASE_URL"] = request.getfixturevalue("postgres")
    return given


@pytest.mark.parametrize("name", [name if name in DAILY else cell_of_more(name) for name in PROGRAMS])
def test_the_program_runs_as_pasted(name: str, tmp_path: Path, request: pytest.FixtureRequest):
    block = PROGRAMS[name]
    directory = tmp_path / "pasted"
    directory.mkdir()
    said, complained = run_block(block, directory, **variables_of(block, tmp_path, request))
    assert not [line for line in complained.splitlines() if not line.startswith(TOLD)]
    if block.said is not None and not is_real(block):
        assert said == block.said or matches(block.said, said)


def test_every_block_that_looks_like_python_is_run():
    for page in PAGES:
        fences = re.findall(r"^```(?:py|python)\b.*$", page.read_text("utf-8"), re.MULTILINE)
        runs = sum(name.startswith(f"{page.relative_to(ROOT)}:") for name in PROGRAMS)
        assert len(fences) == runs, page.name


def test_a_step_of_the_tutorial_has_the_files_of_the_steps_before_it_alone():
    assert all(block.files == {} for block in programs_of("docs/tutorial/1-hello.md"))
    assert {*programs_of("docs/tutorial/3-output.md")[0].files} == {"shop.py"}
    assert {"shop.py", "advice.py", "service.py"} <= {*programs_of("docs/tutorial/7-evals.md")[0].files}


STEPS = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/tutorial/[1-9]-*.md"))


@pytest.mark.parametrize("page", STEPS)
def test_a_step_says_at_its_top_which_earlier_files_it_uses(page: str):
    text = (ROOT / page).read_text("utf-8")
    top, _, rest = text.partition("```")
    earlier = {name.removesuffix(".py") for name in files_before(page)}
    used = {f"{name}.py" for name in re.findall(r"^from (\w+) import", rest, re.MULTILINE) if name in earlier}
    assert [name for name in sorted(used - {*files_of(text)}) if f"`{name}`" not in top] == []
    assert used or "needs no other file" in top


def blocks_of(language: str, under: str = "") -> list[Any]:
    """The blocks of configuration on the pages, each by its page."""
    pages = [page for page in PAGES if str(page.relative_to(ROOT)).startswith(under)]
    return [
        pytest.param(match["code"], id=str(page.relative_to(ROOT)))
        for page in pages
        for match in FENCE.finditer(page.read_text("utf-8"))
        if match["language"] == language
    ]


@pytest.mark.parametrize("code", blocks_of("json"))
def test_json_can_be_read_as_a_whole_or_line_by_line(code: str):
    try:
        json.loads(code)
    except ValueError:
        assert all(isinstance(json.loads(line), dict) for line in code.splitlines())


@pytest.mark.parametrize(
    "code", [*blocks_of("toml", "docs/coding-agent"), *blocks_of("toml", "docs/reference")]
)
def test_settings_of_a_page_are_understood(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    file = config_dir() / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(code, "utf-8")
    assert load_settings().problems == ()
    file.write_text(f"aprove = 1\n{code}", "utf-8")
    assert load_settings().problems


@pytest.mark.parametrize("code", blocks_of("yaml"))
def test_cases_of_a_page_can_be_loaded(code: str, tmp_path: Path):
    (tmp_path / "cases.yaml").write_text(code, "utf-8")
    if "\ncases:" in f"\n{code}":
        assert load_cases(tmp_path / "cases.yaml")
    else:
        assert isinstance(yaml.safe_load(code), dict)
