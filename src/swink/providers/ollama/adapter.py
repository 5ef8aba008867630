"""Ollama: `POST {base_url}/api/chat`, streamed as newline-delimited JSON."""

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from swink.errors import MisuseError
from swink.models.keys.accounts import ACCOUNTS
from swink.providers.adapter import LOCAL, Adapter
from swink.providers.endpoint import Endpoint, check_base_url
from swink.providers.ollama.wire import OllamaChat

PORT = 11434
_PORTS = {"http": 80, "https": 443}


class OllamaStreamFn(Adapter):
    """Models that an Ollama server runs; `base_url` is what Ollama's own SDK calls the host.

    `num_ctx` fixes the size of the context; without it the size follows the conversation.

    Args:
        base_url: the server, by default OLLAMA_HOST or this machine
        api_key: by default OLLAMA_API_KEY; a server of your own needs none
        num_ctx: tokens of the context; without it the size follows the conversation
        keep_alive: how long the model stays loaded, such as "10m"
        headers: go with every request, over those that it sets itself
        allow_http: lets a key travel over plain http beyond this network
    """

    provider = "ollama"
    path = "/api/chat"

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        num_ctx: int | None = None,
        keep_alive: str | int | None = None,
        headers: Mapping[str, str] | None = None,
        allow_http: bool = False,
    ) -> None:
        named = os.environ.get("OLLAMA_HOST")
        url = check_base_url(parse_host(base_url or named), allow_http=allow_http)
        host = urlsplit(url).hostname or ""
        is_official = host == "ollama.com" or host.endswith(".ollama.com")
        owned = not base_url or url == parse_host(named) or is_official
        variables = ACCOUNTS["ollama"].variables
        endpoint = Endpoint("ollama", url, api_key, variables, owned, allow_http, key_name="ollama")
        self._set_up(endpoint, OllamaChat(num_ctx, keep_alive), headers)
        self.timeout = LOCAL
        self._num_ctx = num_ctx

    def asker(self) -> str:
        return self._endpoint.asker(sorted(self._headers.items()), self._num_ctx)


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
