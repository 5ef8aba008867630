"""Accounts: for each provider where its key comes from, its address, and its default model."""

import os
from collections.abc import Container, Mapping

from msgspec import Struct

from swink.errors import MisuseError


class ProviderAccount(Struct, frozen=True):
    """The variables that may hold a provider's key, and its address.

    `default_model` is None where only the user can name one; `shares` is the provider that has the same key.
    """

    provider: str
    variables: tuple[str, ...]
    base_url: str = ""
    url_variable: str = ""
    default_model: str | None = None
    shares: str = ""

    @property
    def key_name(self) -> str:
        """The provider under whose name the key is stored."""
        return self.shares or self.provider

    @property
    def variable(self) -> str | None:
        """The variable of the environment that holds a key now."""
        return next((name for name in self.variables if os.environ.get(name, "").strip()), None)

    @property
    def url(self) -> str:
        """The base URL in force, empty where none is set."""
        return self.named_url or self.base_url

    @property
    def named_url(self) -> str:
        """The base URL that the environment names, empty where it names none."""
        return os.environ.get(self.url_variable, "").strip() if self.url_variable else ""

    def is_configured(self, stored: Container[str]) -> bool:
        """Whether the user means to use the provider: by a key, or by an address of their own."""
        return bool(self.url) and bool(self.variable or self.key_name in stored or self.named_url)


ACCOUNTS: Mapping[str, ProviderAccount] = {
    account.provider: account
    for account in (
        ProviderAccount(
            "anthropic",
            ("ANTHROPIC_API_KEY",),
            "https://api.anthropic.com",
            "ANTHROPIC_BASE_URL",
            "claude-sonnet-4-6",
        ),
        ProviderAccount(
            "openai", ("OPENAI_API_KEY",), "https://api.openai.com/v1", "OPENAI_BASE_URL", "gpt-5"
        ),
        ProviderAccount(
            "gemini",
            ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
            "https://generativelanguage.googleapis.com",
            "GOOGLE_GEMINI_BASE_URL",
            "gemini-2.5-pro",
        ),
        ProviderAccount(
            "mistral", ("MISTRAL_API_KEY",), "https://api.mistral.ai", default_model="mistral-large-latest"
        ),
        ProviderAccount("xai", ("XAI_API_KEY",), "https://api.x.ai/v1", default_model="grok-4"),
        ProviderAccount(
            "deepseek", ("DEEPSEEK_API_KEY",), "https://api.deepseek.com", default_model="deepseek-chat"
        ),
        ProviderAccount(
            "openrouter",
            ("OPENROUTER_API_KEY",),
            "https://openrouter.ai/api/v1",
            default_model="openrouter/auto",
        ),
        ProviderAccount("groq", ("GROQ_API_KEY",), "https://api.groq.com/openai/v1"),
        ProviderAccount("together", ("TOGETHER_API_KEY",), "https://api.together.xyz/v1"),
        ProviderAccount("moonshot", ("MOONSHOT_API_KEY",), "https://api.moonshot.ai/v1"),
        ProviderAccount("zai", ("ZAI_API_KEY",), "https://api.z.ai/api/paas/v4"),
        ProviderAccount("perplexity", ("PERPLEXITY_API_KEY", "PPLX_API_KEY"), "https://api.perplexity.ai"),
        ProviderAccount("fireworks", ("FIREWORKS_API_KEY",), "https://api.fireworks.ai/inference/v1"),
        ProviderAccount("cerebras", ("CEREBRAS_API_KEY",), "https://api.cerebras.ai/v1"),
        ProviderAccount("deepinfra", ("DEEPINFRA_API_KEY",), "https://api.deepinfra.com/v1/openai"),
        ProviderAccount("huggingface", ("HF_TOKEN",), "https://router.huggingface.co/v1"),
        ProviderAccount("nvidia", ("NVIDIA_API_KEY",), "https://integrate.api.nvidia.com/v1"),
        ProviderAccount("minimax", ("MINIMAX_API_KEY",), "https://api.minimax.io/v1"),
        ProviderAccount(
            "qwen", ("DASHSCOPE_API_KEY",), "https://dashscope-intl.aliyuncs.com/compatible-mode/v1"
        ),
        ProviderAccount("vercel", ("AI_GATEWAY_API_KEY",), "https://ai-gateway.vercel.sh/v1"),
        ProviderAccount(
            "openai-responses",
            ("OPENAI_API_KEY",),
            "https://api.openai.com/v1",
            "OPENAI_BASE_URL",
            shares="openai",
        ),
        ProviderAccount("xai-responses", ("XAI_API_KEY",), "https://api.x.ai/v1", shares="xai"),
        ProviderAccount("azure", ("AZURE_OPENAI_API_KEY",), url_variable="AZURE_OPENAI_ENDPOINT"),
        ProviderAccount(
            "azure-responses", ("AZURE_OPENAI_API_KEY",), url_variable="AZURE_OPENAI_ENDPOINT", shares="azure"
        ),
        ProviderAccount("vertex", ("GOOGLE_VERTEX_API_KEY",), url_variable="GOOGLE_VERTEX_BASE_URL"),
        ProviderAccount("bedrock", ("AWS_BEARER_TOKEN_BEDROCK",)),
        ProviderAccount("ollama", ("OLLAMA_API_KEY",), url_variable="OLLAMA_HOST"),
        ProviderAccount("vllm", ("VLLM_API_KEY",), "http://127.0.0.1:8000/v1"),
        ProviderAccount("llamacpp", ("LLAMA_API_KEY",), "http://127.0.0.1:8080/v1"),
        ProviderAccount("lmstudio", ("LM_STUDIO_API_KEY",), "http://127.0.0.1:1234/v1"),
        ProviderAccount("sglang", ("SGLANG_API_KEY",), "http://127.0.0.1:30000/v1"),
        ProviderAccount("proxy", ("SWINK_PROXY_TOKEN",), url_variable="SWINK_PROXY_URL"),
    )
}
"""In the order in which a key decides the model when none is named."""


def account_for(provider: str) -> ProviderAccount:
    """The account whose key can be stored under this name; raises `MisuseError` with the nearest name."""
    account = ACCOUNTS.get(provider)
    if account is not None and not account.shares:
        return account
    if account is not None:
        raise MisuseError(f"{provider} uses the key of {account.shares}: swink keys set {account.shares}")
    if provider == "local":
        raise MisuseError("local models need no key")
    from swink.models.nearnames import nearest_provider  # only for the words of an error

    near = nearest_provider(provider, ACCOUNTS)
    hint = f"did you mean {near}? " if near else ""
    raise MisuseError(f"unknown provider {provider!r}; {hint}swink keys list shows what there is")
