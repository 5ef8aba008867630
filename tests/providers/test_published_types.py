"""What every adapter sends, held against the types that the provider publishes: no field that these do not know.

Conversations, tools and options are generated. A request that an adapter refuses by itself, by name, is none.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest
from adapters import EVERY, KEY
from hypothesis import given
from hypothesis import strategies as st
from loopback import WEATHER, MemoryClient, Tool, read, read_as
from tests.counts import left_to_more, tried
from validators import check_request

from swink.messages import (
    AssistantMessage,
    Audio,
    Capabilities,
    Citation,
    Document,
    Extension,
    Image,
    LlmMessage,
    ModelSpec,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from swink.messages.providertools import (
    CodeExecution,
    FileSearch,
    ImageGeneration,
    Location,
    McpConnector,
    WebFetch,
    WebSearch,
)
from swink.providers.openai import OpenAIStreamFn
from swink.stream import Error, LlmContext, OutputSchema, StreamOptions

PNG, PDF = b"\x89PNG\r\n\x1a\n", b"%PDF-1.7"
WHERE = Location("NO", "Oslo", "Oslo", "Europe/Oslo")
SPOT = {
    "type": "object",
    "properties": {"x": {"type": "number"}},
    "required": ["x"],
    "additionalProperties": False,
}
DRAW = Tool(
    "draw",
    "Draw.",
    {
        "type": "object",
        "$defs": {"Spot": SPOT},
        "properties": {
            "at": {"$ref": "#/$defs/Spot"},
            "how": {"oneOf": [{"const": "thick"}, {"type": "integer", "minimum": 1}], "description": "How."},
            "many": {"type": "array", "items": {"$ref": "#/$defs/Spot"}, "default": []},
            "name": {"anyOf": [{"type": "string", "pattern": "^a"}, {"type": "null"}]},
        },
        "required": ["at"],
    },
)  # fmt: skip

words = st.sampled_from(("Hello", "ä 日本 😀", "line\nline", '{"a": 1}'))
spoken = words | st.sampled_from(("", " \n"))
images = st.sampled_from((Image.from_bytes(PNG, "image/png"), Image.from_url("https://x.example/cat.png")))
documents = st.sampled_from(
    (
        Document.from_bytes(b"a note", "text/plain", title="note"),
        Document.from_bytes(PDF, "application/pdf", title="paper"),
        Document.from_url("https://x.example/paper.pdf"),
    )
)
sounds = st.just(Audio.from_bytes(b"RIFF", "audio/wav"))
citations = st.lists(st.just(Citation("https://x.example", "X", "quoted", 0, 2)), max_size=1).map(tuple)
said = st.one_of(
    st.builds(Text, spoken, citations),
    st.builds(Thinking, words, st.none() | st.just("c2lnbmVk")),
    st.just(Thinking("", "b3BhcXVl", True)),
    st.just(Extension("elsewhere", {"type": "x"})),
    images,
)
asked = st.one_of(words.map(Text), images, documents, sounds, st.just(Extension("elsewhere", {"type": "x"})))
arguments = st.sampled_from(({}, {"city": "Oslo"}, {"at": {"x": 1.5}, "name": None}))
calls = st.lists(st.tuples(st.sampled_from(("weather", "draw")), arguments, st.booleans()), max_size=2)
results = st.lists(st.one_of(spoken.map(Text), images, documents), max_size=2)

locations = st.none() | st.just(WHERE)
hosted = st.one_of(
    st.builds(WebSearch, max_uses=st.none() | st.just(2), location=locations),
    st.builds(WebSearch, st.just(("x.example",)), location=locations),
    st.just(WebSearch(blocked_domains=("x.example",))),
    st.just(WebFetch()),
    st.just(CodeExecution()),
    st.just(FileSearch(("vs_1",), 3)),
    st.just(ImageGeneration()),
    st.just(McpConnector("docs", "https://mcp.example", "token-9a7c5e31", ("find",))),
)
options = st.fixed_dictionaries(
    {},
    optional={
        "temperature": st.sampled_from((0.0, 0.7)),
        "max_tokens": st.just(900),
        "session_id": st.just("session-1"),
        "tool_choice": st.sampled_from(("auto", "none", "required", "weather")),
        "cache": st.sampled_from((True, False, "5m", "1h")),
        "top_p": st.just(0.5),
        "stop": st.just(("END",)),
        "seed": st.just(7),
        "service_tier": st.just("auto"),
        "verbosity": st.sampled_from(("low", "medium", "high")),
        "parallel_tool_calls": st.booleans(),
    },
)
levels = st.sampled_from(("off", "minimal", "low", "medium", "high", "extra_high"))


@st.composite
def conversations(draw: st.DrawFn, provider: str, model_id: str) -> list[LlmMessage]:
    """Turns of this model and of another, with every kind of block and every ending; the user speaks last."""
    messages: list[LlmMessage] = []
    for turn in range(draw(st.integers(0, 3))):
        messages.append(UserMessage([draw(words.map(Text)), *draw(st.lists(asked, max_size=2))]))
        named = (provider, model_id) if draw(st.booleans()) else ("elsewhere", "other")
        made = [
            ToolCall(f"call{turn:02}{at:03}", name, {} if is_cut else given, '{"ci' if is_cut else None)
            for at, (name, given, is_cut) in enumerate(draw(calls))
        ]
        stop = "tool_use" if made else draw(st.sampled_from(("stop", "length", "aborted")))
        messages.append(AssistantMessage([*draw(st.lists(said, max_size=3)), *made], *named, stop))
        messages += [
            ToolResultMessage(call.id, call.name, draw(results), is_error=draw(st.booleans()))
            for call in made
        ]
    if not messages or not isinstance(messages[-1], ToolResultMessage):
        messages.append(UserMessage(draw(words)))
    return messages


def types_of(module: str, name: str, *beside: str) -> Callable[[dict[str, Any]], None]:
    """Held against the types of an SDK; `beside` are fields that the server takes, and its types do not know."""

    def check(body: dict[str, Any]) -> None:
        read = read_as(getattr(import_module(module), name), body)
        assert {*lost(body, read)} <= {*beside}

    return check


def check_together(body: dict[str, Any]) -> None:
    """Its types take a call, in the history and as a choice, only with all that it has in a reply."""
    for message in body["messages"]:
        for at, call in enumerate(message.get("tool_calls", ())):
            call["index"] = at
    if isinstance(choice := body.get("tool_choice"), dict):
        choice |= {"id": "", "index": 0, "function": {**choice["function"], "arguments": ""}}
    types_of(f"together.{CHAT}", "CompletionCreateParamsStreaming", ".stream_options")(body)


def lost(sent: Any, read: Any, path: str = "") -> Iterator[str]:
    """Where a body has fields that its types did not take; what a schema says is nobody's but its own."""
    match sent:
        case dict():
            for name, value in sent.items():
                if path.endswith(".function.parameters"):
                    continue
                if not isinstance(read, dict) or name not in read:
                    yield f"{path}.{name}"
                else:
                    yield from lost(value, read[name], f"{path}.{name}")
        case list():
            for value, other in zip(sent, read, strict=True):
                yield from lost(value, other, f"{path}[]")
        case _:
            pass


