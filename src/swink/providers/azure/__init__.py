"""OpenAI models on Azure."""

from swink.providers.azure.adapter import AzureStreamFn

__all__ = ["AzureStreamFn"]
