"""The proxy protocol, both sides: the client over memory and sockets, the server under uvicorn and on aiohttp."""

import asyncio
import base64
import json
import ssl
from contextlib import aclosing, asynccontextmanager
from itertools import pairwise

import aiohttp
import msgspec
import pytest
import trustme
import uvicorn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loopback import WEATHER, MemoryClient, cut_places, read, sse

from swink.errors import MisuseError, ModelThrottled
from swink.local import LocalStreamFn
from swink.messages import (
    AssistantMessage,
    Audio,
    Base64Source,
    Capabilities,
    Citation,
    Cost,
    Document,
    Extension,
    FileSource,
    Image,
    ModelSpec,
    NamedFile,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UrlSource,
    Usage,
    UserMessage,
)
from swink.messages.providertools import CodeExecution, McpConnector, ProviderTool, WebSearch
from swink.providers.gemini import GeminiStreamFn
from swink.providers.proxy import ProxyStreamFn
from swink.providers.proxy.wire import encode_reply
from swink.serve.asgi import serve_app
from swink.serve.connections import Connections
from swink.serve.proxyserver import MOST_WAITING, proxy_app, serve_proxy
from swink.stream import (
    BlockAdded,
    Done,
    Error,
    LlmContext,
    OutputSchema,
    PromptProgress,
    Start,
    StreamOptions,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)

MODEL = ModelSpec("scripted", "one")
TOKEN = "a-token-for-tests"
EVERYTHING = [
    Start(),
    PromptProgress(16, 20),
    ThinkingStart(0),
    ThinkingDelta(0, "hm … "),
    ThinkingEnd(0, "sig/na+ture=="),
    ThinkingStart(1),
    ThinkingEnd(1, "opaque", True),
    TextStart(2),
    TextDelta(2, "Grüße 🦊\r\n\u2028"),
    ToolCallStart(3, "call_1", "weather"),
    TextDelta(2, "!"),
    ToolCallDelta(3, '{"city":'),
    ToolCallDelta(3, '"Oslo"}'),
    TextEnd(
        2, "text signature", (Citation("https://x.example", "X", "Grüße", 0, 5, {"of": ["its", "own"]}),)
    ),
    ToolCallEnd(3, "call signature"),
    BlockAdded(4, Extension("anthropic", {"type": "server_tool_use", "id": "srv"}, "web search: swink")),
    BlockAdded(5, Image(Base64Source("aGk=", "image/png"))),
    Done("tool_use", Usage(10, 20, 3, 4, extra={"reasoning": 5}), Cost(0.1, 0.2)),
]
CUT_OFF = [Start(), ToolCallStart(0, "c", "weather"), ToolCallDelta(0, "{}"), Done("length", Usage(1, 2))]
FAILED = [
    Start(),
    TextStart(0),
    TextDelta(0, "par"),
    TextEnd(0),
    Error("slow down", "throttled", 1.5, Usage(7)),
]
lean = settings(
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch):
    monkeypatch.delenv("SWINK_PROXY_URL", raising=False)
    monkeypatch.delenv("SWINK_PROXY_TOKEN", raising=False)


class Scripted:
    """A stream function that yields what it is given, and raises what is an exception."""

    def __init__(self, *events):
        self.events = events
        self.calls = []

    async def __call__(self, model, context, options):
        self.calls.append((model, context, options))
        for event in self.events:
            if isinstance(event, Exception):
                raise event
            yield event


class Endless:
    """A stream function that never ends by itself, and notes when it was stopped."""

    def __init__(self):
        self.stopped = asyncio.Event()

    async def __call__(self, model, context, options):
        yield Start()
        yield TextStart(0)
        try:
            while True:
                yield TextDelta(0, "more ")
                await asyncio.sleep(0.01)
        finally:
            self.stopped.set()


class Stalled(Endless):
    async def __call__(self, model, context, options):
        yield Start()
        yield TextStart(0)
        yield TextDelta(0, "more ")
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped.set()


