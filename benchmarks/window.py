"""What a tool turn costs on a long history, while its context is compacted and while it is not."""

import argparse
import asyncio
import itertools
import statistics
import time
from collections.abc import AsyncIterator
from typing import Any

from swink import Agent, AssistantMessage, ModelSpec, UserMessage, tool
from swink.stream import Done, Start, TextDelta, TextEnd, TextStart, ToolCallDelta, ToolCallEnd, ToolCallStart

LENGTHS = (1_000, 5_000, 20_000, 50_000)
WINDOWS = {
    "cutting": ("window", 32_000),
    "pruning": ("prune", 32_000),
    "summarising": ("summary", 32_000),
    "not cutting": ("window", 100_000_000),
}
"""How the context is compacted, and the context window of the model asked, in tokens.

1,000 messages of 200 characters are 44,000. A summary is answered at once: what is measured is the work here.
"""
TURNS = 400
"""Of one run: enough for the window to be cut several times."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    print("| window | messages | least, ms | mean with cuts, ms |\n|---|---:|---:|---:|")
    for name, (way, window) in WINDOWS.items():
        for length in LENGTHS:
            steps = [asyncio.run(measure(length, way, window)) for _ in range(rounds)]
            least = min(min(each) for each in steps)
            mean = min(statistics.fmean(each) for each in steps)
            print(f"| {name} | {length:,} | {least * 1e3:.3f} | {mean * 1e3:.3f} |", flush=True)


async def measure(length: int, way: str, window: int) -> list[float]:
    """CPU seconds of each tool turn of one run, the first ones left out: they measure the history."""
    marks: list[float] = []

    async def reply(model: ModelSpec, context: Any, options: Any) -> AsyncIterator[Any]:
        is_summary = not context.tools
        if not is_summary:
            marks.append(time.process_time())
        yield Start()
        if is_summary:
            yield TextStart(0)
            yield TextDelta(0, "Task: go on. " * 20)
            yield TextEnd(0)
            yield Done("stop")
        elif len(marks) <= TURNS:
            yield ToolCallStart(0, f"call_{len(marks)}", "noop")
            yield ToolCallDelta(0, '{"x": "value"}')
            yield ToolCallEnd(0)
            yield Done("tool_use")
        else:
            yield TextStart(0)
            yield TextDelta(0, "done")
            yield TextEnd(0)
            yield Done("stop")

    @tool
    async def noop(x: str) -> str:
        """Do nothing."""
        return "ok " * 66

    text = "word " * 40
    pairs = [kind(text) for _ in range(length // 2) for kind in (UserMessage, AssistantMessage)]
    spec = ModelSpec("bench", "m", context_window=window)
    agent = Agent(spec, stream_fn=reply, tools=[noop], messages=pairs, transform_context=way)
    result = await agent.run("go")
    assert result.text == "done", result
    return [later - earlier for earlier, later in itertools.pairwise(marks[2:])]


if __name__ == "__main__":
    main()
