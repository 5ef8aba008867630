"""How long the tools take: functions for a benchmark to call."""

import random
import time
from pathlib import Path

from swink.system.programs import Command, environment
from swink.tools.coding.process import run
from swink.tools.coding.sandbox import Level, Sandbox
from swink.tools.coding.search import Query, Search
from swink.tools.coding.workspace import Workspace

_WORDS = (
    "value", "result", "index", "return", "import", "class", "function", "buffer", "handle", "context",
    "stream", "message",
)  # fmt: skip


async def time_command(root: str | Path, level: Level, *, repeat: int = 10) -> float:
    """The fastest of some runs of `true` at a sandbox level, with the level already probed."""
    box = Sandbox(root, level)
    await box.backend()
    best = float("inf")
    for _ in range(repeat):
        started = time.perf_counter()
        await run(await box.launch(["/bin/true"]), lambda data: None)
        best = min(best, time.perf_counter() - started)
    return best


def make_tree(root: str | Path, files: int = 50_000, *, needles: int = 50) -> None:
    """Make nested source files of twenty lines; `needles` of them have a line with `needle_here`."""
    chance = random.Random(files)
    top = Path(root)
    top.mkdir(parents=True, exist_ok=True)
    (top / ".gitignore").write_text("*.log\nbuild/\n!keep.log\n/vendor/*\n__pycache__/\n")
    marked = set(chance.sample(range(files), min(needles, files)))
    for number in range(files):
        directory = top / f"package{number // 2500}" / f"module{number // 50 % 50}"
        if number % 50 == 0:
            directory.mkdir(parents=True, exist_ok=True)
        lines = [" ".join(chance.choices(_WORDS, k=6)) for _ in range(20)]
        if number in marked:
            lines[10] = "    needle_here = 1"
        (directory / f"file{number}.py").write_text("\n".join(lines) + "\n")


def time_search(root: str | Path, pattern: str, ripgrep: str | None) -> tuple[float, int]:
    """Seconds and matches of our search, with ripgrep (its path) or without (None)."""
    started = time.perf_counter()
    rows = list(Search(Workspace(root), Query(pattern), ripgrep).rows())
    return time.perf_counter() - started, len(rows)


def time_ripgrep(root: str | Path, pattern: str, ripgrep: str) -> tuple[float, int]:
    """Seconds and matches of ripgrep by itself."""
    started = time.perf_counter()
    command = (ripgrep, "--no-config", "--hidden", "-n", pattern, ".")
    done = Command(command, str(root), environment()).run()
    return time.perf_counter() - started, done.stdout.count(b"\n")
