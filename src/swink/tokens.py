"""How many tokens messages take, told from their size.

Four characters of English or code make a token. Text in other scripts takes more tokens by the character,
about as many as its UTF-8 is longer: its bytes are counted instead.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from swink.messages import Image, Message, Text, Thinking, ToolCall

FRAME = 16
"""Bytes that a message or a tool counts for besides its content."""
_IMAGE = 4_800  # about 1,200 tokens


def estimate_tokens(message: Message) -> int:
    """A message's tokens, at four bytes each; within a fifth of the truth for English and code."""
    return (size_of(message) + FRAME) >> 2


def size_of(message: Message) -> int:
    """The size of a message's content, in bytes."""
    size = 0
    for item in message.content:
        block: Any = item
        kind = type(item)
        if kind is Text or kind is Thinking:
            size += text_size(block.text)
        elif kind is ToolCall:
            size += len(block.name) + json_size(block.arguments)
        elif kind is Image:
            size += _IMAGE
    return size


def size_of_texts(messages: Iterable[Any]) -> int | None:
    """The size of messages that are one block of text each, in a fifth of the time; None if any is not."""
    try:
        return text_size("".join([block.text for message in messages for (block,) in (message.content,)]))
    except (ValueError, AttributeError, TypeError):
        return None


def text_size(text: str) -> int:
    """The size of a text, in bytes."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def json_size(value: Any) -> int:
    """The size of a value as JSON, in bytes."""
    try:
        return len(msgspec.json.encode(value))
    except (TypeError, ValueError, RecursionError, msgspec.EncodeError):
        return text_size(str(value))
