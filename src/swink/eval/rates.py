"""Rates: how often all attempts of a run together may ask a provider."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from math import inf

from swink.errors import ModelThrottled, error_for
from swink.messages import ModelSpec
from swink.stream import AssistantMessageEvent, Error, LlmContext, StreamFn, StreamOptions
from swink.stream.watch import in_line
from swink.stream.wrappers.sending import copy_traits
from swink.system.aio import closing, resolve

_PAUSE = 1.0
"""Seconds for which nobody asks a provider that is too busy and does not say for how long."""


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


class Rates:
    """A wrapper for every model of a run; the places may be given out elsewhere, for several machines."""

    def __init__(self, reserve: Reserve, hold: Hold) -> None:
        self._reserve = reserve
        self._hold = hold

    def __call__(self, stream_fn: StreamFn) -> StreamFn:
        """The stream function, asked when its turn has come."""

        async def stream(
            model: ModelSpec, context: LlmContext, options: StreamOptions
        ) -> AsyncIterator[AssistantMessageEvent]:
            if (delay := await resolve(self._reserve(model.provider))) > 0:
                with in_line():
                    await asyncio.sleep(delay)
            try:
                async with closing(stream_fn(model, context, options)) as events:
                    async for event in events:
                        if isinstance(event, Error):
                            await self._note(model.provider, error_for(event.kind, event.message))
                        yield event
            except ModelThrottled as error:
                await self._note(model.provider, error)
                raise

        return copy_traits(stream_fn, stream)

    async def _note(self, provider: str, error: Exception) -> None:
        if isinstance(error, ModelThrottled):
            await resolve(self._hold(provider, error.retry_after or _PAUSE))


def local_rates(per_minute: float | None = None) -> Rates:
    """Rates for the attempts of this process."""
    pace = RequestPace(per_minute)
    return Rates(pace.reserve, pace.hold)
