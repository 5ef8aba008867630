"""Wrappers: stream function in, stream function out. Compose them; the loop never knows."""

import asyncio
import difflib
import hashlib
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from swink.codec import savable, to_builtins
from swink.errors import AgentError, CacheMiss, ModelError, error_for
from swink.messages import ModelSpec
from swink.redact import redact_value, told
from swink.stream import AssistantMessageEvent, Done, Error, LlmContext, StreamFn, StreamOptions

Events = AsyncIterator[AssistantMessageEvent]


class Recording(Struct, frozen=True):
    """One exchange on a cassette: what was asked, and what came back."""

    key: str
    request: dict[str, Any]
    events: list[AssistantMessageEvent]
    error: dict[str, Any] | None = None


def fallback(*stream_fns: StreamFn) -> StreamFn:
    """Ask the first; if it fails retryably or just ends before any content, ask the next.

    `options.api_key` was given for the first: another gets it only where it is known to ask the same server.
    """
    own = getattr(stream_fns[0], "origin", None) if stream_fns else None

    async def stream(model: ModelSpec, context: LlmContext, options: StreamOptions) -> Events:
        for position, stream_fn in enumerate(stream_fns):
            last = position + 1 == len(stream_fns)
            shown = False
            held: list[AssistantMessageEvent] = []
            is_own = position == 0 or (own is not None and getattr(stream_fn, "origin", None) == own)
            try:
                async with _closing(stream_fn(model, context, options if is_own else replace(options, api_key=None))) as events:
                    async for event in events:
                        if not last and not shown and isinstance(event, Error) and error_for(event.kind, event.message).retryable:
                            break
                        if shown or last:
                            yield event
                            continue
                        held.append(event)
                        if len(held) > 1 or isinstance(event, Error):  # more than the start: so this one it is
                            shown = True
                            for item in held:
                                yield item
            except Exception as error:
                # A stream function is somebody else's code; whatever it raises is judged as the loop would judge it.
                failure = error if isinstance(error, AgentError) else error_for(None, told(error))
                if shown or last or not failure.retryable:
                    raise
            if shown or last:
                return

    return _like(stream_fns[0], stream) if stream_fns else stream


def recorded(stream_fn: StreamFn, path: str | Path) -> StreamFn:
    """Write every exchange to a cassette, a JSONL file without secrets; `replayed` plays it back."""
    cassette = Path(path)

    async def stream(model: ModelSpec, context: LlmContext, options: StreamOptions) -> Events:
        request = request_of(model, context, options)
        events: list[AssistantMessageEvent] = []
        failure: dict[str, Any] | None = None
        try:
            async with _closing(stream_fn(model, context, options)) as source:
                async for event in source:
                    events.append(event)
                    yield event
        except ModelError as error:
            failure = {"kind": error.kind, "message": error.message, "retry_after": error.retry_after}
            raise
        finally:
            # An exchange that was cut off by the caller is no recording.
            if failure is not None or (events and isinstance(events[-1], Done | Error)):
                _write(cassette, Recording(_key(request), request, _without_secrets(events), failure))

    return _like(stream_fn, stream)


def replayed(path: str | Path) -> StreamFn:
    """Play a cassette back, offline; a request that is not on it raises `CacheMiss` with a diff to the nearest."""
    recordings = _read(Path(path))
    waiting: dict[str, deque[Recording]] = {}
    for recording in recordings:
        waiting.setdefault(recording.key, deque()).append(recording)

    async def stream(model: ModelSpec, context: LlmContext, options: StreamOptions) -> Events:
        request = request_of(model, context, options)
        queue = waiting.get(_key(request))
        if not queue:
            raise CacheMiss(_difference(request, recordings, asked_before=queue is not None), model=str(model))
        async for event in _play(queue.popleft()):
            yield event

    return stream


def cached(stream_fn: StreamFn, path: str | Path) -> StreamFn:
    """Answer from the cassette where it has an answer, ask and record where it has none; failures are not kept."""
    cassette = Path(path)
    known = {item.key: item for item in (_read(cassette) if cassette.exists() else [])}

    async def stream(model: ModelSpec, context: LlmContext, options: StreamOptions) -> Events:
        request = request_of(model, context, options)
        key = _key(request)
        if key in known:
            async for event in _play(known[key]):
                yield event
            return
        events: list[AssistantMessageEvent] = []
        async with _closing(stream_fn(model, context, options)) as source:
            async for event in source:
                events.append(event)
                yield event
        if events and isinstance(events[-1], Done):
            known[key] = Recording(key, request, events)
            _write(cassette, Recording(key, request, _without_secrets(events)))

    return _like(stream_fn, stream)


def rate_limited(stream_fn: StreamFn, *, per_minute: float | None = None, concurrent: int | None = None) -> StreamFn:
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


def request_of(model: ModelSpec, context: LlmContext, options: StreamOptions) -> dict[str, Any]:
    """What identifies a request: model, context and options, as plain data without clocks, costs and secrets."""
    request = {
        "model": {"provider": model.provider, "model_id": model.model_id, "thinking_level": model.thinking_level},
        "system_prompt": context.system_prompt,
        "messages": [_timeless(message) for message in to_builtins(savable(context.messages))],
        "tools": [{"name": tool.name, "description": tool.description, "parameters": tool.parameters_schema} for tool in context.tools],
        "options": {name: value for name in ("temperature", "max_tokens", "tool_choice") if (value := getattr(options, name)) is not None},
    }
    return redact_value(request)


def _without_secrets(events: list[AssistantMessageEvent]) -> list[AssistantMessageEvent]:
    """Stream events without secrets."""
    return msgspec.convert(redact_value(to_builtins(events)), list[AssistantMessageEvent])


def _like(stream_fn: StreamFn, wrapper: StreamFn) -> StreamFn:
    """The wrapper, with what others read off the stream function it wraps: its time limits, its options, its server."""
    for name in ("timeout", "honours", "origin"):
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


def _timeless(message: dict[str, Any]) -> dict[str, Any]:
    kept = ("role", "content", "tool_call_id", "tool_name", "is_error", "stop_reason")
    return {key: message[key] for key in kept if key in message}


def _key(request: dict[str, Any]) -> str:
    return hashlib.sha256(msgspec.json.encode(request, order="sorted")).hexdigest()


async def _play(recording: Recording) -> Events:
    for event in recording.events:
        yield event
    if recording.error is not None:
        raise error_for(recording.error["kind"], recording.error["message"], retry_after=recording.error.get("retry_after"))


def _write(path: Path, recording: Recording) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(msgspec.json.encode(recording) + b"\n")


def _read(path: Path) -> list[Recording]:
    if not path.exists():
        raise CacheMiss(f"there is no cassette at {path}")
    return [msgspec.json.decode(line, type=Recording) for line in path.read_bytes().splitlines() if line.strip()]


def _difference(request: dict[str, Any], recordings: list[Recording], *, asked_before: bool) -> str:
    if asked_before:
        return "the request was recorded, but is asked more often than it was recorded"
    asked = _lines(request)
    if not recordings:
        return "the cassette is empty"
    nearest = max(
        (_lines(item.request) for item in recordings), key=lambda lines: difflib.SequenceMatcher(None, lines, asked, autojunk=False).ratio()
    )
    diff = list(difflib.unified_diff(nearest, asked, "recorded", "asked", n=1, lineterm=""))
    return "this request was not recorded; the nearest recording differs:\n" + "\n".join(diff[:60])


def _lines(request: dict[str, Any]) -> list[str]:
    return msgspec.json.format(msgspec.json.encode(request, order="sorted"), indent=1).decode().splitlines()