@asynccontextmanager
async def on_uvicorn(stream_fns, tokens, **keywords):
    app = proxy_app(stream_fns, tokens, **keywords)
    config = uvicorn.Config(
        app, port=0, log_level="error", lifespan="on", ws="none", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving


def on_aiohttp(stream_fns, tokens, **keywords):
    return serve_proxy("127.0.0.1", 0, stream_fns, tokens, **keywords)


@pytest.fixture(params=[on_aiohttp, on_uvicorn], ids=["aiohttp", "uvicorn"])
def serve(request):
    return request.param


def client(url, token=TOKEN):
    return ProxyStreamFn(base_url=url, api_key=token)


def body_of(events):
    return b"".join(encode_reply(event) for event in events)


async def replay(body, **keywords):
    return await read(
        client("https://proxy.example"),
        MODEL,
        options=StreamOptions(http=MemoryClient(body)),
        **keywords,
    )


# The whole way


@pytest.mark.parametrize("script", [EVERYTHING, CUT_OFF, FAILED], ids=["everything", "cut off", "failed"])
async def test_every_event_arrives_as_it_was_sent(serve, script):
    async with serve({"scripted": Scripted(*script)}, {TOKEN: ["scripted:*"]}) as url:
        got = await read(client(url), MODEL)
    assert got.events == script


async def test_the_stream_function_gets_what_the_client_said(serve):
    fn = Scripted(*EVERYTHING)
    history = [
        UserMessage(
            [
                Text("Hi"),
                Image(Base64Source("aGk=", "image/png")),
                Document(UrlSource("https://x.example/a.pdf"), "A paper"),
                Audio(Base64Source("aGk=", "audio/wav")),
            ]
        ),
        AssistantMessage(
            [
                Thinking("t", "s"),
                Extension("anthropic", {"type": "server_tool_use"}, "web search: swink"),
                Text("It is so.", (Citation("https://x.example", data={"index": 1}),), "signed"),
                ToolCall("c", "weather", {"city": "Oslo"}, None, "sig"),
            ],
            "scripted",
            "one",
            "tool_use",
            Usage(1, 2),
        ),
        ToolResultMessage("c", "weather", "18 °C", True),
    ]
    model = ModelSpec("scripted", "one", "high", {"high": 7})
    said = {"temperature": 0.5, "max_tokens": 100, "session_id": "session", "tool_choice": "weather", "cache": "1h",
            "extra": {"top_k": 3}, "top_p": 0.5, "stop": ("END",), "seed": 7, "service_tier": "flex", "verbosity": "low",
            "parallel_tool_calls": False}  # fmt: skip
    options = StreamOptions(api_key=TOKEN, headers={"X-Trace": "of-the-client"}, **said)
    hosted = [WebSearch(("x.example",), max_uses=2), CodeExecution(), ProviderTool("scripted", {"maps": {}}),
              McpConnector("c", "https://mcp.example", "its-token", ("search",))]  # fmt: skip
    output = OutputSchema("answer", {"type": "object"})
    fn.native_output = lambda model, context: context.output == output
    async with serve({"scripted": fn}, {TOKEN: ["scripted:*"]}) as url:
        await read(
            ProxyStreamFn(base_url=url),
            model,
            history,
            system="Be brief.",
            tools=[WEATHER],
            options=options,
            hosted=hosted,
            output=output,
        )
    [(got_model, context, got_options)] = fn.calls
    assert got_model == model
    assert context.system_prompt == "Be brief."
    assert list(context.messages) == history
    assert [(tool.name, tool.description, tool.parameters_schema) for tool in context.tools] == [
        (WEATHER.name, WEATHER.description, WEATHER.parameters_schema)
    ]
    assert list(context.hosted) == hosted
    assert context.output == output
    assert got_options == StreamOptions(**said)


@pytest.mark.parametrize("fn_type", [Endless, Stalled])
async def test_a_client_that_leaves_stops_the_stream_function(serve, fn_type):
    fn = fn_type()
    async with serve({"scripted": fn}, {TOKEN: ["*"]}) as url:
        stream = client(url)(MODEL, LlmContext("", [UserMessage("Hi")]), StreamOptions())
        async with aclosing(stream):
            async for event in stream:
                if isinstance(event, TextDelta):
                    break
        async with asyncio.timeout(20):
            await fn.stopped.wait()


@pytest.mark.parametrize("fn_type", [Endless, Stalled])
async def test_stopping_the_server_stops_the_stream_function_and_is_a_network_error(fn_type):
    fn = fn_type()
    events = []
    async with serve_proxy("127.0.0.1", 0, {"scripted": fn}, {TOKEN: ["*"]}) as url:
        stream = client(url)(MODEL, LlmContext("", [UserMessage("Hi")]), StreamOptions())
        async for event in stream:
            events.append(event)
            if isinstance(event, TextDelta):
                break
    async with asyncio.timeout(20):
        await fn.stopped.wait()
        events += [event async for event in stream]
    assert isinstance(events[-1], Error)
    assert events[-1].kind == "network"


async def asked(stream_fn, send):
    """Ask the application itself, as an ASGI server does; `send` gets what it answers."""
    body = json.dumps({"version": 2, "model": {"provider": "scripted", "model_id": "one"}}).encode()
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive():
        for message in messages:
            return message
        return await asyncio.Event().wait()

    scope = {"type": "http", "path": "/v1/stream", "method": "POST"}
    headers = [(b"authorization", f"Bearer {TOKEN}".encode())]
    app = proxy_app({"scripted": stream_fn}, {TOKEN: ["*"]})
    await app({**scope, "headers": headers}, receive, send)


async def test_events_that_are_ready_go_out_in_one_write_and_none_waits_for_the_next():
    writes: list[bytes] = []
    seen: list[int] = []

    async def send(message):
        writes.append(message.get("body", b""))

    async def fn(model, context, options):
        yield Start()
        yield TextStart(0)
        for number in range(3):
            for _ in range(50):
                yield TextDelta(0, f"{number} ")
            for _ in range(3):
                await asyncio.sleep(0)
            seen.append(b"".join(writes).count(b"text_delta"))
        yield TextEnd(0)
        yield Done()

    await asked(fn, send)
    assert seen == [50, 100, 150]
    assert len(writes) <= 6
    assert b"".join(writes).endswith(encode_reply(Done()))


async def test_a_model_gets_no_more_than_some_events_ahead_of_a_client_that_reads_slowly():
    made = taken = ahead = 0

    async def send(message):
        nonlocal taken
        await asyncio.sleep(0)
        taken += message.get("body", b"").count(b"text_delta")

    async def fn(model, context, options):
        nonlocal made, ahead
        yield TextStart(0)
        for made in range(1, 2001):
            yield TextDelta(0, "x")
            ahead = max(ahead, made - taken)
        yield TextEnd(0)
        yield Done()

    await asked(fn, send)
    assert taken == 2000
    assert ahead <= 2 * MOST_WAITING


async def test_what_was_ready_goes_out_before_a_failure_of_the_server_itself():
    writes: list[bytes] = []

    async def send(message):
        writes.append(message.get("body", b""))
        assert message.get("more_body", True)

    async def fn(model, context, options):
        yield TextStart(0)
        yield TextDelta(0, "so far")
        yield object()

    with pytest.raises(TypeError):
        await asked(fn, send)
    assert b"so far" in b"".join(writes)


async def test_an_error_that_a_stream_function_raises_arrives_with_its_kind():
    fn = Scripted(Start(), TextStart(0), TextDelta(0, "a"), ModelThrottled("wait", retry_after=2.0))
    async with serve_proxy("127.0.0.1", 0, {"scripted": fn}, {TOKEN: ["*"]}) as url:
        got = await read(client(url), MODEL)
    assert got.terminal == Error("wait", "throttled", 2.0)
    assert got.message.text == "a"


async def test_secrets_of_the_server_stay_there():
    leak = "upstream said: bad key sk-ant-abcdefgh12345678"
    for fn in (Scripted(Start(), Error(leak, "auth")), Scripted(ModelThrottled(leak))):
        async with serve_proxy("127.0.0.1", 0, {"scripted": fn}, {TOKEN: ["*"]}) as url:
            got = await read(client(url), MODEL)
        assert "abcdefgh" not in got.terminal.message
        assert "upstream said" in got.terminal.message


async def test_a_stream_function_without_terminal_or_start_gets_them():
    for events in ([Start()], [], [Start(), TextStart(0), TextDelta(0, "x")]):
        async with serve_proxy("127.0.0.1", 0, {"scripted": Scripted(*events)}, {TOKEN: ["*"]}) as url:
            got = await read(client(url), MODEL)
        assert isinstance(got.terminal, Error)
        assert got.terminal.kind == "network"


async def test_a_broken_stream_function_is_a_network_error_for_the_client_and_a_log_line_here(caplog):
    fn = Scripted(Start(), TextStart(0), TextDelta(0, "x"), RuntimeError("a bug"))
    async with serve_proxy("127.0.0.1", 0, {"scripted": fn}, {TOKEN: ["*"]}) as url:
        got = await read(client(url), MODEL)
    assert got.terminal.kind == "network"
    assert "a bug" not in got.terminal.message
    assert "a bug" in caplog.text


async def test_it_serves_over_tls():
    authority = trustme.CA()
    tls, trusting = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    authority.configure_trust(trusting)
    async with serve_proxy(
        "127.0.0.1", 0, {"scripted": Scripted(*EVERYTHING)}, {TOKEN: ["*"]}, tls=tls
    ) as url:
        assert url.startswith("https://")
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting)) as session:
            async with session.get(url) as answer:
                assert answer.status == 404


