"""The pages for people: their programs, and how the tests run them."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks_of(page: str) -> list[str]:
    """The Python programs of a page."""
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)


def run_program(code: str, directory: Path) -> tuple[str, str]:
    """Run a program in a directory of its own, without keys, as it stands; what it printed, and its stderr."""
    script = directory / "program.py"
    script.write_text(code, "utf-8")
    secrets = ("_API_KEY", "_TOKEN", "_BASE_URL")
    kept = {name: value for name, value in os.environ.items() if not name.endswith(secrets)}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=100,
        cwd=directory,
        env={**kept, "PYTHONIOENCODING": "utf-8", "XDG_CONFIG_HOME": str(directory / "config")},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr
