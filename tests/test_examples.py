"""Every example and every program of the README runs, and says what it promises."""

from pathlib import Path

import pytest

from tests.pages import ROOT, blocks_of, run_program

SAYS = {
    "dependencies.py": "Grace: You have no order 7. (there is no order 7; the orders are [8])\n"
    "You work in a shop and talk to Grace.",
    "hello.py": "A light jacket will do",
    "policy.py": "search was asked for the same thing twice",
    "steering.py": "tool call cancelled: user requested steering interrupt",
    "streaming.py": "→ count {'upto': 3} 1 2 3 ✓",
    # How many growing values come before depends on how fast the reader is.
    "structured.py": "City(name='Tokyo', people=14000000)\nTokyo has 14,000,000 people",
}
README = ["A light jacket: 18 °C and clear.\n", "Sun all week.\nTokyo: 14,000,000\n"]


def test_every_example_has_its_expectation():
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == set(SAYS)


@pytest.mark.parametrize("name", SAYS)
def test_the_example_runs(name: str, tmp_path: Path):
    said, warned = run_program((ROOT / "examples" / name).read_text("utf-8"), tmp_path)
    assert SAYS[name] in said
    assert not warned


@pytest.mark.parametrize(("number", "says"), list(enumerate(README)))
def test_the_programs_of_the_readme_run(number: int, says: str, tmp_path: Path):
    programs = blocks_of("README.md")
    assert len(programs) == len(README)
    said, warned = run_program(programs[number], tmp_path)
    assert (said, warned) == (says, "")
