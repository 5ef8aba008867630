"""Azure OpenAI: URLs, keys and Entra ID tokens, content filters, and the SDK reading the same bytes."""

import asyncio
import gc
from typing import Any

import msgspec
import pytest
from loopback import (
    LoopbackServer,
    MemoryClient,
    check_any_cut,
    check_truncation,
    framed,
    own_fixtures,
    read,
    recorded,
    sse,
)

from swink.errors import AuthError, MisuseError, NetworkError
from swink.messages import ModelSpec, Text, Usage
from swink.providers.azure import AzureResponsesStreamFn, AzureStreamFn
from swink.providers.azure.entra import ClientCredentials
from swink.providers.http import Request, client_for
from swink.stream import Done, Error, StreamOptions, Timeout

MODEL = ModelSpec("azure", "my-deployment")
BODIES = {path.stem: path.read_bytes() for path in own_fixtures("azure")} | {
    path.name: framed(path, done=True) for path in recorded("openai") if "azure" in path.name
}
RESOURCE = "https://name.openai.azure.com"
LIMITS = Timeout()


@pytest.fixture(autouse=True)
def _no_identity_from_outside(monkeypatch: pytest.MonkeyPatch):
    for name in ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_AUTHORITY_HOST"):
        monkeypatch.delenv(name, raising=False)


async def request_of(fn: AzureStreamFn, **options: Any) -> Request:
    client = MemoryClient(BODIES["text"])
    result = await read(fn, MODEL, options=StreamOptions(http=client, **options))
    assert isinstance(result.terminal, Done), result.terminal
    return client.requests[-1]


@pytest.mark.parametrize("name", [name for name in BODIES if name != "filtered"])
async def test_the_sdk_reads_the_same_from_the_same_bytes(name: str, server: LoopbackServer):
    server.reply(BODIES[name])
    result = await read(AzureStreamFn(base_url=server.url, api_key="k", api_version="2024-10-21"), MODEL)
    import openai

    client = openai.AsyncAzureOpenAI(
        azure_endpoint=server.url, api_key="k", api_version="2024-10-21", max_retries=0
    )
    text, usage, finish = "", None, None
    async with client:
        async for chunk in await client.chat.completions.create(
            model="my-deployment", messages=[{"role": "user", "content": "x"}], stream=True
        ):
            usage = chunk.usage or usage
            for choice in chunk.choices:
                text += choice.delta.content or ""
                finish = choice.finish_reason or finish
    assert usage is not None
    assert (result.message.text, result.message.stop_reason) == (text, finish)
    assert (result.terminal.usage.input, result.terminal.usage.output) == (
        usage.prompt_tokens,
        usage.completion_tokens,
    )
    ours, theirs = server.requests
    assert ours.path == theirs.path
    assert ours.headers["api-key"] == theirs.headers["api-key"] == "k"


@pytest.mark.parametrize("name", BODIES)
async def test_any_cut_gives_the_same_events_and_none_is_a_silent_success(name: str):
    fn = AzureStreamFn(base_url=RESOURCE, api_key="k")
    await check_any_cut(fn, MODEL, BODIES[name])
    await check_truncation(fn, MODEL, BODIES[name], step=1 if len(BODIES[name]) < 2000 else 97)


async def test_a_filtered_reply_says_by_what_and_keeps_what_arrived():
    result = await read(
        AzureStreamFn(base_url=RESOURCE, api_key="k"),
        MODEL,
        options=StreamOptions(http=MemoryClient(BODIES["filtered"])),
    )
    assert result.terminal == Error(
        "the provider's content filter stopped the reply (violence)", "content_filtered", usage=Usage(12, 3)
    )
    assert result.message.content == (Text("Once"),)


async def test_a_filtered_prompt_is_content_filtered(server: LoopbackServer):
    error = {
        "code": "content_filter",
        "message": "The response was filtered",
        "innererror": {"code": "ResponsibleAIPolicyViolation"},
    }
    server.reply(
        msgspec.json.encode({"error": error}), status=400, headers={"content-type": "application/json"}
    )
    result = await read(AzureStreamFn(base_url=server.url, api_key="k"), MODEL)
    assert result.terminal == Error("HTTP 400: The response was filtered", "content_filtered", usage=Usage())


