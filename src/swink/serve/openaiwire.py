"""OpenAI's chat completions as a server speaks them; what the doors of OpenAI share is written here once."""

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from swink import stream
from swink.messages import AssistantMessage, LlmMessage, ToolCall, ToolResultMessage, Usage, UserMessage
from swink.serve import wire
from swink.serve.wire import Refused, ServedRequest, ServedTool, fields, members, sse, text_block

PartReader: TypeAlias = Callable[[Any, str], Any]
"""Makes a block of one part of a message's content; the text says where the part stands."""

_REASONS = {"stop": "stop", "length": "length", "tool_use": "tool_calls"}


class ChatChunks:
    """The chunks of one streamed completion."""

    def __init__(self, model: str, counts: bool = False) -> None:
        self._head = _head("chat.completion.chunk", model)
        self._counts = counts
        self._calls = 0

    def delta(self, **delta: Any) -> bytes:
        """A chunk with more of the reply: its role, text or thinking."""
        return self._chunk(delta)

    def call(self, id: str, name: str, arguments: str = "") -> tuple[int, bytes]:
        """A call begins; gives its number, too."""
        number, self._calls = self._calls, self._calls + 1
        function = {"name": name, "arguments": arguments}
        call = {"index": number, "id": id, "type": "function", "function": function}
        return number, self._chunk({"tool_calls": [call]})

    def arguments(self, number: int, text: str) -> bytes:
        """A chunk with more of the arguments of a call."""
        return self._chunk({"tool_calls": [{"index": number, "function": {"arguments": text}}]})

    def end(self, reason: str, usage: Usage) -> list[bytes]:
        """Why the reply ended, its tokens if the client wants them, and the end of the stream."""
        last = [self._chunk({}, _REASONS.get(reason, "stop"))]
        if self._counts:
            last.append(sse({**self._head, "choices": [], "usage": _usage(usage)}))
        return [*last, sse(b"[DONE]")]

    def _chunk(self, delta: dict[str, Any], reason: str | None = None) -> bytes:
        return sse({**self._head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})


class OpenAIWire:
    """One request, and the chunks of its reply."""

    def __init__(self) -> None:
        self._chunks = ChatChunks("")
        self._calls: dict[int, int] = {}

    def read_request(self, body: Any) -> ServedRequest:
        """What is asked for; raises `Refused`."""
        request = wire.read_request(body)
        check_count(request)
        options = wire.options_of(
            max_tokens=request.get("max_completion_tokens") or request.get("max_tokens"),
            temperature=request.get("temperature"),
            top_p=request.get("top_p"),
            seed=request.get("seed"),
            stop=request.get("stop"),
            session_id=request.get("user"),
            tool_choice=read_tool_choice(request.get("tool_choice")),
        )
        system, history = read_history(members(request["messages"]))
        tools = list(read_tools(request.get("tools") or ()))
        output = read_format(request.get("response_format"))
        context = stream.LlmContext(system, history, tools, output=output)
        return ServedRequest(context, options, bool(request.get("stream")), wants_counts(request))

    def start_reply(self, model: str, asked: ServedRequest) -> list[bytes]:
        self._chunks = ChatChunks(model, asked.counts)
        return [self._chunks.delta(role="assistant", content="")]

    def write_event(self, event: stream.AssistantMessageEvent) -> list[bytes]:
        match event:
            case stream.TextDelta(_, text):
                return [self._chunks.delta(content=text)]
            case stream.ThinkingDelta(_, text):
                return [self._chunks.delta(reasoning_content=text)]
            case stream.ToolCallStart(index, id, name):
                self._calls[index], chunk = self._chunks.call(id, name)
                return [chunk]
            case stream.ToolCallDelta(index, text):
                return [self._chunks.arguments(self._calls[index], text)]
            case stream.Done(reason, usage):
                return self._chunks.end(reason, usage)
            case stream.Error(message, kind):
                return [sse(self.failure(500, message, kind))]
            case _:
                return []

    def whole_reply(self, model: str, message: AssistantMessage) -> dict[str, Any]:
        return whole_completion(model, message)

    def failure(self, status: int, message: str, kind: str | None) -> dict[str, Any]:
        return failure(message, kind)


def whole_completion(model: str, message: AssistantMessage) -> dict[str, Any]:
    """A reply that is not streamed, as one object."""
    said: dict[str, Any] = {"role": "assistant", "content": message.text or None, "refusal": None}
    if message.thinking:
        said["reasoning_content"] = message.thinking
    if message.tool_calls:
        said["tool_calls"] = [_call(call) for call in message.tool_calls]
    reason = _REASONS.get(message.stop_reason, "stop")
    choice = {"index": 0, "message": said, "finish_reason": reason, "logprobs": None}
    return {**_head("chat.completion", model), "choices": [choice], "usage": _usage(message.usage)}


