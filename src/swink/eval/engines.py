"""Engines: what runs the attempts of an evaluation, and how many at once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Literal, NoReturn, get_args

from msgspec.structs import replace

from swink.errors import MisuseError
from swink.eval.attempt import Plan
from swink.eval.case import Case
from swink.eval.rates import Rates, RequestPace, local_rates
from swink.eval.ray import Cluster, spread
from swink.eval.result import CaseResult
from swink.messages import ModelSpec
from swink.stream import LlmContext, StreamOptions, asked_through

Keep = Callable[[CaseResult], Awaitable[None]]
"""Takes each result as it comes."""
EngineName = Literal["local", "ray"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)


async def run_attempts(
    engine: EngineName,
    plan: Plan,
    attempts: Iterator[tuple[Case, int]],
    keep: Keep,
    *,
    concurrency: int,
    rate_limit: float | None = None,
) -> None:
    """Make the attempts, so many at once, all of them within the rate limit."""
    if engine == "local":
        await _run_local(replace(plan, wrap=local_rates(rate_limit)), attempts, keep, concurrency)
    else:
        await _run_ray(plan, attempts, keep, concurrency, rate_limit)


async def _run_local(plan: Plan, attempts: Iterator[tuple[Case, int]], keep: Keep, concurrency: int) -> None:

    async def work() -> None:
        for case, repeat in attempts:
            await keep(await plan.attempt(case, repeat))

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(work())
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None  # such as a full disk, which one of them met first


async def _run_ray(
    plan: Plan, attempts: Iterator[tuple[Case, int]], keep: Keep, concurrency: int, rate_limit: float | None
) -> None:
    """Make the attempts on the nodes of a Ray cluster; the results are kept here alone."""
    # A wrapper of the block around us would not go along: the workers would ask the real models.
    if asked_through(_nobody) is not _nobody:
        raise MisuseError("cassettes are recorded and replayed on one machine: use the local engine for them")
    async with Cluster() as cluster:
        turnstile = cluster.service(RequestPace, rate_limit)

        async def reserve(provider: str) -> float:
            return await turnstile.reserve.remote(provider)

        async def hold(provider: str, seconds: float) -> None:
            await turnstile.hold.remote(provider, seconds)

        # The budget of the run is kept here, between two attempts: its policy stays in this process.
        there = replace(plan, wrap=Rates(reserve, hold), policies=())

        async def work(attempt: tuple[Case, int]) -> CaseResult:
            return await there.attempt(*attempt)

        await spread(work, attempts, keep, concurrency=concurrency)


def _nobody(model: ModelSpec, context: LlmContext, options: StreamOptions) -> NoReturn:
    raise NotImplementedError
