"""How many tokens messages take, told from a look at their text.

A text is measured by what tokenizers go by: words, letters, digits, punctuation, lines, and characters of
other scripts. The weights were fitted to `o200k_base` on prose, code, JSON and sixteen languages. Of a long
text only slices are looked at, so that measuring costs microseconds whatever the size. How far a provider's
own count is off is learnt while a session runs (`swink.agent.context.prefixguard`).
"""

from collections.abc import Sequence
from importlib import import_module
from string import ascii_letters, digits, punctuation
from typing import Any

import msgspec

from swink.errors import InvalidInput
from swink.messages.blocks import Audio, Base64Source, Document, Extension, Image, Text, Thinking, ToolCall
from swink.messages.message import AssistantMessage, Message, UserMessage

LEAST_RATIO, MOST_RATIO = 0.5, 2.0
"""How many tokens a provider counts for one that is estimated, at least and at most."""
FRAME = 16
"""Quarters of a token that a message or a tool counts for besides its content."""
_USER: Any = UserMessage
_REPLY: Any = AssistantMessage
_OTHER: Any = None
_IMAGE = 4_800  # about 1,200 tokens
_SHORT = 256
"""Characters up to which four make a token: a closer look would cost more than it tells."""
_SLICE, _SLICES = 160, 64
"""Characters of a slice, and the most slices that are looked at."""
_RANDOM = 24
"""Letters and digits in a row, on average, from which on they are no words (base64, keys, hashes)."""

_LETTERS, _DIGITS, _SIGNS = ascii_letters.encode(), digits.encode(), punctuation.encode()
_ASCII, _FOLLOWING = bytes(range(0x80)), bytes(range(0x80, 0xC0))
_WORDS = bytes(byte if byte in _LETTERS + _DIGITS else 0x20 for byte in range(256))


def _weight(lead: int) -> int:
    """Hundredths of a token of a character, by the first byte of its UTF-8."""
    if lead >= 0xF0:
        return 250  # emoji
    if 0xE4 <= lead <= 0xE9:
        return 68  # Chinese
    if lead >= 0xE3:
        return 70 if lead < 0xEF else 55  # kana, hangul; full-width signs
    if lead in (0xD0, 0xD1, 0xD2):
        return 29  # Cyrillic
    return 85 if lead < 0xC8 else 40  # accented Latin letters and typographic signs; other alphabets


_WEIGHTS = bytes(map(_weight, range(256)))


def estimate_tokens(message: Message) -> int:
    """A message's tokens, within 15 % of OpenAI's tokenizer for prose, code, Chinese and JSON."""
    return (size_of(message) + FRAME) >> 2


def overhead_tokens(system_prompt: str, tools: Sequence[Any]) -> int:
    """The tokens of what is sent besides the messages; a deferred tool is not read before it is found."""
    size = text_size(system_prompt)
    for tool in tools:
        if getattr(tool, "deferred", False) is not True:
            size += len(tool.name) + text_size(tool.description) + json_size(tool.parameters_schema) + FRAME
    return size >> 2


def count_tokens(text: str, encoding: str = "o200k_base") -> int:
    """The exact tokens of a text in one of OpenAI's encodings; needs the extra `tokens`."""
    try:
        tokenizers: Any = import_module("bpe_openai")
    except ImportError:
        from swink.system.extras import install_command  # it takes 20 ms to import

        raise InvalidInput(f"count_tokens() needs a tokenizer: {install_command('tokens')}") from None
    return len(tokenizers.get_encoding(encoding).encode(text))


def size_of(*messages: Message) -> int:
    """The size of what messages say, in quarters of a token."""
    size = 0
    for message in messages:
        for item in message.content:
            block: Any = item
            kind = type(item)
            if kind is Text or kind is Thinking:
                text: str = block.text
                length = len(text)
                size += length if length <= _SHORT and text.isascii() else text_size(text)
            elif kind is ToolCall:
                size += len(block.name) + json_size(block.arguments)
            elif kind is Image:
                size += _IMAGE
            elif kind is Extension:
                size += json_size(block.data)
            elif kind is Document or kind is Audio:
                size += _media_size(block)
    return size


def _media_size(block: Document | Audio) -> int:
    """The size of a document or a sound; of one that the provider fetches, that of a few pages."""
    source = block.source
    if not isinstance(source, Base64Source):
        return 4 * _IMAGE
    if isinstance(block, Audio):
        return len(source.data) // 160
    text = block.text
    return len(source.data) // 5 if text is None else text_size(text)


def size_of_texts(messages: Sequence[Any]) -> int | None:
    """About the size of what was said, if all of it is text, told at once; None if anything is not."""
    try:
        try:
            # Most messages have one block; and a field is read faster where it is always of one type.
            texts = [
                block.text
                for message in messages
                for [block] in [
                    message.content
                    if type(message) is _USER
                    else message.content
                    if type(message) is _REPLY
                    else _OTHER
                ]
            ]
        except ValueError:
            if not {*map(type, messages)} <= {_USER, _REPLY}:
                return None
            texts = [block.text for message in messages for block in message.content]
        return text_size(" ".join(texts))
    except (AttributeError, TypeError):
        return None


def text_size(text: str) -> int:
    """The size of a text, in quarters of a token."""
    length = len(text)
    if length <= _SHORT and text.isascii():
        return length
    if length <= 8 * _SLICE:
        return _measure(text.encode(errors="surrogatepass"))
    count = min(8 + length // 4_000, _SLICES)
    step = (length - _SLICE) / (count - 1)
    places = [int(number * step) for number in range(count)]
    sample = "".join([text[place : place + _SLICE] for place in places])
    return _measure(sample.encode(errors="surrogatepass")) * length // len(sample)


def json_size(value: Any) -> int:
    """The size of a value as JSON, in quarters of a token."""
    try:
        data = msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError, msgspec.EncodeError):
        try:
            return text_size(str(value))
        except Exception:
            # A value of the application's: what it is as text may be anything, and so may its failure be.
            return 0
    size = len(data)
    return size if size <= _SHORT else text_size(data.decode())


def _measure(data: bytes) -> int:
    size = len(data)
    letters = size - len(data.translate(None, _LETTERS))
    numbers = size - len(data.translate(None, _DIGITS))
    signs = size - len(data.translate(None, _SIGNS))
    words = len(data.translate(_WORDS).split())
    if letters + numbers > _RANDOM * words:
        weight = 620 * (letters + numbers)
    else:
        weight = 576 * words + 106 * letters + 719 * numbers
    weight += 405 * signs + 1_516 * data.count(b"\n")
    if not data.isascii():
        weight += 10 * sum(data.translate(_WEIGHTS, _ASCII + _FOLLOWING))
    return weight // 250