# Who may do what


@pytest.mark.parametrize(
    ("token", "model", "status", "kind"),
    [
        ("wrong-token", "a:one", 401, "auth"),
        ("", "a:one", 401, "auth"),
        ("token-of-team-a", "b:one", 403, "auth"),
        ("token-of-team-a", "a:two", 403, "auth"),
        ("token-of-team-b", "c:one", 404, "model_retired"),
    ],
)
async def test_a_token_reaches_its_own_models_only(serve, token, model, status, kind):
    fns = {"a": Scripted(*EVERYTHING), "b": Scripted(*EVERYTHING)}
    tokens = {"token-of-team-a": ["a:one"], "token-of-team-b": ["b:*", "c:*"]}
    async with serve(fns, tokens) as url:
        got = await read(client(url, token), ModelSpec(*model.split(":")))
        assert got.events[0] == Start()
        assert len(got.events) == 2
        assert got.terminal.kind == kind
        assert f"HTTP {status}" in got.terminal.message
        allowed = await read(client(url, "token-of-team-a"), ModelSpec("a", "one"))
        assert isinstance(allowed.terminal, Done)
    assert len(fns["a"].calls) == 1
    assert fns["b"].calls == []


async def test_one_model_may_have_a_stream_function_of_its_own():
    general, special = Scripted(*FAILED), Scripted(*EVERYTHING)
    async with serve_proxy("127.0.0.1", 0, {"a": general, "a:one": special}, {TOKEN: ["a:*"]}) as url:
        await read(client(url), ModelSpec("a", "one"))
        await read(client(url), ModelSpec("a", "two"))
    assert len(general.calls) == len(special.calls) == 1


async def post(url, body, *, token=TOKEN, path="/v1/stream", method="POST", scheme="Bearer"):
    async with aiohttp.ClientSession() as session:
        async with session.request(
            method, url + path, data=body, headers={"authorization": f"{scheme} {token}"}
        ) as answer:
            return answer.status, await answer.text()


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "not a proxy request"),
        (b"[]", "not a proxy request"),
        (b'{"model": {"provider": "scripted"}}', "model_id"),
        (b'{"version": 3, "model": {"provider": "scripted", "model_id": "one"}}', "version 2"),
        (
            b'{"version": 2, "model": {"provider": "scripted", "model_id": "one"}, "messages": [{"role": "wizard"}]}',
            "wizard",
        ),
        (b"[" * 100_000, "not a proxy request"),
        (b'{"model": "\xff"}', "not a proxy request"),
        (
            b'{"version": 2, "model": {"provider": "scripted", "model_id": "one"}, "options": {"max_tokens": -1}}',
            "max_tokens is a whole number above 0",
        ),
    ],
)
async def test_a_request_that_is_none_is_refused(body, says):
    fn = Scripted(*EVERYTHING)
    async with serve_proxy("127.0.0.1", 0, {"scripted": fn}, {TOKEN: ["*"]}) as url:
        status, text = await post(url, body)
    assert status == 400
    assert says in text
    assert fn.calls == []


