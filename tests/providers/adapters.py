"""Every adapter in one table, for the tests that ask the same of all of them.

An `AdapterCase` knows how to make its stream function for a URL and a key, and how its provider says the same two things:
`text`, a reply of "Hello, world" in two deltas, and `calls`, two calls of `weather`, for Oslo and Bergen.
"""

import json
from collections.abc import Callable
from typing import Any

import msgspec
from frames import event_frame
from loopback import sse

from swink.messages import ModelSpec, Usage
from swink.providers.anthropic import AnthropicStreamFn
from swink.providers.azure import AzureResponsesStreamFn, AzureStreamFn
from swink.providers.bedrock import BedrockStreamFn
from swink.providers.gemini import GeminiStreamFn
from swink.providers.mistral import MistralStreamFn
from swink.providers.ollama import OllamaStreamFn
from swink.providers.openai import OpenAIStreamFn
from swink.providers.proxy import ProxyStreamFn
from swink.providers.proxy.wire import encode_reply
from swink.providers.responses import ResponsesStreamFn, XAIResponsesStreamFn
from swink.providers.vertex import VertexStreamFn
from swink.providers.xai import XAIStreamFn
from swink.stream import Done, Start, TextDelta, TextEnd, TextStart, ToolCallDelta, ToolCallEnd, ToolCallStart

KEY = "zq-7f3e9b1c-adapter-key-5d2a"
"""A key that looks like none, so that only knowing it can redact it."""

PIECES = ("Hello, ", "world")
CITIES = ("Oslo", "Bergen")


class AdapterCase(msgspec.Struct, frozen=True):
    """One adapter; each of `text` and `calls` is a body, one item per event."""

    name: str
    make: Callable[..., Any]
    model: ModelSpec
    text: list[bytes]
    calls: list[bytes]
    key_header: str
    ping: bytes = b": still here\n\n"
    media_type: str = "text/event-stream"

    def __repr__(self) -> str:
        return self.name

    def until_content(self) -> bytes:
        """The text reply up to and including its first delta."""
        at = next(at for at, event in enumerate(self.text) if PIECES[0].encode() in event)
        return b"".join(self.text[: at + 1])

    def within_next(self) -> bytes:
        """The text reply up to the middle of the event after its first delta."""
        whole = self.until_content()
        rest = b"".join(self.text)[len(whole) :]
        return whole + rest[: len(self.ping) + 8]


def _chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
    }


def _call_chunk(number: int, **function: str) -> dict[str, Any]:
    head = {"id": f"call0000{number}", "type": "function"} if "name" in function else {}
    return _chunk({"tool_calls": [{"index": number, **head, "function": function}]})


def _arguments(city: str) -> tuple[str, str]:
    return '{"city": ', f'"{city}"}}'


_CHAT_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
CHAT_TEXT = [
    sse(_chunk({"role": "assistant", "content": ""})),
    *[sse(_chunk({"content": piece})) for piece in PIECES],
    sse({**_chunk({}, "stop"), "usage": _CHAT_USAGE}),
    sse("[DONE]"),
]
CHAT_CALLS = [
    *[
        sse(event)
        for number, city in enumerate(CITIES)
        for event in (
            _call_chunk(number, name="weather", arguments=""),
            *(_call_chunk(number, arguments=piece) for piece in _arguments(city)),
        )
    ],
    sse({**_chunk({}, "tool_calls"), "usage": _CHAT_USAGE}),
    sse("[DONE]"),
]


def _claude(*events: dict[str, Any]) -> list[bytes]:
    return [sse(event, names=True) for event in events]


