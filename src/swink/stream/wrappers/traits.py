"""Traits: what others read off a stream function besides its events."""

from collections.abc import AsyncIterator, Sequence

from swink.messages import ModelSpec
from swink.stream import AssistantMessageEvent, LlmContext, StreamFn
from swink.stream.urls import origin_of

Events = AsyncIterator[AssistantMessageEvent]

_TRAITS = ("timeout", "honours", "base_url", "asker", "check_key", "native_output")


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


def server_of(stream_fn: StreamFn) -> str | None:
    """The server a stream function asks; None if that is not known."""
    return origin_of(getattr(stream_fn, "base_url", None))


def asker_of(*stream_fns: StreamFn) -> str:
    """Who asks, as the stream functions themselves say it: with which key, where the options bring none."""
    askers = [getattr(stream_fn, "asker", None) for stream_fn in stream_fns]
    return " ".join([asker() for asker in askers if asker is not None])
