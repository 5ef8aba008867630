"""xAI: chat completions at `POST {base_url}/chat/completions`, with errors as plain strings."""

from collections.abc import AsyncGenerator

from swink.messages import ModelSpec
from swink.providers.chat.body import request_body
from swink.providers.chat.presets import XAI
from swink.providers.chat.stream import ChatDecoder
from swink.providers.convert import prepare
from swink.providers.endpoint import provider_endpoint
from swink.providers.exchange import encode_body, exchange
from swink.providers.http import Request, client_for
from swink.providers.notices import Notices
from swink.stream import AssistantMessageEvent, LlmContext, StreamOptions, Timeout


class XAIStreamFn:
    """Grok; `base_url` ends in /v1."""

    honours = XAI.honours

    def __init__(
        self, *, base_url: str | None = None, api_key: str | None = None, allow_http: bool = False
    ) -> None:
        self._endpoint = provider_endpoint("xai", base_url, api_key, allow_http=allow_http)
        self.base_url = self._endpoint.base_url
        self._notices = Notices("xai", self.honours)
        self.timeout = Timeout(idle=600, first=600) if self._endpoint.is_local else Timeout()

    def __repr__(self) -> str:
        return f"XAIStreamFn(base_url={self._endpoint.base_url!r})"

    def __call__(
        self, model: ModelSpec, context: LlmContext, options: StreamOptions
    ) -> AsyncGenerator[AssistantMessageEvent, None]:
        """Ask for one reply."""
        self._notices.check(options)

        async def request() -> Request:
            await self._endpoint.prepare_key(options.api_key)
            body = request_body(
                model, context, await prepare(context.messages, model), options, XAI, self._notices
            )
            headers = self._endpoint.bearer_headers(options)
            if options.session_id:  # requests of one conversation meet the same cache
                headers[XAI.session_header] = options.session_id
            return Request(
                f"{self._endpoint.base_url}/chat/completions", headers, encode_body(body, options.extra)
            )

        return exchange(request, lambda reply: ChatDecoder(reply, options, XAI), options, self.timeout)

    def check_key(self, options: StreamOptions) -> None:
        """Raise `MissingKey` if a request with these options would have no key to send."""
        self._endpoint.check_key(options.api_key)

    def asker(self) -> str:
        """A digest of the account that asks; one account's recordings are not replayed for another."""
        return self._endpoint.asker()

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await client_for(StreamOptions()).aclose()
