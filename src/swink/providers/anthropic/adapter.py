"""Anthropic: `POST {base_url}/v1/messages`, streamed as server-sent events."""

from collections.abc import AsyncGenerator
from typing import Any

from swink.messages import ModelSpec
from swink.providers.anthropic.body import beta_headers, request_body
from swink.providers.anthropic.history import History
from swink.providers.anthropic.stream import MessagesDecoder
from swink.providers.convert import paired_messages, prepare
from swink.providers.endpoint import provider_endpoint
from swink.providers.exchange import encode_body, exchange
from swink.providers.http import Request, client_for
from swink.providers.notices import ALL_OPTIONS, Notices
from swink.stream import AssistantMessageEvent, LlmContext, StreamOptions, Timeout

VERSION = "2023-06-01"


class AnthropicStreamFn:
    """Claude, or a server with the same Messages API; `base_url` is without `/v1`, as in Anthropic's SDK."""

    honours = ALL_OPTIONS - {"seed", "verbosity"}

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
        headers = beta_headers(model, context, options)

        async def first() -> Request:
            await self._endpoint.prepare_key(options.api_key)
            history = History(model)
            for message in await prepare(paired_messages(context.messages), model):
                history.add(message)
            body.update(request_body(model, context, history.items, options, self._notices))
            return self._request(body, headers, options)

        def resume(content: list[dict[str, Any]], container: str | None) -> Request:
            body["messages"] = [*body["messages"], {"role": "assistant", "content": content}]
            if container is not None:
                body["container"] = container
            return self._request(body, headers, options)

        return exchange(first, lambda reply: MessagesDecoder(reply, options, resume), options, self.timeout)

    def check_key(self, options: StreamOptions) -> None:
        """Raise `MissingKey` if a request with these options would have no key to send."""
        self._endpoint.check_key(options.api_key)

    def asker(self) -> str:
        """A digest of the account that asks; one account's recordings are not replayed for another."""
        return self._endpoint.asker(sorted(self._headers.items()))

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await client_for(StreamOptions()).aclose()

    def _request(self, body: dict[str, Any], betas: dict[str, str], options: StreamOptions) -> Request:
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            "anthropic-version": VERSION,
            **betas,
        }
        if key := self._endpoint.key(options.api_key):
            headers["x-api-key"] = key
        extra = {name: value for name, value in options.extra.items() if name != "betas"}
        return Request(
            f"{self._endpoint.base_url}/v1/messages",
            self._endpoint.check_headers(headers, self._headers, options.headers),
            encode_body(body, extra),
        )
