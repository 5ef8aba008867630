"""Amazon Bedrock's Converse API."""

from swink.providers.bedrock.adapter import BedrockStreamFn

__all__ = ["BedrockStreamFn"]
