"""Gemini's protocol, as the Gemini API and Vertex AI speak it."""

from collections.abc import Sequence
from typing import Any

from swink.errors import ModelError
from swink.messages import ModelSpec
from swink.providers.adapter import Adapter, Ask, Wire
from swink.providers.endpoint import segment
from swink.providers.gemini.body import request_body
from swink.providers.gemini.conversation import Contents, is_third
from swink.providers.gemini.endings import explain
from swink.providers.gemini.googletools import Place
from swink.providers.gemini.stream import GeminiDecoder
from swink.providers.http import Response
from swink.providers.notices import ALL_OPTIONS
from swink.stream import BlockWriter, LlmContext


class GenerateContent(Wire):
    """`streamGenerateContent`, at the Gemini API or on Vertex AI, which has fewer hosted tools."""

    honours = ALL_OPTIONS - {"session_id", "cache", "verbosity", "parallel_tool_calls"}

    def __init__(self, place: Place = "gemini") -> None:
        self._place: Place = place

    def conversation(self, model: ModelSpec) -> Contents:
        return Contents(model)

    def body(self, ask: Ask, messages: Sequence[Any]) -> dict[str, Any]:
        return request_body(ask.model, ask.context, messages, ask.options, ask.notices, self._place)

    def decoder(self, reply: BlockWriter, ask: Ask) -> GeminiDecoder:
        return GeminiDecoder(
            reply,
            ask.options,
            [tool.name for tool in ask.context.tools],
            grounded=bool(ask.context.hosted or ask.options.extra.get("tools")),
            by_query=is_third(ask.model.model_id),
        )

    def explain(self, response: Response, body: bytes) -> ModelError:
        return explain(response, body)

    def native_output(self, model: ModelSpec, context: LlmContext) -> bool:
        """Before Gemini 3 a schema and tools exclude each other."""
        can = model.capabilities is not None and model.capabilities.json_schema is True
        return can and (is_third(model.model_id) or not (context.tools or context.hosted))


class GeminiStreamFn(Adapter):
    """Gemini; `base_url` is without the API version, as in Google's own SDK."""

    provider = "gemini"
    wire = GenerateContent()
    key_header = "x-goog-api-key"

    def url(self, ask: Ask) -> str:
        """The address of a model, or of one that was tuned."""
        kind, slash, name = ask.name.partition("/")
        is_path = slash and kind in ("models", "tunedModels")
        path = f"{kind}/{segment(name)}" if is_path else f"models/{segment(ask.name)}"
        return f"{self.base_url}/v1beta/{path}:streamGenerateContent?alt=sse"
