"""Ollama's chat API."""

from swink.providers.ollama.adapter import OllamaStreamFn, parse_host

__all__ = ["OllamaStreamFn", "parse_host"]
