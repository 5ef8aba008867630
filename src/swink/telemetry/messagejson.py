"""Message content as the conventions write it: JSON of roles and parts, without secrets and without media."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from swink.messages.blocks import Media, Text, Thinking, ToolCall
from swink.messages.codec import plain
from swink.messages.message import AssistantMessage, CustomMessage, Message, ToolResult, ToolResultMessage
from swink.messages.redact import redact_text, redact_value
from swink.stream import LlmContext, ToolSpec
from swink.telemetry.conventions import Attributes, finish_reason

_MOST, _LAST = 4_000, 20
"""Characters of one text, and messages of one attribute: this is work on the event loop."""


def input_attributes(context: LlmContext) -> Attributes:
    """What a model is sent."""
    attributes: Attributes = {"gen_ai.input.messages": messages_text(context.messages)}
    if context.system_prompt:
        attributes["gen_ai.system_instructions"] = _text([_said("text", context.system_prompt)])
    if context.tools:
        attributes["gen_ai.tool.definitions"] = _text([_definition(tool) for tool in context.tools])
    return attributes


def _definition(tool: ToolSpec) -> dict[str, Any]:
    told = {"type": "function", "name": tool.name, "description": tool.description}
    return {**told, "parameters": tool.parameters_schema}


def messages_text(messages: Sequence[Message]) -> str:
    """The last messages of a conversation, as JSON."""
    last = messages[max(len(messages) - _LAST, 0) :]
    return _text([_message(message) for message in last if not isinstance(message, CustomMessage)])


def arguments_text(arguments: Mapping[str, Any]) -> str:
    """The arguments of a call, as JSON."""
    return _text(_redacted(arguments))


def result_text(result: ToolResult) -> str:
    """What a tool gave back, as JSON."""
    return _text([_part(block) for block in result.content])


def _message(message: Message) -> dict[str, Any]:
    match message:
        case ToolResultMessage():
            said = redact_text(_short(message.text))
            response = {"type": "tool_call_response", "id": message.tool_call_id, "response": said}
            return {"role": "tool", "parts": [response]}
        case _:
            told = {"role": message.role, "parts": [_part(block) for block in message.content]}
            if isinstance(message, AssistantMessage):
                told["finish_reason"] = finish_reason(message.stop_reason)
            return told


def _part(block: object) -> dict[str, Any]:
    match block:
        case Text(text):
            return _said("text", text)
        case Thinking():
            return _said("reasoning", block.text)
        case ToolCall():
            arguments = _redacted(block.arguments)
            return {"type": "tool_call", "id": block.id, "name": block.name, "arguments": arguments}
        case _ if isinstance(block, Media):
            return {"type": "blob", "modality": type(block).__name__.lower(), "content": ""}
        case _:
            return {"type": type(block).__name__.lower()}


def _said(kind: str, text: str) -> dict[str, Any]:
    return {"type": kind, "content": redact_text(_short(text))}


def _redacted(arguments: Mapping[str, Any]) -> Any:
    """Arguments without secrets; only the beginning of those that are long, as text."""
    text = _text(arguments)
    return redact_value(dict(arguments)) if len(text) <= _MOST else redact_text(_short(text))


def _short(text: str) -> str:
    """The beginning of a long text, up to a blank: half a secret could not be told from a word."""
    if len(text) <= _MOST:
        return text
    head = text[:_MOST]
    return f"{head[: max(head.rfind(' '), head.rfind(chr(10)), 0)]} … ({len(text)} characters)"


def _text(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=plain).decode()