@pytest.mark.parametrize(
    ("base_url", "options", "expected"),
    [
        (RESOURCE, {}, f"{RESOURCE}/openai/v1/chat/completions"),
        (
            RESOURCE,
            {"api_version": "2024-10-21"},
            f"{RESOURCE}/openai/deployments/my-deployment/chat/completions?api-version=2024-10-21",
        ),
        (
            f"{RESOURCE}/openai",
            {"api_version": "2024-10-21"},
            f"{RESOURCE}/openai/deployments/my-deployment/chat/completions?api-version=2024-10-21",
        ),
        (f"{RESOURCE}/openai/v1/", {}, f"{RESOURCE}/openai/v1/chat/completions"),
        (
            f"{RESOURCE}/openai/v1",
            {"api_version": "preview"},
            f"{RESOURCE}/openai/v1/chat/completions?api-version=preview",
        ),
        (
            f"{RESOURCE}/openai/deployments/d1",
            {"api_version": "2024-10-21"},
            f"{RESOURCE}/openai/deployments/d1/chat/completions?api-version=2024-10-21",
        ),
        (
            RESOURCE,
            {"api_version": "2024-10-21", "deployment": "other/one"},
            f"{RESOURCE}/openai/deployments/other%2Fone/chat/completions?api-version=2024-10-21",
        ),
    ],
)
async def test_each_form_of_url(base_url: str, options: dict[str, str], expected: str):
    request = await request_of(AzureStreamFn(base_url=base_url, api_key="k", **options))
    assert request.url == expected
    assert request.headers["api-key"] == "k"
    assert msgspec.json.decode(request.body)["model"] == options.get("deployment", "my-deployment")


async def test_the_environment_names_resource_version_and_key(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", RESOURCE + "/")
    monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "from-env")
    request = await request_of(AzureStreamFn())
    assert request.url.endswith("/openai/deployments/my-deployment/chat/completions?api-version=2024-10-21")
    assert request.headers["api-key"] == "from-env"


def test_without_a_resource_it_says_what_is_missing():
    with pytest.raises(MisuseError, match="AZURE_OPENAI_ENDPOINT"):
        AzureStreamFn()


async def test_without_any_credential_the_error_names_the_variable():
    result = await read(AzureStreamFn(base_url=RESOURCE), MODEL)
    assert isinstance(result.terminal, Error)
    assert result.terminal.kind == "auth"
    assert "AZURE_OPENAI_API_KEY" in result.terminal.message
    assert "Entra ID" in result.terminal.message


# --- tokens ----------------------------------------------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def token_answer(server: LoopbackServer, token: str = "tok-1", seconds: Any = 3600) -> None:
    server.reply(msgspec.json.encode({"token_type": "Bearer", "expires_in": seconds, "access_token": token}))


async def test_a_token_is_fetched_with_client_credentials_and_serves_chat_and_responses(
    server: LoopbackServer,
):
    token_answer(server)
    server.reply(BODIES["text"])
    server.reply(next(path for path in own_fixtures("responses") if path.stem == "text").read_bytes())
    credentials = ClientCredentials("tenant", "client", "hush-hush", authority=server.url)
    fn = AzureStreamFn(base_url=server.url, credentials=credentials)
    await read(fn, MODEL)
    responses = AzureResponsesStreamFn(base_url=server.url, credentials=credentials)
    result = await read(responses, ModelSpec("azure-responses", "my-deployment"))
    assert isinstance(result.terminal, Done)
    fetch, *asks = server.requests
    assert fetch.path == "/tenant/oauth2/v2.0/token"
    assert b"grant_type=client_credentials" in fetch.body
    assert b"scope=https%3A%2F%2Fcognitiveservices.azure.com%2F.default" in fetch.body
    assert [request.headers["authorization"] for request in asks] == ["Bearer tok-1"] * 2
    assert [request.path for request in asks] == ["/openai/v1/chat/completions", "/openai/v1/responses"]
    assert "api-key" not in asks[0].headers
    assert "hush" not in repr(fn) + repr(responses)


async def test_credentials_come_from_the_environment(server: LoopbackServer, monkeypatch: pytest.MonkeyPatch):
    for name, value in (
        ("TENANT_ID", "t"),
        ("CLIENT_ID", "c"),
        ("CLIENT_SECRET", "hush-hush"),
        ("AUTHORITY_HOST", server.url),
    ):
        monkeypatch.setenv(f"AZURE_{name}", value)
    token_answer(server)
    server.reply(BODIES["text"])
    await read(AzureStreamFn(base_url=server.url), MODEL)
    assert server.requests[1].headers["authorization"] == "Bearer tok-1"


async def test_callers_at_the_same_time_share_one_fetch(server: LoopbackServer):
    token_answer(server)
    credentials = ClientCredentials("t", "c", "s", authority=server.url)
    client = client_for(StreamOptions())
    tokens = await asyncio.gather(*(credentials.token(client, LIMITS) for _ in range(20)))
    assert tokens == ["tok-1"] * 20
    assert len(server.requests) == 1


