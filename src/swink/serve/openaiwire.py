"""OpenAI's chat completions as a server speaks them."""

import secrets
import time
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from swink import stream
from swink.messages import AssistantMessage, LlmMessage, Text, ToolCall, ToolResultMessage, Usage, UserMessage
from swink.serve import wire
from swink.serve.wire import Refused, ServedRequest, ServedTool, fields, members, sse, text_block

_REASONS = {"stop": "stop", "length": "length", "tool_use": "tool_calls"}


class OpenAIWire:
    """One request, and the chunks of its reply."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._counts = False
        self._calls: dict[int, int] = {}

    def read_request(self, body: Any) -> ServedRequest:
        """What is asked for; raises `Refused`."""
        request = wire.read_request(body)
        if request.get("n") not in (None, 1):
            raise Refused(400, "the local model gives one reply to a request; leave out n")
        options = wire.options_of(
            max_tokens=request.get("max_completion_tokens") or request.get("max_tokens"),
            temperature=request.get("temperature"),
            top_p=request.get("top_p"),
            seed=request.get("seed"),
            stop=request.get("stop"),
            session_id=request.get("user"),
            tool_choice=_tool_choice(request.get("tool_choice")),
        )
        system, history = _history(members(request["messages"]))
        tools = list(_tools(request.get("tools") or ()))
        context = stream.LlmContext(system, history, tools, output=_output(request.get("response_format")))
        counts = bool(fields(request.get("stream_options")).get("include_usage"))
        return ServedRequest(context, options, bool(request.get("stream")), counts)

    def start_reply(self, model: str, asked: ServedRequest) -> list[bytes]:
        self._head = _head("chat.completion.chunk", model)
        self._counts = asked.counts
        return [self._chunk({"role": "assistant", "content": ""})]

    def write_event(self, event: stream.AssistantMessageEvent) -> list[bytes]:
        match event:
            case stream.TextDelta(_, text):
                return [self._chunk({"content": text})]
            case stream.ThinkingDelta(_, text):
                return [self._chunk({"reasoning_content": text})]
            case stream.ToolCallStart(index, id, name):
                number = self._calls[index] = len(self._calls)
                function = {"name": name, "arguments": ""}
                call = {"index": number, "id": id, "type": "function", "function": function}
                return [self._chunk({"tool_calls": [call]})]
            case stream.ToolCallDelta(index, text):
                part = {"index": self._calls[index], "function": {"arguments": text}}
                return [self._chunk({"tool_calls": [part]})]
            case stream.Done(reason, usage):
                counts = [sse({**self._head, "choices": [], "usage": _usage(usage)})] if self._counts else []
                return [self._chunk({}, _REASONS.get(reason, "stop")), *counts, sse(b"[DONE]")]
            case stream.Error(message, kind):
                return [sse(self.failure(500, message, kind))]
            case _:
                return []

    def whole_reply(self, model: str, message: AssistantMessage) -> dict[str, Any]:
        said: dict[str, Any] = {"role": "assistant", "content": message.text or None, "refusal": None}
        if message.thinking:
            said["reasoning_content"] = message.thinking
        if message.tool_calls:
            said["tool_calls"] = [_call(call) for call in message.tool_calls]
        reason = _REASONS.get(message.stop_reason, "stop")
        choice = {"index": 0, "message": said, "finish_reason": reason, "logprobs": None}
        return {**_head("chat.completion", model), "choices": [choice], "usage": _usage(message.usage)}

    def failure(self, status: int, message: str, kind: str | None) -> dict[str, Any]:
        code = "context_length_exceeded" if kind == "context_window_exceeded" else kind
        return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}

    def _chunk(self, delta: dict[str, Any], reason: str | None = None) -> bytes:
        return sse({**self._head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})


def _head(kind: str, model: str) -> dict[str, Any]:
    id = f"chatcmpl-{secrets.token_hex(12)}"
    return {"id": id, "object": kind, "created": int(time.time()), "model": model}


def _history(messages: Sequence[Any]) -> tuple[str, list[LlmMessage]]:
    system: list[str] = []
    history: list[LlmMessage] = []
    names: dict[str, str] = {}
    for at, message in enumerate(messages):
        where = f"messages[{at}]"
        match message:
            case {"role": "system" | "developer"}:
                system += [block.text for block in _blocks(message, where)]
            case {"role": "user"}:
                history.append(UserMessage(tuple(_blocks(message, where))))
            case {"role": "assistant"}:
                calls = [_read_call(call, where) for call in members(fields(message).get("tool_calls"))]
                names |= {call.id: call.name for call in calls}
                history.append(AssistantMessage((*_blocks(message, where), *calls)))
            case {"role": "tool", "tool_call_id": str() as id}:
                content = tuple(_blocks(message, where))
                history.append(ToolResultMessage(id, names.get(id, "tool"), content))
            case _:
                raise Refused(400, f"{where} has no role that is known: system, user, assistant or tool")
    return "\n\n".join(system), history


def _blocks(message: Any, where: str) -> Iterator[Text]:
    content = fields(message).get("content")
    if not isinstance(content, str | list | None):
        raise Refused(400, f"{where} has content that is neither text nor a list of parts")
    parts = [content] if isinstance(content, str) else members(content)
    return (text_block(part, where) for part in parts)


def _read_call(call: Any, where: str) -> ToolCall:
    match call:
        case {"id": str() as id, "function": {"name": str() as name, "arguments": str() as arguments}}:
            return ToolCall(id, name, stream.parse_arguments(arguments) or {})
        case _:
            raise Refused(400, f"{where} has a tool call without id, name or arguments")


def _tools(tools: Sequence[Any]) -> Iterator[ServedTool]:
    for tool in tools:
        match tool:
            case {"function": {"name": str() as name}}:
                rest = fields(tool["function"])
                yield wire.served_tool(name, rest, rest.get("parameters"))
            case _:
                raise Refused(400, "a tool has a function with a name")


def _tool_choice(choice: Any) -> str | None:
    match choice:
        case None | str():
            return choice
        case {"function": {"name": str() as name}}:
            return name
        case _:
            raise Refused(400, "tool_choice is auto, none, required or a function")


def _output(format: Any) -> stream.OutputSchema | None:
    match format:
        case {"type": "json_schema", "json_schema": {"schema": schema}}:
            name = fields(format["json_schema"]).get("name", "output")
            return stream.OutputSchema(str(name), fields(schema))
        case {"type": "json_object"}:
            return stream.OutputSchema("output", {"type": "object"})
        case _:
            return None


def _call(call: ToolCall) -> dict[str, Any]:
    arguments = call.partial_json or msgspec.json.encode(call.arguments).decode()
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _usage(usage: Usage) -> dict[str, Any]:
    read = usage.input + usage.cache_read
    return {
        "prompt_tokens": read,
        "completion_tokens": usage.output,
        "total_tokens": read + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
    }
