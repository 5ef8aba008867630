"""OpenAI chat completions, and every server that speaks them: `POST {base_url}/chat/completions`.

OpenAIStreamFn()                                       api.openai.com, OPENAI_API_KEY
OpenAIStreamFn(preset="groq")                          a well-known server, with its own key variable
OpenAIStreamFn(base_url="http://127.0.0.1:8080/v1")    any other; `base_url` ends in /v1, as in OpenAI's SDK
"""

from collections.abc import AsyncGenerator
from urllib.parse import urlsplit

from swink.errors import InvalidInput
from swink.keys.accounts import ACCOUNTS
from swink.messages import ModelSpec
from swink.providers.chat.body import request_body
from swink.providers.chat.presets import COMPATIBLE, PRESETS
from swink.providers.chat.stream import ChatDecoder
from swink.providers.convert import prepare
from swink.providers.endpoint import provider_endpoint
from swink.providers.exchange import encode_body, exchange
from swink.providers.http import Request, client_for
from swink.providers.notices import Notices
from swink.stream import AssistantMessageEvent, LlmContext, StreamOptions, Timeout


class OpenAIStreamFn:
    """OpenAI's chat completions, or a server that speaks them.

    Without a preset, a `base_url` of a known server selects that server's preset.
    """

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        preset: str | None = None,
        headers: dict[str, str] | None = None,
        allow_http: bool = False,
    ) -> None:
        if preset is not None and preset not in PRESETS:
            raise InvalidInput(f"no preset {preset!r}; there are {', '.join(PRESETS)}")
        name = preset or _preset_at(base_url)
        self._endpoint = provider_endpoint(name, base_url, api_key, allow_http=allow_http)
        elsewhere = name == "openai" and self._endpoint.host != "api.openai.com"
        self._dialect = COMPATIBLE if elsewhere else PRESETS[name]
        self._headers = {name.lower(): value for name, value in (headers or {}).items()}
        self.base_url = self._endpoint.base_url
        self._notices = Notices(self._dialect.provider, self._dialect.honours)
        self.honours = self._dialect.honours
        self.timeout = Timeout(idle=600, first=600) if self._endpoint.is_local else Timeout()

    def __repr__(self) -> str:
        return f"OpenAIStreamFn(base_url={self._endpoint.base_url!r})"

    def __call__(
        self, model: ModelSpec, context: LlmContext, options: StreamOptions
    ) -> AsyncGenerator[AssistantMessageEvent, None]:
        """Ask for one reply."""
        self._notices.check(options)

        names = [tool.name for tool in context.tools]

        async def request() -> Request:
            await self._endpoint.prepare_key(options.api_key)
            body = request_body(
                model, context, await prepare(context.messages, model), options, self._dialect, self._notices
            )
            headers = self._endpoint.check_headers(
                {**self._endpoint.bearer_headers(options), **self._headers}
            )
            return Request(
                f"{self._endpoint.base_url}/chat/completions", headers, encode_body(body, options.extra)
            )

        return exchange(
            request, lambda reply: ChatDecoder(reply, options, self._dialect, names), options, self.timeout
        )

    def check_key(self, options: StreamOptions) -> None:
        """Raise `MissingKey` if a request with these options would have no key to send."""
        self._endpoint.check_key(options.api_key)

    def asker(self) -> str:
        """A digest of the account that asks; one account's recordings are not replayed for another."""
        return self._endpoint.asker(sorted(self._headers.items()))

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await client_for(StreamOptions()).aclose()


def _preset_at(base_url: str | None) -> str:
    """The provider whose own address this is; "openai" for any other."""
    addresses = {name: urlsplit(ACCOUNTS[name].base_url) for name in PRESETS}
    public = {url.hostname: name for name, url in addresses.items() if url.scheme == "https"}
    return public.get(urlsplit(base_url or "").hostname, "openai")
