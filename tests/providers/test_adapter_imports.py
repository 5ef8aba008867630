"""Importing one adapter costs no other adapter, no HTTP client and no vendor SDK."""

import subprocess
import sys

import pytest

from swink.catalog import PROVIDERS

MODULES = {provider: target.partition(":")[0] for provider, target in PROVIDERS.items() if target.startswith("swink.providers.")}
HEAVY = ("aiohttp", "httpx", "anthropic", "openai", "google", "mistralai", "ollama", "boto3", "botocore", "pydantic", "requests")


@pytest.mark.parametrize("provider", MODULES)
def test_an_adapter_comes_alone(provider: str):
    code = f"import sys, {MODULES[provider]}; print('\\n'.join(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = ran.stdout.split()
    assert MODULES[provider] in loaded
    assert not [name for name in loaded if name in set(MODULES.values()) - {MODULES[provider]}]
    assert not [name for name in loaded if name.split(".")[0] in HEAVY]


def test_every_adapter_of_the_design_is_in_the_catalog():
    assert set(MODULES) == {
        "anthropic",
        "openai",
        "openai-responses",
        "azure",
        "xai",
        "mistral",
        "ollama",
        "gemini",
        "bedrock",
        "proxy",
    }
