"""xAI: reasoning outside the completion, errors as strings, and OpenAI's SDK, which xAI tells people to use, as the oracle."""

import json
import logging
from typing import Any

import pytest
from loopback import (
    WEATHER,
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

from swink.messages import (
    AssistantMessage,
    Cost,
    ModelSpec,
    Thinking,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from swink.providers.xai import XAIStreamFn
from swink.stream import Done, Error, StreamOptions

MODEL = ModelSpec("xai", "grok-3-mini")
FN = XAIStreamFn(api_key="key")
RECORDED = {
    f"{name}/{path.name}": framed(path, done=True)
    for name in ("xai", "openai-compatible")
    for path in recorded(name)
}
BODIES = {path.stem: path.read_bytes() for path in own_fixtures("xai")} | RECORDED
DONE = sse({"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]}, "[DONE]")


async def sent(
    messages: Any, *, model: ModelSpec = MODEL, fn: XAIStreamFn = FN, **options: Any
) -> tuple[dict[str, Any], Any]:
    client = MemoryClient(DONE)
    await read(fn, model, messages, tools=[WEATHER], options=StreamOptions(http=client, **options))
    return client.sent, client.requests[0].headers


@pytest.mark.parametrize("name", BODIES)
async def test_the_sdk_reads_the_same_from_the_same_bytes(name: str, server: LoopbackServer):
    server.reply(BODIES[name])
    result = await read(XAIStreamFn(base_url=f"{server.url}/v1", api_key="k"), MODEL)
    text, thinking, calls, usage, finish = "", "", {}, None, None
    import openai

    async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0) as client:
        async for chunk in await client.chat.completions.create(
            model="grok-3-mini", messages=[{"role": "user", "content": "x"}], stream=True
        ):
            usage = chunk.usage or usage
            for choice in chunk.choices:
                text += choice.delta.content or ""
                thinking += getattr(choice.delta, "reasoning_content", None) or ""
                for call in choice.delta.tool_calls or ():
                    made = calls.setdefault(call.index, [call.id, "", ""])
                    made[1] += call.function.name or ""
                    made[2] += call.function.arguments or ""
                finish = choice.finish_reason or finish
    assert (result.message.text, result.message.thinking) == (text, thinking)
    assert [(call.id, call.name, call.arguments) for call in result.calls] == [
        (id, name, json.loads(arguments or "{}")) for id, name, arguments in calls.values()
    ]
    assert result.message.stop_reason == {"stop": "stop", "tool_calls": "tool_use"}[finish or ""]
    assert usage is not None
    ours = result.terminal.usage
    assert (ours.input + ours.cache_read, ours.total) == (usage.prompt_tokens, usage.total_tokens)
    assert ours.input + ours.cache_read + ours.output == ours.total
    assert [request.path for request in server.requests] == ["/v1/chat/completions"] * 2


@pytest.mark.parametrize("name", BODIES)
async def test_any_cut_gives_the_same_events_and_none_is_a_silent_success(name: str):
    await check_any_cut(FN, MODEL, BODIES[name])
    await check_truncation(
        FN, MODEL, BODIES[name], step=1 if name not in RECORDED else len(BODIES[name]) // 40
    )


async def test_reasoning_is_counted_as_output_and_the_bill_is_the_providers():
    result = await read(FN, MODEL, options=StreamOptions(http=MemoryClient(BODIES["reasoning_call"])))
    assert result.message.content == (
        Thinking("The user wants Oslo."),
        ToolCall("call_1", "weather", {"city": "Oslo"}),
    )
    assert result.terminal == Done(
        "tool_use", Usage(10, 50, 90, 0, 150, {"reasoning": 40}), Cost(total=0.000146625)
    )


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (
            400,
            b'{"code": "Client specified an invalid argument", "error": "Incorrect API key provided: xa***."}',
            "auth",
        ),
        (
            400,
            b'{"code": "x", "error": "This model\'s maximum prompt length is 131072 but the request contains 200000 tokens."}',
            "context_window_exceeded",
        ),
        (
            404,
            b'{"code": "x", "error": "The model grok-0 does not exist or your team does not have access to it."}',
            "model_retired",
        ),
        (
            403,
            b'{"code": "x", "error": "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_CSAM"}',
            "content_filtered",
        ),
        (429, b'{"code": "x", "error": "Too many requests"}', "throttled"),
    ],
)
async def test_errors_as_strings_are_understood(status: int, body: bytes, kind: str, server: LoopbackServer):
    server.reply(body, status=status, headers={"content-type": "application/json"})
    result = await read(XAIStreamFn(base_url=server.url, api_key="k"), MODEL)
    assert isinstance(result.terminal, Error)
    assert result.terminal.kind == kind
    assert result.terminal.message.startswith(f"HTTP {status}: ")


async def test_the_session_is_a_header_and_the_rest_is_chat_completions():
    history = [
        UserMessage("x"),
        AssistantMessage((Thinking("Hm"), ToolCall("call_1", "weather", {})), "xai", "grok-3-mini"),
        ToolResultMessage("call_1", "weather", "18"),
    ]
    body, headers = await sent(history, session_id="s1", max_tokens=9, temperature=0.1)
    assert headers["x-grok-conv-id"] == "s1"
    assert headers["authorization"] == "Bearer key"
    assert body == {
        "model": "grok-3-mini",
        "messages": [
            {"role": "user", "content": "x"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "18"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_completion_tokens": 9,
        "reasoning_effort": "low",
        "temperature": 0.1,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "weather",
                    "description": "Current weather.",
                    "parameters": WEATHER.parameters_schema,
                },
            }
        ],
    }


@pytest.mark.parametrize(
    ("model_id", "level", "expected"),
    [
        ("grok-3-mini", "low", "low"),
        ("grok-3-mini", "high", "high"),
        ("grok-4", "high", None),
        ("grok-4-0709", "high", None),
    ],
)
async def test_effort_is_sent_where_the_model_takes_it(
    model_id: str, level: Any, expected: str | None, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level(logging.WARNING, "swink.providers"):
        body, _ = await sent("x", fn=XAIStreamFn(api_key="k"), model=ModelSpec("xai", model_id, level))
    assert body.get("reasoning_effort") == expected
    assert len(caplog.records) == (expected is None)


async def test_the_key_comes_from_its_own_variable(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "of-openai")
    result = await read(XAIStreamFn(), MODEL)
    assert isinstance(result.terminal, Error)
    assert "XAI_API_KEY" in result.terminal.message
    assert repr(XAIStreamFn(api_key="sekret")) == "XAIStreamFn(base_url='https://api.x.ai/v1')"
