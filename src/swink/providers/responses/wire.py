"""The Responses API, `POST {base_url}/responses`, as a wire, in one of its dialects.

Reasoning models need it to think and call tools in one turn, and it has the provider's own tools.
"""

from collections.abc import Sequence
from typing import Any

from swink.messages import ModelSpec
from swink.providers.adapter import Adapter, Ask, Wire
from swink.providers.notices import ALL_OPTIONS
from swink.providers.responses.body import request_body
from swink.providers.responses.conversation import ResponsesConversation
from swink.providers.responses.dialect import OPENAI, XAI, ResponsesDialect
from swink.providers.responses.stream import ResponsesDecoder
from swink.stream import BlockWriter, LlmContext


class Responses(Wire):
    """What OpenAI's Responses API is to one server."""

    def __init__(self, dialect: ResponsesDialect) -> None:
        self.dialect = dialect
        self.honours = ALL_OPTIONS - dialect.unhonoured

    def conversation(self, model: ModelSpec) -> ResponsesConversation:
        """The items of a conversation, without the system prompt."""
        return ResponsesConversation(model, self.dialect)

    def body(self, ask: Ask, messages: Sequence[Any]) -> dict[str, Any]:
        return request_body(ask, messages, self.dialect)

    def decoder(self, reply: BlockWriter, ask: Ask) -> ResponsesDecoder:
        return ResponsesDecoder(reply, ask.options)

    def native_output(self, model: ModelSpec, context: LlmContext) -> bool:
        """Whether the model is known to follow a schema, which it does beside tools too."""
        return model.capabilities is not None and bool(model.capabilities.json_schema)


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