async def test_a_path_in_a_request_cannot_read_files_of_the_server(tmp_path):
    secret = tmp_path / "secret.png"
    secret.write_bytes(b"\x89PNG\r\n\x1a\n")
    for role in ("user", "tool_result"):
        message = {
            "role": role,
            "tool_call_id": "c",
            "tool_name": "t",
            "content": [{"type": "image", "source": {"type": "file", "path": str(secret)}}],
        }
        body = {"version": 2, "model": {"provider": "scripted", "model_id": "one"}, "messages": [message]}
        fn = Scripted(*EVERYTHING)
        async with serve_proxy("127.0.0.1", 0, {"scripted": fn}, {TOKEN: ["*"]}) as url:
            status, text = await post(url, json.dumps(body).encode())
        assert (status, fn.calls) == (400, [])
        assert "path" in text


async def test_only_the_one_route_and_method_and_scheme_exist(serve):
    async with serve({"scripted": Scripted(*EVERYTHING)}, {TOKEN: ["*"]}) as url:
        assert (await post(url, b"{}", path="/v1/other"))[0] == 404
        assert (await post(url, None, method="GET"))[0] == 405
        assert (await post(url, b"{}", scheme="Basic"))[0] == 401


async def test_the_body_is_capped(serve):
    async def endless():
        while True:
            yield b"x" * 1000

    async with serve({"scripted": Scripted(*EVERYTHING)}, {TOKEN: ["*"]}, max_body=10_000) as url:
        assert (await post(url, b"x" * 10_001))[0] == 413
        got = await read(client(url), MODEL, "long " * 3000)
        assert got.terminal.kind == "context_window_exceeded"
        try:
            status, _ = await post(url, endless())
        except aiohttp.ClientError:  # the server may close while the client still writes
            status = 413
        assert status == 413


# Names


NO_NAMES = [
    "",
    ".",
    "..",
    "../x",
    "a/../b",
    "a//b",
    "/etc/passwd",
    "a?b",
    "a#b",
    "a%2fb",
    "a%2e%2e",
    "a\\b",
    "a\nb",
    "a\x00",
    "a\u202eb",
    "x" * 300,
    "a;b",
    "a&b",
]


@pytest.mark.parametrize("name", NO_NAMES)
async def test_what_cannot_be_the_name_of_a_model_reaches_no_stream_function(serve, name):
    fn = Scripted(*EVERYTHING)
    async with serve({"scripted": fn}, {TOKEN: ["*"]}) as url:
        got = await read(client(url), ModelSpec("scripted", name))
    assert fn.calls == []
    assert "HTTP 400" in got.terminal.message


@pytest.mark.parametrize(
    "name", ["claude-sonnet-4-6", "openai/gpt-4o:free", "us.anthropic.claude-v1:0", "arn:aws:bedrock:us-east-1:1:inference-profile/us.x-v1:0", "qwen3:8b", "modèle"]
)  # fmt: skip
async def test_the_names_that_models_have_reach_it(name):
    fn = Scripted(*EVERYTHING)
    async with serve_proxy("127.0.0.1", 0, {"scripted": fn}, {TOKEN: ["*"]}) as url:
        await read(client(url), ModelSpec("scripted", name))
    assert [model.model_id for model, _, _ in fn.calls] == [name]


async def test_a_name_leaves_the_path_of_the_upstream_as_it_is(server):
    """Whatever a client calls a model, a provider that has it in its URL sees one segment of it."""
    server.reply(b"")
    async with serve_proxy(
        "127.0.0.1", 0, {"gemini": GeminiStreamFn(base_url=server.url, api_key="k")}, {TOKEN: ["gemini:*"]}
    ) as url:
        for name in ("a/b", "files/x:list", "models/a"):
            await read(client(url), ModelSpec("gemini", name))
    assert [request.path.partition("?")[0] for request in server.requests] == [
        f"/v1beta/models/{name}:streamGenerateContent" for name in ("a%2Fb", "files%2Fx:list", "a")
    ]


LOCAL = [
    "/etc/passwd",
    "../x.gguf",
    "~/x.gguf",
    "x.gguf",
    "hf/owner/repo",
    "hf/owner/repo/file.gguf",
    "file:///etc/passwd",
    "nobody",
]


@pytest.mark.parametrize("name", LOCAL)
@pytest.mark.parametrize(
    "patterns", [["*"], ["local:*"], ["local:*.gguf", "local:hf/*", "local:/*", "local:nobody*"]]
)
async def test_a_local_model_is_neither_a_path_nor_a_download_of_a_client(
    name, patterns, tmp_path, monkeypatch
):
    monkeypatch.setenv("SWINK_CACHE_DIR", str(tmp_path))
    fn = Scripted(*EVERYTHING)
    async with serve_proxy("127.0.0.1", 0, {"local": fn}, {TOKEN: patterns}) as url:
        got = await read(client(url), ModelSpec("local", name))
        status, _ = await post(url, json.dumps({"model": name}).encode())
    assert fn.calls == []
    assert isinstance(got.terminal, Error)
    assert status in (400, 403, 404)
    assert list(tmp_path.iterdir()) == []


