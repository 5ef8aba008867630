"""Anthropic's Messages API."""

from swink.providers.anthropic.adapter import AnthropicStreamFn

__all__ = ["AnthropicStreamFn"]
