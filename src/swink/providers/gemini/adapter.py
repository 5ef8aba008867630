"""Gemini: `POST {base_url}/v1beta/models/{model}:streamGenerateContent?alt=sse`."""

from collections.abc import AsyncGenerator

from swink.messages import ModelSpec
from swink.providers.convert import paired_messages, prepare
from swink.providers.endpoint import provider_endpoint, segment
from swink.providers.exchange import encode_body, exchange
from swink.providers.gemini.body import request_body
from swink.providers.gemini.conversation import Contents, is_third
from swink.providers.gemini.endings import explain
from swink.providers.gemini.stream import GeminiDecoder
from swink.providers.http import Request, client_for
from swink.providers.notices import ALL_OPTIONS, Notices
from swink.stream import AssistantMessageEvent, LlmContext, StreamOptions, Timeout


class GeminiStreamFn:
    """Gemini; `base_url` is without the API version, as in Google's own SDK."""

    honours = ALL_OPTIONS - {"session_id", "cache", "verbosity", "parallel_tool_calls"}

    def __init__(
        self, *, base_url: str | None = None, api_key: str | None = None, allow_http: bool = False
    ) -> None:
        self._endpoint = provider_endpoint("gemini", base_url, api_key, allow_http=allow_http)
        self.base_url = self._endpoint.base_url
        self._notices = Notices("gemini", self.honours)
        self.timeout = Timeout(idle=600, first=600) if self._endpoint.is_local else Timeout()

    def __repr__(self) -> str:
        return f"GeminiStreamFn(base_url={self._endpoint.base_url!r})"

    def __call__(
        self, model: ModelSpec, context: LlmContext, options: StreamOptions
    ) -> AsyncGenerator[AssistantMessageEvent, None]:
        """Ask for one reply."""
        self._notices.check(options)

        async def request() -> Request:
            await self._endpoint.prepare_key(options.api_key)
            contents = Contents(model)
            for message in await prepare(paired_messages(context.messages), model):
                contents.add(message)
            body = request_body(model, context, contents.items, options, self._notices)
            return self._request(model, encode_body(body, {}), options)

        names = [tool.name for tool in context.tools]
        return exchange(
            request,
            lambda reply: GeminiDecoder(
                reply,
                options,
                names,
                grounded=bool(context.hosted or options.extra.get("tools")),
                by_query=is_third(model.model_id),
            ),
            options,
            self.timeout,
            explain=explain,
        )

    def check_key(self, options: StreamOptions) -> None:
        """Raise `MissingKey` if a request with these options would have no key to send."""
        self._endpoint.check_key(options.api_key)

    def asker(self) -> str:
        """A digest of the account that asks; one account's recordings are not replayed for another."""
        return self._endpoint.asker()

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await client_for(StreamOptions()).aclose()

    def _request(self, model: ModelSpec, body: bytes, options: StreamOptions) -> Request:
        headers = {"content-type": "application/json", "accept": "text/event-stream"}
        if key := self._endpoint.key(options.api_key):
            headers["x-goog-api-key"] = key
        kind, slash, name = model.model_id.partition("/")
        path = (
            f"{kind}/{segment(name)}"
            if slash and kind in ("models", "tunedModels")
            else f"models/{segment(model.model_id)}"
        )
        return Request(
            f"{self._endpoint.base_url}/v1beta/{path}:streamGenerateContent?alt=sse", headers, body
        )