async def test_a_local_model_that_whoever_runs_the_server_wrote_out_is_served(tmp_path, monkeypatch):
    monkeypatch.setenv("SWINK_CACHE_DIR", str(tmp_path))
    fn = Scripted(*EVERYTHING)
    async with serve_proxy(
        "127.0.0.1", 0, {"local": fn}, {TOKEN: ["local:/models/own.gguf", "local:smollm2-135m"]}
    ) as url:
        for name in ("/models/own.gguf", "smollm2-135m", "/models/other.gguf"):
            await read(client(url), ModelSpec("local", name))
    assert [model.model_id for model, _, _ in fn.calls] == ["/models/own.gguf", "smollm2-135m"]


@pytest.mark.parametrize("provider", ["local", "mine"])
async def test_a_local_model_that_is_not_here_is_not_downloaded_for_a_client(provider, tmp_path, monkeypatch):
    monkeypatch.setenv("SWINK_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("swink.local.weights._in_package", lambda known: None)
    names = ["smollm2-135m", "hf/owner/repo", str(tmp_path / "none.gguf"), "nobody"]
    tokens = {TOKEN: [f"{provider}:{name}" for name in names]}
    async with serve_proxy("127.0.0.1", 0, {provider: LocalStreamFn()}, tokens) as url:
        for name in names:
            got = await read(client(url), ModelSpec(provider, name))
            assert "HTTP 404" in got.terminal.message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "s3://bucket/key", "gs://bucket/key", "/etc/passwd", "ftp://x/y"]
)
async def test_an_image_is_not_one_that_only_the_server_may_read(url):
    message = {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": url}}]}
    body = {"version": 2, "model": {"provider": "scripted", "model_id": "one"}, "messages": [message]}
    fn = Scripted(*EVERYTHING)
    async with serve_proxy("127.0.0.1", 0, {"scripted": fn}, {TOKEN: ["*"]}) as address:
        status, _ = await post(address, json.dumps(body).encode())
    assert (status, fn.calls) == (400, [])


@pytest.mark.parametrize(
    "reference", ["s3://bucket/key", "gs://bucket/key", "file:///etc/passwd", " S3://bucket/key"]
)
async def test_neither_is_a_document_or_an_option(reference):
    located = {"document": {"source": [{"s3Location": {"uri": reference}}]}}
    extension = {"role": "user", "content": [{"type": "extension", "type_name": "bedrock", "data": located}]}
    asked = {"version": 2, "model": {"provider": "scripted", "model_id": "one"}}
    fn = Scripted(*EVERYTHING)
    async with serve_proxy("127.0.0.1", 0, {"scripted": fn}, {TOKEN: ["*"]}) as address:
        for body in ({**asked, "messages": [extension]}, {**asked, "options": {"extra": located}}):
            assert (await post(address, json.dumps(body).encode()))[0] == 400
    assert fn.calls == []


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"messages": [{"role": "user", "content": [{"type": "document", "source": {"type": "file", "path": "/etc/passwd"}}]}]}, "documents must be"),
        ({"messages": [{"role": "user", "content": [{"type": "audio", "source": {"type": "url", "url": "gs://b/k"}}]}]}, "audios must be"),
        ({"messages": [{"role": "assistant", "content": [{"type": "text", "text": "x", "citations": [{"data": {"uri": "s3://b/k"}}]}]}]}, "s3:"),
        ({"hosted": [{"type": "file_search", "stores": ["vs_1"]}]}, "stores of the server"),
        ({"hosted": [{"type": "provider_tool", "provider": "x", "spec": {"uri": "gs://b/k"}}]}, "gs:"),
        ({"hosted": [{"type": "file_search", "stores": []}]}, "needs the ids"),
        ({"hosted": [{"type": "a_new_one"}]}, "not a proxy request"),
        ({"options": {"cache": "2h"}}, "not a proxy request"),
        ({"options": {"top_p": 7}}, "top_p is a number between 0 and 1"),
        ({"output": {"name": "answer", "schema": {}}}, "takes no output schema"),
    ],
)  # fmt: skip
async def test_what_only_the_server_may_read_or_no_model_here_takes_is_refused_by_name(more, says):
    body = {"version": 2, "revision": 1, "model": {"provider": "scripted", "model_id": "one"}, **more}
    fn = Scripted(*EVERYTHING)
    async with serve_proxy("127.0.0.1", 0, {"scripted": fn}, {TOKEN: ["*"]}) as address:
        status, answer = await post(address, json.dumps(body).encode())
    assert (status, fn.calls) == (400, [])
    assert says in str(answer)


# Clients that take their time


async def closes(reader, seconds):
    """Whether the other side closes within so many seconds."""
    try:
        async with asyncio.timeout(seconds):
            while await reader.read(1000):
                pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


@pytest.fixture
async def patient():
    """A server that gives a request head a fifth of a second and holds at most five connections."""
    app = proxy_app({"scripted": Scripted(*EVERYTHING)}, {TOKEN: ["*"]})
    async with serve_app(app, connections=Connections(5, 0.2)) as url:
        yield url


@pytest.mark.parametrize(
    ("thinks", "level", "reported"), [(False, "off", 1), (True, "high", 0), (None, "high", 0)]
)
async def test_a_level_of_thinking_goes_to_no_model_that_does_not_think(
    thinks: bool | None, level: str, reported: int, caplog: pytest.LogCaptureFixture
):
    client = MemoryClient(b"")
    can = None if thinks is None else Capabilities(thinking=thinks)
    model = ModelSpec("proxy", "acme:m", "high", {"high": 99}, capabilities=can)
    fn = ProxyStreamFn(base_url="https://p.example", api_key="k")
    for _ in range(2):
        await read(fn, model, options=StreamOptions(http=client))
    assert client.sent["model"].get("thinking_level") == level
    assert ("thinking_budgets" in client.sent["model"]) == (level == "high")
    assert len([one for one in caplog.records if "'thinking_level'" in one.getMessage()]) == reported


