"""Sending: which stream function gets a request, and when."""

import asyncio
import time
from contextlib import nullcontext
from functools import partial
from math import isfinite
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from swink.engine.waiting import closing
from swink.errors import AgentError, InvalidInput, error_for
from swink.messages import ModelSpec
from swink.redact import describe_error
from swink.stream import AssistantMessageEvent, Error, LlmContext, StreamFn, StreamOptions
from swink.wrappers.traits import Events, asker_of, copy_traits, server_of


def fallback(*stream_fns: StreamFn) -> StreamFn:
    """Ask the first; if it fails retryably or just ends before any content, ask the next.

    `options.api_key` was given for the first: another gets it only where it is known to ask the same server.
    """
    if not stream_fns:
        raise InvalidInput("fallback() needs stream functions: fallback(first, second, …)")
    own = server_of(stream_fns[0])

    async def stream(model: ModelSpec, context: LlmContext, options: StreamOptions) -> Events:
        for position, stream_fn in enumerate(stream_fns):
            is_own = position == 0 or (own is not None and server_of(stream_fn) == own)
            given = options if is_own else replace(options, api_key=None)
            chosen = position + 1 == len(stream_fns)
            held: list[AssistantMessageEvent] = []
            try:
                async with closing(stream_fn(model, context, given)) as events:
                    async for event in events:
                        if chosen:
                            yield event
                            continue
                        if isinstance(event, Error) and error_for(event.kind, event.message).retryable:
                            break
                        held.append(event)
                        if len(held) > 1 or isinstance(event, Error):  # more than the start: it answers
                            chosen = True
                            for item in held:
                                yield item
            except Exception as error:
                # A stream function is somebody else's code; what it raises is judged as the loop judges it.
                failure = error if isinstance(error, AgentError) else error_for(None, describe_error(error))
                if chosen or not failure.retryable:
                    raise
            if chosen:
                return

    wrapper = copy_traits(stream_fns[0], stream)
    setattr(wrapper, "asker", partial(asker_of, *stream_fns))  # noqa: B010 - functions declare no attributes
    return wrapper


def rate_limited(
    stream_fn: StreamFn, *, per_minute: float | None = None, concurrent: int | None = None
) -> StreamFn:
    """At most `per_minute` requests a minute, and `concurrent` at once; the others wait their turn."""
    if per_minute is not None and not (_is_number(per_minute) and per_minute > 0):
        raise InvalidInput(f"per_minute={per_minute!r}: pass a number above 0, or None for no limit")
    if concurrent is not None and not (_is_number(concurrent) and concurrent >= 1 and concurrent % 1 == 0):
        raise InvalidInput(f"concurrent={concurrent!r}: pass a whole number from 1 on, or None for no limit")
    gates: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
    interval = 60.0 / per_minute if per_minute else 0.0
    next_start = 0.0

    async def stream(model: ModelSpec, context: LlmContext, options: StreamOptions) -> Events:
        nonlocal next_start
        loop = asyncio.get_running_loop()
        async with (
            nullcontext() if concurrent is None else gates.setdefault(loop, asyncio.Semaphore(concurrent))
        ):
            if interval:
                now = time.monotonic()
                start = max(now, next_start)
                next_start = start + interval
                await asyncio.sleep(start - now)
            async with closing(stream_fn(model, context, options)) as events:
                async for event in events:
                    yield event

    return copy_traits(stream_fn, stream)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