def _claude_block(index: int, block: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def _claude_message(reason: str, *blocks: list[dict[str, Any]]) -> list[bytes]:
    return _claude(
        {"type": "message_start", "message": {"usage": {"input_tokens": 10, "output_tokens": 1}}},
        *(event for block in blocks for event in block),
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    )


CLAUDE_TEXT = _claude_message(
    "end_turn",
    _claude_block(
        0, {"type": "text", "text": ""}, *({"type": "text_delta", "text": piece} for piece in PIECES)
    ),
)
CLAUDE_CALLS = _claude_message(
    "tool_use",
    *(
        _claude_block(
            number,
            {"type": "tool_use", "id": f"toolu_{number}", "name": "weather", "input": {}},
            *({"type": "input_json_delta", "partial_json": piece} for piece in _arguments(city)),
        )
        for number, city in enumerate(CITIES)
    ),
)

_COMPLETED = {
    "type": "response.completed",
    "response": {
        "status": "completed",
        "usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
    },
}


def _item(index: int, item: dict[str, Any], kind: str, pieces: tuple[str, ...]) -> list[bytes]:
    return _claude(
        {"type": "response.output_item.added", "output_index": index, "item": item},
        *({"type": f"response.{kind}.delta", "output_index": index, "delta": piece} for piece in pieces),
        {"type": "response.output_item.done", "output_index": index, "item": item},
    )


RESPONSES_TEXT = _item(0, {"type": "message", "id": "msg_1"}, "output_text", PIECES) + _claude(_COMPLETED)
RESPONSES_CALLS = [
    event
    for number, city in enumerate(CITIES)
    for event in _item(
        number,
        {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": "weather"},
        "function_call_arguments",
        _arguments(city),
    )
] + _claude(_COMPLETED)


def _gemini(*parts: dict[str, Any], **more: Any) -> bytes:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "index": 0, **more}
    return sse(
        {
            "candidates": [candidate],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        }
    )


GEMINI_TEXT = [*[_gemini({"text": piece}) for piece in PIECES], _gemini({"text": ""}, finishReason="STOP")]
GEMINI_CALLS = [
    *[
        _gemini({"functionCall": {"id": f"fc-{number}", "name": "weather", "args": {"city": city}}})
        for number, city in enumerate(CITIES)
    ],
    _gemini({"text": ""}, finishReason="STOP"),
]


def _ollama(message: dict[str, Any], **more: Any) -> bytes:
    return (
        json.dumps(
            {"model": "m", "message": {"role": "assistant", "content": "", **message}, "done": False, **more}
        ).encode()
        + b"\n"
    )


_OLLAMA_DONE = _ollama({}, done=True, done_reason="stop", prompt_eval_count=10, eval_count=5)
OLLAMA_TEXT = [*[_ollama({"content": piece}) for piece in PIECES], _OLLAMA_DONE]
OLLAMA_CALLS = [
    *[
        _ollama({"tool_calls": [{"function": {"name": "weather", "arguments": {"city": city}}}]})
        for city in CITIES
    ],
    _OLLAMA_DONE,
]


def _converse_block(index: int, start: dict[str, Any] | None, *deltas: dict[str, Any]) -> list[bytes]:
    return [
        *([event_frame("contentBlockStart", {"contentBlockIndex": index, "start": start})] if start else []),
        *(event_frame("contentBlockDelta", {"contentBlockIndex": index, "delta": delta}) for delta in deltas),
        event_frame("contentBlockStop", {"contentBlockIndex": index}),
    ]


def _converse(reason: str, *blocks: list[bytes]) -> list[bytes]:
    return [
        event_frame("messageStart", {"role": "assistant"}),
        *(frame for block in blocks for frame in block),
        event_frame("messageStop", {"stopReason": reason}),
        event_frame("metadata", {"usage": {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}}),
    ]


CONVERSE_TEXT = _converse("end_turn", _converse_block(0, None, *({"text": piece} for piece in PIECES)))
CONVERSE_CALLS = _converse(
    "tool_use",
    *(
        _converse_block(
            number,
            {"toolUse": {"toolUseId": f"tooluse_{number}", "name": "weather"}},
            *({"toolUse": {"input": piece}} for piece in _arguments(city)),
        )
        for number, city in enumerate(CITIES)
    ),
)
PROXY_TEXT = [
    encode_reply(event)
    for event in (
        Start(),
        TextStart(0),
        *(TextDelta(0, piece) for piece in PIECES),
        TextEnd(0),
        Done("stop", Usage(10, 5)),
    )
]
PROXY_CALLS = [
    encode_reply(event)
    for event in (
        Start(),
        *(
            event
            for number, city in enumerate(CITIES)
            for event in (
                ToolCallStart(number, f"call_{number}", "weather"),
                *(ToolCallDelta(number, piece) for piece in _arguments(city)),
                ToolCallEnd(number),
            )
        ),
        Done("tool_use", Usage(10, 5)),
    )
]

_ALL = (
    AdapterCase(
        "anthropic",
        lambda url, key, **more: AnthropicStreamFn(base_url=url, api_key=key, **more),
        ModelSpec("anthropic", "claude-sonnet-4-5"),
        CLAUDE_TEXT,
        CLAUDE_CALLS,
        "x-api-key",
        ping=sse({"type": "ping"}, names=True),
    ),
    AdapterCase(
        "openai",
        lambda url, key, **more: OpenAIStreamFn(base_url=f"{url}/v1", api_key=key, **more),
        ModelSpec("openai", "gpt-4.1"),
        CHAT_TEXT,
        CHAT_CALLS,
        "authorization",
    ),
    AdapterCase(
        "openai-responses",
        lambda url, key, **more: ResponsesStreamFn(base_url=f"{url}/v1", api_key=key, **more),
        ModelSpec("openai-responses", "gpt-5"),
        RESPONSES_TEXT,
        RESPONSES_CALLS,
        "authorization",
    ),
    AdapterCase(
        "azure",
        lambda url, key, **more: AzureStreamFn(base_url=url, api_key=key, api_version="2024-10-21", **more),
        ModelSpec("azure", "gpt-4.1"),
        CHAT_TEXT,
        CHAT_CALLS,
        "api-key",
    ),
    AdapterCase(
        "xai",
        lambda url, key, **more: XAIStreamFn(base_url=f"{url}/v1", api_key=key, **more),
        ModelSpec("xai", "grok-4"),
        CHAT_TEXT,
        CHAT_CALLS,
        "authorization",
    ),
    AdapterCase(
        "mistral",
        lambda url, key, **more: MistralStreamFn(base_url=url, api_key=key, **more),
        ModelSpec("mistral", "mistral-large-latest"),
        CHAT_TEXT,
        CHAT_CALLS,
        "authorization",
    ),
    AdapterCase(
        "ollama",
        lambda url, key, **more: OllamaStreamFn(base_url=url, api_key=key, **more),
        ModelSpec("ollama", "qwen3:8b"),
        OLLAMA_TEXT,
        OLLAMA_CALLS,
        "authorization",
        ping=b"\n",
        media_type="application/x-ndjson",
    ),
    AdapterCase(
        "gemini",
        lambda url, key, **more: GeminiStreamFn(base_url=url, api_key=key, **more),
        ModelSpec("gemini", "gemini-2.5-flash"),
        GEMINI_TEXT,
        GEMINI_CALLS,
        "x-goog-api-key",
    ),
    AdapterCase(
        "bedrock",
        lambda url, key, **more: BedrockStreamFn(base_url=url, api_key=key, region="us-east-1", **more),
        ModelSpec("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
        CONVERSE_TEXT,
        CONVERSE_CALLS,
        "authorization",
        ping=event_frame("initial-response", {}),
        media_type="application/vnd.amazon.eventstream",
    ),
    AdapterCase(
        "proxy",
        lambda url, key, **more: ProxyStreamFn(base_url=url, api_key=key, **more),
        ModelSpec("proxy", "anthropic:claude-sonnet-4-5"),
        PROXY_TEXT,
        PROXY_CALLS,
        "authorization",
    ),
)
ADAPTERS: dict[str, AdapterCase] = {adapter.name: adapter for adapter in _ALL}
"""One of every protocol and provider."""
_VARIANTS = (
    AdapterCase(
        "azure-responses",
        lambda url, key, **more: AzureResponsesStreamFn(base_url=url, api_key=key, **more),
        ModelSpec("azure-responses", "gpt-5"),
        RESPONSES_TEXT,
        RESPONSES_CALLS,
        "api-key",
    ),
    AdapterCase(
        "xai-responses",
        lambda url, key, **more: XAIResponsesStreamFn(base_url=f"{url}/v1", api_key=key, **more),
        ModelSpec("xai-responses", "grok-4"),
        RESPONSES_TEXT,
        RESPONSES_CALLS,
        "authorization",
    ),
    AdapterCase(
        "vertex",
        lambda url, key, **more: VertexStreamFn(base_url=url, api_key=key, **more),
        ModelSpec("vertex", "gemini-2.5-flash"),
        GEMINI_TEXT,
        GEMINI_CALLS,
        "x-goog-api-key",
    ),
    AdapterCase(
        "vertex-claude",
        lambda url, key, **more: VertexStreamFn(base_url=url, api_key=key, project="p", **more),
        ModelSpec("vertex", "claude-sonnet-4-5"),
        CLAUDE_TEXT,
        CLAUDE_CALLS,
        "x-goog-api-key",
        ping=sse({"type": "ping"}, names=True),
    ),
)
EVERY: dict[str, AdapterCase] = ADAPTERS | {adapter.name: adapter for adapter in _VARIANTS}
"""Those, and providers that share a protocol of theirs."""
