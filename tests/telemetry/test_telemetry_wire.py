"""What others get: a collector over OTLP, providers in headers, MCP servers in `_meta`."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import baggage, context
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagate import get_global_textmap, inject, set_global_textmap
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from tests.providers.loopback import LoopbackServer, sse
from tests.telemetry.seen import Seen

from swink import Agent, ToolCall, tool
from swink.mcp import McpServers, StdioServer
from swink.providers.openai import OpenAIStreamFn
from swink.stream.wrappers import cached
from swink.telemetry import instrument, uninstrument
from swink.testing import ScriptedModel

HERE = Path(__file__).parent


@tool
def weather(city: str) -> str:
    """Current weather."""
    return f"clear in {city}"


def test_a_collector_gets_the_spans_and_metrics_over_otlp():
    with subprocess.Popen(
        [sys.executable, str(HERE / "otlp_receiver.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as receiver:
        assert receiver.stdout is not None
        url = f"http://127.0.0.1:{int(receiver.stdout.readline())}/v1"
        tracers = TracerProvider(shutdown_on_exit=False)
        tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{url}/traces")))
        reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{url}/metrics"), float("inf"))
        meters = MeterProvider([reader], shutdown_on_exit=False)
        instrument(tracers, meters)
        try:
            script = [[ToolCall("1", "weather", {"city": "Oslo"})], "Take a jacket."]
            Agent("test:model", stream_fn=ScriptedModel(script), tools=[weather]).run_sync("hi")
        finally:
            uninstrument()
            tracers.shutdown()
            meters.force_flush()
            meters.shutdown()
            receiver.kill()
        told: list[dict[str, Any]] = [json.loads(line) for line in receiver.stdout]
    spans = [item for item in told if "span" in item]
    assert sorted(item["span"] for item in spans) == sorted(
        ["invoke_agent", "turn", "turn", "chat model", "chat model", "execute_tool weather"]
    )
    assert len({item["trace"] for item in spans}) == 1
    assert all(item["ended"] and item["scope"] == "swink" for item in spans)
    ids = {item["id"] for item in spans}
    assert [item["span"] for item in spans if item["parent"] not in ids] == ["invoke_agent"]
    metrics = {item["metric"]: item for item in told if "metric" in item}
    assert metrics["gen_ai.client.token.usage"]["count"] == 4
    assert metrics["gen_ai.client.token.usage"]["bounds"] == [1.0, 4.0, 16.0]
    assert metrics["gen_ai.client.operation.duration"]["unit"] == "s"


async def test_a_provider_gets_the_trace_context_as_a_header(seen: Seen):
    done = {"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]}
    async with LoopbackServer() as server:
        server.reply(sse(done) + b"data: [DONE]\n\n")
        model = OpenAIStreamFn(base_url=f"{server.url}/v1", api_key="test", allow_http=True)
        assert (await Agent("openai:m", stream_fn=model).run("hi")).text == "hi"
        chat = seen.one("chat m").get_span_context()
        assert server.requests[0].headers["traceparent"].split("-")[1:3] == [
            f"{chat.trace_id:032x}",
            f"{chat.span_id:016x}",
        ]


@pytest.fixture
def burdened() -> Iterator[None]:
    """Baggage of the application's, and a propagator for all processes that would pass it on."""
    before = get_global_textmap()
    set_global_textmap(CompositePropagator([TraceContextTextMapPropagator(), W3CBaggagePropagator()]))
    token = context.attach(baggage.set_baggage("customer", "ada@example.org"))
    yield
    context.detach(token)
    set_global_textmap(before)


async def test_a_provider_gets_no_baggage(seen: Seen, burdened: None):
    done = {"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]}
    async with LoopbackServer() as server:
        server.reply(sse(done) + b"data: [DONE]\n\n")
        model = OpenAIStreamFn(base_url=f"{server.url}/v1", api_key="test", allow_http=True)
        assert (await Agent("openai:m", stream_fn=model).run("hi")).text == "hi"
        headers = {name.lower(): value for name, value in server.requests[0].headers.items()}
    assert "traceparent" in headers
    assert "baggage" not in headers
    assert "example" not in str(headers)


async def test_what_asks_a_model_has_no_baggage_to_pass_on_and_tools_keep_theirs(seen: Seen, burdened: None):
    carried: list[dict[str, str]] = []

    async def stream(*asked: Any) -> AsyncIterator[Any]:
        carried.append({})
        inject(carried[-1])  # as instrumentation of an HTTP client does
        async for event in script(*asked):
            yield event

    @tool
    def customer() -> str:
        """Who it is about."""
        return str(baggage.get_baggage("customer"))

    script = ScriptedModel([[ToolCall("1", "customer", {})], "done"])
    result = await Agent("test:model", stream_fn=stream, tools=[customer]).run("hi")
    assert [sorted(headers) for headers in carried] == [["traceparent"], ["traceparent"]]
    assert [m.text for m in result.messages if m.role == "tool_result"] == ["ada@example.org"]
    assert baggage.get_baggage("customer") == "ada@example.org"


@pytest.mark.parametrize("instrumented", [True, False])
async def test_an_mcp_server_gets_no_baggage(burdened: None, instrumented: bool):
    seen = Seen()
    if instrumented:
        seen.instrument()
    server = StdioServer("own", sys.executable, [str(HERE / "meta_server.py")], requires_approval=False)
    try:
        with seen.tracer.start_as_current_span("the application"):
            async with McpServers([server]) as servers:
                script = [[ToolCall("1", "own_meta", {})], "done"]
                agent = Agent("test:model", stream_fn=ScriptedModel(script), tools=servers.tools)
                result = await agent.run("hi")
    finally:
        uninstrument()
        seen.close()
    [said] = [message for message in result.messages if message.role == "tool_result"]
    metas: list[dict[str, Any]] = json.loads(said.text)
    assert "traceparent" in metas[-1]
    assert not [meta for meta in metas if "baggage" in meta]


async def test_a_cache_does_not_miss_because_of_the_trace_context(seen: Seen, tmp_path: Path):
    script = ScriptedModel(["once"])
    for _ in range(2):
        agent = Agent("test:model", stream_fn=cached(script, tmp_path / "cache.jsonl"))
        assert (await agent.run("hi")).text == "once"  # the script has no second reply


async def test_an_mcp_server_gets_the_trace_context_in_its_meta(seen: Seen):
    server = StdioServer("own", sys.executable, [str(HERE / "meta_server.py")], requires_approval=False)
    async with McpServers([server]) as servers:
        script = [[ToolCall("1", "own_meta", {})], "done"]
        agent = Agent("test:model", stream_fn=ScriptedModel(script), tools=servers.tools)
        result = await agent.run("hi")
    [said] = [message for message in result.messages if message.role == "tool_result"]
    called = seen.one("execute_tool own_meta")
    assert (
        json.loads(said.text)[-1]["traceparent"].split("-")[1] == f"{called.get_span_context().trace_id:032x}"
    )
    assert called.attributes is not None
    assert called.attributes["mcp.method.name"] == "tools/call"
    assert called.attributes["network.transport"] == "pipe"
    assert called.attributes["swink.mcp.server"] == "own"
    assert [point.count for point in seen.metric("mcp.client.operation.duration").values()] == [1]


def test_without_the_package_the_error_says_what_to_install(tmp_path: Path):
    (tmp_path / "opentelemetry.py").write_text("raise ImportError('no module opentelemetry')")
    code = "import swink.telemetry; swink.telemetry.instrument()"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "OpenTelemetry is not installed" in done.stderr
    assert "install" in done.stderr.rpartition("install it with: ")[2]
