"""The pages for people: their programs, and how the tests run them."""

import os
import re
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

from tests.warm import start_of, warm_process

ROOT = Path(__file__).parents[1]
PICTURES_INTO = (ROOT / into) if (into := os.environ.get("PICTURES_INTO")) else None
"""Where tests put pictures of what people see: `PICTURES_INTO=docs/pictures` keeps them, once they were looked at."""
PAGES = [
    *(
        ROOT / page
        for page in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md")
    ),
    *sorted((ROOT / "docs").rglob("*.md")),
]


FENCE = re.compile(
    r"""^```(?P<language>\w+)(?: title="(?P<file>[\w.]+)")?\n(?P<code>.*?)^```\n(?:\n```text\n(?P<said>.*?)^```$)?""",
    re.DOTALL | re.MULTILINE,
)
"""A block, with the file that it is saved as and, of a program, what it prints, if the page says that."""


STEP = re.compile(r"[1-9]-")
"""How the name of a page of a tutorial begins."""


class Block(NamedTuple):
    """A program of a page, and the files that stand before it: on the page, or in an earlier step of a tutorial."""

    code: str
    said: str | None
    files: dict[str, str]


def files_before(page: str) -> dict[str, str]:
    """The files of the earlier steps of a page whose name begins with the number of its step."""
    path = ROOT / page
    steps = sorted(path.parent.glob("[1-9]-*.md")) if STEP.match(path.name) else []
    earlier = [step.read_text("utf-8") for step in steps if step.name < path.name]
    return {name: code for text in earlier for name, code in files_of(text).items()}


def programs_of(page: str) -> list[Block]:
    """The Python programs of a page, each as a reader pastes it who did the steps before."""
    files = files_before(page)
    blocks: list[Block] = []
    for match in FENCE.finditer((ROOT / page).read_text("utf-8")):
        if match["language"] == "python":
            blocks.append(Block(match["code"], match["said"], dict(files)))
        if match["file"]:
            files[match["file"]] = match["code"]
    return blocks


def files_of(text: str) -> dict[str, str]:
    """The files that a page titles."""
    return {match["file"]: match["code"] for match in FENCE.finditer(text) if match["file"]}


def matches(shown: str, printed: str) -> bool:
    """Whether a program printed what a page shows, on which `…` stands for anything."""
    return re.fullmatch(".*".join(map(re.escape, shown.split("…"))), printed, re.DOTALL) is not None


def is_key(variable: str) -> bool:
    """Whether a variable is a key, or leads to a model of this machine's user."""
    return variable.endswith(("_API_KEY", "_TOKEN", "_BASE_URL"))


def run_block(block: Block, directory: Path, **variables: str) -> tuple[str, str]:
    """Run a program of a page in a directory with the files that it needs, and a home of its own."""
    for name, code in block.files.items():
        (directory / name).write_text(code, "utf-8")
    return run_program(block.code, directory, HOME=str(directory), **variables)


def run_program(code: str, directory: Path, **variables: str) -> tuple[str, str]:
    """Run a program in a directory of its own, without keys, as it stands; what it printed, and its stderr."""
    script = directory / "program.py"
    script.write_text(code, "utf-8")
    kept = {name: value for name, value in os.environ.items() if not is_key(name)}
    own = {
        "PYTHONIOENCODING": "utf-8",
        "PYTHONWARNINGS": "error",
        "XDG_CONFIG_HOME": str(directory / "config"),
    }
    env = {**kept, **own, **variables}
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
