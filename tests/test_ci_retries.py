"""What CI makes of tests that fail: `.ci/again` runs the few once more, and passes only what passes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.counts import MORE

ROOT = Path(__file__).parents[1]
ONCE = """
import pytest, os

@pytest.mark.parametrize("odd", ["a $HOME 'b' [c]"])
def test_once(odd):
    path = __file__ + ".ran"
    assert os.path.exists(path) or not open(path, "w")

def test_other():
    with open(__file__ + ".others", "a") as others:
        others.write("ran ")
"""
PLANTED = {
    "passes": ("def test_fine(): pass", 0, "1 passed", "ci:"),
    "passes when run alone": (
        ONCE,
        0,
        "unsteady: tests/test_planted.py::test_once[a $HOME 'b' [c]], passed",
        "twice",
    ),
    "fails twice": ("def test_bad(): assert 0", 1, "ci: failed twice", "unsteady"),
    "ends its process": ("def test_bad(): __import__('os')._exit(3)", 1, "ci: failed twice", "unsteady"),
    "hangs": ("def test_bad(): __import__('time').sleep(600)", 1, "ci: failed twice", "unsteady"),
    "is not collected": ("import no_such_module", 1, "did not come to its end", "once more"),
    "fails six times": (
        "import pytest\n@pytest.mark.parametrize('n', range(6))\ndef test_bad(n): assert 0",
        1,
        "ci: 6 tests",
        "once more",
    ),
}


@pytest.mark.more
@pytest.mark.timeout(900)
@pytest.mark.parametrize("what", PLANTED if MORE else ["fails six times"])
def test_ci_passes_exactly_what_passes_in_the_end(what: str, tmp_path: Path):
    planted, code, says, never = PLANTED[what]
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "__init__.py").touch()
    (tmp_path / "tests" / "failures.py").write_bytes((ROOT / "tests" / "failures.py").read_bytes())
    (tmp_path / "tests" / "test_planted.py").write_text(planted + "\n")
    limit = 5 if what == "hangs" else 60
    (tmp_path / "Makefile").write_text(
        f"test:\n\t{sys.executable} -m pytest -q -p xdist -p pytest_timeout -n 1 --timeout {limit} $(TESTS)\n"
    )
    ours = ("PYTEST_", "MAKE", "MFLAGS", "TESTS", "WORKERS")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    done = subprocess.run(
        [sys.executable, ROOT / ".ci" / "again", "test"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert says in done.stdout
    assert never not in done.stdout
    others = tmp_path / "tests" / "test_planted.py.others"
    assert not others.exists() or others.read_text() == "ran ", "only what failed is run again"
