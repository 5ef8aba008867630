"""Importing one adapter costs no other adapter, no HTTP client and no vendor SDK."""

import subprocess
import sys

from tests.counts import in_cells

from swink.models.catalog import PROVIDERS

MODULES = {target.partition(":")[0] for target in PROVIDERS.values() if target.startswith("swink.providers.")}
HEAVY = (
    "aiohttp",
    "httpx",
    "anthropic",
    "openai",
    "google",
    "mistralai",
    "ollama",
    "boto3",
    "botocore",
    "pydantic",
    "requests",
)
SLOW = ("urllib.request", "email.utils", "pickle", "runpy")
"""Modules of the standard library that are imported where they are used."""


@in_cells("module", sorted(MODULES), every=4)
def test_an_adapter_comes_alone(module: str):
    code = f"import sys, {module}; print('\\n'.join(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = ran.stdout.split()
    assert module in loaded
    spoken = {"swink.providers.anthropic", "swink.providers.gemini"} if module.endswith("vertex") else set()
    assert not [name for name in loaded if name in MODULES - {module} - spoken]
    assert not [name for name in loaded if name.split(".")[0] in HEAVY or name in SLOW]


def test_the_catalog_names_all_of_them():
    names = [
        "anthropic",
        "openai",
        "responses",
        "azure",
        "xai",
        "mistral",
        "ollama",
        "gemini",
        "vertex",
        "bedrock",
        "proxy",
    ]
    assert {f"swink.providers.{name}" for name in names} == MODULES
