"""OpenAI chat completions, and every server that speaks them: `POST {base_url}/chat/completions` with a bearer key.

OpenAIStreamFn()                                        api.openai.com, OPENAI_API_KEY
OpenAIStreamFn(preset="groq")                           a well-known server, with its own key variable
OpenAIStreamFn(base_url="http://127.0.0.1:8080/v1")     any other; `base_url` ends in /v1, as in OpenAI's own SDK
"""

from collections.abc import AsyncGenerator
from urllib.parse import urlsplit

from msgspec import Struct

from swink.errors import MisuseError
from swink.messages import ModelSpec
from swink.providers.chat_body import Dialect, request_body
from swink.providers.chat_stream import ChatDecoder
from swink.providers.convert import prepare
from swink.providers.endpoint import endpoint
from swink.providers.exchange import encode_body, exchange
from swink.providers.http import Request, transport_for
from swink.providers.notices import Notices
from swink.stream import AssistantMessageEvent, LlmContext, StreamOptions, Timeout

OPENAI = Dialect(
    "openai", limit_field="max_completion_tokens", reasoning="openai", session_field="prompt_cache_key"
)


class Preset(Struct, frozen=True):
    """A well-known server: where it is, where its key is found, and what it wants otherwise."""

    base_url: str
    keys: tuple[str, ...]
    dialect: Dialect


PRESETS: dict[str, Preset] = {
    "openai": Preset("https://api.openai.com/v1", ("OPENAI_API_KEY",), OPENAI),
    "groq": Preset(
        "https://api.groq.com/openai/v1",
        ("GROQ_API_KEY",),
        Dialect("groq", limit_field="max_completion_tokens"),
    ),
    "together": Preset("https://api.together.xyz/v1", ("TOGETHER_API_KEY",), Dialect("together")),
    "openrouter": Preset(
        "https://openrouter.ai/api/v1",
        ("OPENROUTER_API_KEY",),
        Dialect(
            "openrouter",
            sends_limit=False,
            reasoning="openrouter",
            replay="reasoning_details",
            session_field="session_id",
        ),
    ),
    "deepseek": Preset(
        "https://api.deepseek.com",
        ("DEEPSEEK_API_KEY",),
        Dialect("deepseek", reasoning="deepseek", replay="reasoning_content"),
    ),
    "vllm": Preset("http://127.0.0.1:8000/v1", ("VLLM_API_KEY",), Dialect("vllm", sends_limit=False)),
    "llamacpp": Preset(
        "http://127.0.0.1:8080/v1", ("LLAMA_API_KEY",), Dialect("llamacpp", sends_limit=False)
    ),
    "lmstudio": Preset(
        "http://127.0.0.1:1234/v1", ("LM_STUDIO_API_KEY",), Dialect("lmstudio", sends_limit=False)
    ),
}
COMPATIBLE = Dialect("openai", sends_limit=False)


class OpenAIStreamFn:
    """OpenAI's chat completions, or a server that speaks them.

    Without a preset, a `base_url` that belongs to a known one brings that one's ways and its key variable with it.
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
            raise MisuseError(f"no preset {preset!r}; there are {', '.join(PRESETS)}")
        known = PRESETS[preset] if preset else _preset_at(base_url)
        self._endpoint = endpoint(
            known.dialect.provider,
            known.base_url,
            base_url,
            api_key,
            keys=known.keys,
            url_variable="OPENAI_BASE_URL" if known is PRESETS["openai"] else "",
            allow_http=allow_http,
        )
        elsewhere = known is PRESETS["openai"] and self._endpoint.host != "api.openai.com"
        self._dialect = COMPATIBLE if elsewhere else known.dialect
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

        async def request() -> Request:
            body = request_body(
                model, context, await prepare(context.messages, model), options, self._dialect, self._notices
            )
            headers = self._endpoint.sealed({**self._endpoint.bearer_headers(options), **self._headers})
            return Request(
                f"{self._endpoint.base_url}/chat/completions", headers, encode_body(body, options.extra)
            )

        return exchange(request, lambda reply: ChatDecoder(reply, options), options, self.timeout)

    def asker(self) -> str:
        """A digest of who asks: one's answers are not another's."""
        return self._endpoint.asker(sorted(self._headers.items()))

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await transport_for(StreamOptions()).aclose()


def _preset_at(base_url: str | None) -> Preset:
    host = urlsplit(base_url or "").hostname
    for preset in PRESETS.values():
        if host and host == urlsplit(preset.base_url).hostname and not preset.base_url.startswith("http:"):
            return preset
    return PRESETS["openai"]
