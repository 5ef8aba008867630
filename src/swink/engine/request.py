"""What a model is sent: the history after its transformers, converted for the model."""

from collections.abc import Sequence
from typing import Any

from swink.context import in_order
from swink.engine.history import Snapshot
from swink.engine.run import Run
from swink.engine.waiting import resolve
from swink.events import CompactionReport, ContextCompacted
from swink.messages import AssistantMessage, LlmMessage, Message
from swink.tokens import estimate_tokens


async def transform_context(run: Run, overflow: bool) -> Sequence[Message]:
    """What the model is sent: the history after its transformers; each that drops something is announced."""
    messages: Sequence[Message] = run.ledger.history.snapshot()
    for position, function in enumerate(in_order(run.config.transform_context)):
        before = messages
        returned = function(before, overflow)
        if returned is before:
            continue
        messages = await resolve(returned)
        if messages is not before:
            _announce(run, position, before, messages, overflow)
    return messages


async def shrink_context(run: Run, sent: Sequence[Message]) -> Sequence[Message] | None:
    """After an overflow: a smaller context, or None if no transformer can make one."""
    smaller = await transform_context(run, True)
    run.check()
    return smaller if sum(map(estimate_tokens, smaller)) < sum(map(estimate_tokens, sent)) else None


def llm_messages(run: Run, messages: Sequence[Any]) -> Sequence[LlmMessage]:
    """What the model sees: converted, and without a failed reply at the end, which would be a prefill."""
    converted: Sequence[Any] = messages
    if (convert := run.config.convert_to_llm) is not None:
        converted = [kept for message in messages if (kept := convert(message)) is not None]
    elif not isinstance(messages, Snapshot) or messages.has_custom:
        converted = [message for message in messages if message.role != "custom"]
    whole = end = len(converted)
    while end and isinstance(last := converted[end - 1], AssistantMessage) and last.failed:
        end -= 1
    return converted if end == whole else converted[:end]


def _announce(
    run: Run, position: int, before: Sequence[Message], after: Sequence[Message], overflow: bool
) -> None:
    kept = {id(message) for message in after}
    dropped = sum(id(message) not in kept for message in before)
    known = run.dropped or {}
    if dropped > known.get(position, 0):
        tokens = sum(map(estimate_tokens, before)), sum(map(estimate_tokens, after))
        run.ledger.emit(ContextCompacted(CompactionReport(dropped, *tokens, overflow)))
    run.dropped = {**known, position: dropped}
