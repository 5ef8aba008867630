"""What evaluating costs beside the bare agent runs: CPU for each case, and memory as the cases grow."""

import argparse
import asyncio
import gc
import resource
import tempfile
import time
from pathlib import Path

from swink import Agent
from swink.eval import Case, Trajectory, evaluate
from swink.messages import ToolCall
from swink.testing import ScriptedModel
from swink.tools import tool


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"cold in {city}"


def factory(case: Case) -> Agent:
    replies = [ToolCall("1", "weather", {"city": "Oslo"}), "Wear a jacket. " * 20]
    return Agent("test:model", stream_fn=ScriptedModel(replies), tools=[weather])


def jacket(case: Case, trajectory: Trajectory) -> bool:
    """A scorer."""
    return "jacket" in trajectory.response


async def scores(case: Case, trajectory: Trajectory) -> bool:
    """A scorer that needs no thread."""
    return jacket(case, trajectory)


def resident() -> float:
    """MB of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1]) if Path("/proc/self/statm").exists() else 0
    return pages * resource.getpagesize() / 1e6


async def bare(cases: list[Case]) -> None:
    async def run(case: Case) -> None:
        await factory(case).run(case.user_messages[0])

    left = iter(cases)

    async def work() -> None:
        for case in left:
            await run(case)

    await asyncio.gather(*[work() for _ in range(8)])


async def measure(count: int) -> None:
    cases = [Case(id=f"c{n}", user_messages=("What should I wear in Oslo?",)) for n in range(count)]
    await bare(cases[:100])
    began = time.process_time()
    await bare(cases)
    alone = time.process_time() - began
    gc.collect()
    sizes: list[float] = []

    def watch(progress: object) -> None:
        done = getattr(progress, "done", 0)
        if done % (count // 10) == 0:
            sizes.append(resident())

    with tempfile.TemporaryDirectory() as directory:
        began, clock = time.process_time(), time.monotonic()
        run = await evaluate(factory, cases, scorers=[scores], output=Path(directory) / "run", progress=watch)
        spent, wall = time.process_time() - began, time.monotonic() - clock
        assert run.passed == count, run
    print(
        f"{count} cases: bare {alone / count * 1e3:.2f} ms CPU a case, evaluated {spent / count * 1e3:.2f} ms"
    )
    print(f"overhead {(spent - alone) / count * 1e3:.2f} ms CPU a case; {wall:.1f} s on the clock")
    print("memory after each tenth, MB:", " ".join(f"{size:.0f}" for size in sizes))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    asyncio.run(measure(parser.parse_args().cases))
