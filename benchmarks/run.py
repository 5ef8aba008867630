"""What the harness costs, beside a hand-written loop on dicts: one runner, one table."""

import argparse
import asyncio
import cProfile
import itertools
import json
import pstats
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import bare
import work

CALIBRATION = 0.025
"""CPU seconds of the calibration loop on an idle machine of the kind the targets were set on."""

ROWS = [
    ("A1 one delta, µs", "a1"),
    ("A1 one delta, calls", "a1_calls"),
    ("A2 one tool turn, µs", "a2"),
    ("A2 one tool turn, calls", "a2_calls"),
    ("A3 100 parallel 10 ms tools, wall ms", "a3"),
    ("A4 run on 5,000 messages, ms", "a4"),
    ("A4 turn 181–200 / turn 1–20, ×", "a4_growth"),
    ("A5 1,000 agents at once, µs a run", "a5"),
    ("A5 peak memory, MB", "a5_memory"),
    ("A6 import over `pass`, CPU ms", "a6"),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worker", choices=["swink", "bare"], help=argparse.SUPPRESS)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(asyncio.run(measure(options.worker, options.part))))
        return
    results: dict[str, list[dict[str, float]]] = {"swink": [], "bare": []}
    for number in range(options.rounds):
        for name in results:
            print(f"round {number + 1}/{options.rounds}: {name}", file=sys.stderr, flush=True)
            row: dict[str, float] = {}
            for part in ("turns", "history", "crowd"):
                row |= worker(name, part)
            row["a6"] = import_cost("import swink" if name == "swink" else "import asyncio, json")
            results[name].append(row)
    table(results)


def worker(name: str, part: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, __file__, "--worker", name, "--part", part],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def table(results: dict[str, list[dict[str, float]]]) -> None:
    print("| work | swink | bare | ratio |\n|---|---:|---:|---:|")
    for label, key in ROWS:
        ours, floor = (statistics.median(row[key] for row in results[name]) for name in ("swink", "bare"))
        print(f"| {label} | {ours:.3g} | {floor:.3g} | {ours / floor:.2f} |")


async def measure(name: str, part: str) -> dict[str, float]:
    """One part of the work in a process of its own."""
    peer: Any = bare if name == "bare" else __import__("peer")
    return await {"turns": turns, "history": history, "crowd": crowd}[part](peer)


async def turns(peer: Any) -> dict[str, float]:
    cpu, _ = await repeated(lambda: work.scripted(peer.run, work.text(1_000)))
    row = {"a1": cpu / 1_000 * 1e6}
    cpu, _ = await repeated(lambda: work.scripted(peer.run, work.tools(20)))
    row["a2"] = cpu / 20 * 1e6
    row["a1_calls"] = await calls(lambda: work.scripted(peer.run, work.text(1_000))) / 1_000
    row["a2_calls"] = await calls(lambda: work.scripted(peer.run, work.tools(20))) / 20
    _, wall = await repeated(lambda: work.scripted(peer.run, work.parallel(100)))
    return row | {"a3": wall * 1e3}


async def history(peer: Any) -> dict[str, float]:
    old = peer.history(5_000)
    cpu, _ = await repeated(lambda: work.scripted(peer.run, [("text", ["done"])], history=old))
    marks: list[float] = []
    await work.scripted(peer.run, work.tools(200))
    await work.scripted(peer.run, work.tools(200), marks=marks)
    steps = [later - earlier for earlier, later in itertools.pairwise(marks)]
    return {"a4": cpu * 1e3, "a4_growth": statistics.median(steps[-20:]) / statistics.median(steps[:20])}


async def crowd(peer: Any) -> dict[str, float]:
    await work.scripted(peer.run, work.tools(2), delay=0.005)
    before = calibration()
    began = time.process_time()
    await asyncio.gather(*(work.scripted(peer.run, work.tools(2), delay=0.005) for _ in range(1_000)))
    cpu = time.process_time() - began
    scale = CALIBRATION / ((before + calibration()) / 2)
    return {
        "a5": cpu * scale / 1_000 * 1e6,
        "a5_memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    }


async def repeated(once: Callable[[], Awaitable[Any]], times: int = 7) -> tuple[float, float]:
    """Median CPU seconds, calibrated, and the best wall time."""
    await once()
    cpus: list[float] = []
    walls: list[float] = []
    for _ in range(times):
        before = calibration()
        wall, cpu = time.perf_counter(), time.process_time()
        await once()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        cpus.append(cpu * CALIBRATION / ((before + calibration()) / 2))
        walls.append(wall)
    return statistics.median(cpus), min(walls)


async def calls(once: Callable[[], Awaitable[Any]]) -> int:
    """Calls of functions in Python and C; the machine and its load do not matter."""
    profile = cProfile.Profile()
    profile.enable()
    await once()
    profile.disable()
    return pstats.Stats(profile).total_calls  # pyright: ignore[reportAttributeAccessIssue]


def calibration() -> float:
    """CPU seconds of a fixed piece of interpreter work: a loaded machine slows it like everything else."""
    began = time.process_time()
    kept = [json.loads(json.dumps({"type": "delta", "i": i, "text": f"token{i}"})) for i in range(3_000)]
    sum(len(item["text"]) for item in kept)
    return time.process_time() - began


def import_cost(statement: str) -> float:
    """CPU milliseconds an import costs over an empty program, median of several starts."""

    def one(code: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    one(statement)
    return (
        statistics.median(one(statement) for _ in range(7)) - statistics.median(one("pass") for _ in range(7))
    ) * 1e3


if __name__ == "__main__":
    main()
