"""What a model is sent: the history after its transformers, converted for the model."""

from collections.abc import Sequence
from operator import is_
from typing import Any, cast

from swink.context import TransformFn, in_order, sized
from swink.engine.history import Snapshot
from swink.engine.repair import with_pairs, with_prompt
from swink.engine.run import Run
from swink.engine.waiting import resolve
from swink.errors import InvalidInput
from swink.events import CompactionReport, ContextCompacted
from swink.messages import AssistantMessage, LlmMessage, Message
from swink.tokens import estimate_tokens


async def transform_context(run: Run, overflow: bool) -> Sequence[Message]:
    """The history after its transformers, for the model that is asked; what one drops is announced."""
    history = messages = run.ledger.history.snapshot()
    for position, function in enumerate(in_order(run.config.transform_context)):
        before = messages
        returned = sized(function, run.ledger.model)(before, overflow)
        if returned is before:
            continue
        messages = await resolve(returned)
        if messages is not before:
            messages = _checked(run, function, messages, history)
            _announce(run, position, before, messages, overflow)
    return messages


async def refit_context(run: Run, messages: Sequence[Message]) -> Sequence[Message]:
    """The context for another model than the one it was made for."""
    is_sized = any(hasattr(function, "sized_for") for function in in_order(run.config.transform_context))
    return await transform_context(run, False) if is_sized else messages


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
        if len(converted) < len(messages) or not all(map(is_, converted, messages)):
            converted = with_pairs(converted, "convert_to_llm", run.config.warned)
    elif isinstance(messages, Snapshot):
        converted = messages.plain
    else:
        converted = [message for message in messages if message.role != "custom"]
    whole = end = len(converted)
    while end and isinstance(last := converted[end - 1], AssistantMessage) and last.failed:
        end -= 1
    return converted if end == whole else converted[:end]


def _checked(run: Run, function: TransformFn, messages: Any, history: Snapshot) -> Sequence[Message]:
    """What a transformer returned, repaired; snapshots are sound, since histories are."""
    if isinstance(messages, Snapshot):
        return messages
    name = getattr(function, "__name__", None) or type(function).__name__
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        raise InvalidInput(f"{name} returned {type(messages).__name__}; it returns the messages to send")
    returned, warned = cast("Sequence[Message]", messages), run.config.warned
    return with_prompt(with_pairs(returned, name, warned), history, name, warned)


def _announce(
    run: Run, position: int, before: Sequence[Message], after: Sequence[Message], overflow: bool
) -> None:
    known = run.dropped or {}
    window = after.history if isinstance(after, Snapshot) else None
    announced, dropped = known.get(position, (None, 0))
    if window is not None and window is announced:
        return  # it has only grown since
    now = _dropped(before, after)
    if now > dropped:
        run.ledger.emit(ContextCompacted(CompactionReport(now, _tokens(before), _tokens(after), overflow)))
    run.dropped = {**known, position: (window, now)}


def _dropped(before: Sequence[Message], after: Sequence[Message]) -> int:
    if isinstance(before, Snapshot) and isinstance(after, Snapshot):
        return len(before) - len(after)
    kept = {id(message) for message in after}
    return sum(id(message) not in kept for message in before)


def _tokens(messages: Sequence[Message]) -> int:
    if isinstance(messages, Snapshot) and len(messages) == len(messages.history):
        return messages.history.most_tokens()  # measured message by message, as it grew
    return sum(map(estimate_tokens, messages))
