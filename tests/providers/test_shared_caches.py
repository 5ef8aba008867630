"""A cache is shared by nobody but the holder of a key, wherever the key comes from: every adapter."""

from pathlib import Path

import pytest
from adapters import ADAPTERS, KEY, AdapterCase
from loopback import LoopbackServer, read
from tests.counts import in_cells

from swink.providers.azure import AzureStreamFn
from swink.providers.bedrock import BedrockStreamFn
from swink.providers.bedrock.sigv4 import Credentials
from swink.providers.openai import OpenAIStreamFn
from swink.stream.wrappers import cached, fallback, rate_limited


@in_cells("adapter", ADAPTERS.values(), ids=str, every=3)
async def test_an_answer_is_for_the_key_that_asked(
    adapter: AdapterCase, server: LoopbackServer, tmp_path: Path
):
    for _ in range(2):
        server.reply(b"".join(adapter.text), headers={"content-type": adapter.media_type})
    for key in (KEY, "zq-of-another-8a1d", KEY, "zq-of-another-8a1d"):
        got = await read(
            rate_limited(cached(fallback(adapter.make(server.url, key)), tmp_path / "c")), adapter.model
        )
        assert got.message.text == "Hello, world"
    assert len(server.requests) == 2, "each key asks once"
    assert KEY not in (tmp_path / "c").read_text()


async def test_a_key_of_the_environment_and_headers_tell_askers_apart(monkeypatch: pytest.MonkeyPatch):
    askers: set[str] = set()
    for key in ("one", "two"):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        askers.add(OpenAIStreamFn().asker())
    askers |= {OpenAIStreamFn(api_key="three", headers={"OpenAI-Project": name}).asker() for name in "ab"}
    assert len(askers) == 4
    assert not any("three" in asker for asker in askers)
    assert OpenAIStreamFn(api_key="x").asker() == OpenAIStreamFn(api_key="x").asker()


async def test_what_else_makes_another_model_of_the_same_name_tells_askers_apart():
    deployments = {
        AzureStreamFn(base_url="https://x.openai.azure.com", api_key="k", deployment=name).asker()
        for name in "ab"
    }
    accounts = {
        BedrockStreamFn(region=region, credentials=Credentials(name, "s")).asker()
        for region in ("eu-1", "us-1")
        for name in "ab"
    }
    assert (len(deployments), len(accounts)) == (2, 4)
