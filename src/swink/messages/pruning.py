"""Pruning: old, large tool results are cut short, and a note says what was left out and how to get it."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from swink.messages.blocks import Extension, Media, Text
from swink.messages.message import Message, ToolResult, ToolResultMessage
from swink.messages.tokens import estimate_tokens

LARGE = 200
"""Tokens above which an old result is cut."""
NEWEST = 3
"""How many of the newest results are left alone."""
READ_RESULT = "read_result"
"""The tool that reads the rest of a result."""
_HEAD = 200
_NOTE = "of this old result left out"
_PRUNED = f"of {{}} characters {_NOTE}"
CUT = "of {} characters cut …]"
"""The note in a result that was longer than its tool allows."""


def prune(
    messages: Sequence[Message], start: int, end: int, excess: int, readable: bool
) -> tuple[list[Message], int]:
    """The messages with results between two places cut, oldest first, until so many tokens are saved.

    Also says how many were. `readable` says that there is a tool to read the rest with.
    """
    items, saved = list(messages), 0
    results = [place for place, item in enumerate(items) if isinstance(item, ToolResultMessage)]
    for place in results[:-NEWEST]:
        if saved >= excess:
            break
        item = items[place]
        if not start <= place < end or (size := estimate_tokens(item)) <= LARGE:
            continue
        assert isinstance(item, ToolResultMessage)
        short = _shortened(item, readable)
        if (less := size - estimate_tokens(short)) > 0:
            items[place], saved = short, saved + less
    return items, saved


def is_pruned(message: Message) -> bool:
    """Whether a message is a result that was cut short here."""
    return isinstance(message, ToolResultMessage) and _NOTE in message.text[-2 * _HEAD :]


def full_text(result: ToolResult | ToolResultMessage) -> str | None:
    """The whole text of a result that was cut short, here or by its tool's limit, or None."""
    match result.details:
        case {"full_text": str() as text, **others} if others.keys() <= {"details"}:
            shown, size = result.text, len(text)
            return text if CUT.format(size) in shown or _PRUNED.format(size) in shown else None
        case _:
            return None


def with_full_text(details: Any, text: str) -> dict[str, Any]:
    """The details of a result that is cut short, with its whole text."""
    return {"full_text": text} if details is None else {"full_text": text, "details": details}


def _shortened(message: ToolResultMessage, readable: bool) -> ToolResultMessage:
    known = full_text(message)
    text, kept = message.text if known is None else known, message.text[:_HEAD]
    media = sorted({type(block).__name__.lower() for block in message.content if isinstance(block, Media)})
    gone = f", and its {' and '.join(media)}" if media else ""
    # The tool that reads the rest has its text alone.
    by_reading = readable and not media
    more = (
        f"{READ_RESULT}({message.tool_call_id!r:.80}) gives it" if by_reading else "run the tool again for it"
    )
    note = f"[… {len(text) - len(kept)} {_PRUNED.format(len(text))}{gone}; {more}]"
    others: list[Any] = [block for block in message.content if isinstance(block, Extension)]
    # compact() makes it part of the history, where the rest has to be found.
    details = with_full_text(message.details, text) if known is None else message.details
    return replace(message, content=(Text(f"{kept}\n{note}" if kept else note), *others), details=details)
