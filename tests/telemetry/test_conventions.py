"""Every attribute and metric has a name of the published conventions, or one of our own below `swink.`."""

import ast
import json
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import opentelemetry.semconv
import pytest
from msgspec import Struct
from tests.pins import compares_with
from tests.providers.loopback import LoopbackServer, sse
from tests.telemetry.seen import Seen
from tests.telemetry.test_telemetry_wire import HERE

import swink
from swink import Agent, StreamOptions, ToolCall, tool
from swink.agent.retry import ExponentialBackoff
from swink.errors import NetworkError
from swink.eval import Case, evaluate
from swink.mcp import McpServers, StdioServer
from swink.providers.anthropic.wire import AnthropicStreamFn
from swink.providers.gemini.wire import GeminiStreamFn
from swink.providers.ollama.adapter import OllamaStreamFn
from swink.providers.openai import OpenAIStreamFn
from swink.providers.responses.wire import ResponsesStreamFn
from swink.teams import agent_tool
from swink.telemetry.conventions import METRICS
from swink.testing import ScriptedModel


class Forecast(Struct):
    """What an agent is to give."""

    sky: str


def published(folder: str) -> Iterator[str]:
    """The names of the registry that are not replaced by others; those that moved elsewhere are still good."""
    root = Path(next(iter(opentelemetry.semconv.__path__)))
    for path in sorted(root.rglob(f"{folder}/*.py")):
        body = ast.parse(path.read_text()).body
        for named, about in pairwise(body):
            match named:
                case ast.AnnAssign(value=ast.Constant(value=str() as name)):
                    said = about.value if isinstance(about, ast.Expr) else None
                    text = str(said.value) if isinstance(said, ast.Constant) else ""
                    if "Deprecated: " not in text or "Deprecated: Moved" in text:
                        yield name
                case _:
                    pass


ATTRIBUTES = frozenset(published("attributes"))


@tool
def weather(city: str) -> str:
    """Current weather."""
    return f"clear in {city}"


@tool
async def broken() -> str:
    """Fails."""
    raise LookupError("nothing there")


def scripted(*script: Any, **options: Any) -> Agent:
    return Agent("test:model", stream_fn=ScriptedModel([*script]), **options)


CHAT = {
    "id": "chatcmpl-1",
    "model": "m-2026",
    "choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 1}},
}


async def everything() -> None:
    """One of each thing that has attributes."""
    helper = scripted("helped")
    calls = [
        ToolCall("1", "weather", {"city": "Oslo"}),
        ToolCall("2", "broken", {}),
        ToolCall("3", "research", {"task": "x"}),
    ]
    agent = scripted(
        NetworkError("cut"),
        calls,
        "done",
        tools=[weather, broken, agent_tool(helper, "research", "Finds.")],
        name="main",
        system_prompt="Be brief.",
        options=StreamOptions(max_tokens=9, temperature=0.5, top_p=0.5, seed=1, stop=("x",), session_id="s"),
        retry=ExponentialBackoff(base_delay=0.001),
    )
    await agent.run("hi")
    server = StdioServer("own", sys.executable, [str(HERE / "meta_server.py")], requires_approval=False)
    async with McpServers([server]) as servers:
        await scripted([ToolCall("1", "own_meta", {})], "done", tools=servers.tools).run("hi")
    cases = [Case(id="a", user_messages=("hi",))]
    await evaluate(lambda case: scripted(ValueError("no")), cases, retry=ExponentialBackoff(max_attempts=1))
    await evaluate(lambda case: scripted("hello"), cases, scorers=[lambda case, trajectory: 1.0])
    async with LoopbackServer() as loopback:
        loopback.reply(sse(CHAT) + b"data: [DONE]\n\n")
        model = OpenAIStreamFn(base_url=f"{loopback.url}/v1", api_key="test", allow_http=True)
        await Agent("openai:m", stream_fn=model).run("hi")


@compares_with("opentelemetry-semantic-conventions")
async def test_every_attribute_that_is_set_is_in_the_registry_or_our_own(seen: Seen):
    seen.instrument(content=True)
    await everything()
    told = {name for span in seen.spans for name in (span.attributes or {})}
    told |= {name for span in seen.spans for event in span.events for name in (event.attributes or {})}
    told |= {name for metric in METRICS for labels in seen.metric(metric) for name, _ in labels}
    assert {name for name in told if not name.startswith("swink.")} <= ATTRIBUTES
    assert len(told) >= 45  # all of them were tried


@compares_with("opentelemetry-semantic-conventions")
def test_every_metric_is_in_the_registry():
    # The two of agents and tools are in the repository that the conventions of GenAI moved to.
    moved = {"gen_ai.invoke_agent.duration", "gen_ai.execute_tool.duration"}
    assert set(METRICS) - moved <= set(published("metrics"))


async def test_spans_and_metrics_come_from_a_scope_with_our_version(seen: Seen):
    await scripted("done").run("hi")
    assert {(span.instrumentation_scope.name, span.instrumentation_scope.version) for span in seen.spans} == {
        ("swink", swink.__version__)
    }


