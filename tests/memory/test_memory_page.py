"""The programs of docs/library/memory.md run as they stand."""

from pathlib import Path

import pytest
from tests.pages import blocks_of, run_program

PROGRAMS = blocks_of("docs/library/memory.md")


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_the_programs_of_memory_md_run_as_they_stand(number: int, tmp_path: Path):
    run_program(PROGRAMS[number], tmp_path)
