"""xAI: chat completions at `POST {base_url}/chat/completions`, with errors as plain strings."""

from swink.providers.adapter import Adapter
from swink.providers.chat.presets import XAI
from swink.providers.chat.wire import Chat


class XAIStreamFn(Adapter):
    """Grok; `base_url` ends in /v1."""

    provider = "xai"
    path = "/chat/completions"
    wire = Chat(XAI)