async def test_a_cancelled_fetch_leaves_the_next_caller_free(server: LoopbackServer):
    token_answer(server)
    credentials = ClientCredentials("t", "c", "s", authority=server.url)
    client = client_for(StreamOptions())
    first, second = (asyncio.create_task(credentials.token(client, LIMITS)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert await second == "tok-1"


async def test_a_token_is_renewed_before_it_runs_out(server: LoopbackServer):
    token_answer(server, "tok-1", "3600")
    token_answer(server, "tok-2")
    clock = Clock()
    credentials = ClientCredentials("t", "c", "s", authority=server.url, clock=clock)
    client = client_for(StreamOptions())
    assert await credentials.token(client, LIMITS) == "tok-1"
    clock.now += 3200
    assert await credentials.token(client, LIMITS) == "tok-1"
    clock.now += 200
    assert await credentials.token(client, LIMITS) == "tok-2"


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (
            401,
            b'{"error": "invalid_client", "error_description": "AADSTS7000215: hush-hush is wrong"}',
            AuthError,
        ),
        (503, b"", NetworkError),
        (200, b"<html>", AuthError),
    ],
)
async def test_a_refused_token_is_typed_and_tells_no_secret(
    status: int, body: bytes, error: type[Exception], server: LoopbackServer
):
    server.reply(body, status=status)
    credentials = ClientCredentials("t", "c", "hush-hush", authority=server.url)
    with pytest.raises(error) as caught:
        await credentials.token(client_for(StreamOptions()), LIMITS)
    assert "hush" not in str(caught.value)
    assert "hush" not in repr(credentials)


async def test_a_token_provider_may_be_plain_or_async():
    async def later() -> str:
        return "tok-b"

    assert (await request_of(AzureStreamFn(base_url=RESOURCE, token_provider=lambda: "tok-a"))).headers[
        "authorization"
    ] == "Bearer tok-a"
    assert (await request_of(AzureStreamFn(base_url=RESOURCE, token_provider=later))).headers[
        "authorization"
    ] == "Bearer tok-b"


async def test_a_key_of_the_callers_wins_over_a_token():
    request = await request_of(
        AzureStreamFn(base_url=RESOURCE, token_provider=lambda: "tok"), api_key="given"
    )
    assert request.headers["api-key"] == "given"
    assert "authorization" not in request.headers


async def test_a_token_in_the_environment_is_used(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AZURE_OPENAI_AD_TOKEN", "tok-env")
    assert (await request_of(AzureStreamFn(base_url=RESOURCE))).headers["authorization"] == "Bearer tok-env"


def test_credentials_serve_one_event_loop_after_another():
    credentials: ClientCredentials | None = None

    async def main() -> str:
        nonlocal credentials
        async with LoopbackServer() as server:
            token_answer(server)
            credentials = credentials or ClientCredentials("t", "c", "s", authority=server.url)
            return await credentials.token(client_for(StreamOptions()), LIMITS)

    assert [asyncio.run(main()) for _ in range(2)] == ["tok-1"] * 2
    gc.collect()


async def test_the_error_of_a_model_that_is_not_deployed_is_model_retired(server: LoopbackServer):
    server.reply(
        sse(
            {
                "error": {
                    "code": "DeploymentNotFound",
                    "message": "The API deployment for this resource does not exist.",
                }
            }
        )[6:],
        status=404,
    )
    result = await read(AzureStreamFn(base_url=server.url, api_key="k"), MODEL)
    assert isinstance(result.terminal, Error)
    assert result.terminal.kind == "model_retired"


# Content filters: `filtered` counts, whatever the finish reason says.

CUT = {"hate": {"filtered": False, "severity": "safe"}, "violence": {"filtered": True, "severity": "high"}}
PASSED = {"hate": {"filtered": False, "severity": "low"}, "jailbreak": {"filtered": False, "detected": True}}


def filter_chunk(finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"content": "par"}, "finish_reason": finish, **more}
    return {"id": "c", "object": "chat.completion.chunk", "choices": [choice]}


@pytest.mark.parametrize(
    "events",
    [
        [
            {"choices": [], "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": CUT}]},
            filter_chunk("stop"),
        ],
        [filter_chunk(content_filter_results=CUT), filter_chunk("stop")],
        [filter_chunk("stop"), {"choices": [{"index": 0, "content_filter_results": CUT}]}],
        [filter_chunk("content_filter", content_filter_results=CUT)],
        [filter_chunk(content_filter_results=CUT)],
    ],
    ids=["prompt", "completion", "late", "finish reason", "no finish reason"],
)
async def test_what_a_filter_cut_is_content_filtered(events: list[Any]):
    body = sse(*events, "[DONE]")
    fn = AzureStreamFn(base_url="https://a.example", api_key="k")
    got = await read(fn, ModelSpec("azure", "gpt-4.1"), options=StreamOptions(http=MemoryClient(body)))
    assert isinstance(got.terminal, Error)
    assert got.terminal.kind == "content_filtered"
    assert "violence" in got.terminal.message
    assert "hate" not in got.terminal.message


async def test_what_a_filter_only_annotates_is_a_reply():
    prompt = {"choices": [], "prompt_filter_results": [{"content_filter_results": PASSED}, "odd", {}]}
    body = sse(prompt, filter_chunk("stop", content_filter_results=PASSED), "[DONE]")
    fn = AzureStreamFn(base_url="https://a.example", api_key="k")
    got = await read(fn, ModelSpec("azure", "gpt-4.1"), options=StreamOptions(http=MemoryClient(body)))
    assert got.message.text == "par"
    assert got.terminal.stop_reason == "stop"
