"""Google's Gemini API."""

from swink.providers.gemini.wire import GeminiStreamFn

__all__ = ["GeminiStreamFn"]
