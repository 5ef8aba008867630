"""Engines: what runs the attempts of an evaluation, how many at once, and how often they ask a provider."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from math import inf
from typing import Literal, NoReturn, get_args

from msgspec.structs import replace

from swink.errors import MisuseError, ModelThrottled, error_for
from swink.eval.attempt import Plan
from swink.eval.case import Case
from swink.eval.ray import Cluster, spread
from swink.eval.result import CaseResult
from swink.messages import ModelSpec
from swink.stream import AssistantMessageEvent, Error, LlmContext, StreamFn, StreamOptions, asked_through
from swink.stream.scopedwrap import Wrap
from swink.stream.watch import in_line
from swink.stream.wrappers.sending import copy_traits
from swink.system.aio import closing, resolve

_PAUSE = 1.0  # seconds for which nobody asks a provider that is too busy and does not say for how long

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
        pace = RequestPace(rate_limit)
        await _run_local(replace(plan, wrap=paced(pace.reserve, pace.hold)), attempts, keep, concurrency)
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
        there = replace(plan, wrap=paced(reserve, hold), policies=())

        async def work(attempt: tuple[Case, int]) -> CaseResult:
            return await there.attempt(*attempt)

        await spread(work, attempts, keep, concurrency=concurrency)


def _nobody(model: ModelSpec, context: LlmContext, options: StreamOptions) -> NoReturn:
    raise NotImplementedError


class RequestPace:
    """When a request may be sent to a provider: at most so many a minute, and not while it refuses them."""

    def __init__(self, per_minute: float | None = None) -> None:
        self._interval = 60.0 / per_minute if per_minute else 0.0
        self._next: dict[str, float] = {}
        self._closed: dict[str, float] = {}

    def reserve(self, provider: str) -> float:
        """Seconds to wait before the request; its place is taken."""
        now = time.monotonic()
        at = max(now, self._next.get(provider, -inf), self._closed.get(provider, -inf))
        self._next[provider] = at + self._interval
        return at - now

    def hold(self, provider: str, seconds: float) -> None:
        """Let nobody ask it for so long: it has just said that it is too busy."""
        self._closed[provider] = max(self._closed.get(provider, -inf), time.monotonic() + seconds)


Reserve = Callable[[str], float | Awaitable[float]]
Hold = Callable[[str, float], Awaitable[None] | None]


def paced(reserve: Reserve, hold: Hold) -> Wrap:
    """A wrapper for every model of a run; the places may be given out elsewhere, for several machines."""

    async def note(provider: str, error: Exception) -> None:
        if isinstance(error, ModelThrottled):
            await resolve(hold(provider, error.retry_after or _PAUSE))

    def wrap(stream_fn: StreamFn) -> StreamFn:
        async def stream(
            model: ModelSpec, context: LlmContext, options: StreamOptions
        ) -> AsyncIterator[AssistantMessageEvent]:
            if (delay := await resolve(reserve(model.provider))) > 0:
                with in_line():
                    await asyncio.sleep(delay)
            try:
                async with closing(stream_fn(model, context, options)) as events:
                    async for event in events:
                        if isinstance(event, Error):
                            await note(model.provider, error_for(event.kind, event.message))
                        yield event
            except ModelThrottled as error:
                await note(model.provider, error)
                raise

        return copy_traits(stream_fn, stream)

    return wrap
