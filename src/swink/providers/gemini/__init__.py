"""Google's Gemini API."""

from swink.providers.gemini.adapter import GeminiStreamFn

__all__ = ["GeminiStreamFn"]