def check_ollama(body: dict[str, Any]) -> None:
    """Of a tool's schema the server knows a few words, and drops the others unseen."""
    types_of("ollama._types", "ChatRequest", ".truncate")(body)
    said = json.dumps([tool["function"]["parameters"] for tool in body.get("tools", ())])
    assert not re.search(r'"(\$ref|\$defs|oneOf|allOf|const)":', said)


def check_gemini(body: dict[str, Any]) -> None:
    """Its types are of the parts of a body, not of a whole one."""
    parts = {"contents", "tools", "toolConfig", "generationConfig", "systemInstruction", "serviceTier"}
    assert body.keys() <= parts


STRICTER = {
    "mistral": types_of("mistralai.client.models", "ChatCompletionStreamRequest"),
    "ollama": check_ollama,
    "gemini": check_gemini,
}
"""Types that let unknown fields pass by themselves."""


def preset(name: str) -> Callable[[], Any]:
    return lambda: OpenAIStreamFn(preset=name, api_key=KEY)


CHAT = "types.chat.completion_create_params"
TARGETS: dict[str, tuple[Callable[[], Any], tuple[str, ...], Callable[[dict[str, Any]], None]]] = {
    **{
        name: (
            lambda case=EVERY[name]: case.make("https://p.example", KEY),
            models,
            lambda body, case=EVERY[name]: check_request(case, body),
        )
        for name, models in {
            "anthropic": ("claude-sonnet-4-5", "claude-opus-4-6", "claude-3-5-haiku-latest"),
            "openai": ("gpt-5", "gpt-4.1", "gpt-4o-search-preview"),
            "openai-responses": ("gpt-5", "gpt-4.1", "o3"),
            "gemini": ("gemini-3-pro", "gemini-2.5-flash", "gemini-2.0-flash"),
            "mistral": ("mistral-large-latest", "magistral-medium-latest", "voxtral-small-latest"),
            "bedrock": (
                "anthropic.claude-sonnet-4-5-v1:0",
                "amazon.nova-pro-v1:0",
                "meta.llama3-3-70b-instruct-v1:0",
            ),
            "ollama": ("gpt-oss:20b", "llama3.2", "qwen3"),
        }.items()
    },
    "groq": (
        preset("groq"),
        ("openai/gpt-oss-120b", "groq/compound", "qwen/qwen3-32b"),
        types_of(f"groq.{CHAT}", "CompletionCreateParams", ".stream_options"),
    ),
    "together": (
        preset("together"),
        ("openai/gpt-oss-120b", "deepseek-ai/DeepSeek-V3.1", "m"),
        check_together,
    ),
    "openrouter": (
        preset("openrouter"),
        ("anthropic/claude-sonnet-4.5", "openai/gpt-5"),
        types_of(
            "openrouter.components",
            "ChatRequest",
            ".verbosity",
            ".messages[].images[].type",
            ".reasoning.max_tokens",
        ),
    ),
    "perplexity": (
        preset("perplexity"),
        ("sonar", "sonar-deep-research"),
        types_of(f"perplexity.{CHAT}", "CompletionCreateParamsStreaming"),
    ),
    "cerebras": (
        preset("cerebras"),
        ("gpt-oss-120b", "llama-3.3-70b"),
        types_of(f"cerebras.cloud.sdk.{CHAT}", "CompletionCreateParams"),
    ),
    "fireworks": (
        preset("fireworks"),
        ("accounts/fireworks/models/m",),
        types_of(f"fireworks.{CHAT}", "CompletionCreateParamsStreaming", ".stream_options"),
    ),
}


