"""The OpenAI Responses API: `POST {base_url}/responses`.

    response.created (output_item.added (….delta)* output_item.done)* response.completed | incomplete | failed

Reasoning models need it to think and call tools in one turn. An output item is one block: a message is text,
a reasoning item thinking, a function call a tool call; others are skipped.
"""

from collections.abc import AsyncGenerator
from typing import Any

import msgspec
from msgspec import Struct

from swink.errors import ContentFiltered, StreamError
from swink.messages import ModelSpec, Usage
from swink.providers.chat.stream import count
from swink.providers.convert import prepare
from swink.providers.endpoint import provider_endpoint
from swink.providers.exchange import cut_short, decode_json, decode_known, encode_body, exchange
from swink.providers.failure import describe_error, failure
from swink.providers.http import Request, client_for
from swink.providers.notices import ALL_OPTIONS, Notices
from swink.providers.responses.body import request_body
from swink.providers.sse import SseParser
from swink.stream import AssistantMessageEvent, BlockWriter, LlmContext, StreamOptions, Timeout


class ResponsesStreamFn:
    """OpenAI's Responses API, or a server that speaks it; `base_url` ends in /v1."""

    honours = ALL_OPTIONS - {"cache"}

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        headers: dict[str, str] | None = None,
        allow_http: bool = False,
    ) -> None:
        self._endpoint = provider_endpoint("openai-responses", base_url, api_key, allow_http=allow_http)
        self._headers = {name.lower(): value for name, value in (headers or {}).items()}
        self.base_url = self._endpoint.base_url
        self._notices = Notices("openai-responses", self.honours)
        self.timeout = Timeout(idle=600, first=600) if self._endpoint.is_local else Timeout()

    def __repr__(self) -> str:
        return f"ResponsesStreamFn(base_url={self._endpoint.base_url!r})"

    def __call__(
        self, model: ModelSpec, context: LlmContext, options: StreamOptions
    ) -> AsyncGenerator[AssistantMessageEvent, None]:
        """Ask for one reply."""
        self._notices.check(options)

        async def request() -> Request:
            await self._endpoint.prepare_key(options.api_key)
            body = request_body(
                model, context, await prepare(context.messages, model), options, self._notices
            )
            headers = self._endpoint.check_headers(
                {**self._endpoint.bearer_headers(options), **self._headers}
            )
            return Request(f"{self._endpoint.base_url}/responses", headers, encode_body(body, options.extra))

        return exchange(request, lambda reply: _Decoder(reply, options), options, self.timeout)

    def check_key(self, options: StreamOptions) -> None:
        """Raise `MissingKey` if a request with these options would have no key to send."""
        self._endpoint.check_key(options.api_key)

    def asker(self) -> str:
        """A digest of the account that asks; one account's recordings are not replayed for another."""
        return self._endpoint.asker(sorted(self._headers.items()))

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await client_for(StreamOptions()).aclose()


class _Item(Struct):
    """An output item; of the types that are skipped, only the type matters."""

    type: str
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    content: Any = None
    summary: Any = None
    encrypted_content: str | None = None
    status: str | None = None


class _Response(Struct):
    status: str | None = None
    usage: dict[str, Any] | None = None
    incomplete_details: dict[str, Any] | None = None
    error: Any = None


class _Event(Struct):
    """Any event of the stream; errors from other servers have no type."""

    type: str = ""
    output_index: int | None = None
    item_id: str | None = None
    delta: str | None = None
    item: _Item | None = None
    response: _Response | None = None
    error: Any = None


_events = msgspec.json.Decoder(_Event)
_KNOWN = frozenset(
    (
        "response.output_item.added",
        "response.output_item.done",
        "response.output_text.delta",
        "response.refusal.delta",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_text.delta",
        "response.reasoning_text.delta",
        "response.function_call_arguments.delta",
        "response.completed",
        "response.incomplete",
        "response.failed",
        "error",
    )
)


