"""OpenAI models on Azure."""

from swink.providers.azure.adapter import AzureResponsesStreamFn, AzureStreamFn

__all__ = ["AzureResponsesStreamFn", "AzureStreamFn"]
