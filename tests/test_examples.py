"""Every example runs, and says what it promises."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SAYS = {
    "hello.py": "A light jacket will do",
    "policy.py": "search was asked for the same thing twice",
    "steering.py": "tool call cancelled: user requested steering interrupt",
    "streaming.py": "→ count {'upto': 3} 1 2 3 ✓",
    "structured.py": "Tokyo has 14,000,000 people",
}


def run(script: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


def test_every_example_has_its_expectation():
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == set(SAYS)


@pytest.mark.parametrize("name", SAYS)
def test_the_example_runs(name: str):
    assert SAYS[name] in run(ROOT / "examples" / name)


def test_the_hello_of_the_readme_runs(tmp_path: Path):
    code = (ROOT / "README.md").read_text("utf-8").split("```python\n")[1].split("```")[0]
    script = tmp_path / "hello.py"
    script.write_text(code, "utf-8")
    assert "18 °C" in run(script)
