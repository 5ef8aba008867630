"""Anthropic's Messages API as a wire, for Anthropic and for others that serve Claude in the same words.

`POST {base_url}/v1/messages`, streamed as server-sent events.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from swink.messages import Extension, ModelSpec
from swink.providers.adapter import Adapter, Ask, Wire
from swink.providers.anthropic.body import betas_of, request_body
from swink.providers.anthropic.conversation import ClaudeConversation
from swink.providers.anthropic.stream import MessagesDecoder
from swink.providers.claude import takes_schema
from swink.providers.notices import ALL_OPTIONS
from swink.stream import BlockWriter, LlmContext

VERSION = "2023-06-01"


class Messages(Wire):
    """What Anthropic's Messages API takes and gives."""

    honours = ALL_OPTIONS - {"seed", "verbosity"}

    def conversation(self, model: ModelSpec) -> ClaudeConversation:
        """The turns of a conversation."""
        return ClaudeConversation(model)

    def body(self, ask: Ask, messages: Sequence[Any]) -> dict[str, Any]:
        return request_body(ask, messages)

    def extra(self, ask: Ask) -> Mapping[str, Any]:
        """What joins the body; betas are a header."""
        return {name: value for name, value in ask.options.extra.items() if name != "betas"}

    def headers(self, ask: Ask) -> Mapping[str, str]:
        """The version of the API, and the betas that the request needs."""
        betas = betas_of(ask)
        return {"anthropic-version": VERSION, **({"anthropic-beta": ",".join(betas)} if betas else {})}

    def decoder(self, reply: BlockWriter, ask: Ask) -> MessagesDecoder:
        return MessagesDecoder(reply, ask.options)

    def native_output(self, model: ModelSpec, context: LlmContext) -> bool:
        """Whether Claude holds its answer to the schema: not where it is cited, as beside hosted tools."""
        can = model.capabilities is not None and model.capabilities.json_schema is True
        if not can or context.hosted or context.output is None:
            return False
        return takes_schema(context.output.schema) and not _asks_for_citations(context)


def _asks_for_citations(context: LlmContext) -> bool:
    return any(_is_cited(block) for message in context.messages for block in message.content)


def _is_cited(block: Any) -> bool:
    match block:
        case Extension("anthropic", {"citations": {"enabled": True}}):
            return True
        case _:
            return False


class AnthropicStreamFn(Adapter):
    """Claude, or a server with the same Messages API; `base_url` is without `/v1`, as in Anthropic's SDK."""

    provider = "anthropic"
    wire = Messages()
    path = "/v1/messages"
    key_header = "x-api-key"
