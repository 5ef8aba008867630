"""Vertex AI: Google credentials and their tokens, addresses, and both kinds of models against the official SDKs."""

import asyncio
import json
import sys
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest
from adapters import CLAUDE_TEXT, GEMINI_TEXT
from loopback import WEATHER, LoopbackServer, MemoryClient, read

from swink.errors import AuthError, MissingKey, MisuseError, NetworkError
from swink.messages import (
    AssistantMessage,
    Citation,
    ModelSpec,
    Text,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from swink.messages.providertools import FileSearch, WebSearch
from swink.providers.bearertokens import Token, TokenCache
from swink.providers.http import Request
from swink.providers.vertex import VertexStreamFn
from swink.providers.vertex.googleauth import GoogleIdentity
from swink.stream import LlmContext, Start, StreamOptions


@pytest.fixture(autouse=True)
def _no_google_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))  # nor is a gcloud on this machine asked for its project
    for name in (
        "CLOUD_ML_REGION",
        "GCLOUD_PROJECT",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "http_proxy",
        "https_proxy",
    ):
        monkeypatch.delenv(name, raising=False)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@cache
def private_key() -> str:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


@pytest.fixture
def key_file(server: LoopbackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A service account whose tokens come from the loopback server, where google-auth looks for it."""
    path = tmp_path / "service-account.json"
    account = {
        "type": "service_account",
        "project_id": "sa-project",
        "private_key_id": "1",
        "private_key": private_key(),
        "client_email": "robot@sa-project.iam.gserviceaccount.com",
        "client_id": "1",
        "token_uri": f"{server.url}/token",
    }
    path.write_text(json.dumps(account), "utf-8")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    return path


def token_answer(server: LoopbackServer, token: str = "ya29.token-one", seconds: int = 3600) -> None:
    body = msgspec.json.encode({"token_type": "Bearer", "expires_in": seconds, "access_token": token})
    server.reply(body, headers={"content-type": "application/json"})


# --- tokens ----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("key_file")
async def test_callers_at_the_same_time_share_one_token_of_the_service_account(server: LoopbackServer):
    token_answer(server)
    identity = GoogleIdentity()
    tokens = await asyncio.gather(*(identity.token() for _ in range(20)))
    assert tokens == ["ya29.token-one"] * 20
    assert [request.path for request in server.requests] == ["/token"]
    assert b"jwt-bearer" in server.requests[0].body
    assert await identity.project() == "sa-project"


@pytest.mark.usefixtures("key_file")
async def test_a_cancelled_fetch_leaves_the_next_caller_free(server: LoopbackServer):
    token_answer(server)
    identity = GoogleIdentity()
    first, second = (asyncio.create_task(identity.token()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert await second == "ya29.token-one"


@pytest.mark.usefixtures("key_file")
async def test_a_token_is_renewed_before_it_runs_out(server: LoopbackServer):
    token_answer(server, seconds=200)  # so short that half its life is the limit
    token_answer(server, "ya29.token-two")
    clock = Clock()
    identity = GoogleIdentity(clock=clock)
    assert await identity.token() == "ya29.token-one"
    clock.now += 99
    assert await identity.token() == "ya29.token-one"
    clock.now += 2
    assert await identity.token() == "ya29.token-two"


async def test_a_token_serves_to_its_end_while_its_early_renewal_fails():
    async def fetch() -> Token:
        if clock.now > 1000:
            raise NetworkError("Google cannot be reached")
        return Token("ya29.token-one", 3600)

    clock = Clock()
    cache = TokenCache(clock)
    assert await cache.token(fetch) == "ya29.token-one"
    clock.now += 3500
    assert await cache.token(fetch) == "ya29.token-one"
    clock.now += 200
    with pytest.raises(NetworkError):
        await cache.token(fetch)
    assert "ya29" not in repr((cache, Token("ya29.x")))


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (400, b'{"error": "invalid_grant", "error_description": "Invalid JWT Signature."}', AuthError),
        (200, b'{"nothing": 1}', AuthError),
    ],
)
@pytest.mark.usefixtures("key_file")
async def test_a_refused_token_is_typed_and_tells_no_secret(
    status: int, body: bytes, error: type[Exception], server: LoopbackServer
):
    server.reply(body, status=status, headers={"content-type": "application/json"})
    identity = GoogleIdentity()
    with pytest.raises(error) as caught:
        await identity.token()
    assert "PRIVATE KEY" not in str(caught.value)
    assert "ya29" not in repr(identity)


async def test_a_token_server_that_cannot_be_reached_is_a_network_error(key_file: Path):
    key_file.write_text(key_file.read_text("utf-8").replace('/token"', '0/token"'), "utf-8")  # no such port
    with pytest.raises(NetworkError):
        await GoogleIdentity().token()


async def test_without_credentials_the_error_says_what_to_do():
    with pytest.raises(MissingKey, match="gcloud auth application-default login"):
        await GoogleIdentity().token()


async def test_credentials_are_missed_before_anything_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    fn = VertexStreamFn(project="p")
    with pytest.raises(MissingKey, match="swink keys set vertex"):
        fn.check_key(StreamOptions())
    (tmp_path / "no-gcloud").mkdir()
    (tmp_path / "no-gcloud" / "application_default_credentials.json").write_text("{}", "utf-8")
    fn.check_key(StreamOptions())  # what is in them is seen when they are used
    got = await read(fn, GEMINI)
    assert got.terminal.kind == "auth"
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "nothing"))
    monkeypatch.setenv("K_SERVICE", "on-cloud-run")
    fn.check_key(StreamOptions())


async def test_credentials_of_the_callers_own_are_used_as_they_are():
    from google.oauth2.credentials import Credentials

    identity = GoogleIdentity(Credentials("ya29.mine", quota_project_id="billed"))
    assert await identity.token() == "ya29.mine"
    assert identity.quota_project == "billed"


# --- addresses -------------------------------------------------------------------------------------------------------


GEMINI = ModelSpec("vertex", "gemini-3-pro-preview")
CLAUDE = ModelSpec("vertex", "claude-sonnet-4-5@20250929")
GOOGLE = "/publishers/google/models/gemini-3-pro-preview:streamGenerateContent?alt=sse"
ANTHROPIC = "/publishers/anthropic/models/claude-sonnet-4-5%4020250929:streamRawPredict"
BODIES = {"gemini": b"".join(GEMINI_TEXT), "claude": b"".join(CLAUDE_TEXT)}


def static(**more: Any) -> Any:
    from google.oauth2.credentials import Credentials

    return Credentials("ya29.static", **more)


async def request_of(fn: VertexStreamFn, model: ModelSpec = GEMINI, **options: Any) -> Request:
    client = MemoryClient(BODIES["claude" if "claude" in model.model_id else "gemini"])
    got = await read(fn, model, options=StreamOptions(http=client, **options))
    assert client.requests, got.terminal
    assert got.message.text == "Hello, world"
    return client.requests[0]


@pytest.mark.parametrize(
    ("settings", "model", "url"),
    [
        ({}, GEMINI, "https://aiplatform.googleapis.com/v1beta1/projects/p/locations/global" + GOOGLE),
        (
            {"location": "europe-west4"},
            GEMINI,
            "https://europe-west4-aiplatform.googleapis.com/v1beta1/projects/p/locations/europe-west4"
            + GOOGLE,
        ),
        (
            {"location": "eu"},
            CLAUDE,
            "https://aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/eu" + ANTHROPIC,
        ),
        (
            {"location": "us-east5"},
            CLAUDE,
            "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5" + ANTHROPIC,
        ),
        (
            {"base_url": "https://gw.example/v1"},
            CLAUDE,
            "https://gw.example/v1/projects/p/locations/global" + ANTHROPIC,
        ),
        (
            {"base_url": "https://gw.example/google"},
            GEMINI,
            "https://gw.example/google/v1beta1/projects/p/locations/global" + GOOGLE,
        ),
        (
            {},
            ModelSpec("vertex", "projects/q/locations/us-central1/endpoints/42"),
            "https://aiplatform.googleapis.com/v1beta1/projects/q/locations/us-central1/endpoints/42"
            ":streamGenerateContent?alt=sse",
        ),
        (
            {},
            ModelSpec("vertex", "anthropic/claude-sonnet-4-5@20250929"),
            "https://aiplatform.googleapis.com/v1/projects/p/locations/global" + ANTHROPIC,
        ),
    ],
)
async def test_each_place_and_model_has_its_address(settings: dict[str, str], model: ModelSpec, url: str):
    fn = VertexStreamFn(project="p", credentials=static(), **settings)
    request = await request_of(fn, model)
    assert request.url == url
    assert request.headers["authorization"] == "Bearer ya29.static"
    assert "ya29" not in repr(fn)


async def test_the_environment_names_project_and_location(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "from-environment")
    monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", "us-central1")
    request = await request_of(VertexStreamFn(credentials=static(quota_project_id="payer")))
    assert "/projects/from-environment/locations/us-central1/" in request.url
    assert request.headers["x-goog-user-project"] == "payer"


async def test_an_api_key_needs_neither_project_nor_credentials(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "not-used")
    monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", "us-central1")
    express = "https://aiplatform.googleapis.com/v1beta1" + GOOGLE
    request = await request_of(VertexStreamFn(api_key="express-key"))
    assert (request.url, request.headers["x-goog-api-key"]) == (express, "express-key")
    assert "authorization" not in request.headers
    monkeypatch.delenv("GOOGLE_CLOUD_LOCATION")
    monkeypatch.setenv("GOOGLE_VERTEX_API_KEY", "key-of-environment")
    request = await request_of(VertexStreamFn())
    assert (request.url, request.headers["x-goog-api-key"]) == (express, "key-of-environment")
    request = await request_of(VertexStreamFn(project="p", credentials=static()))
    assert "x-goog-api-key" not in request.headers
    got = await read(VertexStreamFn(), CLAUDE)
    assert "pass project=, or use Google credentials instead of the API key" in got.terminal.message


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"location": "evil.example/"}, "no location"),
        ({"project": "p/../q"}, "no project"),
        ({"base_url": "http://gw.example"}, "https"),
        ({"credentials": object(), "api_key": "k"}, "not both"),
    ],
)
def test_what_cannot_be_an_address_is_refused(settings: dict[str, Any], says: str):
    with pytest.raises(MisuseError, match=says):
        VertexStreamFn(**settings)


@pytest.mark.usefixtures("key_file")
async def test_credentials_of_the_machine_go_to_google_alone(monkeypatch: pytest.MonkeyPatch):
    fn = VertexStreamFn(project="p", base_url="https://gw.example")
    client = MemoryClient(BODIES["gemini"])
    got = await read(fn, GEMINI, options=StreamOptions(http=client))
    assert (got.terminal.kind, client.requests) == ("auth", [])
    assert "gw.example" in got.terminal.message
    with pytest.raises(MissingKey):
        fn.check_key(StreamOptions())


async def test_without_the_extra_the_error_has_the_command(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "google.auth", None)
    with pytest.raises(MissingKey, match="vertex"):
        VertexStreamFn(project="p").check_key(StreamOptions())
    got = await read(VertexStreamFn(project="p"), GEMINI)
    assert got.events == [Start(), got.terminal]
    assert "install" in got.terminal.message
    assert (await request_of(VertexStreamFn(api_key="k"))).headers["x-goog-api-key"] == "k"


async def test_a_model_of_another_publisher_is_refused_by_name():
    got = await read(VertexStreamFn(project="p", credentials=static()), ModelSpec("vertex", "meta/llama-4"))
    assert "none of meta" in got.terminal.message


async def test_credentials_without_a_project_say_so():
    got = await read(VertexStreamFn(credentials=static()), GEMINI)
    assert "GOOGLE_CLOUD_PROJECT" in got.terminal.message


# --- both kinds of models, and the SDKs ------------------------------------------------------------------------------


HISTORY = [
    UserMessage("Weather in Oslo?"),
    AssistantMessage(
        [Text("Let me see."), ToolCall("toolu_1", "weather", {"city": "Oslo"})], "vertex", "any"
    ),
    ToolResultMessage("toolu_1", "weather", "18 °C"),
]


@pytest.mark.usefixtures("key_file")
async def test_gemini_is_asked_as_googles_sdk_asks(server: LoopbackServer):
    token_answer(server)
    server.reply(BODIES["gemini"])
    got = await read(
        VertexStreamFn(base_url=server.url, location="us-central1"), GEMINI, HISTORY, tools=[WEATHER]
    )
    assert (got.message.text, got.terminal.usage) == ("Hello, world", Usage(10, 5))
    ours = server.requests[-1]

    def sdk() -> str:
        from google import genai
        from google.genai import types

        options = types.HttpOptions(base_url=server.url)
        config = types.GenerateContentConfig(
            tools=[types.Tool.model_validate_json(json.dumps(tool)) for tool in ours.json["tools"]],
            thinking_config=types.ThinkingConfig(thinking_level=types.ThinkingLevel.LOW),
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )
        contents = [types.Content.model_validate_json(json.dumps(item)) for item in ours.json["contents"]]
        with genai.Client(
            vertexai=True,
            project="sa-project",
            location="us-central1",
            credentials=static(),
            http_options=options,
        ) as client:
            replies = client.models.generate_content_stream(
                model=GEMINI.model_id, contents=contents, config=config
            )
            return "".join(reply.text or "" for reply in replies)

    assert await asyncio.to_thread(sdk) == "Hello, world"
    theirs = server.requests[-1]
    assert ours.path == theirs.path
    assert ours.headers["authorization"] == "Bearer ya29.token-one"
    assert set(ours.json) == set(theirs.json)
    assert len(ours.json["contents"]) == len(theirs.json["contents"])


async def test_what_gemini_signed_and_cited_is_plain_text_to_claude():
    cited = Citation("https://x.example", data={"uri": "https://x.example"})
    reply = AssistantMessage(
        [Text("\n", (), "c2ln"), Text("Hello", (cited,), "c2ln")], "vertex", GEMINI.model_id
    )
    client = MemoryClient(BODIES["claude"])
    history = [UserMessage("Hi"), reply, UserMessage("Go on")]
    await read(
        VertexStreamFn(project="p", credentials=static()), CLAUDE, history, options=StreamOptions(http=client)
    )
    assert client.sent["messages"][1]["content"] == [{"type": "text", "text": "Hello"}]


@pytest.mark.usefixtures("key_file")
async def test_claude_is_asked_as_anthropics_sdk_asks(server: LoopbackServer):
    token_answer(server)
    server.reply(BODIES["claude"])
    fn = VertexStreamFn(base_url=f"{server.url}/v1", location="us-east5")
    got = await read(fn, CLAUDE, HISTORY, tools=[WEATHER])
    assert got.message.text == "Hello, world"
    ours = server.requests[-1]

    def sdk() -> str:
        from anthropic import AnthropicVertex

        body = {
            name: value for name, value in ours.json.items() if name not in ("anthropic_version", "stream")
        }
        with AnthropicVertex(
            region="us-east5",
            project_id="sa-project",
            access_token="ya29.static",
            base_url=f"{server.url}/v1",
        ) as client:
            events = client.messages.create(model=CLAUDE.model_id, stream=True, **body)
            deltas = [event.delta.text for event in events if event.type == "content_block_delta"]
            return "".join(deltas)

    assert await asyncio.to_thread(sdk) == "Hello, world"
    theirs = server.requests[-1]
    assert unquote(ours.path) == unquote(theirs.path)
    sent = theirs.json
    assert sent.pop("anthropic_version")  # its own default changes with its releases
    assert ours.json == {**sent, "anthropic_version": "vertex-2023-10-16"}


async def test_a_conversation_goes_from_one_to_the_other_and_back():
    fn = VertexStreamFn(project="p", credentials=static())
    signed = AssistantMessage(
        [Text("Hi", (), "c2ln"), ToolCall("fc-1", "weather", {"city": "Oslo"}, None, "Y2FsbA==")],
        "vertex",
        GEMINI.model_id,
    )
    history = [UserMessage("Hello"), signed, ToolResultMessage("fc-1", "weather", "18 °C")]
    for model in (CLAUDE, GEMINI):
        client = MemoryClient(BODIES["claude" if model is CLAUDE else "gemini"])
        await read(fn, model, history, options=StreamOptions(http=client))
        assert ("c2ln" in json.dumps(client.sent)) is (model is GEMINI)


@pytest.mark.parametrize(
    ("hosted", "tools", "says"),
    [
        (FileSearch(("store",)), (), "vertex has no hosted FileSearch"),
        (WebSearch(), [WEATHER], "does not take WebSearch together with tools that run here"),
    ],
)
async def test_hosted_tools_that_vertex_lacks_are_refused_by_name(hosted: Any, tools: Any, says: str):
    context = LlmContext("", [UserMessage("Hi")], tools, [hosted])
    fn = VertexStreamFn(project="p", credentials=static())
    events = [event async for event in fn(GEMINI, context, StreamOptions(http=MemoryClient(b"")))]
    assert says in events[-1].message


async def test_blocked_domains_are_a_setting_of_vertex_alone():
    context = LlmContext("", [UserMessage("Hi")], (), [WebSearch(blocked_domains=("a.example",))])
    client = MemoryClient(BODIES["gemini"])
    fn = VertexStreamFn(project="p", credentials=static())
    assert [event async for event in fn(GEMINI, context, StreamOptions(http=client))]
    assert client.sent["tools"] == [{"googleSearch": {"excludeDomains": ["a.example"]}}]


@pytest.mark.parametrize(
    ("model", "status", "message", "kind"),
    [
        (GEMINI, 403, "Permission 'aiplatform.endpoints.predict' denied", "auth"),
        (
            GEMINI,
            404,
            "Publisher Model `projects/p/locations/global/publishers/google/models/x` not found",
            "model_retired",
        ),
        (GEMINI, 429, "Resource exhausted", "throttled"),
        (CLAUDE, 429, "Quota exceeded", "throttled"),
        (CLAUDE, 400, "prompt is too long: 250000 tokens > 200000 maximum", "context_window_exceeded"),
    ],
)
async def test_an_error_has_its_kind(model: ModelSpec, status: int, message: str, kind: str):
    body = json.dumps({"error": {"code": status, "message": message, "status": "X"}}).encode()
    client = MemoryClient(body, status=status, headers={"content-type": "application/json"})
    got = await read(
        VertexStreamFn(project="p", credentials=static()), model, options=StreamOptions(http=client)
    )
    assert got.terminal.kind == kind


async def test_cancelling_while_the_token_is_fetched_leaves_nothing_behind(
    key_file: Path, server: LoopbackServer
):
    token_answer(server)
    client = MemoryClient(BODIES["gemini"])
    fn = VertexStreamFn(base_url=server.url)
    asking = asyncio.create_task(read(fn, GEMINI, options=StreamOptions(http=client)))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert client.requests == []
    assert (await read(fn, GEMINI, options=StreamOptions(http=client))).message.text == "Hello, world"