def failure(message: str, kind: str | None, type: str = "invalid_request_error") -> dict[str, Any]:
    """The body of an error, in the form of OpenAI."""
    code = "context_length_exceeded" if kind == "context_window_exceeded" else kind
    return {"error": {"message": message, "type": type, "param": None, "code": code}}


def error_type(status: int) -> str:
    """The type of an error that is sent with this status."""
    kinds = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
    return kinds.get(status, "invalid_request_error" if status < 500 else "server_error")


def check_count(request: Mapping[str, Any]) -> None:
    """Refuse a request for several replies."""
    if request.get("n") not in (None, 1):
        raise Refused(400, "there is one reply to a request here; leave out n")


def wants_counts(request: Mapping[str, Any]) -> bool:
    """Whether the client wants the number of tokens at the end of a stream."""
    return bool(fields(request.get("stream_options")).get("include_usage"))


def _head(kind: str, model: str) -> dict[str, Any]:
    id = f"chatcmpl-{secrets.token_hex(12)}"
    return {"id": id, "object": kind, "created": int(time.time()), "model": model}


def read_history(messages: Sequence[Any], part: PartReader = text_block) -> tuple[str, list[LlmMessage]]:
    """The system prompt and the messages that a client sends; `part` reads what users and tools say."""
    system: list[str] = []
    history: list[LlmMessage] = []
    names: dict[str, str] = {}
    for at, message in enumerate(messages):
        where = f"messages[{at}]"
        match message:
            case {"role": "system" | "developer"}:
                system += [block.text for block in _blocks(message, where, text_block)]
            case {"role": "user"}:
                history.append(UserMessage(tuple(_blocks(message, where, part))))
            case {"role": "assistant"}:
                calls = [_read_call(call, where) for call in members(fields(message).get("tool_calls"))]
                names |= {call.id: call.name for call in calls}
                history.append(AssistantMessage((*_blocks(message, where, text_block), *calls)))
            case {"role": "tool", "tool_call_id": str() as id}:
                content = tuple(_blocks(message, where, part))
                history.append(ToolResultMessage(id, names.get(id, "tool"), content))
            case _:
                raise Refused(400, f"{where} has no role that is known: system, user, assistant or tool")
    return "\n\n".join(system), history


def _blocks(message: Any, where: str, part: PartReader) -> Iterator[Any]:
    content = fields(message).get("content")
    if not isinstance(content, str | list | None):
        raise Refused(400, f"{where} has content that is neither text nor a list of parts")
    parts = [content] if isinstance(content, str) else members(content)
    return (part(each, where) for each in parts)


def _read_call(call: Any, where: str) -> ToolCall:
    match call:
        case {"id": str() as id, "function": {"name": str() as name, "arguments": str() as arguments}}:
            return ToolCall(id, name, stream.parse_arguments(arguments) or {})
        case _:
            raise Refused(400, f"{where} has a tool call without id, name or arguments")


def read_tools(tools: Sequence[Any]) -> Iterator[ServedTool]:
    """The tools of the client, as chat completions describe them."""
    for tool in tools:
        match tool:
            case {"function": {"name": str() as name}}:
                rest = fields(tool["function"])
                yield wire.served_tool(name, rest, rest.get("parameters"))
            case _:
                raise Refused(400, "a tool has a function with a name")


def read_tool_choice(choice: Any) -> str | None:
    """ "auto", "none", "required", the name of a tool, or nothing."""
    match choice:
        case None | str():
            return choice
        case {"function": {"name": str() as name}}:
            return name
        case _:
            raise Refused(400, "tool_choice is auto, none, required or a function")


def read_format(format: Any) -> stream.OutputSchema | None:
    """The JSON that the client wants as the answer, or None for text."""
    match format:
        case {"type": "json_schema", "json_schema": {"schema": schema}}:
            name = fields(format["json_schema"]).get("name", "output")
            return stream.OutputSchema(str(name), fields(schema))
        case {"type": "json_object"}:
            return stream.OutputSchema("output", {"type": "object"})
        case _:
            return None


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": arguments_of(call)}
    return {"id": call.id, "type": "function", "function": function}


def arguments_of(call: ToolCall) -> str:
    """The arguments of a call as JSON text, as the model wrote them where that is known."""
    return call.partial_json or msgspec.json.encode(call.arguments).decode()


def _usage(usage: Usage) -> dict[str, Any]:
    read = usage.input + usage.cache_read + usage.cache_write
    return {
        "prompt_tokens": read,
        "completion_tokens": usage.output,
        "total_tokens": read + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
    }