@pytest.mark.parametrize(
    "sent", [b"", b"POST /v1/stream HT", b"POST /v1/stream HTTP/1.1\r\nHost: x\r\nAuthoriz"]
)
async def test_a_head_that_is_never_finished_is_given_up(patient, sent):
    reader, writer = await asyncio.open_connection("127.0.0.1", int(patient.rpartition(":")[2]))
    writer.write(sent)
    assert await closes(reader, 60)
    writer.close()
    assert isinstance((await read(client(patient), MODEL)).terminal, Done)


async def test_a_head_that_comes_a_byte_at_a_time_is_given_up(patient):
    reader, writer = await asyncio.open_connection("127.0.0.1", int(patient.rpartition(":")[2]))
    closing = asyncio.ensure_future(closes(reader, 60))
    for number in range(1_200):
        if closing.done():
            break
        writer.write(b"POST /v1/stream HTTP/1.1\r\nx: " if number == 0 else b"y")
        await asyncio.sleep(0.05)
    assert closing.done()
    assert await closing
    writer.close()


async def test_a_slow_reply_is_not_cut_off_with_slow_heads():
    class Slow(Scripted):
        async def __call__(self, model, context, options):
            yield Start()
            await asyncio.sleep(0.5)
            yield Done("stop")

    async with serve_app(
        proxy_app({"scripted": Slow()}, {TOKEN: ["*"]}), connections=Connections(5, 0.1)
    ) as url:
        assert isinstance((await read(client(url), MODEL)).terminal, Done)


async def test_a_client_that_does_not_read_is_dropped(monkeypatch):
    monkeypatch.setattr("swink.serve.asgi.SEND_SECONDS", 0.3)

    class Torrent(Endless):
        async def __call__(self, model, context, options):
            yield Start()
            yield TextStart(0)
            try:
                while True:
                    yield TextDelta(0, "more " * 100_000)
            finally:
                self.stopped.set()

    fn = Torrent()
    body = b'{"version": 2, "model": {"provider": "scripted", "model_id": "one"}}'
    async with serve_proxy("127.0.0.1", 0, {"scripted": fn}, {TOKEN: ["*"]}) as url:
        _, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]), limit=1000)
        writer.write(
            b"POST /v1/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s"
            % (TOKEN.encode(), len(body), body)
        )
        async with asyncio.timeout(20):
            await fn.stopped.wait()
        writer.close()


async def test_a_body_that_is_never_finished_is_given_up(serve, monkeypatch):
    monkeypatch.setattr("swink.serve.proxyserver.BODY_SECONDS", 0.2)
    async with serve({"scripted": Scripted(*EVERYTHING)}, {TOKEN: ["*"]}) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(
            b"POST /v1/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 999\r\n\r\n{"
            % TOKEN.encode()
        )
        async with asyncio.timeout(20):
            assert b"408" in await reader.readline()
        writer.close()


async def test_a_failure_of_the_stream_function_leaves_no_secret_in_the_log(caplog):
    fn = Scripted(Start(), RuntimeError("bad key sk-ant-abcdefgh12345678"))
    async with serve_proxy("127.0.0.1", 0, {"scripted": fn}, {TOKEN: ["*"]}) as url:
        got = await read(client(url), MODEL)
    assert got.terminal.kind == "network"
    assert "abcdefgh" not in caplog.text + got.terminal.message


def test_a_short_token_is_refused():
    with pytest.raises(ValueError, match="8 characters"):
        proxy_app({}, {"short": ["*"]})


def test_tokens_show_nowhere():
    assert TOKEN not in repr(proxy_app({"a": Scripted()}, {TOKEN: ["*"]}))
    assert TOKEN not in repr(ProxyStreamFn(base_url="https://proxy.example", api_key=TOKEN))


# What the client says


async def test_the_request_is_exactly_this(tmp_path):
    client = MemoryClient(body_of(EVERYTHING))
    picture = tmp_path / "p.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\nrest")
    history = [
        UserMessage([Text("Hi"), Image(FileSource(str(picture)))], 1.0),
        AssistantMessage(
            [Thinking("t", "s"), ToolCall("c", "weather", {"city": "Oslo"})],
            "proxy",
            "anthropic:claude-x",
            "tool_use",
            Usage(1, 2),
            Cost(1.0),
            timestamp=2.0,
        ),
        ToolResultMessage("c", "weather", "18 °C", details={"private": object()}, timestamp=3.0),
    ]
    fn = ProxyStreamFn(base_url="https://proxy.example/base/", api_key="constructor-key")
    options = StreamOptions(0.5, 100, "option-key", http=client)
    await read(
        fn,
        ModelSpec("proxy", "anthropic:claude-x", "low"),
        history,
        system="S",
        tools=[WEATHER],
        options=options,
    )
    [request] = client.requests
    assert request.url == "https://proxy.example/base/v1/stream"
    assert request.headers == {
        "content-type": "application/json",
        "accept": "text/event-stream",
        "authorization": "Bearer option-key",
    }
    assert client.sent == {
        "version": 2,
        "revision": 1,
        "model": {"provider": "anthropic", "model_id": "claude-x", "thinking_level": "low"},
        "system": "S",
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Hi"},
                    {
                        "type": "image",
                        "source": {
                            "type": "base64",
                            "data": base64.b64encode(picture.read_bytes()).decode(),
                            "media_type": "image/png",
                        },
                    },
                ],
                "timestamp": 1.0,
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "t", "signature": "s"},
                    {"type": "tool_call", "id": "c", "name": "weather", "arguments": {"city": "Oslo"}},
                ],
                "provider": "anthropic",
                "model": "claude-x",
                "stop_reason": "tool_use",
                "usage": {"input": 1, "output": 2, "total": 3},
                "error_message": None,
                "error_kind": None,
                "timestamp": 2.0,
            },
            {
                "role": "tool_result",
                "tool_call_id": "c",
                "tool_name": "weather",
                "content": [{"type": "text", "text": "18 °C"}],
                "is_error": False,
                "timestamp": 3.0,
            },
        ],
        "tools": [
            {
                "name": "weather",
                "description": "Current weather.",
                "parameters_schema": WEATHER.parameters_schema,
            }
        ],
        "options": {"temperature": 0.5, "max_tokens": 100},
    }


