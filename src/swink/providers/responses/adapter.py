"""The OpenAI Responses API: `POST {base_url}/responses`.

Reasoning models need it to think and call tools in one turn.
"""

from collections.abc import AsyncGenerator

from swink.messages import ModelSpec
from swink.providers.convert import paired_messages, prepare
from swink.providers.endpoint import provider_endpoint
from swink.providers.exchange import encode_body, exchange
from swink.providers.http import Request, client_for
from swink.providers.notices import ALL_OPTIONS, Notices
from swink.providers.responses.body import request_body
from swink.providers.responses.dialect import OPENAI
from swink.providers.responses.history import History
from swink.providers.responses.stream import ResponsesDecoder
from swink.stream import AssistantMessageEvent, LlmContext, StreamOptions, Timeout


class ResponsesStreamFn:
    """OpenAI's Responses API, or a server that speaks it; `base_url` ends in /v1."""

    honours = ALL_OPTIONS - OPENAI.unhonoured

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
            history = History(model, OPENAI)
            for message in await prepare(paired_messages(context.messages), model):
                history.add(message)
            body = request_body(model, context, history.items, options, OPENAI, self._notices)
            headers = self._endpoint.check_headers(
                {**self._endpoint.bearer_headers(options), **self._headers}
            )
            return Request(f"{self._endpoint.base_url}/responses", headers, encode_body(body, options.extra))

        return exchange(request, lambda reply: ResponsesDecoder(reply, options), options, self.timeout)

    def check_key(self, options: StreamOptions) -> None:
        """Raise `MissingKey` if a request with these options would have no key to send."""
        self._endpoint.check_key(options.api_key)

    def asker(self) -> str:
        """A digest of the account that asks; one account's recordings are not replayed for another."""
        return self._endpoint.asker(sorted(self._headers.items()))

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await client_for(StreamOptions()).aclose()
