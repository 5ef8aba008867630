"""Every program of the guide runs and says what it should."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BLOCKS = (Path(__file__).parent.parent / "docs" / "guide.md").read_text("utf-8").split("```python\n")[1:]
SAYS = [
    "Back again.\n3 requests",
    "tool_result only https, please\ntool_result {\"bytes\":1024}\nassistant Got one of two.\n{'downloads': 1}",
    "tool_result deleted tmp/a\ntool_result tool call rejected: src/b is not temporary",
    "City(name='Tokyo', people=14)\nstructured_output_failed",
    "paused\nBoth steps taken.",
    "from the fallback second\nerror auth test:",
]


@pytest.mark.parametrize("number", range(len(SAYS)))
def test_the_program_runs(number: int, tmp_path: Path):
    assert len(BLOCKS) == len(SAYS)
    script = tmp_path / "program.py"
    script.write_text(BLOCKS[number].split("```")[0], "utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
    assert done.returncode == 0, done.stderr
    assert SAYS[number] in done.stdout