@pytest.mark.parametrize("native", [True, False])
async def test_structured_output_is_json_whether_the_provider_sees_to_it_or_a_tool(seen: Seen, native: bool):
    model = ScriptedModel(
        ['{"sky": "clear"}'] if native else [ToolCall("1", "final_output", {"sky": "clear"})]
    )
    model.native_output = lambda model, context: native
    await Agent("test:model", stream_fn=model).run("hi", output=Forecast)
    await scripted("text").run("hi")
    kinds = [
        (span.attributes or {})["gen_ai.output.type"] for span in seen.spans if span.name == "chat model"
    ]
    assert kinds == ["json", "text"]


async def test_definitions_of_tools_have_their_parameters(seen: Seen):
    seen.instrument(content=True)
    await scripted("done", tools=[weather]).run("hi")
    [told] = json.loads(str((seen.one("chat model").attributes or {})["gen_ai.tool.definitions"]))
    assert told == {
        "type": "function",
        "name": "weather",
        "description": "Current weather.",
        "parameters": weather.parameters_schema,
    }


async def test_a_tool_that_raises_names_the_class(seen: Seen):
    await scripted([ToolCall("1", "broken", {})], "done", tools=[broken]).run("hi")
    assert (seen.one("execute_tool broken").attributes or {})["error.type"] == "LookupError"


async def test_requests_and_calls_name_their_agent(seen: Seen):
    await scripted([ToolCall("1", "weather", {"city": "x"})], "done", tools=[weather], name="main").run("hi")
    for name in ("invoke_agent main", "execute_tool weather"):
        assert (seen.one(name).attributes or {})["gen_ai.agent.name"] == "main"
    chats = [span for span in seen.spans if span.name == "chat model"]
    assert [(span.attributes or {})["gen_ai.agent.name"] for span in chats] == ["main", "main"]


async def test_a_tool_of_an_mcp_server_has_the_name_that_it_has_there(seen: Seen):
    server = StdioServer("own", sys.executable, [str(HERE / "meta_server.py")], requires_approval=False)
    async with McpServers([server]) as servers:
        await scripted([ToolCall("1", "own_meta", {})], "done", tools=servers.tools).run("hi")
    told = seen.one("execute_tool own_meta").attributes or {}
    assert (told["gen_ai.tool.name"], told["swink.tool.name"]) == ("meta", "own_meta")
    [(labels, _)] = seen.metric("gen_ai.execute_tool.duration").items()
    assert dict(labels)["gen_ai.tool.name"] == "meta"


ANTHROPIC = [
    {"type": "message_start", "message": {"id": "r1", "model": "m-2026", "usage": {"input_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "hi"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
]
GEMINI = {
    "responseId": "r1",
    "modelVersion": "m-2026",
    "candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}],
}
RESPONSE = {"id": "r1", "model": "m-2026", "status": "completed"}
MESSAGE = {"type": "message", "content": [{"type": "output_text", "text": "hi"}]}
RESPONSES = [
    {"type": "response.created", "response": {**RESPONSE, "status": "in_progress"}},
    {"type": "response.output_item.done", "output_index": 0, "item": MESSAGE},
    {"type": "response.completed", "response": {**RESPONSE, "output": [MESSAGE]}},
]
OLLAMA = {"model": "m-2026", "message": {"content": "hi"}, "done": True, "done_reason": "stop"}


@pytest.mark.parametrize(
    ("adapter", "path", "body", "id"),
    [
        (OpenAIStreamFn, "/v1", sse({**CHAT, "id": "", "model": ""}, {**CHAT, "id": "r1"}), "r1"),
        (AnthropicStreamFn, "", sse(*ANTHROPIC), "r1"),
        (GeminiStreamFn, "", sse(GEMINI), "r1"),
        (ResponsesStreamFn, "/v1", sse(*RESPONSES), "r1"),
        (OllamaStreamFn, "", json.dumps(OLLAMA).encode() + b"\n", None),
    ],
    ids=["chat", "anthropic", "gemini", "responses", "ollama"],
)
async def test_a_request_says_where_it_went_and_which_model_answered(
    seen: Seen, adapter: Any, path: str, body: bytes, id: str | None
):
    async with LoopbackServer() as loopback:
        loopback.reply(body)
        model = adapter(base_url=f"{loopback.url}{path}", api_key="test", allow_http=True)
        result = await Agent("openai:m", stream_fn=model).run("hi")
        port = int(loopback.url.rpartition(":")[2])
    assert result.text.startswith("hi"), result
    told = seen.one("chat m").attributes or {}
    names = ("server.address", "server.port", "gen_ai.response.model", "gen_ai.response.id")
    assert [told.get(name) for name in names] == ["127.0.0.1", port, "m-2026", id]
    [(labels, _)] = seen.metric("gen_ai.client.operation.duration").items()
    assert dict(labels)["gen_ai.response.model"] == "m-2026"


async def test_a_request_that_nobody_answers_says_where_it_went(seen: Seen):
    async with LoopbackServer() as loopback:
        url = loopback.url
    model = OpenAIStreamFn(base_url=f"{url}/v1", api_key="test", allow_http=True)
    await Agent("openai:m", stream_fn=model, retry=ExponentialBackoff(max_attempts=1)).run("hi")
    told = seen.one("chat m").attributes or {}
    assert (told["server.address"], told["error.type"]) == ("127.0.0.1", "NetworkError")
    assert "gen_ai.response.model" not in told
