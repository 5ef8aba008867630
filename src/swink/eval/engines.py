"""Engines: what runs the attempts of an evaluation, and how many at once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

from swink.eval.attempt import Plan
from swink.eval.case import Case
from swink.eval.result import CaseResult

Keep = Callable[[CaseResult], Awaitable[None]]
"""Takes each result as it comes."""
Engine = Callable[[Plan, Iterator[tuple[Case, int]], Keep, int], Awaitable[None]]


async def run_local(plan: Plan, attempts: Iterator[tuple[Case, int]], keep: Keep, concurrency: int) -> None:
    """Make the attempts in this process, so many at once."""

    async def work() -> None:
        for case, repeat in attempts:
            await keep(await plan.attempt(case, repeat))

    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(work())
