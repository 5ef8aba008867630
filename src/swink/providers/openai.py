"""OpenAI chat completions, and every server that speaks them: `POST {base_url}/chat/completions`.

OpenAIStreamFn()                                       api.openai.com, OPENAI_API_KEY
OpenAIStreamFn(preset="groq")                          a well-known server, with its own key variable
OpenAIStreamFn(base_url="http://127.0.0.1:8080/v1")    any other; `base_url` ends in /v1, as in OpenAI's SDK
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

from swink.errors import InvalidInput
from swink.models.keys.accounts import ACCOUNTS
from swink.providers.adapter import Adapter
from swink.providers.chat.presets import COMPATIBLE, PRESETS
from swink.providers.chat.wire import Chat
from swink.providers.endpoint import provider_endpoint


class OpenAIStreamFn(Adapter):
    """OpenAI's chat completions, or a server that speaks them.

    Without a preset, a `base_url` of a known server selects that server's preset.

    Args:
        base_url: the server, by default OPENAI_BASE_URL or OpenAI's
        api_key: by default OPENAI_API_KEY, the variable of the preset, or the stored key
        preset: a known server, such as "groq": its address, key and dialect
        headers: go with every request, over those that it sets itself
        allow_http: lets a key travel over plain http beyond this network
    """

    provider = "openai"
    path = "/chat/completions"

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        preset: str | None = None,
        headers: Mapping[str, str] | None = None,
        allow_http: bool = False,
    ) -> None:
        if preset is not None and preset not in PRESETS:
            raise InvalidInput(f"no preset {preset!r}; there are {', '.join(PRESETS)}")
        name = preset or _preset_at(base_url)
        endpoint = provider_endpoint(name, base_url, api_key, allow_http=allow_http)
        elsewhere = name == "openai" and endpoint.host != "api.openai.com"
        self._set_up(endpoint, Chat(COMPATIBLE if elsewhere else PRESETS[name]), headers)


def _preset_at(base_url: str | None) -> str:
    """The provider whose own address this is; "openai" for any other."""
    addresses = {name: urlsplit(ACCOUNTS[name].base_url) for name in PRESETS}
    public = {url.hostname: name for name, url in addresses.items() if url.scheme == "https"}
    return public.get(urlsplit(base_url or "").hostname, "openai")
