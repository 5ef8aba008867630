"""Anthropic's Messages API as a wire, for Anthropic and for others that serve Claude in the same words."""

from collections.abc import Mapping, Sequence
from typing import Any

from swink.messages import ModelSpec
from swink.providers.adapter import Ask, Wire
from swink.providers.anthropic.body import betas_of, request_body
from swink.providers.anthropic.history import History
from swink.providers.anthropic.stream import MessagesDecoder
from swink.providers.claude import takes_schema
from swink.providers.notices import ALL_OPTIONS
from swink.stream import BlockWriter, LlmContext

VERSION = "2023-06-01"


class Messages(Wire):
    """What Anthropic's Messages API takes and gives."""

    honours = ALL_OPTIONS - {"seed", "verbosity"}

    def conversation(self, model: ModelSpec) -> History:
        """The turns of a conversation."""
        return History(model)

    def body(self, ask: Ask, messages: Sequence[Any]) -> dict[str, Any]:
        """The JSON body for one reply."""
        return request_body(ask, messages)

    def extra(self, ask: Ask) -> Mapping[str, Any]:
        """What joins the body; betas are a header."""
        return {name: value for name, value in ask.options.extra.items() if name != "betas"}

    def headers(self, ask: Ask) -> Mapping[str, str]:
        """The version of the API, and the betas that the request needs."""
        betas = betas_of(ask)
        return {"anthropic-version": VERSION, **({"anthropic-beta": ",".join(betas)} if betas else {})}

    def decoder(self, reply: BlockWriter, ask: Ask) -> MessagesDecoder:
        """What reads the events."""
        return MessagesDecoder(reply, ask.options)

    def native_output(self, model: ModelSpec, context: LlmContext) -> bool:
        """Whether Claude holds its answer to the schema: not beside hosted tools, whose answers are cited."""
        can = model.capabilities is not None and model.capabilities.json_schema is True
        return (
            can and not context.hosted and context.output is not None and takes_schema(context.output.schema)
        )