async def test_keys_come_from_options_then_constructor_then_environment(monkeypatch):
    monkeypatch.setenv("SWINK_PROXY_URL", "https://proxy.example")
    monkeypatch.setenv("SWINK_PROXY_TOKEN", "environment-key")
    for fn, given_key, wanted in [
        (ProxyStreamFn(), None, "environment-key"),
        (ProxyStreamFn(api_key="constructor-key"), None, "constructor-key"),
        (ProxyStreamFn(api_key="constructor-key"), "option-key", "option-key"),
    ]:
        client = MemoryClient(body_of(EVERYTHING))
        await read(fn, MODEL, options=StreamOptions(api_key=given_key, http=client))
        assert client.requests[0].headers["authorization"] == f"Bearer {wanted}"


async def test_without_an_address_or_a_key_it_says_so():
    with pytest.raises(MisuseError, match="SWINK_PROXY_URL"):
        ProxyStreamFn()
    with pytest.raises(MisuseError, match="https"):
        ProxyStreamFn(base_url="http://proxy.example")
    got = await read(ProxyStreamFn(base_url="https://proxy.example"), MODEL)
    assert got.terminal.kind == "auth"
    assert "SWINK_PROXY_TOKEN" in got.terminal.message


async def test_the_raw_payload_is_shown():
    seen = []
    memory = MemoryClient(body_of(CUT_OFF))
    await read(
        client("https://p.example"),
        MODEL,
        options=StreamOptions(http=memory, on_raw_payload=seen.append),
    )
    assert seen[0] == {"type": "start", "version": 2, "revision": 1}
    assert [event["type"] for event in seen] == ["start", "tool_call_start", "tool_call_delta", "done"]


async def test_its_headers_go_to_the_proxy_and_not_into_the_body():
    memory = MemoryClient(body_of(EVERYTHING))
    fn = ProxyStreamFn(
        base_url="https://p.example", api_key=TOKEN, headers={"X-Team": "a", "X-Trace": "ours"}
    )
    await read(fn, MODEL, options=StreamOptions(http=memory, headers={"X-Trace": "theirs"}))
    assert memory.requests[0].headers.items() >= {("x-team", "a"), ("x-trace", "theirs")}
    assert b"theirs" not in memory.requests[0].body
    clear = ProxyStreamFn(base_url="http://10.0.0.9", api_key="", headers={"x-gateway-key": "gw-5d2a7f3e"})
    got = await read(clear, MODEL, options=StreamOptions(http=memory))
    assert got.terminal.kind == "auth"
    assert "gw-5d2a7f3e" not in got.terminal.message + repr(clear)
    assert len(memory.requests) == 1


# Revisions


async def test_an_older_client_gets_an_empty_thought_for_a_block_that_it_does_not_know():
    body = json.dumps({"version": 2, "model": {"provider": "scripted", "model_id": "one"}}).encode()
    async with serve_proxy("127.0.0.1", 0, {"scripted": Scripted(*EVERYTHING)}, {TOKEN: ["*"]}) as url:
        _, answer = await post(url, body)
    events = [json.loads(line[6:]) for line in str(answer).split("\n") if line.startswith("data: ")]
    assert "block_added" not in [event["type"] for event in events]
    assert [event for event in events if event.get("content_index") == 4] == [
        {"type": "thinking_start", "content_index": 4},
        {"type": "thinking_end", "content_index": 4},
    ]


async def test_what_an_older_server_reads_past_is_reported_by_name_and_once(caplog):
    events = body_of(EVERYTHING).replace(b',"revision":1', b"")
    fn = client("https://p.example")
    for _ in range(2):
        options = StreamOptions(http=MemoryClient(events), top_p=0.5, temperature=0.5, stop=("END",))
        await read(fn, MODEL, options=options, hosted=[WebSearch()])
    assert [record.args[1] for record in caplog.records] == ["hosted", "top_p", "stop"]


async def test_a_server_cannot_name_a_file_of_the_client(tmp_path):
    path = tmp_path / "private.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n")
    got = await replay(body_of([Start(), BlockAdded(0, Image(NamedFile(str(path)))), Done()]))
    assert got.terminal.kind == "stream"
    assert "no file here is read" in got.terminal.message


# Version 1


