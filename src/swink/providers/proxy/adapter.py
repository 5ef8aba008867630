"""ProxyStreamFn: a model behind a swink proxy, which holds the provider's key so that the client need not."""

from collections.abc import AsyncIterator, Callable, Mapping

import msgspec

from swink.errors import StreamError
from swink.hosts import checked_headers
from swink.messages import FileSource, Media, ModelSpec
from swink.providers.efforts import refuse
from swink.providers.endpoint import provider_endpoint
from swink.providers.exchange import cut_short, decode_json, exchange, malformed
from swink.providers.http import Request, shared_client
from swink.providers.notices import ALL_OPTIONS, Notices
from swink.providers.proxy.wire import (
    REVISION,
    VERSION,
    decode_reply,
    encode_request,
    newer_than_revision_0,
    version_of,
)
from swink.providers.sse import SseParser
from swink.stream import (
    AssistantMessageEvent,
    BlockAdded,
    BlockWriter,
    Delta,
    Done,
    Error,
    LlmContext,
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


class ProxyStreamFn:
    """Asks the model that a swink proxy fronts: `POST {base_url}/v1/stream` with a bearer token.

    The model is named as the proxy knows it, "anthropic:claude-sonnet-4-6", with or without "proxy:" before
    it. `version=1` speaks the old protocol, which has no tools.
    """

    honours = ALL_OPTIONS

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        version: int = VERSION,
        headers: Mapping[str, str] | None = None,
        allow_http: bool = False,
    ) -> None:
        self._endpoint = provider_endpoint("proxy", base_url, api_key, allow_http=allow_http)
        self._version = version
        self._headers = checked_headers(headers or {})
        self._http = shared_client()
        self.base_url = self._endpoint.base_url
        self._notices = Notices("proxy", self.honours)
        self.timeout = Timeout()

    def __repr__(self) -> str:
        return f"ProxyStreamFn(base_url={self._endpoint.base_url!r})"

    def __call__(
        self, model: ModelSpec, context: LlmContext, options: StreamOptions
    ) -> AsyncIterator[AssistantMessageEvent]:
        """Ask for one reply."""
        self._notices.check(options)
        if self._version == 1:
            missing = newer_than_revision_0(context, options)
            for name in ["tools", *missing] if context.tools else missing:
                self._notices.report(name, "version 1 of the proxy protocol has none")
        if self._version == 1 and (model.thinking_level != "off" or model.thinking_budgets):
            refuse(model, self._notices, "version 1 of the proxy protocol has none")

        async def request() -> Request:
            await self._endpoint.prepare_key(options.api_key)
            body = await encode_request(model, context, options, self._version)
            headers = self._endpoint.check_headers(
                self._endpoint.bearer_headers(options), self._headers, options.headers
            )
            return Request(f"{self._endpoint.base_url}/v1/stream", headers, body)

        def decoder(reply: BlockWriter) -> _Decoder:
            return _Decoder(reply, options, lambda: self._report_newer(context, options))

        return exchange(request, decoder, options, self.timeout, client=self._http)

    def _report_newer(self, context: LlmContext, options: StreamOptions) -> None:
        for name in newer_than_revision_0(context, options) if self._version > 1 else ():
            self._notices.report(name, "this proxy server is older than that; update it")

    def check_key(self, options: StreamOptions) -> None:
        """Raise `MissingKey` if a request with these options would have no key to send."""
        self._endpoint.check_key(options.api_key)

    def asker(self) -> str:
        """A digest of the account that asks; one account's recordings are not replayed for another."""
        return self._endpoint.asker(self._version, sorted(self._headers.items()))

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await self._http.aclose()


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
                self._expect(index, TextDelta)
                del self._open[index]
                reply.end(index, signature, citations=citations)
            case BlockAdded(index, block):
                if isinstance(block, Media) and isinstance(block.source, FileSource):
                    raise StreamError("the proxy sent a path for a block; no file here is read for it")
                if index != (own := reply.add_block(block)):
                    raise StreamError(f"the proxy adds block {index}, expected {own}")
            case ThinkingEnd(index, signature, redacted):
                self._end(index, ThinkingDelta, signature, redacted)
            case ToolCallEnd(index, signature):
                self._end(index, ToolCallDelta, signature)
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
            raise StreamError(
                f"the proxy sent more {_WORDS[takes]} for block {index}, which is not open for it"
            )

    def _end(
        self, index: int, takes: type[Delta], signature: str | None = None, redacted: bool = False
    ) -> None:
        self._expect(index, takes)
        del self._open[index]
        self._reply.end(index, signature, redacted=redacted)


_WORDS: dict[type[Delta], str] = {
    TextDelta: "text",
    ThinkingDelta: "thinking",
    ToolCallDelta: "of a tool call",
}
