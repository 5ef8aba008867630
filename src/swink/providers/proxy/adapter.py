"""ProxyStreamFn: a model behind a swink proxy, which holds the provider's key so that the client need not."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from swink.errors import StreamError
from swink.messages import LlmMessage, Media, ModelSpec, NamedFile
from swink.providers.adapter import Adapter, Ask, Wire
from swink.providers.endpoint import provider_endpoint
from swink.providers.exchange import cut_short, decode_json, malformed
from swink.providers.proxy.wire import (
    REVISION,
    VERSION,
    decode_reply,
    encode_message,
    newer_than_revision_0,
    request_body,
    version_of,
)
from swink.providers.sse import SseParser
from swink.providers.thinking import asked_level, refuse
from swink.stream import (
    AssistantMessageEvent,
    BlockAdded,
    BlockWriter,
    Delta,
    Done,
    Error,
    PromptProgress,
    Start,
    StreamOptions,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    Timeout,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageUpdate,
)


class ProxyStreamFn(Adapter):
    """Asks the model that a swink proxy fronts: `POST {base_url}/v1/stream` with a bearer token.

    The model is named as the proxy knows it, "anthropic:claude-sonnet-4-6", with or without "proxy:" before
    it. `version=1` speaks the old protocol, which has no tools.

    Args:
        base_url: the proxy, by default SWINK_PROXY_URL
        api_key: its token, by default SWINK_PROXY_TOKEN or the stored one
        version: of the protocol
        headers: go with every request, over those that it sets itself
        allow_http: lets a key travel over plain http beyond this network
    """

    provider = "proxy"
    path = "/v1/stream"

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        version: int = VERSION,
        headers: Mapping[str, str] | None = None,
        allow_http: bool = False,
    ) -> None:
        endpoint = provider_endpoint("proxy", base_url, api_key, allow_http=allow_http)
        self._set_up(endpoint, _ProxyWire(version), headers)
        self.timeout = Timeout()
        self._version = version

    def asker(self) -> str:
        return self._endpoint.asker(self._version, sorted(self._headers.items()))


class _ProxyWire(Wire):
    """The harness's own protocol, which `swink serve proxy` speaks."""

    def __init__(self, version: int) -> None:
        self.version = version

    def conversation(self, model: ModelSpec) -> "_Passed":
        return _Passed()

    def body(self, ask: Ask, messages: Sequence[Any]) -> dict[str, Any]:
        """The request; what version 1 has no words for is reported."""
        if self.version == 1:
            missing = newer_than_revision_0(ask.context, ask.options)
            for name in ["tools", *missing] if ask.context.tools else missing:
                ask.notices.report(name, "version 1 of the proxy protocol has none")
            if ask.model.thinking_level != "off" or ask.model.thinking_budgets:
                refuse(ask.model, ask.notices, "version 1 of the proxy protocol has none")
        model = ask.model
        if asked_level(model, ask.notices) is None:
            model = replace(model, thinking_level="off", thinking_budgets={})
        return request_body(model, ask.context, messages, ask.options, self.version)

    def extra(self, ask: Ask) -> Mapping[str, Any]:
        """Nothing: the options carry it to the provider."""
        return {}

    def decoder(self, reply: BlockWriter, ask: Ask) -> "_Decoder":
        def report() -> None:
            for name in newer_than_revision_0(ask.context, ask.options) if self.version > 1 else ():
                ask.notices.report(name, "this proxy server is older than that; update it")

        return _Decoder(reply, ask.options, report)


class _Passed:
    """A history as it is passed on."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    def add(self, message: LlmMessage) -> None:
        self.items.append(encode_message(message))


class _Decoder:
    """The events of the server, checked and numbered again."""

    def __init__(self, reply: BlockWriter, options: StreamOptions, is_older: Callable[[], None]) -> None:
        self._reply = reply
        self._is_older = is_older
        self._raw = options.on_raw_payload
        self._parser = SseParser()
        self._version = 1
        self._open: dict[int, type[Delta]] = {}

    def feed(self, chunk: bytes) -> None:
        for event in self._parser.feed(chunk):
            if self._raw is not None:
                self._raw(decode_json(event.data))
            try:
                decoded = decode_reply(event.data, self._version)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise malformed(event.data, error) from error
            if isinstance(decoded, Start):
                self._version, revision = version_of(event.data)
                if revision < REVISION:
                    self._is_older()
            elif decoded is not None:
                self._take(decoded)
            if self._reply.terminal is not None:
                return

    def end(self) -> None:
        raise cut_short()

    def _take(self, event: AssistantMessageEvent) -> None:
        reply = self._reply
        match event:
            case TextDelta(index, text) | ThinkingDelta(index, text) | ToolCallDelta(index, text):
                self._expect(index, type(event))
                reply.add(index, text)
            case TextStart(index):
                self._begin(index, reply.begin_text(), TextDelta)
            case ThinkingStart(index):
                self._begin(index, reply.begin_thinking(), ThinkingDelta)
            case ToolCallStart(index, id, name):
                self._begin(index, reply.begin_call(id, name), ToolCallDelta)
            case TextEnd(index, signature, citations):
                self._end(index, TextDelta)
                reply.end(index, signature, citations=citations)
            case BlockAdded(index, block):
                if isinstance(block, Media) and isinstance(block.source, NamedFile):
                    raise StreamError("the proxy sent a path for a block; no file here is read for it")
                if index != (own := reply.add_block(block)):
                    raise StreamError(f"the proxy adds block {index}, expected {own}")
            case ThinkingEnd(index, signature, redacted):
                self._end(index, ThinkingDelta)
                reply.end(index, signature, redacted=redacted)
            case ToolCallEnd(index, signature):
                self._end(index, ToolCallDelta)
                reply.end(index, signature)
            case Done("length"):
                reply.terminal = event  # what is still open was cut off, and stays so
            case Done() | Error():
                reply.finish(event)
            case UsageUpdate(usage, cost):
                reply.report(usage, cost)
            case PromptProgress(done, total):
                reply.read(done, total)
            case Start():
                pass

    def _begin(self, index: int, own: int, takes: type[Delta]) -> None:
        if index != own:
            raise StreamError(f"the proxy opens block {index}, expected {own}")
        self._open[index] = takes

    def _expect(self, index: int, takes: type[Delta]) -> None:
        if self._open.get(index) is not takes:
            what = f"more {_WORDS[takes]} for block {index}"
            raise StreamError(f"the proxy sent {what}, which is not open for it")

    def _end(self, index: int, takes: type[Delta]) -> None:
        self._expect(index, takes)
        del self._open[index]


_WORDS = {TextDelta: "text", ThinkingDelta: "thinking", ToolCallDelta: "of a tool call"}
