"""Anthropic: `POST {base_url}/v1/messages`, streamed as server-sent events.

    message_start (content_block_start content_block_delta* content_block_stop)* message_delta message_stop

Blocks that are not text, thinking or a tool call (the provider's own tools) are skipped. When the provider
pauses a long turn of such tools, the turn is continued with a second request, within the same reply.
"""

from collections.abc import AsyncGenerator, Callable
from typing import Any

import msgspec
from msgspec import Struct

from swink.errors import ContentFiltered, ContextWindowOverflow, ModelError, NetworkError, StreamError
from swink.messages import ModelSpec, Usage
from swink.providers.anthropic.body import request_body
from swink.providers.convert import prepare
from swink.providers.endpoint import provider_endpoint
from swink.providers.exchange import cut_short, decode_json, decode_known, encode_body, exchange, malformed
from swink.providers.failure import describe_error, failure
from swink.providers.http import Request, client_for
from swink.providers.notices import ALL_OPTIONS, Notices
from swink.providers.sse import SseParser
from swink.stream import AssistantMessageEvent, BlockWriter, LlmContext, StreamOptions, Timeout

VERSION = "2023-06-01"
MOST_PAUSES = 16


class AnthropicStreamFn:
    """Claude, or a server with the same Messages API; `base_url` is without `/v1`, as in Anthropic's SDK."""

    honours = ALL_OPTIONS

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        headers: dict[str, str] | None = None,
        allow_http: bool = False,
    ) -> None:
        self._endpoint = provider_endpoint("anthropic", base_url, api_key, allow_http=allow_http)
        self._headers = {name.lower(): value for name, value in (headers or {}).items()}
        self.base_url = self._endpoint.base_url
        self._notices = Notices("anthropic", self.honours)
        self.timeout = Timeout(idle=600, first=600) if self._endpoint.is_local else Timeout()

    def __repr__(self) -> str:
        return f"AnthropicStreamFn(base_url={self._endpoint.base_url!r})"

    def __call__(
        self, model: ModelSpec, context: LlmContext, options: StreamOptions
    ) -> AsyncGenerator[AssistantMessageEvent, None]:
        """Ask for one reply."""
        self._notices.check(options)
        body: dict[str, Any] = {}

        async def first() -> Request:
            await self._endpoint.prepare_key(options.api_key)
            body.update(
                request_body(model, context, await prepare(context.messages, model), options, self._notices)
            )
            return self._request(body, options)

        def resume(content: list[Any]) -> Request:
            body["messages"] = [*body["messages"], {"role": "assistant", "content": content}]
            return self._request(body, options)

        return exchange(first, lambda reply: _Decoder(reply, options, resume), options, self.timeout)

    def check_key(self, options: StreamOptions) -> None:
        """Raise `MissingKey` if a request with these options would have no key to send."""
        self._endpoint.check_key(options.api_key)

    def asker(self) -> str:
        """A digest of the account that asks; one account's recordings are not replayed for another."""
        return self._endpoint.asker(sorted(self._headers.items()))

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await client_for(StreamOptions()).aclose()

    def _request(self, body: dict[str, Any], options: StreamOptions) -> Request:
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            "anthropic-version": VERSION,
            **self._headers,
        }
        if key := self._endpoint.key(options.api_key):
            headers["x-api-key"] = key
        return Request(
            f"{self._endpoint.base_url}/v1/messages",
            self._endpoint.check_headers(headers),
            encode_body(body, options.extra),
        )


class _Delta(Struct):
    """What a `content_block_delta` or a `message_delta` brings."""

    type: str = ""
    text: str = ""
    thinking: str = ""
    partial_json: str = ""
    signature: str = ""
    stop_reason: str | None = None
    stop_details: dict[str, Any] | None = None


