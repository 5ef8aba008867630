"""Repair: a context that a hook broke is made fit to be sent again, loudly."""

import logging
from collections.abc import Sequence

from swink.messages import Message, ToolResultMessage, UserMessage
from swink.messages.history import Snapshot, paired, violations

log = logging.getLogger("swink")

LEFT_OUT = "[the result of this tool call was left out of the context]"


def with_pairs(messages: Sequence[Message], hook: str, warned: list[str]) -> Sequence[Message]:
    """The messages with a result for every call and a call for every result."""
    problems = violations(messages)
    if not problems:
        return messages
    _warn(f"{hook} parted tool calls from their results ({problems[0]}); return both or neither", warned)
    return paired(messages, missing=LEFT_OUT, lenient=True)


def with_prompt(
    messages: Sequence[Message], history: Snapshot, hook: str, warned: list[str]
) -> Sequence[Message]:
    """The messages with the newest user message of the history, or what the hook made of it, among them."""
    asked = len(history) - 1
    while asked >= 0 and not isinstance(history[asked], UserMessage):
        asked -= 1
    if asked < 0 or any(message is history[asked] for message in reversed(messages)):
        return messages
    later = {id(message) for message in history[asked + 1 :]}
    place = next((index for index, item in enumerate(messages) if id(item) in later), len(messages))
    while 0 < place < len(messages) and isinstance(messages[place], ToolResultMessage):
        place -= 1
    if _is_rewritten(messages, place, history, asked):
        return messages
    _warn(f"{hook} dropped the newest user message; keep it in what it returns", warned)
    return [*messages[:place], history[asked], *messages[place:]]


def _is_rewritten(messages: Sequence[Message], place: int, history: Snapshot, asked: int) -> bool:
    """Whether the hook returned another message for the prompt, rather than none."""
    known = {id(message) for message in history}
    made = [item for item in messages if isinstance(item, UserMessage) and id(item) not in known]
    prompt = history[asked]
    if any(item.timestamp == prompt.timestamp or item == prompt for item in made):
        return True
    if place == len(messages):  # nothing after the prompt is left as it was: rewritten too, or dropped
        return bool(made) and (asked == len(history) - 1 or messages[-1] is not made[-1])
    follows = messages[place] is history[asked + 1]
    return follows and place > 0 and any(item is messages[place - 1] for item in made)


def _warn(text: str, warned: list[str]) -> None:
    if text.partition(" (")[0] not in warned:
        warned.append(text.partition(" (")[0])
        log.warning("%s; the context was repaired before it was sent", text)
