"""Mistral: `POST {base_url}/v1/chat/completions`, with thinking in the content and short call ids."""

from swink.providers.adapter import Adapter
from swink.providers.chat.presets import MISTRAL
from swink.providers.chat.wire import Chat


class MistralStreamFn(Adapter):
    """Mistral's models; `base_url` is without /v1, as in Mistral's own SDK."""

    provider = "mistral"
    path = "/v1/chat/completions"
    wire = Chat(MISTRAL)
