"""Anthropic: `POST {base_url}/v1/messages`, streamed as server-sent events."""

from collections.abc import Mapping

from swink.providers.adapter import Adapter, Ask
from swink.providers.anthropic.wire import Messages


class AnthropicStreamFn(Adapter):
    """Claude, or a server with the same Messages API; `base_url` is without `/v1`, as in Anthropic's SDK."""

    provider = "anthropic"
    wire = Messages()
    path = "/v1/messages"

    async def authorization(self, ask: Ask, url: str, body: bytes) -> Mapping[str, str]:
        """The key in a header of its own, if there is one."""
        await self._endpoint.prepare_key(ask.options.api_key)
        key = self._endpoint.key(ask.options.api_key)
        return {"x-api-key": key} if key else {}
