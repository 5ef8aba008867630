"""What tools and policies cost: a policy in each slot, a command at each sandbox level, a search.

python benchmarks/tools.py [files in the searched tree, default 50000]
"""

import asyncio
import random
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import peer
import work

from swink import Agent, Policy
from swink.system.programs import Command, environment
from swink.tools.coding.process import run
from swink.tools.coding.sandbox import Level, Sandbox
from swink.tools.coding.search import Query, Search
from swink.tools.coding.workspace import Workspace

TURNS = 50
WORDS = (
    "value", "result", "index", "return", "import", "class", "function", "buffer", "handle", "context",
    "stream", "message",
)  # fmt: skip


def policies() -> dict[str, list[Policy]]:
    """A policy that does nothing, in one slot at a time."""

    def nothing(*_: Any) -> None:
        return None

    slots = ("pre_turn", "pre_dispatch", "post_turn", "post_loop", "pre_commit")
    return {"none": []} | {slot: [type("Nothing", (Policy,), {slot: nothing})()] for slot in slots}


async def turn_cost(chosen: list[Policy]) -> float:
    """CPU microseconds of one tool turn, median of several runs."""

    async def run(_: Any) -> int:
        await Agent("test:script", stream_fn=peer.model, tools=[work.noop], policies=chosen).run("go")
        return 0

    times: list[float] = []
    for _ in range(9):
        began = time.process_time()
        await work.scripted(run, work.tools(TURNS))
        times.append(time.process_time() - began)
    return statistics.median(times) / TURNS * 1e6


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
        lines = [" ".join(chance.choices(WORDS, k=6)) for _ in range(20)]
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


async def main() -> None:
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    print("| policy in | one tool turn, CPU µs |\n|---|---:|")
    for slot, chosen in policies().items():
        print(f"| {slot} | {await turn_cost(chosen):.1f} |")
    with tempfile.TemporaryDirectory() as folder:
        print("\n| bash at level | start-up, best wall ms |\n|---|---:|")
        for level in ("none", "workspace", "workspace+net"):
            backend = await Sandbox(folder, level).backend()
            print(f"| {level} ({backend}) | {await time_command(folder, level) * 1e3:.0f} |")
        print(f"\nlaying out {files:,} files …", file=sys.stderr)
        make_tree(folder, files)
        ripgrep = shutil.which("rg")
        print(f"\n| search of {files:,} files | wall s | matches |\n|---|---:|---:|")
        for name, (seconds, matches) in {
            "search_text, plain Python": time_search(folder, "needle_here", None),
            **({"search_text on ripgrep": time_search(folder, "needle_here", ripgrep)} if ripgrep else {}),
            **({"ripgrep alone": time_ripgrep(folder, "needle_here", ripgrep)} if ripgrep else {}),
        }.items():
            print(f"| {name} | {seconds:.2f} | {matches} |")


if __name__ == "__main__":
    asyncio.run(main())
