"""Mistral: `POST {base_url}/v1/chat/completions`, with thinking in the content and short call ids."""

from swink.providers.adapter import Adapter
from swink.providers.chat.presets import MISTRAL
from swink.providers.chat.wire import Chat


class MistralStreamFn(Adapter):
    """Mistral's models; `base_url` is without /v1, as in Mistral's own SDK.

    Args:
        base_url: the server, by default Mistral's
        api_key: by default MISTRAL_API_KEY or the stored key
        headers: go with every request, over those that it sets itself
        allow_http: lets a key travel over plain http beyond this network
    """

    provider = "mistral"
    path = "/v1/chat/completions"
    wire = Chat(MISTRAL)
