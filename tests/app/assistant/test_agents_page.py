"""The program of docs/coding-agent/agents.md does what the page says."""

from pathlib import Path

from tests.pages import blocks_of, run_program


def test_the_program_of_the_page(tmp_path: Path):
    (program,) = blocks_of("docs/coding-agent/agents.md")
    assert run_program(program, tmp_path) == ("There is a bug in line 1.\n['read_file']\n", "")
