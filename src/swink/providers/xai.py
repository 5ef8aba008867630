"""xAI: chat completions at `POST {base_url}/chat/completions`, with errors as plain strings."""

from swink.providers.adapter import Adapter
from swink.providers.chat.presets import XAI
from swink.providers.chat.wire import Chat


class XAIStreamFn(Adapter):
    """Grok; `base_url` ends in /v1.

    Args:
        base_url: the server, by default xAI's
        api_key: by default XAI_API_KEY or the stored key
        headers: go with every request, over those that it sets itself
        allow_http: lets a key travel over plain http beyond this network
    """

    provider = "xai"
    path = "/chat/completions"
    wire = Chat(XAI)
