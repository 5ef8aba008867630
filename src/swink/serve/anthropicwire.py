"""Anthropic's messages as a server speaks them."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from swink import stream
from swink.messages import (
    AssistantMessage,
    ContentBlock,
    LlmMessage,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from swink.serve import wire
from swink.serve.wire import Refused, ServedRequest, ServedTool, fields, members, sse, text_block

_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_use": "tool_use"}
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


class AnthropicWire:
    """One request, and the events of its reply."""

    def read_request(self, body: Any) -> ServedRequest:
        """What is asked for; raises `Refused`."""
        request = wire.read_request(body)
        options = wire.options_of(
            max_tokens=request.get("max_tokens"),
            temperature=request.get("temperature"),
            top_p=request.get("top_p"),
            stop=request.get("stop_sequences"),
            session_id=fields(request.get("metadata")).get("user_id"),
            tool_choice=_tool_choice(request.get("tool_choice")),
        )
        system = request.get("system") or ""
        if not isinstance(system, str):
            system = "\n\n".join(text_block(part, "system").text for part in members(system))
        history = list(_history(members(request["messages"])))
        tools = list(_tools(members(request.get("tools"))))
        context = stream.LlmContext(system, history, tools, output=_output(request.get("output_config")))
        return ServedRequest(context, options, bool(request.get("stream")))

    def start_reply(self, model: str, asked: ServedRequest) -> list[bytes]:
        return [_event("message_start", message=_message(model, [], None, Usage()))]

    def write_event(self, event: stream.AssistantMessageEvent) -> list[bytes]:
        match event:
            case stream.TextStart(index):
                return [_start(index, {"type": "text", "text": ""})]
            case stream.ThinkingStart(index):
                return [_start(index, {"type": "thinking", "thinking": "", "signature": ""})]
            case stream.ToolCallStart(index, id, name):
                return [_start(index, {"type": "tool_use", "id": id, "name": name, "input": {}})]
            case stream.TextDelta(index, text):
                return [_delta(index, {"type": "text_delta", "text": text})]
            case stream.ThinkingDelta(index, text):
                return [_delta(index, {"type": "thinking_delta", "thinking": text})]
            case stream.ToolCallDelta(index, text):
                return [_delta(index, {"type": "input_json_delta", "partial_json": text})]
            case stream.TextEnd(index) | stream.ThinkingEnd(index) | stream.ToolCallEnd(index):
                return [_event("content_block_stop", index=index)]
            case stream.Done(reason, usage):
                delta = {"stop_reason": _REASONS.get(reason, "end_turn"), "stop_sequence": None}
                return [_event("message_delta", delta=delta, usage=_usage(usage)), _event("message_stop")]
            case stream.Error(message, kind):
                return [sse(self.failure(500, message, kind), "error")]
            case _:
                return []

    def whole_reply(self, model: str, message: AssistantMessage) -> dict[str, Any]:
        content = [block for each in message.content if (block := _block(each)) is not None]
        return _message(model, content, _REASONS.get(message.stop_reason, "end_turn"), message.usage)

    def failure(self, status: int, message: str, kind: str | None) -> dict[str, Any]:
        names = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error"}
        said = f"prompt is too long: {message}" if kind == "context_window_exceeded" else message
        return {"type": "error", "error": {"type": names.get(status, "api_error"), "message": said}}


def _history(messages: Sequence[Any]) -> Iterator[LlmMessage]:
    names: dict[str, str] = {}
    for at, message in enumerate(messages):
        where = f"messages[{at}]"
        match message:
            case {"role": "user" | "assistant" as role, "content": str() as text}:
                yield UserMessage(text) if role == "user" else AssistantMessage((Text(text),))
            case {"role": "user", "content": parts} if isinstance(parts, list):
                yield from _user(members(message["content"]), names, where)
            case {"role": "assistant", "content": parts} if isinstance(parts, list):
                blocks = [_said(part, where) for part in members(message["content"])]
                names |= {block.id: block.name for block in blocks if isinstance(block, ToolCall)}
                yield AssistantMessage(tuple(block for block in blocks if block is not None))
            case _:
                raise Refused(400, f"{where} has no role that is known, user or assistant, or no content")


def _user(parts: Sequence[Any], names: Mapping[str, str], where: str) -> Iterator[LlmMessage]:
    said: list[Text] = []
    for part in parts:
        match part:
            case {"type": "tool_result", "tool_use_id": str() as id}:
                content, failed = fields(part).get("content"), bool(fields(part).get("is_error"))
                inner = [content] if isinstance(content, str) else members(content)
                blocks = tuple(text_block(each, where) for each in inner)
                yield ToolResultMessage(id, names.get(id, "tool"), blocks, is_error=failed)
            case _:
                said.append(text_block(part, where))
    if said:
        yield UserMessage(tuple(said))


def _said(part: Any, where: str) -> Text | ToolCall | None:
    match part:
        case {"type": "tool_use", "id": str() as id, "name": str() as name, "input": arguments}:
            return ToolCall(id, name, dict(fields(arguments)))
        case {"type": "thinking" | "redacted_thinking"}:
            return None
        case _:
            return text_block(part, where)


def _tools(tools: Sequence[Any]) -> Iterator[ServedTool]:
    for tool in tools:
        match tool:
            case {"name": str() as name, "input_schema": schema}:
                yield wire.served_tool(name, fields(tool), schema)
            case _:
                raise Refused(400, "a tool has a name and an input_schema; hosted tools are not here")


def _tool_choice(choice: Any) -> str | None:
    match choice:
        case None:
            return None
        case {"type": "tool", "name": str() as name}:
            return name
        case {"type": str() as kind} if kind in _CHOICES:
            return _CHOICES[kind]
        case _:
            raise Refused(400, "tool_choice has the type auto, any, none or tool")


def _output(config: Any) -> stream.OutputSchema | None:
    match config:
        case {"format": {"type": "json_schema", "schema": schema}}:
            return stream.OutputSchema("output", fields(schema))
        case _:
            return None


def _block(block: ContentBlock) -> dict[str, Any] | None:
    match block:
        case Text(text):
            return {"type": "text", "text": text}
        case Thinking(text):
            return {"type": "thinking", "thinking": text, "signature": ""}
        case ToolCall(id, name, arguments):
            return {"type": "tool_use", "id": id, "name": name, "input": arguments}
        case _:
            return None


def _message(model: str, content: list[dict[str, Any]], reason: str | None, usage: Usage) -> dict[str, Any]:
    head = {"id": f"msg_{secrets.token_hex(12)}", "type": "message", "role": "assistant", "model": model}
    end = {"stop_reason": reason, "stop_sequence": None, "usage": _usage(usage)}
    return {**head, "content": content, **end}


def _event(kind: str, **data: Any) -> bytes:
    return sse({"type": kind, **data}, kind)


def _start(index: int, block: dict[str, Any]) -> bytes:
    return _event("content_block_start", index=index, content_block=block)


def _delta(index: int, delta: dict[str, Any]) -> bytes:
    return _event("content_block_delta", index=index, delta=delta)


def _usage(usage: Usage) -> dict[str, Any]:
    counts = {"input_tokens": usage.input, "output_tokens": usage.output}
    return {**counts, "cache_read_input_tokens": usage.cache_read, "cache_creation_input_tokens": 0}
