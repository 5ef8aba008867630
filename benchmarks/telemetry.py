"""What telemetry costs, as CPU time, the least of many.

A turn with a tool in a long run is three spans, and so is a run of one reply.
"""

import asyncio
import gc
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from time import process_time
from typing import Any

from opentelemetry.sdk.trace import TracerProvider

from swink import Agent, ToolCall, tool
from swink.telemetry import instrument, tracing, uninstrument
from swink.testing import ScriptedModel

TURNS, ROUNDS, SPANS = 100, 15, 3


@tool
async def noop(x: str) -> str:
    """Do nothing."""
    return "ok"


class Instrumented:
    """A block with OpenTelemetry switched on."""

    def __init__(self, *providers: Any) -> None:
        self._providers = providers

    def __enter__(self) -> None:
        instrument(*self._providers)

    def __exit__(self, *_: object) -> None:
        uninstrument()


async def turn() -> float:
    """Microseconds of one turn with one tool call."""
    script = [[ToolCall(str(number), "noop", {"x": "v"})] for number in range(TURNS)]
    agent = Agent("test:model", stream_fn=ScriptedModel([*script, "done"]), tools=[noop])
    began = process_time()
    await agent.run("hi")
    return (process_time() - began) / TURNS * 1e6


async def reply() -> float:
    """Microseconds of a run of one reply, the least of many."""
    least = float("inf")
    for _ in range(TURNS):
        agent = Agent("test:model", stream_fn=ScriptedModel(["done"]))
        began = process_time()
        await agent.run("hi")
        least = min(least, process_time() - began)
    return least * 1e6


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as directory:
        ways: dict[str, Callable[[], AbstractContextManager[Any]]] = {
            "off": nullcontext,
            "OpenTelemetry API alone": Instrumented,
            "OpenTelemetry SDK, no exporter": lambda: Instrumented(TracerProvider(shutdown_on_exit=False)),
            "trace file": lambda: tracing(Path(directory) / "trace.json"),
        }
        turns, runs = dict.fromkeys(ways, float("inf")), dict.fromkeys(ways, float("inf"))
        gc.disable()
        for _ in range(ROUNDS):
            for name, way in ways.items():
                with way():
                    turns[name] = min(turns[name], asyncio.run(turn()))
                    runs[name] = min(runs[name], asyncio.run(reply()))
        for name in ways:
            shown = [
                f"{what} {took[name]:6.1f} µs, a span {(took[name] - took['off']) / SPANS:5.1f} µs"
                for what, took in (("turn", turns), ("short run", runs))
            ]
            print(f"{name:32} {'   '.join(shown)}")


if __name__ == "__main__":
    main()