class _Counts(Struct):
    """Running totals; None where an event does not give one."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_creation: dict[str, Any] | None = None
    output_tokens_details: dict[str, Any] | None = None
    server_tool_use: dict[str, Any] | None = None


class _Message(Struct):
    usage: _Counts | None = None


class _Content(Struct):
    """The head of a content block; of the types that are skipped, only the type matters."""

    type: str
    text: str = ""
    thinking: str = ""
    signature: str = ""
    data: str = ""
    id: str = ""
    name: str = ""
    input: Any = None


class _Event(Struct):
    """Any event of the stream; errors from gateways have no type."""

    type: str = ""
    index: int = -1
    delta: _Delta | None = None
    content_block: _Content | None = None
    message: _Message | None = None
    usage: _Counts | None = None
    error: Any = None


_events = msgspec.json.Decoder(_Event)
_KNOWN = frozenset(
    (
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "error",
    )
)


class _Decoder:
    """The events of one message."""

    def __init__(
        self, reply: BlockWriter, options: StreamOptions, resume: Callable[[list[Any]], Request]
    ) -> None:
        self._reply = reply
        self._raw = options.on_raw_payload
        self._resume = resume
        self._parser = SseParser()
        self._blocks: dict[int, _Block] = {}
        self._counts = _Counts()
        self._spent = Usage()
        self._end_of_turn = _Delta()
        self._paused = False
        self._calls = False
        self._pauses = 0

    def feed(self, chunk: bytes) -> None:
        for event in self._parser.feed(chunk):
            if self._raw is not None:
                self._raw(decode_json(event.data))
            if event.event == "error":  # the data of some servers does not say so itself
                raise _failure(event.data)
            decoded = decode_known(_events, _KNOWN, event.data)
            if decoded is not None:
                self._take(decoded, event.data)
            if self._reply.terminal is not None:
                return

    def end(self) -> Request | None:
        if not self._paused:
            raise cut_short()
        self._pauses += 1
        if self._pauses > MOST_PAUSES:
            raise StreamError(f"the provider paused the turn more than {MOST_PAUSES} times")
        content = [block.as_json() for block in self._blocks.values()]
        self._spent = self._reply.usage
        self._counts, self._blocks, self._parser = _Counts(), {}, SseParser()
        self._end_of_turn, self._paused = _Delta(), False
        return self._resume(content)

    def _take(self, event: _Event, data: bytes) -> None:
        match event:
            case _Event("content_block_delta", index, _Delta() as delta) if index in self._blocks:
                self._delta(self._blocks[index], delta)
            case _Event("content_block_start", index, content_block=_Content() as content):
                self._start(index, content, data)
            case _Event("content_block_stop", index) if index in self._blocks:
                self._end(self._blocks[index])
            case _Event("message_start", message=_Message(usage)):
                if self._blocks:
                    raise NetworkError("the provider began a second reply inside the first")
                self._count(usage)
            case _Event("message_delta", delta=_Delta() as delta, usage=usage):
                self._end_of_turn = delta
                self._count(usage)
            case _Event("message_stop"):
                self._stop(self._end_of_turn)
            case _Event(type, error=error) if type == "error" or error:
                raise _failure(data)
            case _Event(type) if type in _KNOWN:
                raise malformed(data, ValueError(f"{type} out of place"))
            case _:
                pass  # pings, and types that newer servers may send

    def _start(self, key: int, content: _Content, data: bytes) -> None:
        if (stale := self._blocks.get(key)) is not None:
            self._end(stale)
        block = self._blocks[key] = _Block(content, data)
        match content:
            case _Content("text", text):
                block.index = self._reply.begin_text()
                self._add(block, text)
            case _Content("thinking", thinking=text):
                block.index = self._reply.begin_thinking()
                self._add(block, text)
            case _Content("redacted_thinking"):
                block.index = self._reply.begin_thinking()
            case _Content("tool_use", id=id, name=name):
                self._calls = True
                block.index = self._reply.begin_call(id, name)
            case _:
                pass  # tools that the provider runs itself

    def _delta(self, block: "_Block", delta: _Delta) -> None:
        match delta.type:
            case "text_delta":
                self._add(block, delta.text)
            case "input_json_delta":
                self._add(block, delta.partial_json)
            case "thinking_delta":
                self._add(block, delta.thinking)
            case "signature_delta":
                block.content.signature = delta.signature
            case _:
                pass  # citations

    def _add(self, block: "_Block", text: str) -> None:
        if text:
            block.parts.append(text)
            if block.index is not None and self._reply.is_open(block.index):
                self._reply.add(block.index, text)

    def _end(self, block: "_Block") -> None:
        index, content = block.index, block.content
        if index is None or not self._reply.is_open(index):
            return
        match content.type:
            case "tool_use" if not block.parts and not content.input:
                return  # no arguments, or cut off before them: the stop reason will tell
            case "tool_use" if not block.parts:
                self._reply.add(index, msgspec.json.encode(content.input).decode())
                self._reply.end(index)
            case "redacted_thinking":
                self._reply.end(index, content.data, redacted=True)
            case _:
                self._reply.end(index, content.signature or None)

    def _count(self, counts: _Counts | None) -> None:
        """A later total replaces an earlier one."""
        if counts is not None:
            given = {
                name: value for name, value in msgspec.structs.asdict(counts).items() if value is not None
            }
            self._counts = msgspec.structs.replace(self._counts, **given)
            self._reply.report(self._spent + _usage(self._counts))

    def _stop(self, end: _Delta) -> None:
        self._reply.settle()
        match end.stop_reason:
            case "tool_use":
                self._reply.done("tool_use")
            case "end_turn" | "stop_sequence":
                self._reply.done("tool_use" if self._calls else "stop")
            case "max_tokens":
                self._reply.done("length")
            case "pause_turn":
                self._paused = True
            case "refusal":
                raise ContentFiltered(
                    (end.stop_details or {}).get("explanation") or "the model refused to answer"
                )
            case "model_context_window_exceeded":
                raise ContextWindowOverflow("the reply ran into the end of the context window")
            case None:
                raise NetworkError("the reply ended without a stop reason")
            case reason:
                raise StreamError(f"unknown stop reason {reason!r}")


class _Block:
    """One content block: its index in the reply, and its content, in case the turn has to be continued."""

    __slots__ = ("content", "data", "index", "parts")

    def __init__(self, content: _Content, data: bytes) -> None:
        self.content = content
        self.data = data
        self.index: int | None = None
        self.parts: list[str] = []

    def as_json(self) -> Any:
        block = decode_json(self.data)["content_block"]
        text = "".join(self.parts)
        match self.content.type:
            case "text" | "thinking" as name:
                block[name] = text
            case _ if text:
                block["input"] = decode_json(text.encode())
            case _:
                pass
        if self.content.signature:
            block["signature"] = self.content.signature
        return block


def _failure(data: bytes) -> ModelError:
    message, code = describe_error(decode_json(data))
    return failure(message, code=code)


def _usage(counts: _Counts) -> Usage:
    extra: dict[str, Any] = {
        "reasoning": (counts.output_tokens_details or {}).get("thinking_tokens"),
        "cache_write_1h": (counts.cache_creation or {}).get("ephemeral_1h_input_tokens"),
        **(counts.server_tool_use or {}),
    }
    return Usage(
        counts.input_tokens or 0,
        counts.output_tokens or 0,
        counts.cache_read_input_tokens or 0,
        counts.cache_creation_input_tokens or 0,
        0,
        {name: count for name, count in extra.items() if count and isinstance(count, int)},
    )
