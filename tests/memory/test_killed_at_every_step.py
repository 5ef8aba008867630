"""Kill -9 at every step of a run: no tool that is not safe to repeat runs twice, and the run goes on elsewhere."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.counts import MORE


@pytest.mark.more
def test_a_run_that_is_killed_at_any_step_is_taken_up_and_no_tool_runs_twice(tmp_path: Path):
    script = Path(__file__).with_name("killing.py")
    places = "1000" if MORE else "4"
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path), places], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" steps\n") == 6
