"""Sending: which stream function gets a request, and when."""

from collections.abc import AsyncIterator, Sequence
from functools import partial
from math import inf, isfinite
from typing import Any, TypeVar

from msgspec.structs import replace

from swink.errors import AgentError, InvalidInput, error_for
from swink.messages import ModelSpec, Usage
from swink.messages.redact import describe_error
from swink.stream import (
    Assembly,
    AssistantMessageEvent,
    Done,
    Error,
    LlmContext,
    PromptProgress,
    Start,
    StreamFn,
    StreamOptions,
    UsageUpdate,
)
from swink.stream.urls import origin_of
from swink.stream.wrappers.ratelimit import RateLimiter
from swink.system.aio import closing

E = TypeVar("E", bound=AssistantMessageEvent)
Events = AsyncIterator[AssistantMessageEvent]

_TRAITS = ("timeout", "honours", "base_url", "asker", "check_key", "native_output", "native_search")
"""What others read off a stream function besides its events."""


def fallback(*stream_fns: StreamFn) -> StreamFn:
    """Ask the first of `stream_fns`; if it fails retryably or just ends before any content, ask the next.

    `options.api_key` and `options.headers` were given for the first: another gets them only where it is known
    to ask the same server.
    """
    if not stream_fns:
        raise InvalidInput("fallback() needs stream functions: fallback(first, second, …)")
    own = server_of(stream_fns[0])

    async def stream(model: ModelSpec, context: LlmContext, options: StreamOptions) -> Events:
        started = False
        spent = UsageUpdate(Usage())
        for position, stream_fn in enumerate(stream_fns):
            is_own = position == 0 or (own is not None and server_of(stream_fn) == own)
            given = options if is_own else replace(options, api_key=None, headers={})
            chosen = position + 1 == len(stream_fns)
            attempt, failure, began = Assembly(), AgentError(), False
            try:
                async with closing(stream_fn(model, context, given)) as events:
                    async for event in events:
                        if not chosen and isinstance(event, Error):
                            failure = error_for(event.kind, event.message)
                            if failure.retryable:
                                attempt.feed(event)
                                break
                        if not chosen and isinstance(event, Start | PromptProgress | UsageUpdate):
                            attempt.feed(event)
                        else:
                            chosen = True  # it answers
                        if not isinstance(event, Start) or not started or began:
                            yield _beside(event, spent)
                        if isinstance(event, Start) and not began and spent.usage != Usage():
                            yield spent
                        started = began = True
            except Exception as error:
                # A stream function is foreign code; what it raises is judged as the loop judges it.
                failure = error if isinstance(error, AgentError) else error_for(None, describe_error(error))
                if chosen or not failure.retryable:
                    raise
            if chosen:
                return
            spent = _beside(UsageUpdate(*attempt.spent(failure)), spent)
            if started and spent.usage != Usage():
                yield spent  # the next one may be cut off before it begins

    wrapper: Any = copy_traits(stream_fns[0], stream)
    wrapper.asker = partial(asker_of, *stream_fns)
    wrapper.native_output = partial(native_output, stream_fns)
    wrapper.native_search = partial(native_search, stream_fns)
    return wrapper


def _beside(event: E, spent: UsageUpdate) -> E:
    """The event with the figures of the stream functions that were asked before, in vain."""
    if not isinstance(event, UsageUpdate | Done | Error) or spent.usage == Usage():
        return event
    usage = event.usage + spent.usage
    if isinstance(event, Error):
        failed = replace(event, usage=usage)
        vars(failed).update(vars(event))
        return failed
    cost = event.cost + spent.cost if event.cost is not None and spent.cost is not None else None
    return replace(event, usage=usage, cost=cost)


def rate_limited(
    stream_fn: StreamFn, *, per_minute: float | None = None, concurrent: int | None = None
) -> StreamFn:
    """Ask `stream_fn` at most `per_minute` times a minute, and `concurrent` at once, of all threads and event
    loops.

    The others wait their turn, first come, first served; the time limits of a reply begin when it has come.
    """
    if per_minute is not None and not (_is_number(per_minute) and per_minute > 0):
        raise InvalidInput(f"per_minute={per_minute!r}: pass a number above 0, or None for no limit")
    if concurrent is not None and not (_is_number(concurrent) and concurrent >= 1 and concurrent % 1 == 0):
        raise InvalidInput(f"concurrent={concurrent!r}: pass a whole number from 1 on, or None for no limit")
    gate = RateLimiter(inf if concurrent is None else concurrent, 60.0 / per_minute if per_minute else 0.0)

    async def stream(model: ModelSpec, context: LlmContext, options: StreamOptions) -> Events:
        async with gate.inside(), closing(stream_fn(model, context, options)) as events:
            async for event in events:
                yield event

    return copy_traits(stream_fn, stream)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def copy_traits(stream_fn: StreamFn, wrapper: StreamFn) -> StreamFn:
    """The wrapper, with the traits of what it wraps: its time limits, its options, its server, who asks."""
    for name in _TRAITS:
        if (value := getattr(stream_fn, name, None)) is not None:
            setattr(wrapper, name, value)
    return wrapper


def native_output(stream_fns: Sequence[StreamFn], model: ModelSpec, context: LlmContext) -> bool:
    """Whether each of the stream functions sees to the schema of an answer itself."""
    each = [getattr(stream_fn, "native_output", None) for stream_fn in stream_fns]
    return all(asked is not None and asked(model, context) for asked in each)


def native_search(stream_fns: Sequence[StreamFn], model: ModelSpec) -> bool:
    """Whether each of the stream functions searches deferred tools itself."""
    each = [getattr(stream_fn, "native_search", None) for stream_fn in stream_fns]
    return all(asked is not None and asked(model) for asked in each)


def server_of(stream_fn: StreamFn) -> str | None:
    """The server a stream function asks; None if that is not known."""
    return origin_of(getattr(stream_fn, "base_url", None))


def asker_of(*stream_fns: StreamFn) -> str:
    """Who asks, as the stream functions themselves say it: with which key, where the options bring none."""
    askers = [getattr(stream_fn, "asker", None) for stream_fn in stream_fns]
    return " ".join([asker() for asker in askers if asker is not None])
