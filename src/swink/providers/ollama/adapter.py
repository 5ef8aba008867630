"""Ollama: `POST {base_url}/api/chat`, streamed as newline-delimited JSON."""

import os
from collections.abc import AsyncGenerator
from urllib.parse import urlsplit

from swink.errors import MisuseError
from swink.keys.accounts import ACCOUNTS
from swink.messages import ModelSpec
from swink.providers.convert import paired_messages, prepare
from swink.providers.endpoint import Endpoint, check_base_url
from swink.providers.exchange import encode_body, exchange, merge_objects
from swink.providers.http import Request, client_for
from swink.providers.notices import ALL_OPTIONS, Notices
from swink.providers.ollama.body import context_size, estimated_tokens, request_body
from swink.providers.ollama.stream import OllamaDecoder, explain
from swink.stream import AssistantMessageEvent, LlmContext, StreamOptions, Timeout

PORT = 11434
_PORTS = {"http": 80, "https": 443}


class OllamaStreamFn:
    """Models that an Ollama server runs; `base_url` is what Ollama's own SDK calls the host.

    `num_ctx` fixes the size of the context; without it the size follows the conversation.
    """

    honours = ALL_OPTIONS - {"session_id", "cache"}

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        num_ctx: int | None = None,
        keep_alive: str | int | None = None,
        allow_http: bool = False,
    ) -> None:
        named = os.environ.get("OLLAMA_HOST")
        url = check_base_url(parse_host(base_url or named), allow_http=allow_http)
        host = urlsplit(url).hostname or ""
        owned = (
            not base_url or url == parse_host(named) or host == "ollama.com" or host.endswith(".ollama.com")
        )
        variables = ACCOUNTS["ollama"].variables
        self._endpoint = Endpoint("ollama", url, api_key, variables, owned, allow_http, key_name="ollama")
        self._num_ctx = num_ctx
        self._keep_alive = keep_alive
        self.base_url = self._endpoint.base_url
        self._notices = Notices("ollama", self.honours)
        self.timeout = Timeout(idle=600, first=600)

    def __repr__(self) -> str:
        return f"OllamaStreamFn(base_url={self._endpoint.base_url!r})"

    def __call__(
        self, model: ModelSpec, context: LlmContext, options: StreamOptions
    ) -> AsyncGenerator[AssistantMessageEvent, None]:
        """Ask for one reply."""
        self._notices.check(options)
        estimate = 0

        async def request() -> Request:
            nonlocal estimate
            await self._endpoint.prepare_key(options.api_key)
            body = request_body(
                model,
                context,
                await prepare(paired_messages(context.messages), model),
                options,
                self._notices,
            )
            estimate = estimated_tokens(body)
            if self._keep_alive is not None:
                body["keep_alive"] = self._keep_alive
            sized = {"options": {"num_ctx": self._num_ctx or context_size(estimate, options, model)}}
            headers = self._endpoint.bearer_headers(options) | {"accept": "application/x-ndjson"}
            sent = encode_body(merge_objects(merge_objects(sized, options.extra), body), {})
            return Request(f"{self._endpoint.base_url}/api/chat", headers, sent)

        return exchange(
            request,
            lambda reply: OllamaDecoder(reply, options, estimate),
            options,
            self.timeout,
            explain=explain,
            refused_types=("text/html",),
        )

    def check_key(self, options: StreamOptions) -> None:
        """Raise `MissingKey` if a request with these options would have no key to send."""
        self._endpoint.check_key(options.api_key)

    def asker(self) -> str:
        """A digest of the account that asks; one account's recordings are not replayed for another."""
        return self._endpoint.asker(self._num_ctx)

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await client_for(StreamOptions()).aclose()


def parse_host(host: str | None) -> str:
    """The URL that OLLAMA_HOST, or the host of Ollama's SDK, stands for: scheme and port may be missing."""
    scheme, found, rest = (host or "").strip().partition("://")
    if not found:
        scheme, rest = "http", scheme
    parts = urlsplit(f"{scheme}://{rest}")
    name = parts.hostname or "127.0.0.1"
    if ":" in name:
        name = f"[{name}]"
    try:
        port = parts.port or (_PORTS.get(scheme, PORT) if found else PORT)
    except ValueError:
        raise MisuseError(f"the host of Ollama has no valid port: {rest[:80]}") from None
    path = parts.path.strip("/")
    user = f"{parts.username}@" if parts.username is not None else ""
    return f"{scheme}://{user}{name}:{port}" + (f"/{path}" if path else "")
