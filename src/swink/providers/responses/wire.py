"""The Responses API as a wire, in one of its dialects."""

from collections.abc import Sequence
from typing import Any

from swink.messages import ModelSpec
from swink.providers.adapter import Ask, Wire
from swink.providers.notices import ALL_OPTIONS
from swink.providers.responses.body import request_body
from swink.providers.responses.conversation import ResponsesConversation
from swink.providers.responses.dialect import Dialect
from swink.providers.responses.stream import ResponsesDecoder
from swink.stream import BlockWriter, LlmContext


class Responses(Wire):
    """What OpenAI's Responses API is to one server."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.honours = ALL_OPTIONS - dialect.unhonoured

    def conversation(self, model: ModelSpec) -> ResponsesConversation:
        """The items of a conversation, without the system prompt."""
        return ResponsesConversation(model, self.dialect)

    def body(self, ask: Ask, messages: Sequence[Any]) -> dict[str, Any]:
        """The JSON body for one reply."""
        return request_body(ask, messages, self.dialect)

    def decoder(self, reply: BlockWriter, ask: Ask) -> ResponsesDecoder:
        """What reads the events."""
        return ResponsesDecoder(reply, ask.options)

    def native_output(self, model: ModelSpec, context: LlmContext) -> bool:
        """Whether the model is known to follow a schema, which it does beside tools too."""
        return model.capabilities is not None and bool(model.capabilities.json_schema)
