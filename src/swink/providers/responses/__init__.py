"""OpenAI"s Responses API."""

from swink.providers.responses.adapter import ResponsesStreamFn

__all__ = ["ResponsesStreamFn"]