class _Decoder:
    """The events of one response."""

    def __init__(self, reply: BlockWriter, options: StreamOptions) -> None:
        self._reply = reply
        self._raw = options.on_raw_payload
        self._parser = SseParser()
        self._blocks: dict[int | str, int] = {}
        self._calls = False
        self._refusal: list[str] = []

    def feed(self, chunk: bytes) -> None:
        for event in self._parser.feed(chunk):
            if event.data.strip() == b"[DONE]":
                continue
            if self._raw is not None:
                self._raw(decode_json(event.data))
            decoded = decode_known(_events, _KNOWN, event.data)
            if decoded is not None:
                self._take(decoded, event.data)
            if self._reply.terminal is not None:
                return

    def end(self) -> None:
        raise cut_short()

    def _take(self, event: _Event, data: bytes) -> None:
        match event.type:
            case (
                "response.output_text.delta"
                | "response.reasoning_text.delta"
                | "response.function_call_arguments.delta"
            ):
                self._add(event)
            case "response.reasoning_summary_text.delta":
                self._add(event)
            case "response.reasoning_summary_part.added":
                self._separate(event)
            case "response.refusal.delta":
                self._refusal.append(event.delta or "")
            case "response.output_item.added" if event.item is not None:
                self._begin(_key(event), event.item)
            case "response.output_item.done" if event.item is not None:
                self._finish_item(_key(event), event.item)
            case "response.completed" | "response.incomplete" | "response.failed":
                self._finish(event.response or _Response())
            case _ if event.type == "error" or event.error:
                message, code = describe_error(decode_json(data))
                raise failure(message, code=code)
            case _ if event.response is not None and event.response.usage is not None:
                self._reply.report(_usage(event.response.usage))
            case _:
                pass  # progress reports, and types that newer servers may send

    def _begin(self, key: int | str, item: _Item) -> None:
        match item.type:
            case "message":
                self._blocks[key] = self._reply.begin_text()
            case "reasoning":
                self._blocks[key] = self._reply.begin_thinking()
            case "function_call":
                if not item.name:
                    raise StreamError("the provider sent a tool call without a name")
                self._calls = True
                self._blocks[key] = self._reply.begin_call(item.call_id or item.id or "", item.name)
            case _:
                pass  # tools that the provider runs itself

    def _add(self, event: _Event) -> None:
        index = self._blocks.get(_key(event))
        if index is None:
            raise StreamError(f"the provider sent {event.type} for an item that never began")
        if event.delta and self._reply.is_open(index):
            self._reply.add(index, event.delta)

    def _separate(self, event: _Event) -> None:
        """A blank line between the parts of a summary."""
        index = self._blocks.get(_key(event))
        if index is not None and self._reply.is_open(index) and self._reply.is_filled(index):
            self._reply.add(index, "\n\n")

    def _finish_item(self, key: int | str, item: _Item) -> None:
        if key not in self._blocks:
            self._begin(key, item)
        index = self._blocks.get(key)
        if index is None or not self._reply.is_open(index):
            return
        if not self._reply.is_filled(index) and (text := _whole_text(item)):
            self._reply.add(index, text)
        if item.type == "function_call" and (item.status == "incomplete" or not self._reply.is_filled(index)):
            return  # cut off, or called with nothing: how the response ends will tell
        self._reply.end(index, _signature(item) if item.type == "reasoning" else None)

    def _finish(self, response: _Response) -> None:
        if response.usage is not None:
            self._reply.report(_usage(response.usage))
        self._reply.settle()
        if self._refusal:
            raise ContentFiltered("".join(self._refusal))
        reason = (response.incomplete_details or {}).get("reason")
        match response.status, reason:
            case (("completed" | None), _):
                self._reply.done("tool_use" if self._calls else "stop")
            case "incomplete", "max_output_tokens":
                self._reply.done("length")
            case "incomplete", "content_filter":
                raise ContentFiltered("the provider's content filter stopped the reply")
            case "failed", _:
                message, code = describe_error({"error": response.error or "the response failed"})
                raise failure(message, code=code)
            case status, _:
                raise StreamError(f"unknown end of a response: {status}, {reason}")


def _key(event: _Event) -> int | str:
    if event.output_index is not None:
        return event.output_index
    return event.item_id or (event.item.id if event.item is not None else None) or ""


def _whole_text(item: _Item) -> str:
    """The text of an item that came without deltas."""
    if item.type == "function_call":
        return item.arguments or ""
    parts = item.content if item.type == "message" else item.summary or item.content
    texts: list[str] = []
    for part in parts or ():
        match part:
            case {"text": str() as text}:
                texts.append(text)
            case _:
                pass
    return ("" if item.type == "message" else "\n\n").join(texts)


def _signature(item: _Item) -> str | None:
    """A reasoning item as it has to go back; without encrypted content it means nothing to the provider."""
    if not item.encrypted_content:
        return None
    kept: dict[str, Any] = {
        "type": "reasoning",
        "id": item.id or "",
        "summary": item.summary or [],
        "encrypted_content": item.encrypted_content,
    }
    return msgspec.json.encode(kept).decode()


def _usage(usage: dict[str, Any]) -> Usage:
    details = usage.get("input_tokens_details")
    whole, cached, written = (
        count(usage, "input_tokens"),
        count(details, "cached_tokens"),
        count(details, "cache_write_tokens"),
    )
    reasoning = count(usage.get("output_tokens_details"), "reasoning_tokens")
    return Usage(
        max(whole - cached - written, 0),
        count(usage, "output_tokens"),
        cached,
        written,
        count(usage, "total_tokens"),
        {"reasoning": reasoning} if reasoning else {},
    )