@pytest.mark.parametrize("provider", TARGETS)
@left_to_more
@tried(1, 300)
@given(st.data())
def test_a_request_has_only_what_the_published_types_have(provider: str, data: st.DataObject):
    make, names, check = TARGETS[provider]
    fn = make()
    name = data.draw(st.sampled_from(names), "model")
    can = data.draw(st.sampled_from((None, Capabilities(json_schema=True), Capabilities(thinking=False))))
    model = ModelSpec(
        provider, name, data.draw(levels), data.draw(st.sampled_from(({}, {"high": 2048}))), capabilities=can
    )
    messages = data.draw(conversations(provider, name), "messages")
    tools = data.draw(st.sampled_from(((), (WEATHER,), (WEATHER, DRAW))))
    others: dict[str, Any] = {"hosted": data.draw(st.just(()) | st.lists(hosted, max_size=2), "hosted")}
    output = OutputSchema("Spot", SPOT)
    if fn.native_output(model, LlmContext("", messages, tools, others["hosted"])) and data.draw(
        st.booleans()
    ):
        others["output"] = output
    chosen = data.draw(options, "options")
    if chosen.get("tool_choice") == "weather" and not tools:
        del chosen["tool_choice"]
    client = MemoryClient(b"")
    given = StreamOptions(http=client, **chosen)
    system = data.draw(st.sampled_from(("", "Be brief.")))
    ended = asyncio.run(
        read(fn, model, messages, system=system, tools=tools, options=given, **others)
    ).terminal
    if client.requests:
        check(client.sent)
        STRICTER.get(provider, check)(client.sent)
    else:
        assert isinstance(ended, Error)
        assert ended.kind == "stream"
