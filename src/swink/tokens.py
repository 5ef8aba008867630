"""How many tokens messages take, told from their characters."""

from collections.abc import Iterable
from typing import Any

import msgspec

from swink.messages import Image, Message, Text, Thinking, ToolCall

FRAME = 16
"""Characters that a message counts for besides its content."""
_IMAGE = 4_800  # about 1,200 tokens


def estimate_tokens(message: Message) -> int:
    """A message's tokens, at four characters each; within a fifth of the truth for English and code."""
    return (characters(message) + FRAME) >> 2


def characters(message: Message) -> int:
    """The size of a message's content."""
    size = 0
    for block in message.content:
        kind: Any = type(block)
        if kind is Text or kind is Thinking:
            size += len(block.text)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownMemberType]
        elif kind is ToolCall:
            size += len(block.name) + _json_size(block.arguments)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownMemberType]
        elif kind is Image:
            size += _IMAGE
    return size


def lengths_of_texts(messages: Iterable[Message]) -> list[int] | None:
    """The characters of messages that are one block of text each, in a third of the time; None if any is not."""
    try:
        return [len(block.text) for message in messages for (block,) in (message.content,)]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]
    except (ValueError, AttributeError, TypeError):
        return None


def _json_size(value: Any) -> int:
    try:
        return len(msgspec.json.encode(value))
    except (TypeError, ValueError, RecursionError, msgspec.EncodeError):
        return len(str(value))
