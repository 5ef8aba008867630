"""Wrappers: stream function in, stream function out. Compose them; the loop never knows."""

import asyncio
import difflib
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
from msgspec.structs import replace

from swink.cassette import Asked, Cassette, Recording, identify
from swink.errors import AgentError, CacheMiss, ModelError, error_for
from swink.hosts import origin_of
from swink.messages import ModelSpec
from swink.redact import describe_error
from swink.stream import AssistantMessageEvent, Done, Error, LlmContext, StreamFn, StreamOptions

logger = logging.getLogger("swink.wrappers")

Events = AsyncIterator[AssistantMessageEvent]


def fallback(*stream_fns: StreamFn) -> StreamFn:
    """Ask the first; if it fails retryably or just ends before any content, ask the next.

    `options.api_key` was given for the first: another gets it only where it is known to ask the same server.
    """
    own = _server_of(stream_fns[0]) if stream_fns else None

    async def stream(model: ModelSpec, context: LlmContext, options: StreamOptions) -> Events:
        for position, stream_fn in enumerate(stream_fns):
            last = position + 1 == len(stream_fns)
            shown = False
            held: list[AssistantMessageEvent] = []
            is_own = position == 0 or (own is not None and _server_of(stream_fn) == own)
            try:
                async with _closing(
                    stream_fn(model, context, options if is_own else replace(options, api_key=None))
                ) as events:
                    async for event in events:
                        if (
                            not last
                            and not shown
                            and isinstance(event, Error)
                            and error_for(event.kind, event.message).retryable
                        ):
                            break
                        if shown or last:
                            yield event
                            continue
                        held.append(event)
                        if len(held) > 1 or isinstance(
                            event, Error
                        ):  # more than the start: so this one it is
                            shown = True
                            for item in held:
                                yield item
            except Exception as error:
                # A stream function is somebody else's code; whatever it raises is judged as the loop would judge it.
                failure = error if isinstance(error, AgentError) else error_for(None, describe_error(error))
                if shown or last or not failure.retryable:
                    raise
            if shown or last:
                return

    if not stream_fns:
        return stream
    wrapper: Any = _like(stream_fns[0], stream)
    wrapper.asker = partial(_asker_of, *stream_fns)
    return wrapper


def recorded(stream_fn: StreamFn, path: str | Path) -> StreamFn:
    """Write every exchange to a cassette, a JSONL file without secrets; `replayed` plays it back."""
    cassette = Cassette(path)

    async def stream(model: ModelSpec, context: LlmContext, options: StreamOptions) -> Events:
        asked = await _identified(model, context, options)
        events: list[AssistantMessageEvent] = []
        ended = asked is None
        try:
            async with _closing(stream_fn(model, context, options)) as source:
                async for event in source:
                    events.append(event)
                    # An exchange that was cut off by the caller is no recording.
                    if asked is not None and not ended and isinstance(event, Done | Error):
                        ended = True
                        await asyncio.to_thread(cassette.keep, asked, list(events))
                    yield event
        except ModelError as error:
            if asked is not None and not ended:
                await asyncio.to_thread(cassette.keep, asked, events, error)
            raise

    return _like(stream_fn, stream)


def replayed(path: str | Path) -> StreamFn:
    """Play a cassette back, offline; a request that is not on it raises `CacheMiss` with a diff to the nearest."""
    if not Path(path).exists():
        raise CacheMiss(f"there is no cassette at {path}")
    recordings = Cassette(path).read()
    waiting: dict[str, deque[Recording]] = {}
    for recording in recordings:
        waiting.setdefault(recording.key, deque()).append(recording)

    async def stream(model: ModelSpec, context: LlmContext, options: StreamOptions) -> Events:
        asked = await asyncio.to_thread(identify, model, context, options)
        queue = waiting.get(asked.key)
        if not queue:
            difference = await asyncio.to_thread(
                _difference, asked.shown, recordings, asked_before=queue is not None
            )
            raise CacheMiss(difference, model=str(model))
        recording = queue.popleft()
        for event in recording.events:
            yield event
        if (failure := recording.error) is not None:
            raise error_for(failure.kind, failure.message, retry_after=failure.retry_after)

    return stream


