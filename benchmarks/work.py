"""The work: scripts a fake model replays, and the two tools."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

Step = tuple[str, list[Any]]


class Script:
    """Steps of one run; concurrent runs find theirs by context variable."""

    def __init__(self, steps: list[Step], delay: float, marks: list[float] | None) -> None:
        self.steps = iter(steps)
        self.delay = delay
        self.marks = marks


_script: ContextVar[Script] = ContextVar("script")


def text(count: int) -> list[Step]:
    return [("text", [f"token{number % 97} " for number in range(count)])]


def tools(turns: int) -> list[Step]:
    calls = [("tools", [(f"call_{number}", "noop", f'{{"x": "value {number}"}}')]) for number in range(turns)]
    return [*calls, ("text", ["all ", "done"])]


def parallel(count: int) -> list[Step]:
    return [
        ("tools", [(f"call_{number}", "slow", f'{{"x": "value {number}"}}') for number in range(count)]),
        ("text", ["done"]),
    ]


async def next_step() -> Step:
    script = _script.get()
    if script.marks is not None:
        script.marks.append(time.process_time())
    if script.delay:
        await asyncio.sleep(script.delay)
    return next(script.steps)


async def scripted(
    run: Callable[[Any], Awaitable[int]],
    steps: list[Step],
    *,
    delay: float = 0.0,
    marks: list[float] | None = None,
    history: Any = None,
) -> int:
    async def inside() -> int:
        _script.set(Script(steps, delay, marks))
        return await run(history)

    return await asyncio.create_task(inside())


async def noop(x: str) -> str:
    """Do nothing."""
    return "ok"


async def slow(x: str) -> str:
    """Sleep ten milliseconds."""
    await asyncio.sleep(0.010)
    return "ok"
