"""The Responses API of OpenAI."""

from swink.providers.responses.adapter import ResponsesStreamFn

__all__ = ["ResponsesStreamFn"]
