"""Gemini: `POST {base_url}/v1beta/models/{model}:streamGenerateContent?alt=sse`."""

from collections.abc import Mapping

from swink.providers.adapter import Adapter, Ask
from swink.providers.endpoint import segment
from swink.providers.gemini.wire import GenerateContent


class GeminiStreamFn(Adapter):
    """Gemini; `base_url` is without the API version, as in Google's own SDK."""

    provider = "gemini"
    wire = GenerateContent()

    def url(self, ask: Ask) -> str:
        """The address of a model, or of one that was tuned."""
        kind, slash, name = ask.name.partition("/")
        is_path = slash and kind in ("models", "tunedModels")
        path = f"{kind}/{segment(name)}" if is_path else f"models/{segment(ask.name)}"
        return f"{self.base_url}/v1beta/{path}:streamGenerateContent?alt=sse"

    async def authorization(self, ask: Ask, url: str, body: bytes) -> Mapping[str, str]:
        """The key in Google's own header."""
        await self._endpoint.prepare_key(ask.options.api_key)
        key = self._endpoint.key(ask.options.api_key)
        return {"x-goog-api-key": key} if key else {}
