"""What tools and policies cost: a policy in each slot, a command at each sandbox level, a search.

python benchmarks/tools.py [files in the searched tree, default 50000]
"""

import asyncio
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
from swink.tools.coding.sandbox import Sandbox
from swink.tools.coding.timings import make_tree, time_command, time_ripgrep, time_search

TURNS = 50


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