def cached(stream_fn: StreamFn, path: str | Path) -> StreamFn:
    """Answer from the cassette where it has an answer, ask and record where it has none; failures are not kept.

    Two requests are the same if all that is sent is the same, and the model, the server, the key and the session with it; a
    key that the stream function brings itself counts by its `asker()`. A reply that holds a secret is recorded without it, so it
    answers for as long as this process lives and is asked for again later.
    """
    cassette = Cassette(path)
    recordings = cassette.read() if cassette.path.exists() else []
    known = {item.exact: item.events for item in recordings if item.exact is not None and item.error is None}
    server = str(getattr(stream_fn, "base_url", ""))

    async def stream(model: ModelSpec, context: LlmContext, options: StreamOptions) -> Events:
        asked = await _identified(model, context, options, server, _asker_of(stream_fn))
        exact = None if asked is None else await asyncio.to_thread(asked.exact)
        for event in known.get(exact or "", ()):
            yield event
        if exact in known:
            return
        events: list[AssistantMessageEvent] = []
        async with _closing(stream_fn(model, context, options)) as source:
            async for event in source:
                events.append(event)
                if asked is not None and exact is not None and isinstance(event, Done):
                    known[exact] = list(events)
                    await asyncio.to_thread(cassette.keep, asked, known[exact], exact=exact)
                yield event

    return _like(stream_fn, stream)


def rate_limited(
    stream_fn: StreamFn, *, per_minute: float | None = None, concurrent: int | None = None
) -> StreamFn:
    """At most so many requests a minute, and so many at once; the others wait their turn."""
    gates: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
    interval = 60.0 / per_minute if per_minute else 0.0
    next_start = 0.0

    async def stream(model: ModelSpec, context: LlmContext, options: StreamOptions) -> Events:
        nonlocal next_start
        gate = gates.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(concurrent or 1_000_000))
        await gate.acquire()
        try:
            if interval:
                now = time.monotonic()
                start = max(now, next_start)
                next_start = start + interval
                await asyncio.sleep(start - now)
            async with _closing(stream_fn(model, context, options)) as events:
                async for event in events:
                    yield event
        finally:
            gate.release()

    return _like(stream_fn, stream)


async def _identified(
    model: ModelSpec, context: LlmContext, options: StreamOptions, server: str = "", asker: str = ""
) -> Asked | None:
    """What the request is known by; None for one that no cassette can hold."""
    try:
        return await asyncio.to_thread(identify, model, context, options, server, asker)
    except (TypeError, ValueError, NotImplementedError) as error:
        logger.warning("a request to %s is not recorded: %s", model, describe_error(error))
        return None


def _server_of(stream_fn: StreamFn) -> str | None:
    return origin_of(getattr(stream_fn, "base_url", None))


def _asker_of(*stream_fns: StreamFn) -> str:
    """Who asks, as the stream functions themselves say it: with which key, where the options bring none."""
    return " ".join(
        [asker() for stream_fn in stream_fns if (asker := getattr(stream_fn, "asker", None)) is not None]
    )


def _like(stream_fn: StreamFn, wrapper: StreamFn) -> StreamFn:
    """The wrapper, with what others read off the stream function it wraps: its time limits, its options, its server, who asks."""
    for name in ("timeout", "honours", "base_url", "asker"):
        if (value := getattr(stream_fn, name, None)) is not None:
            setattr(wrapper, name, value)
    return wrapper


@asynccontextmanager
async def _closing(stream: Events) -> AsyncGenerator[Events, None]:
    """The stream, closed at the end if it can be."""
    try:
        yield stream
    finally:
        if (aclose := getattr(stream, "aclose", None)) is not None:
            await aclose()


def _difference(request: dict[str, Any], recordings: list[Recording], *, asked_before: bool) -> str:
    if asked_before:
        return "the request was recorded, but is asked more often than it was recorded"
    asked = _lines(request)
    if not recordings:
        return "the cassette is empty"
    nearest = max(
        (_lines(item.request) for item in recordings),
        key=lambda lines: difflib.SequenceMatcher(None, lines, asked, autojunk=False).ratio(),
    )
    diff = list(difflib.unified_diff(nearest, asked, "recorded", "asked", n=1, lineterm=""))
    return "this request was not recorded; the nearest recording differs:\n" + "\n".join(diff[:60])


def _lines(request: dict[str, Any]) -> list[str]:
    return msgspec.json.format(msgspec.json.encode(request, order="sorted"), indent=1).decode().splitlines()
