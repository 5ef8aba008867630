"""The Responses API of OpenAI and xAI."""

from swink.providers.responses.wire import ResponsesStreamFn, XAIResponsesStreamFn

__all__ = ["ResponsesStreamFn", "XAIResponsesStreamFn"]
