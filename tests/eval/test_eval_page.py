"""The page on evaluation: its programs run as they stand."""

from pathlib import Path

import pytest
from tests.pages import blocks_of, run_program

BLOCKS = blocks_of("docs/evaluation/eval.md")


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_the_programs_of_the_page_run(number: int, tmp_path: Path):
    run_program(BLOCKS[number], tmp_path)
