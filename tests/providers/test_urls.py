"""Model names in URLs: what an adapter writes is what arrives, escapes included."""

from urllib.parse import quote, unquote

import pytest
from adapters import ADAPTERS, KEY
from loopback import LoopbackServer, MemoryClient, read

from swink.messages import ModelSpec
from swink.providers.http import AiohttpClient, Request
from swink.stream import StreamOptions, Timeout

NAMES = [
    "a b",
    "a%2Fb",
    "ü-1",
    "arn:aws:bedrock:us-east-1:1:inference-profile/us.x-v1:0",
    "q?x=1#f",
    "plus+and=%25",
]
AROUND = {
    "azure": ("/openai/deployments/", "/chat/completions?api-version=2024-10-21"),
    "gemini": ("/v1beta/models/", ":streamGenerateContent?alt=sse"),
    "bedrock": ("/model/", "/converse-stream"),
}


@pytest.mark.parametrize("path", ["/a%3Ab%2Fc%20d%25?x=%2F%3D&y=%2B", "/plain?x=1", "/a:b@c;d=e,f"])
async def test_a_url_is_sent_as_it_was_written(path: str, server: LoopbackServer):
    server.reply(b"x")
    client = AiohttpClient()
    response = await client.send(Request(f"{server.url}{path}"), Timeout())
    await response.aclose()
    await client.aclose()
    assert server.requests[0].path == path


async def test_a_url_that_nobody_escaped_is_escaped(server: LoopbackServer):
    server.reply(b"x")
    client = AiohttpClient()
    response = await client.send(Request(f"{server.url}/a b/ü"), Timeout())
    await response.aclose()
    await client.aclose()
    assert server.requests[0].path == "/a%20b/%C3%BC"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("provider", AROUND)
async def test_a_model_name_in_a_url_is_one_that_the_server_can_read_back(
    provider: str, name: str, server: LoopbackServer
):
    adapter = ADAPTERS[provider]
    server.reply(b"".join(adapter.text), headers={"content-type": adapter.media_type})
    fn = adapter.make(server.url, KEY)
    result = await read(fn, ModelSpec(provider, name))
    await fn.aclose()
    assert result.message.text == "Hello, world"
    before, after = AROUND[provider]
    path = server.requests[0].path
    assert path.startswith(before)
    assert path.endswith(after)
    written = path.removeprefix(before).removesuffix(after)
    assert unquote(written) == name
    assert written.replace(":", "%3A") == quote(name, safe="")


HOSTILE = ["../../v1/files", "x/../../y", "..%2f..%2fx", "a/b", "a\\b", "a?key=1", "a#b", "a%00b", "a;b=c", "m:streamGenerateContent?x=", "models/../../files/1", "\u2025/x", "//evil.example/"]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("provider", AROUND)
async def test_nothing_in_a_model_name_leads_to_another_path(
    provider: str, name: str, server: LoopbackServer
):
    adapter = ADAPTERS[provider]
    server.reply(b"".join(adapter.text), headers={"content-type": adapter.media_type})
    fn = adapter.make(server.url, KEY)
    await read(fn, ModelSpec(provider, name))
    await fn.aclose()
    before, after = AROUND[provider]
    written = server.requests[0].path.removeprefix(before).removesuffix(after)
    assert unquote(written) == name.removeprefix("models/" if provider == "gemini" else "\0")
    assert not set(written) & set("/\\?#;")


@pytest.mark.parametrize("name", ["..", ".", "...", "", " ", "a\nb", "a\x00", "\x7f"])
@pytest.mark.parametrize("provider", AROUND)
async def test_what_cannot_be_a_model_name_is_not_sent(provider: str, name: str):
    adapter = ADAPTERS[provider]
    client = MemoryClient(b"")
    got = await read(
        adapter.make("http://127.0.0.1:9", KEY),
        ModelSpec(provider, name),
        options=StreamOptions(http=client),
    )
    assert client.requests == []
    assert "is not the name of a model" in got.terminal.message
