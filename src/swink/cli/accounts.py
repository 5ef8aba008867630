"""Accounts: for each provider, where its key comes from, where it is reached, and which model is meant without a name."""

import os
from collections.abc import Mapping
from difflib import get_close_matches

from msgspec import Struct

from swink.errors import MisuseError


class Account(Struct, frozen=True):
    """What the command line knows of a provider.

    `default_model` is None where only the user can know a model; `shares` names the provider whose key serves this one too.
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
        return (os.environ.get(self.url_variable, "").strip() if self.url_variable else "") or self.base_url


ACCOUNTS: Mapping[str, Account] = {
    account.provider: account
    for account in (
        Account(
            "anthropic",
            ("ANTHROPIC_API_KEY",),
            "https://api.anthropic.com",
            "ANTHROPIC_BASE_URL",
            "claude-sonnet-4-6",
        ),
        Account("openai", ("OPENAI_API_KEY",), "https://api.openai.com/v1", "OPENAI_BASE_URL", "gpt-5"),
        Account(
            "gemini",
            ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
            "https://generativelanguage.googleapis.com",
            "GOOGLE_GEMINI_BASE_URL",
            "gemini-2.5-pro",
        ),
        Account(
            "mistral", ("MISTRAL_API_KEY",), "https://api.mistral.ai", default_model="mistral-large-latest"
        ),
        Account("xai", ("XAI_API_KEY",), "https://api.x.ai/v1", default_model="grok-4"),
        Account("deepseek", ("DEEPSEEK_API_KEY",), "https://api.deepseek.com", default_model="deepseek-chat"),
        Account(
            "openrouter",
            ("OPENROUTER_API_KEY",),
            "https://openrouter.ai/api/v1",
            default_model="openrouter/auto",
        ),
        Account("groq", ("GROQ_API_KEY",), "https://api.groq.com/openai/v1"),
        Account("together", ("TOGETHER_API_KEY",), "https://api.together.xyz/v1"),
        Account(
            "openai-responses",
            ("OPENAI_API_KEY",),
            "https://api.openai.com/v1",
            "OPENAI_BASE_URL",
            shares="openai",
        ),
        Account("azure", ("AZURE_OPENAI_API_KEY",), url_variable="AZURE_OPENAI_ENDPOINT"),
        Account("bedrock", ("AWS_BEARER_TOKEN_BEDROCK",)),
        Account("ollama", ("OLLAMA_API_KEY",), url_variable="OLLAMA_HOST"),
        Account("vllm", ("VLLM_API_KEY",), "http://127.0.0.1:8000/v1"),
        Account("llamacpp", ("LLAMA_API_KEY",), "http://127.0.0.1:8080/v1"),
        Account("lmstudio", ("LM_STUDIO_API_KEY",), "http://127.0.0.1:1234/v1"),
        Account("proxy", ("SWINK_PROXY_TOKEN",), url_variable="SWINK_PROXY_URL"),
    )
}
"""In the order in which a key decides the model when none is named."""


def account_for(provider: str) -> Account:
    """The account whose key can be stored under this name; raises `MisuseError` with the nearest name."""
    account = ACCOUNTS.get(provider)
    if account is not None and not account.shares:
        return account
    if account is not None:
        raise MisuseError(f"{provider} uses the key of {account.shares}: swink keys set {account.shares}")
    if provider == "local":
        raise MisuseError("local models need no key")
    near = get_close_matches(provider.lower(), ACCOUNTS, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise MisuseError(f"unknown provider {provider!r}; {hint}swink keys list shows what there is")
