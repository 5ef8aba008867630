"""Recording: exchanges with a model kept on a cassette, and answers taken from one."""

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from swink.errors import CacheMiss, ModelError, error_for
from swink.messages import Cost, ModelSpec, Usage
from swink.messages.jsondata import list_of, object_of
from swink.messages.redact import describe_error
from swink.stream import (
    AssistantMessageEvent,
    Done,
    Error,
    LlmContext,
    Start,
    StreamFn,
    StreamOptions,
    UsageUpdate,
)
from swink.stream.wrappers.cassette import Cassette, CassetteRequest, Recording, identify
from swink.stream.wrappers.difference import first_difference
from swink.stream.wrappers.sending import Events, asker_of, copy_traits
from swink.system.aio import closing
from swink.system.threads import in_thread

logger = logging.getLogger("swink.wrappers")


def recorded(stream_fn: StreamFn, path: str | Path) -> StreamFn:
    """Write every exchange of `stream_fn` to a cassette at `path`, JSONL without secrets; `replayed` plays it
    back.
    """
    cassette = Cassette(path)

    async def stream(model: ModelSpec, context: LlmContext, options: StreamOptions) -> Events:
        asked = await _identify(model, context, options)
        events: list[AssistantMessageEvent] = []
        ended = asked is None
        try:
            async with closing(stream_fn(model, context, options)) as source:
                async for event in source:
                    events.append(event)
                    # An exchange that was cut off by the caller is no recording.
                    if asked is not None and not ended and isinstance(event, Done | Error):
                        ended = True
                        await in_thread(cassette.keep, asked, list(events))
                    yield event
        except ModelError as error:
            if asked is not None and not ended:
                await in_thread(cassette.keep, asked, events, error)
            raise

    return copy_traits(stream_fn, stream)


def replayed(path: str | Path, *, again: bool = False) -> StreamFn:
    """Play the cassette at `path` back, offline; a request that is not on it raises `CacheMiss` with a diff.

    With `again`, a request that is asked more often than it was recorded is answered from the first on.
    """
    if not Path(path).exists():
        raise CacheMiss(f"there is no cassette at {path}")
    recordings = Cassette(path).read()
    waiting: dict[str, deque[Recording]] = {}
    for recording in recordings:
        waiting.setdefault(recording.key, deque()).append(recording)

    async def stream(model: ModelSpec, context: LlmContext, options: StreamOptions) -> Events:
        asked = await in_thread(identify, model, context, options)
        queue = waiting.get(asked.key)
        if not queue:
            difference = await in_thread(_difference, asked.shown, recordings, asked_before=queue is not None)
            raise CacheMiss(difference, model=str(model))
        recording = queue.popleft()
        if again:
            queue.append(recording)
        for event in recording.events:
            yield event
        if (failure := recording.error) is not None:
            raise error_for(failure.kind, failure.message, retry_after=failure.retry_after)

    wrapper: Any = stream
    native = [_asked_of(recording.request) for recording in recordings if "output" in recording.request]

    def native_output(model: ModelSpec, context: LlmContext) -> bool:
        """A schema is asked for as it was when the cassette was recorded."""
        bare = LlmContext("", (), context.tools, context.hosted, context.output)
        return _asked_of(identify(model, bare, StreamOptions()).shown) in native

    if native:
        wrapper.native_output = native_output
    searching = {_name_of(recording.request) for recording in recordings if _has_deferred(recording.request)}

    def native_search(model: ModelSpec) -> bool:
        """Deferred tools are sent as they were when the cassette was recorded."""
        return (model.provider, model.model_id) in searching

    if searching:
        wrapper.native_search = native_search
    return wrapper


def _has_deferred(request: Mapping[str, Any]) -> bool:
    """Whether the provider that was asked searched deferred tools itself."""
    return any("deferred" in object_of(tool) for tool in list_of(request.get("tools")))


def _name_of(request: Mapping[str, Any]) -> tuple[Any, Any]:
    model = object_of(request.get("model"))
    return model.get("provider"), model.get("model_id")


def _asked_of(request: Mapping[str, Any]) -> list[Any]:
    """What decides whether a provider sees to a schema itself."""
    return [request.get(name) for name in ("model", "tools", "hosted", "output")]


def cached(stream_fn: StreamFn, path: str | Path) -> StreamFn:
    """Answer from the cassette at `path`, free of charge; else ask the `stream_fn` and record it, but no
    failure.

    Two requests are the same if everything that is sent is the same, and also the model, the server, the key
    and the session; a key that the stream function brings itself counts by its `asker()`. A reply that holds
    a secret is recorded without it: it is reused while this process lives, and asked for again by the next
    one.
    """
    cassette = Cassette(path)
    recordings = cassette.read() if cassette.path.exists() else []
    known = {item.exact: item.events for item in recordings if item.exact is not None and item.error is None}
    server = str(getattr(stream_fn, "base_url", ""))

    async def stream(model: ModelSpec, context: LlmContext, options: StreamOptions) -> Events:
        asked = await _identify(model, context, options, server, asker_of(stream_fn))
        exact = None if asked is None else await in_thread(asked.exact)
        for event in _free(known.get(exact or "", ())):
            yield event
        if exact in known:
            return
        events: list[AssistantMessageEvent] = []
        async with closing(stream_fn(model, context, options)) as source:
            async for event in source:
                events.append(event)
                if asked is not None and exact is not None and isinstance(event, Done):
                    known[exact] = list(events)
                    await in_thread(cassette.keep, asked, known[exact], exact=exact)
                yield event

    return copy_traits(stream_fn, stream)


def _free(events: Iterable[AssistantMessageEvent]) -> Iterator[AssistantMessageEvent]:
    """A reply that is not asked for again: it costs nothing, however far it comes."""
    for event in events:
        yield replace(event, cost=Cost()) if isinstance(event, UsageUpdate | Done) else event
        if isinstance(event, Start):
            yield UsageUpdate(Usage(), Cost())


async def _identify(
    model: ModelSpec, context: LlmContext, options: StreamOptions, server: str = "", asker: str = ""
) -> CassetteRequest | None:
    """What the request is known by; None for one that no cassette can hold."""
    try:
        return await in_thread(identify, model, context, options, server, asker)
    except (TypeError, ValueError, NotImplementedError) as error:
        logger.warning("a request to %s is not recorded: %s", model, describe_error(error))
        return None


def _difference(request: dict[str, Any], recordings: list[Recording], *, asked_before: bool) -> str:
    if asked_before:
        return "the request was recorded, but is asked more often than it was recorded"
    if not recordings:
        return "the cassette is empty"
    return first_difference(request, [item.request for item in recordings])
