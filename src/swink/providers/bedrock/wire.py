"""Bedrock's Converse API as a wire."""

from collections.abc import Sequence
from typing import Any

from swink.errors import ModelError
from swink.messages import ModelSpec
from swink.providers.adapter import Ask, Wire
from swink.providers.bedrock.awserrors import explain
from swink.providers.bedrock.body import request_body
from swink.providers.bedrock.conversation import ConverseConversation
from swink.providers.bedrock.stream import ConverseDecoder
from swink.providers.claude import claude_version, takes_schema
from swink.providers.http import Response
from swink.providers.notices import ALL_OPTIONS
from swink.stream import BlockWriter, LlmContext


class Converse(Wire):
    """What Converse takes and gives."""

    honours = ALL_OPTIONS - {"session_id", "seed", "verbosity", "parallel_tool_calls"}
    accept = "application/vnd.amazon.eventstream"

    def conversation(self, model: ModelSpec) -> ConverseConversation:
        """The turns of a conversation."""
        return ConverseConversation(model)

    def body(self, ask: Ask, messages: Sequence[Any]) -> dict[str, Any]:
        return request_body(ask, messages)

    def decoder(self, reply: BlockWriter, ask: Ask) -> ConverseDecoder:
        return ConverseDecoder(reply, ask.options)

    def explain(self, response: Response, body: bytes) -> ModelError:
        """The error that AWS names in a header, or in the body."""
        return explain(response, body)

    def native_output(self, model: ModelSpec, context: LlmContext) -> bool:
        """Whether the model holds its answer to the schema."""
        can = model.capabilities is not None and model.capabilities.json_schema is True
        if not can or context.hosted or context.output is None:
            return False
        return claude_version(model.model_id) == (0, 0) or takes_schema(context.output.schema)
