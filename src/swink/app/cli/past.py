"""What was said: the messages of a saved conversation as lines for a terminal."""

import sys
from collections.abc import Iterable, Iterator, Mapping

from swink.app.assistant.calls import format_call
from swink.app.cli.terminal import add_style
from swink.messages import AssistantMessage, Message, Text, ToolResultMessage, UserMessage
from swink.messages.redact import redact_text
from swink.system.oneline import shorten, strip_controls

_EXCHANGES = 2
_LINES = 12
"""How many exchanges a resumed chat repeats, and how many lines of each text."""


def show_all(messages: Mapping[int, Message]) -> Iterator[str]:
    """Everything, each prompt with its number: so many messages come before it."""
    for number, message in messages.items():
        yield from _lines(message, None, f"#{number} ")


def show_last(messages: Iterable[Message]) -> Iterator[str]:
    """The last exchanges, long texts cut."""
    found = list(messages)
    prompts = [index for index, message in enumerate(found) if isinstance(message, UserMessage)]
    start = prompts[-_EXCHANGES:][0] if prompts else 0
    if start:
        yield add_style(f"… {start} earlier messages", "dim", sys.stdout)
    for message in found[start:]:
        yield from _lines(message, _LINES)


def _lines(message: Message, most: int | None, mark: str = "") -> Iterator[str]:
    match message:
        case UserMessage():
            pictures = sum(not isinstance(block, Text) for block in message.content)
            text = message.text + f" [{pictures} attached]" * bool(pictures)
            first, *rest = _cut(text, most)
            yield add_style(f"{mark}> {first}", "bold", sys.stdout)
            yield from rest
        case AssistantMessage():
            if message.text.strip():
                yield from _cut(message.text, most)
            for call in message.tool_calls:
                yield add_style(shorten(f"→ {format_call(call.name, call.arguments)}"), "dim", sys.stdout)
            if message.error_message:
                yield add_style(shorten(f"✗ {redact_text(message.error_message)}"), "dim", sys.stdout)
        case ToolResultMessage():
            sign = "✗" if message.is_error else "←"
            yield add_style(shorten(f"{sign} {redact_text(message.text)}"), "dim", sys.stdout)
        case _:
            yield add_style(shorten(f"({message.role})"), "dim", sys.stdout)


def _cut(text: str, most: int | None) -> list[str]:
    lines = strip_controls(redact_text(text.rstrip())).split("\n")
    if most is None or len(lines) <= most:
        return lines
    return [*lines[:most], add_style(f"… {len(lines) - most} more lines", "dim", sys.stdout)]
