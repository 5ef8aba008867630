"""Transformers over the context: what a model is sent, decided anew for every turn; the history itself stays whole."""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from swink.context import TransformFn, estimate_tokens
from swink.events import CompactionReport, ContextCompacted
from swink.messages import Message
from swink.run import Run


async def transformed(
    transform: TransformFn | Sequence[TransformFn],
    messages: Sequence[Message],
    overflow: bool,
    announce: Callable[[int, Sequence[Message], Sequence[Message]], None] | None = None,
) -> Sequence[Message]:
    """The messages after the transformers, async ones first; `announce` hears of each that changed something."""
    transforms: Sequence[TransformFn] = [transform] if callable(transform) else transform
    if len(transforms) > 1:
        transforms = sorted(transforms, key=lambda function: not _is_async(function))
    for position, function in enumerate(transforms):
        before = messages
        returned = function(before, overflow)
        messages = await returned if isinstance(returned, Awaitable) else returned
        if announce is not None and messages is not before:
            announce(position, before, messages)
    return messages


async def transform_context(run: Run, overflow: bool) -> Sequence[Message]:
    """The run's messages after its transformers, each of which is announced when it drops something."""
    return await transformed(
        run.config.transform_context,
        run.history.snapshot(),
        overflow,
        lambda position, before, after: _announce(run, position, before, after, overflow),
    )


def _announce(run: Run, position: int, before: Sequence[Message], after: Sequence[Message], overflow: bool) -> None:
    kept = {id(message) for message in after}
    dropped = sum(id(message) not in kept for message in before)
    if dropped > run.dropped.get(position, 0):
        tokens = sum(map(estimate_tokens, before)), sum(map(estimate_tokens, after))
        run.emit(ContextCompacted(CompactionReport(dropped, *tokens, overflow)))
    run.dropped[position] = dropped


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004
