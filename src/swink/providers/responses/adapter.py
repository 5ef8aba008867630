"""The Responses API: `POST {base_url}/responses`.

Reasoning models need it to think and call tools in one turn, and it has the provider's own tools.
"""

from swink.providers.adapter import Adapter
from swink.providers.responses.dialect import OPENAI, XAI
from swink.providers.responses.wire import Responses


class ResponsesStreamFn(Adapter):
    """OpenAI's Responses API, or a server that speaks it; `base_url` ends in /v1."""

    provider = "openai-responses"
    path = "/responses"
    wire = Responses(OPENAI)


class XAIResponsesStreamFn(Adapter):
    """Grok by the Responses API, with the tools that xAI runs itself; `base_url` ends in /v1."""

    provider = "xai-responses"
    path = "/responses"
    wire = Responses(XAI)
