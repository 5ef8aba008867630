"""Message content as the conventions write it: JSON of roles and parts, without secrets and without media."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from swink.codec import plain
from swink.messages import (
    AssistantMessage,
    CustomMessage,
    Media,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolResultMessage,
)
from swink.redact import redact_text, redact_value
from swink.stream import LlmContext
from swink.telemetry.conventions import Attributes, finish_reason

_MOST = 100_000
"""Characters of one attribute; what is longer is cut and no longer JSON."""


def input_attributes(context: LlmContext) -> Attributes:
    """What a model is sent."""
    attributes: Attributes = {"gen_ai.input.messages": messages_text(context.messages)}
    if context.system_prompt:
        attributes["gen_ai.system_instructions"] = _text([_said("text", context.system_prompt)])
    if context.tools:
        attributes["gen_ai.tool.definitions"] = _text(
            [
                {"type": "function", "name": tool.name, "description": tool.description}
                for tool in context.tools
            ]
        )
    return attributes


def messages_text(messages: Sequence[Message]) -> str:
    """Messages, as JSON."""
    return _text([_message(message) for message in messages if not isinstance(message, CustomMessage)])


def arguments_text(arguments: Mapping[str, Any]) -> str:
    """The arguments of a call, as JSON."""
    return _text(redact_value(dict(arguments)))


def result_text(result: ToolResult) -> str:
    """What a tool gave back, as JSON."""
    return _text([_part(block) for block in result.content])


def _message(message: Message) -> dict[str, Any]:
    match message:
        case ToolResultMessage():
            response = {
                "type": "tool_call_response",
                "id": message.tool_call_id,
                "response": redact_text(message.text),
            }
            return {"role": "tool", "parts": [response]}
        case AssistantMessage():
            parts = [_part(block) for block in message.content]
            return {
                "role": "assistant",
                "parts": parts,
                "finish_reason": finish_reason(message.stop_reason),
            }
        case _:
            return {"role": message.role, "parts": [_part(block) for block in message.content]}


def _part(block: object) -> dict[str, Any]:
    match block:
        case Text(text):
            return _said("text", text)
        case Thinking():
            return _said("reasoning", block.text)
        case ToolCall():
            arguments = redact_value(dict(block.arguments))
            return {"type": "tool_call", "id": block.id, "name": block.name, "arguments": arguments}
        case _ if isinstance(block, Media):
            return {"type": "blob", "modality": type(block).__name__.lower(), "content": ""}
        case _:
            return {"type": type(block).__name__.lower()}


def _said(kind: str, text: str) -> dict[str, Any]:
    return {"type": kind, "content": redact_text(text)}


def _text(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=plain).decode()[:_MOST]
