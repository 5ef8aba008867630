"""docs/library/tools-at-scale.md: its programs run."""

from pathlib import Path

from tests.pages import blocks_of, run_program

PROGRAMS = blocks_of("docs/library/tools-at-scale.md")


def test_the_program_with_a_deferred_tool_runs(tmp_path: Path):
    printed, complained = run_program(PROGRAMS[0], tmp_path)
    assert complained == ""
    assert printed.splitlines() == [
        "['find_tools', 'call_tool']",
        'find_tools: {"name":"create_invoice","description":"',
        "create_invoice: invoice for Ada: 9.00",
    ]


def test_the_program_with_tool_sets_runs(tmp_path: Path):
    assert run_program(PROGRAMS[1], tmp_path) == ("['x_plus']\n", "")