async def test_a_version_1_request_has_no_version_and_no_tools(caplog):
    client = MemoryClient(body_of(EVERYTHING))
    fn = ProxyStreamFn(base_url="https://p.example", api_key=TOKEN, version=1)
    for _ in range(2):
        await read(
            fn,
            ModelSpec("proxy", "claude-x"),
            [UserMessage("Hi", 1.0)],
            tools=[WEATHER],
            options=StreamOptions(http=client),
        )
    assert client.sent == {
        "model": "claude-x",
        "system": "",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}], "timestamp": 1.0}],
        "options": {},
    }
    assert caplog.text.count("'tools'") == 1


async def test_a_version_1_server_is_understood():
    got = await replay(
        sse(
            {"type": "start"},
            {"type": "text_start", "content_index": 0, "partial": {"content": []}},
            {"type": "text_delta", "content_index": 0, "delta": "Hi", "partial": {"content": ["…"]}},
            {"type": "text_end", "content_index": 0},
            {
                "type": "done",
                "stop_reason": "stop",
                "usage": {"input": 10, "output": 20, "cache_read": 0, "cache_write": 0, "total": 30},
                "cost": {"input": 0.0, "output": 0.0, "cache_read": 0.0, "cache_write": 0.0, "total": 0.0},
            },
        )
    )
    assert got.message.text == "Hi"
    assert got.terminal == Done("stop", Usage(10, 20))


async def test_a_version_1_error_is_understood():
    got = await replay(
        sse({"type": "error", "stop_reason": "error", "error_message": "rate limit", "usage": None})
    )
    assert got.events == [Start(), Error("rate limit", None)]
    got = await replay(
        sse(
            {"type": "start"},
            {"type": "error", "stop_reason": "aborted", "error_message": "x", "usage": {"input": 3}},
        )
    )
    assert got.terminal == Error("x", "aborted", None, Usage(3))


async def test_a_version_1_client_is_served():
    fn = Scripted(*EVERYTHING)
    async with serve_proxy("127.0.0.1", 0, {"scripted": fn}, {TOKEN: ["scripted:*"]}) as url:
        for name in ("one", "scripted:one", "with:colon"):
            body = {
                "model": name,
                "system": "",
                "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
                "options": {},
            }
            status, text = await post(url, json.dumps(body).encode())
            assert status == 200
            assert text.startswith('data: {"type":"start"')
    assert [str(model) for model, _, _ in fn.calls] == ["scripted:one", "scripted:one", "scripted:with:colon"]


async def test_version_1_must_name_the_provider_where_there_are_several():
    async with serve_proxy("127.0.0.1", 0, {"a": Scripted(), "b": Scripted()}, {TOKEN: ["*"]}) as url:
        status, text = await post(url, b'{"model": "one"}')
    assert status == 400
    assert "provider:model" in text


# What can go wrong on the way


async def test_a_terminal_before_the_start_gets_a_start():
    assert (await replay(body_of([Done("stop")]))).events == [Start(), Done("stop")]


async def test_unknown_events_are_ignored():
    got = await replay(
        sse({"type": "start"}, {"type": "weather_report", "index": 1})
        + b": ping\n\nevent: x\n\n"
        + body_of([Done("stop")])
    )
    assert got.events == [Start(), Done("stop")]


@pytest.mark.parametrize(
    "event",
    [
        "{half",
        '{"type": "text_delta", "content_index": "zero"}',
        '{"type": 5}',
        "[]",
        '{"type": "done", "stop_reason": "tired"}',
        '{"type":"text_start"}',
    ],
)
async def test_a_malformed_event_is_an_error_that_shows_it(event):
    got = await replay(sse({"type": "start"}, event) + body_of([Done("stop")]))
    assert got.terminal.kind == "stream"
    assert event[:20] in got.terminal.message


@pytest.mark.parametrize(
    "events",
    [
        [Start(), TextStart(1)],
        [Start(), TextDelta(0, "x")],
        [Start(), TextStart(0), ThinkingDelta(0, "x")],
        [Start(), TextStart(0), TextEnd(0), TextEnd(0)],
        [Start(), TextStart(0), TextEnd(0), TextDelta(0, "late")],
    ],
)
async def test_a_server_that_breaks_the_protocol_is_an_error(events):
    got = await replay(body_of([*events, Done("stop")]))
    assert got.terminal.kind == "stream"
    assert "the proxy" in got.terminal.message


async def test_cut_anywhere_it_is_a_network_error():
    body = body_of(EVERYTHING)
    for at in cut_places(body):
        got = await replay(body[:at])
        assert isinstance(got.terminal, Error), at
        assert got.terminal.kind == "network", at


@lean
@given(st.lists(st.integers(1, len(body_of(EVERYTHING)) - 1), max_size=20))
async def test_any_division_of_the_bytes_gives_the_same_events(cuts):
    body = body_of(EVERYTHING)
    edges = sorted({0, len(body), *cuts})
    chunks = [body[start:end] for start, end in pairwise(edges)]
    assert (await replay(chunks)).events == EVERYTHING


def test_a_reply_spells_out_its_terminals():
    assert msgspec.json.decode(encode_reply(Done("stop", Usage(1, 2)))[6:]) == {
        "type": "done",
        "stop_reason": "stop",
        "usage": {
            "input": 1,
            "output": 2,
            "cache_read": 0,
            "cache_write": 0,
            "total": 3,
            "extra": {},
            "unknown": False,
        },
    }
    assert msgspec.json.decode(encode_reply(Error("m", "network"))[6:]) == {
        "type": "error",
        "kind": "network",
        "message": "m",
        "retry_after": None,
        "usage": {
            "input": 0,
            "output": 0,
            "cache_read": 0,
            "cache_write": 0,
            "total": 0,
            "extra": {},
            "unknown": True,
        },
    }
