"""The adapters against servers that nobody here wrote: llama.cpp with real weights, and aimock."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest
from adapters import ADAPTERS, KEY, AdapterCase
from loopback import Read, Tool, read
from servers import LLAMA_KEY, Unavailable, aimock_server, llama_server
from tests.counts import cell_of_more, left_to_more

from swink import Agent, ExponentialBackoff, tool
from swink.events import MessageUpdate
from swink.messages import AssistantMessage, ModelSpec, Text, ToolCall, ToolResultMessage, UserMessage
from swink.stream import Done, Error, StreamOptions, TextDelta, ToolCallDelta

# --- llama.cpp -----------------------------------------------------------------------------------------------------------

QUESTION = "What is the weather in Oslo?"
GET_WEATHER = Tool(
    "get_weather",
    "Current weather.",
    {
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["Oslo", "Rome"]}},
        "required": ["city"],
    },
)
PROTOCOLS = {name: ADAPTERS[name] for name in ("openai", "anthropic", "openai-responses")}
each_protocol = pytest.mark.parametrize("adapter", PROTOCOLS.values(), ids=PROTOCOLS)
one_protocol = pytest.mark.parametrize(
    "adapter",
    [adapter if number == 0 else cell_of_more(adapter) for number, adapter in enumerate(PROTOCOLS.values())],
    ids=PROTOCOLS,
)
"""For what does not depend on the protocol: the others are tried by `make test-more`."""


@pytest.fixture(scope="module")
def llama() -> Iterator[str]:
    try:
        server = llama_server()
        url = server.__enter__()
    except Unavailable as reason:
        pytest.skip(f"no llama.cpp server: {reason}")
    yield url
    server.__exit__(None, None, None)


@pytest.fixture
async def connections() -> AsyncIterator[None]:
    """The connections of a test close with it, whichever adapter opened them."""
    yield
    await ADAPTERS["openai"].make("http://127.0.0.1:1", KEY).aclose()


def smollm(adapter: AdapterCase) -> ModelSpec:
    return ModelSpec(adapter.model.provider, "smollm2")


async def ask_llama(
    url: str,
    adapter: AdapterCase,
    messages: Any = QUESTION,
    *,
    key: str = LLAMA_KEY,
    tools: Sequence[Any] = (),
    **options: Any,
) -> Read:
    fn = adapter.make(url, key)
    return await read(
        fn, smollm(adapter), messages, tools=tools, options=StreamOptions(temperature=0, **options)
    )


@left_to_more
@pytest.mark.usefixtures("connections")
async def test_llama_says_the_same_in_every_protocol(llama: str):
    texts: set[str] = set()
    for adapter in PROTOCOLS.values():
        result = await ask_llama(llama, adapter, max_tokens=6)
        assert isinstance(result.terminal, Done), result.terminal
        # Its Responses API calls every end complete.
        assert result.terminal.stop_reason == ("stop" if adapter.name == "openai-responses" else "length")
        assert len([event for event in result.events if isinstance(event, TextDelta)]) > 2
        assert result.terminal.usage.output == 6
        assert result.terminal.usage.input + result.terminal.usage.cache_read > 20
        texts.add(result.message.text)
    assert len(texts) == 1
    assert "weather" in texts.pop()


@left_to_more
@each_protocol
@pytest.mark.usefixtures("connections")
async def test_llama_streams_a_tool_call(llama: str, adapter: AdapterCase):
    result = await ask_llama(llama, adapter, tools=[GET_WEATHER], tool_choice="required", max_tokens=40)
    assert isinstance(result.terminal, Done), result.terminal
    assert result.terminal.stop_reason == "tool_use"
    [call] = result.calls
    assert (call.name, call.arguments) == ("get_weather", {"city": "Oslo"})
    assert call.id
    assert len([event for event in result.events if isinstance(event, ToolCallDelta)]) > 2


@left_to_more
@each_protocol
@pytest.mark.usefixtures("connections")
async def test_llama_takes_a_history_with_calls_and_results(llama: str, adapter: AdapterCase):
    call = ToolCall("call:" + "9" * 80, "get_weather", {"city": "Oslo"})
    history = [
        UserMessage(QUESTION),
        AssistantMessage([Text("Let me look."), call], "elsewhere", "m", "tool_use"),
        ToolResultMessage(call.id, "get_weather", "18 degrees"),
        UserMessage("So?"),
    ]
    result = await ask_llama(llama, adapter, history, max_tokens=3)
    assert isinstance(result.terminal, Done), result.terminal
    assert result.terminal.usage.output == 3


@left_to_more
@one_protocol
@pytest.mark.usefixtures("connections")
async def test_llama_stops_at_an_abort_and_answers_the_next_request(llama: str, adapter: AdapterCase):
    fn = adapter.make(llama, LLAMA_KEY)
    agent = Agent(smollm(adapter), stream_fn=fn, options=StreamOptions(temperature=0, max_tokens=400))
    async with asyncio.timeout(60):
        async with agent.stream("Tell me a long story.") as run:
            async for event in run:
                if isinstance(event, MessageUpdate):
                    agent.abort()
            result = await run.result()
        assert result.stop_reason == "aborted"
        assert result.messages[-1].text
        # One slot only: it is free again, or this would wait for four hundred tokens.
        again = await ask_llama(llama, adapter, max_tokens=1)
    assert isinstance(again.terminal, Done), again.terminal


@each_protocol
@pytest.mark.usefixtures("connections")
async def test_llamas_refusals_are_typed(llama: str, adapter: AdapterCase):
    overflow = await ask_llama(llama, adapter, "word " * 2000, max_tokens=1)
    assert isinstance(overflow.terminal, Error)
    assert overflow.terminal.kind == "context_window_exceeded", overflow.terminal
    refused = await ask_llama(llama, adapter, key="wrong-key-1234567890")
    assert isinstance(refused.terminal, Error)
    assert refused.terminal.kind == "auth", refused.terminal
    assert "wrong-key" not in refused.terminal.message


# --- aimock --------------------------------------------------------------------------------------------------------------

MOCKED = {
    name: ADAPTERS[name]
    for name in ("openai", "openai-responses", "azure", "anthropic", "gemini", "bedrock", "ollama")
}
each_mocked = pytest.mark.parametrize("adapter", MOCKED.values(), ids=MOCKED)
GREETING = "Grüße aus Zürich, und ein Fuchs: 🦊."
FIXTURES: list[dict[str, Any]] = [
    {"match": {"userMessage": "greet"}, "response": {"content": GREETING}},
    {
        "match": {"userMessage": "weather", "hasToolResult": False},
        "response": {
            "content": "Let me look.",
            "toolCalls": [
                {"name": "weather", "arguments": '{"city": "Oslo", "days": [1, 2]}'},
                {"name": "weather", "arguments": '{"city": "Bergen"}'},
            ],
        },
    },
    {"match": {"userMessage": "weather", "hasToolResult": True}, "response": {"content": "Rain in Bergen."}},
    {"match": {"userMessage": "ponder"}, "response": {"reasoning": "Six times seven.", "content": "42."}},
    {
        "match": {"userMessage": "throttle"},
        "response": {"error": {"message": "slow down", "type": "rate_limit_error"}, "status": 429},
    },
    {
        "match": {"userMessage": "break"},
        "response": {"error": {"message": "it broke", "type": "server_error"}, "status": 500},
    },
    {"match": {"userMessage": "truncate"}, "response": {"content": "a" * 120}, "truncateAfterChunks": 6},
    {"match": {"userMessage": "slowly"}, "response": {"content": "b" * 600}, "latency": 100},
]


@pytest.fixture(scope="module")
def aimock() -> Iterator[str]:
    server = aimock_server(FIXTURES)
    try:
        url = server.__enter__()
    except Unavailable as reason:
        pytest.skip(f"no aimock server: {reason}")
    yield url
    server.__exit__(None, None, None)


async def ask_mock(url: str, adapter: AdapterCase, question: str) -> Read:
    return await read(adapter.make(url, KEY), adapter.model, question)


@each_mocked
@pytest.mark.usefixtures("connections")
async def test_aimock_streams_text(aimock: str, adapter: AdapterCase):
    result = await ask_mock(aimock, adapter, "greet me")
    assert isinstance(result.terminal, Done), result.terminal
    assert result.message.text == GREETING
    assert result.terminal.stop_reason == "stop"
    assert len([event for event in result.events if isinstance(event, TextDelta)]) > 2


@each_mocked
@pytest.mark.usefixtures("connections")
async def test_an_agent_runs_tools_against_aimock(aimock: str, adapter: AdapterCase):
    asked: list[tuple[str, list[int]]] = []

    @tool
    async def weather(city: str, days: list[int] | None = None) -> str:
        """Current weather."""
        asked.append((city, days or []))
        return "rain"

    # It trips over the cache points that Bedrock takes among the tools.
    options = StreamOptions(cache=adapter.name != "bedrock")
    fn, retry = adapter.make(aimock, KEY), ExponentialBackoff(max_attempts=1)
    agent = Agent(adapter.model, stream_fn=fn, tools=[weather], options=options, retry=retry)
    result = await agent.run("the weather, please")
    assert result.error is None
    assert result.text == "Rain in Bergen."
    assert sorted(asked) == [("Bergen", []), ("Oslo", [1, 2])]
    first = agent.messages[1]
    assert first.text == "Let me look."
    assert len({call.id for call in first.tool_calls}) == 2
    assert [message.role for message in agent.messages] == [
        "user",
        "assistant",
        "tool_result",
        "tool_result",
        "assistant",
    ]


@pytest.mark.parametrize(
    "name", [name for name in MOCKED if name != "ollama"]
)  # which it gives a field that Ollama does not have
@pytest.mark.usefixtures("connections")
async def test_aimocks_reasoning_is_thinking(aimock: str, name: str):
    adapter = MOCKED[name]
    model = ModelSpec(name, "deepseek-reasoner") if name in ("openai", "azure") else adapter.model
    result = await read(adapter.make(aimock, KEY), model, "ponder this")
    assert isinstance(result.terminal, Done), result.terminal
    assert result.message.text == "42."
    assert result.message.thinking == "Six times seven."


@each_mocked
@pytest.mark.usefixtures("connections")
@pytest.mark.parametrize(
    ("question", "kind", "says"),
    [("throttle me", "throttled", "slow down"), ("break down", "network", "it broke")],
)
async def test_aimocks_refusals_are_typed(
    aimock: str, adapter: AdapterCase, question: str, kind: str, says: str
):
    result = await ask_mock(aimock, adapter, question)
    assert isinstance(result.terminal, Error)
    assert result.terminal.kind == kind, result.terminal
    assert says in result.terminal.message


@each_mocked
@pytest.mark.usefixtures("connections")
async def test_a_stream_that_aimock_truncates_is_a_network_error(aimock: str, adapter: AdapterCase):
    result = await ask_mock(aimock, adapter, "truncate this")
    assert isinstance(result.terminal, Error)
    assert result.terminal.kind == "network", result.terminal
    assert len(result.message.text) < 120


@each_mocked
@pytest.mark.usefixtures("connections")
async def test_an_abort_ends_a_slow_stream_of_aimocks(aimock: str, adapter: AdapterCase):
    agent = Agent(adapter.model, stream_fn=adapter.make(aimock, KEY))
    async with asyncio.timeout(8):  # the whole reply takes ten seconds
        async with agent.stream("slowly") as run:
            async for event in run:
                if isinstance(event, MessageUpdate):
                    agent.abort()
            result = await run.result()
    assert result.stop_reason == "aborted"
    assert result.messages[-1].text
