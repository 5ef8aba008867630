"""The Responses API of OpenAI and xAI."""

from swink.providers.responses.adapter import ResponsesStreamFn, XAIResponsesStreamFn

__all__ = ["ResponsesStreamFn", "XAIResponsesStreamFn"]
