"""The chunks of a chat-completions stream, as the many servers that speak it send them.

    {"choices": [{"delta": {…}, "finish_reason": null}]}*  {"choices": [], "usage": {…}}?  [DONE]?

After a finish reason the reply ends at `[DONE]` or where the body ends, so that the usage in between is read.
Tool calls are told apart by index, by id where a server repeats or omits the index, else by name.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, cast

import msgspec
from msgspec import Struct

from swink.errors import ContentFiltered, NetworkError, StreamError
from swink.messages import Cost, Usage
from swink.providers.exchange import cut_short, decode_as, decode_json
from swink.providers.failure import describe_error, failure
from swink.providers.sse import SseParser
from swink.stream import BlockWriter, StreamOptions, parse_arguments

TICKS_PER_DOLLAR = 10**10


class _Function(Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _CallDelta(Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(Struct):
    content: str | list[dict[str, Any]] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    refusal: str | None = None
    tool_calls: list[_CallDelta] | None = None
    function_call: _Function | None = None


class _Choice(Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None
    index: int | None = 0
    content_filter_results: dict[str, Any] | None = None
    error: Any = None


class _Chunk(Struct):
    choices: list[_Choice] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None
    id: Any = None
    object: Any = None
    prompt_filter_results: list[Any] | None = None
    x_groq: dict[str, Any] | None = None


_chunks = msgspec.json.Decoder(_Chunk)


class ChatDecoder:
    """Reads one reply."""

    def __init__(self, reply: BlockWriter, options: StreamOptions) -> None:
        self._reply = reply
        self._raw = options.on_raw_payload
        self._parser = SseParser()
        self._calls = _Calls(reply)
        self._finish_reason = ""
        self._filtered: set[str] = set()
        self._refusal: list[str] = []
        self._details: dict[int, dict[str, Any]] = {}

    def feed(self, chunk: bytes) -> None:
        """Read the events that these bytes complete."""
        for event in self._parser.feed(chunk):
            data = event.data
            if len(data) < 12 and data.strip() == b"[DONE]":
                self._finish()
                return
            if self._raw is not None:
                self._raw(decode_json(data))
            self._take(decode_as(_chunks, data), data)

    def end(self) -> None:
        """The body ended: a finish reason before that makes it a whole reply."""
        if not self._finish_reason and not self._filtered:
            raise cut_short()
        self._finish()

    def _take(self, chunk: _Chunk, data: bytes) -> None:
        if chunk.error is not None or chunk.object == "error":
            message, code = describe_error(decode_json(data))
            raise failure(message, code=code)
        for result in chunk.prompt_filter_results or ():
            match result:
                case {"content_filter_results": {**results}}:
                    self._filtered |= _filtered_by(results)
                case _:
                    pass
        for choice in chunk.choices or ():
            if not choice.index:
                self._choose(choice, chunk)
        if chunk.usage is not None:
            self._count(chunk.usage)
        elif chunk.x_groq is not None and isinstance(chunk.x_groq.get("usage"), dict):
            self._count(chunk.x_groq["usage"])

    def _choose(self, choice: _Choice, chunk: _Chunk) -> None:
        delta = choice.delta
        if delta is not None:
            if thought := delta.reasoning_content or delta.reasoning:
                self._reply.think(thought)
            if delta.reasoning_details:
                self._keep_details(delta.reasoning_details)
            content = delta.content
            if content:
                if isinstance(content, str):
                    self._reply.say(content)
                else:
                    self._take_parts(content)
            if delta.refusal:
                self._refusal.append(delta.refusal)
            if delta.tool_calls:
                for call in delta.tool_calls:
                    self._calls.take(call, str(chunk.id))
            if delta.function_call is not None:
                self._calls.take(_CallDelta(0, None, delta.function_call), str(chunk.id))
        if choice.content_filter_results:
            self._filtered |= _filtered_by(choice.content_filter_results)
        if choice.error is not None:
            message, code = describe_error({"error": choice.error})
            raise failure(message, code=code)
        if choice.finish_reason:
            self._finish_reason = choice.finish_reason

    def _take_parts(self, parts: list[dict[str, Any]]) -> None:
        for part in parts:
            match part:
                case {"type": "text", "text": str() as text} if text:
                    self._reply.say(text)
                case {"type": "thinking", "thinking": [*pieces]}:
                    for piece in pieces:
                        match piece:
                            case {"text": str() as text} if text:
                                self._reply.think(text)
                            case _:
                                pass
                    if signature := part.get("signature"):
                        self._reply.sign(str(signature))
                case _:
                    pass  # references and other decoration

    def _keep_details(self, details: list[dict[str, Any]]) -> None:
        """Reasoning details go back exactly as they came; only the pieces of one detail are joined."""
        for detail in details:
            known = self._details.setdefault(count(detail, "index"), {})
            for name, value in detail.items():
                joins = (
                    name in ("text", "summary", "data")
                    and isinstance(value, str)
                    and isinstance(known.get(name), str)
                )
                if value is not None:
                    known[name] = known[name] + value if joins else value
        self._reply.sign(msgspec.json.encode(list(self._details.values())).decode())

    def _finish(self) -> None:
        reason, reply = self._finish_reason, self._reply
        reply.settle()
        if self._refusal:
            raise ContentFiltered("".join(self._refusal))
        if self._filtered:  # whatever the finish reason says
            reason = "content_filter"
        match reason:
            case "stop" | "eos" | "eos_token" | "stop_sequence" | "end_turn":
                self._calls.check()
                reply.done("tool_use" if self._calls.any else "stop")
            case "tool_calls" | "function_call":
                self._calls.check()
                reply.done("tool_use")
            case "length" | "model_length" | "max_tokens":
                reply.done("length")
            case "content_filter":
                what = f" ({', '.join(sorted(self._filtered))})" if self._filtered else ""
                raise ContentFiltered(f"the provider's content filter stopped the reply{what}")
            case "error" | "abort" | "insufficient_system_resource":
                raise NetworkError(f"the provider broke the reply off: {reason}")
            case "":
                raise NetworkError("the reply ended without a finish reason")
            case _:
                raise StreamError(f"unknown finish reason {reason!r}")

    def _count(self, usage: dict[str, Any]) -> None:
        match usage:
            case {"cost": int() | float() as cost} if cost:
                own = Cost(total=float(cost))
            case {"cost_in_usd_ticks": int() as ticks} if ticks:
                own = Cost(total=ticks / TICKS_PER_DOLLAR)
            case _:
                own = None
        self._reply.report(usage_of(usage), own)


class _Call:
    """One tool call; it opens in the reply as soon as its name is known."""

    __slots__ = ("arguments", "id", "index", "name")

    def __init__(self, id: str) -> None:
        self.id = id
        self.name = ""
        self.index: int | None = None
        self.arguments: list[str] = []


class _Calls:
    """The tool calls of one reply."""

    def __init__(self, reply: BlockWriter) -> None:
        self._reply = reply
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}

    @property
    def any(self) -> bool:
        """Whether there is any call."""
        return bool(self._calls)

    def take(self, delta: _CallDelta, reply_id: str) -> None:
        """More of a call, or a new one."""
        function = delta.function or _Function()
        call = self._find(delta, function)
        if delta.index is not None:
            self._by_index[delta.index] = call
        call.name = call.name or function.name or ""
        arguments = function.arguments
        if isinstance(arguments, dict):
            arguments = msgspec.json.encode(arguments).decode()
        if arguments:
            call.arguments.append(arguments)
        if call.index is not None:
            if arguments:
                self._reply.add(call.index, arguments)
        elif call.name:
            call.id = call.id or _new_id(reply_id, self._calls.index(call))
            call.index = self._reply.begin_call(call.id, call.name)
            if call.arguments:
                self._reply.add(call.index, "".join(call.arguments))

    def check(self) -> None:
        """A call without a name cannot be made."""
        if any(call.index is None for call in self._calls):
            raise StreamError("the provider sent a tool call without a name")

    def _find(self, delta: _CallDelta, function: _Function) -> _Call:
        id = delta.id or ""
        known = next((call for call in self._calls if id and call.id == id), None)
        if known is not None:
            return known
        current = (
            self._by_index.get(delta.index)
            if delta.index is not None
            else (self._calls[-1] if self._calls else None)
        )
        if current is None or self._begins_another(current, id, function.name or ""):
            current = _Call(id)
            self._calls.append(current)
        elif id and not current.id:
            current.id = id
        return current

    def _begins_another(self, current: _Call, id: str, name: str) -> bool:
        """Whether a delta at a known call's index begins another call.

        It does if it has a name again, and either another id, or the call before it is complete.
        """
        if not name or not current.name:
            return False
        if id and current.id:
            return id != current.id
        return bool(current.arguments) and parse_arguments("".join(current.arguments)) is not None


def usage_of(usage: dict[str, Any]) -> Usage:
    """The usage of chat completions, where cached tokens are part of the prompt.

    Some servers leave the reasoning out of the completion and count it in the total alone.
    """
    prompt = count(usage, "prompt_tokens")
    completion = count(usage, "completion_tokens")
    total = count(usage, "total_tokens")
    details = usage.get("prompt_tokens_details")
    cached = (
        count(details, "cached_tokens")
        or count(usage, "prompt_cache_hit_tokens")
        or count(usage, "num_cached_tokens")
    )
    written = count(details, "cache_write_tokens")
    reasoning = count(usage.get("completion_tokens_details"), "reasoning_tokens")
    if reasoning and total == prompt + completion + reasoning:
        completion += reasoning
    cached = min(cached, prompt)
    written = min(written, prompt - cached)
    return Usage(
        prompt - cached - written,
        completion,
        cached,
        written,
        total,
        {"reasoning": reasoning} if reasoning else {},
    )


def count(counts: Any, name: str) -> int:
    """A count in an object of a provider's; 0 where there is none."""
    value = cast("dict[str, Any]", counts).get(name) if isinstance(counts, dict) else None
    return value if isinstance(value, int) else 0


def _filtered_by(results: Mapping[str, Any]) -> set[str]:
    """The filters that have cut something, of all that have an opinion."""
    return {
        name
        for name, result in results.items()
        if isinstance(result, dict) and cast("dict[str, Any]", result).get("filtered") is True
    }


def _new_id(reply_id: str, number: int) -> str:
    return "call_" + hashlib.sha256(f"{reply_id}\0{number}".encode()).hexdigest()[:24]
