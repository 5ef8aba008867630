"""Transformers over the context: what a model is sent, decided anew for every turn; the history itself stays whole."""

import inspect
from collections.abc import Awaitable, Sequence
from typing import Any

from swink.context import TransformFn
from swink.engine.run import Run
from swink.events import CompactionReport, ContextCompacted
from swink.messages import Message
from swink.tokens import estimate_tokens


async def transform_context(run: Run, overflow: bool) -> Sequence[Message]:
    """The run's messages after its transformers; each that drops something is announced."""
    messages: Sequence[Message] = run.history.snapshot()
    for position, function in enumerate(in_order(run.config.transform_context)):
        before = messages
        returned = function(before, overflow)
        if returned is before:
            continue
        messages = await returned if isinstance(returned, Awaitable) else returned
        if messages is not before:
            _announce(run, position, before, messages, overflow)
    return messages


def in_order(transform: TransformFn | Sequence[TransformFn]) -> Sequence[TransformFn]:
    """The transformers, async ones first."""
    if callable(transform):
        return (transform,)
    return (
        transform if len(transform) < 2 else sorted(transform, key=lambda function: not _is_async(function))
    )


def _announce(
    run: Run, position: int, before: Sequence[Message], after: Sequence[Message], overflow: bool
) -> None:
    kept = {id(message) for message in after}
    dropped = sum(id(message) not in kept for message in before)
    known = run.dropped or {}
    if dropped > known.get(position, 0):
        tokens = sum(map(estimate_tokens, before)), sum(map(estimate_tokens, after))
        run.emit(ContextCompacted(CompactionReport(dropped, *tokens, overflow)))
    run.dropped = {**known, position: dropped}


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004
    )
