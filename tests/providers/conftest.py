"""Fixtures of the adapter tests."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from loopback import LoopbackServer

PREFIXES = ("ANTHROPIC_", "OPENAI_", "AZURE_", "GOOGLE_", "GEMINI_", "AWS_", "OLLAMA_", "SWINK_PROXY_")
NAMES = ("XAI", "MISTRAL", "GROQ", "TOGETHER", "OPENROUTER", "DEEPSEEK", "VLLM", "LLAMA", "LM_STUDIO")


@pytest.fixture(autouse=True)
def _no_keys_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither the environment nor the stored keys nor the shared AWS files of the machine reach a test."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-config"))
    for name in list(os.environ):
        if name.startswith(PREFIXES) or name in {f"{known}_API_KEY" for known in NAMES}:
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "no-gcloud"))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    for name in ("K_SERVICE", "CLOUD_RUN_JOB", "GAE_ENV", "GCE_METADATA_HOST", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def server() -> AsyncIterator[LoopbackServer]:
    async with LoopbackServer() as running:
        yield running
