"""docs/models/local.md: its programs run as they stand, on the real model."""

from pathlib import Path

import pytest
from tests.pages import blocks_of, run_program

BLOCKS = blocks_of("docs/models/local.md")
SAYS = ["Paris", "smollm2-135m", "Ready(", "/v1"]


def test_every_program_has_its_expectation():
    assert len(BLOCKS) == len(SAYS)


@pytest.mark.parametrize("number", range(len(SAYS)))
def test_the_program_runs(number: int, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cache = tmp_path / "cache"
    (cache / "models").mkdir(parents=True)
    (cache / "models" / weights.name).symlink_to(weights)  # one program deletes them
    monkeypatch.setenv("SWINK_CACHE_DIR", str(cache))
    said, warned = run_program(BLOCKS[number], tmp_path)
    assert SAYS[number] in said
    assert not warned
