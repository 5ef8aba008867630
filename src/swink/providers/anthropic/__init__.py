"""Anthropic's Messages API."""

from swink.providers.anthropic.wire import AnthropicStreamFn

__all__ = ["AnthropicStreamFn"]
