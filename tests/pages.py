"""The pages for people: their programs, and how the tests run them."""

import os
import re
from pathlib import Path
from tempfile import TemporaryFile

from tests.warm import start_of, warm_process

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks_of(page: str) -> list[str]:
    """The Python programs of a page."""
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)


def run_program(code: str, directory: Path) -> tuple[str, str]:
    """Run a program in a directory of its own, without keys, as it stands; what it printed, and its stderr."""
    script = directory / "program.py"
    script.write_text(code, "utf-8")
    secrets = ("_API_KEY", "_TOKEN", "_BASE_URL")
    kept = {name: value for name, value in os.environ.items() if not name.endswith(secrets)}
    own = {
        "PYTHONIOENCODING": "utf-8",
        "PYTHONWARNINGS": "error",
        "XDG_CONFIG_HOME": str(directory / "config"),
    }
    env = {**kept, **own}
    with (
        open(os.devnull) as nothing,
        TemporaryFile("w+", encoding="utf-8") as out,
        TemporaryFile("w+", encoding="utf-8") as err,
    ):
        code = warm_process(start_of(env), ()).run((), (nothing, out, err), directory, env, 100, str(script))
        out.seek(0)
        err.seek(0)
        printed, complained = out.read(), err.read()
    assert code == 0, complained
    return printed, complained
