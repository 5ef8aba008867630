"""The Responses API: what is sent, what is read, and OpenAI's own SDK reading the same bytes."""

import logging
from typing import Any

import msgspec
import pytest
from loopback import (
    WEATHER,
    LoopbackServer,
    MemoryClient,
    Read,
    Tool,
    check_any_cut,
    check_truncation,
    check_types,
    cut,
    own_fixtures,
    read,
    sse,
)

from swink.messages import (
    AssistantMessage,
    Base64Source,
    Image,
    ModelSpec,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from swink.providers.responses import ResponsesStreamFn
from swink.stream import Done, Error, StreamOptions

MODEL = ModelSpec("openai-responses", "gpt-5", "high")
FN = ResponsesStreamFn(api_key="key")
BODIES = {path.stem: path.read_bytes() for path in own_fixtures("responses")}
USES = {"hosted": {"web_search": 1, "file_search": 1, "code_execution": 1, "mcp": 1, "image_generation": 1}}
REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "**Plan**"}, {"type": "summary_text", "text": "Two calls."}],
    "encrypted_content": "Z0FBQUFB",
}


def added(index: int, **item: Any) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def ended(index: int, **item: Any) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def delta(kind: str, index: int | None, text: str, **fields: Any) -> dict[str, Any]:
    place = {} if index is None else {"output_index": index}
    return {"type": f"response.{kind}.delta", **place, "delta": text, **fields}


def completed(status: str = "completed", **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{status}", "response": {"status": status, **fields}}


MESSAGE = (added(0, type="message", id="m"), delta("output_text", 0, "Hi"))


async def replay(*payloads: Any, **options: Any) -> Read:
    body = sse(*payloads, names=True)
    return await read(FN, MODEL, options=StreamOptions(http=MemoryClient(body), **options))


async def sent(
    messages: Any,
    *,
    model: ModelSpec = MODEL,
    system: str = "",
    tools: Any = (),
    fn: Any = FN,
    **options: Any,
) -> dict[str, Any]:
    client = MemoryClient(sse(*MESSAGE, completed(), names=True))
    result = await read(
        fn, model, messages, system=system, tools=tools, options=StreamOptions(http=client, **options)
    )
    assert isinstance(result.terminal, Done), result.terminal
    from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

    check_types(ResponseCreateParamsStreaming, client.sent)
    return client.sent


# --- reading ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BODIES)
async def test_the_sdk_reads_the_same_from_the_same_bytes(name: str, server: LoopbackServer):
    server.reply(chunks=cut(BODIES[name], 500))
    result = await read(ResponsesStreamFn(base_url=f"{server.url}/v1", api_key="k"), MODEL)
    import openai

    async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0) as client:
        final: Any = None
        async for event in await client.responses.create(model="gpt-5", input="x", stream=True):
            final = getattr(event, "response", final)
    assert result.message.text == final.output_text
    summaries = [
        "\n\n".join(part.text for part in item.summary) for item in final.output if item.type == "reasoning"
    ]
    assert [block.text for block in result.message.content if isinstance(block, Thinking)] == summaries
    calls = [
        (item.call_id, item.name, msgspec.json.decode(item.arguments))
        for item in final.output
        if item.type == "function_call"
    ]
    assert [(made.id, made.name, made.arguments) for made in result.calls] == calls
    usage = final.usage
    cached, reasoning = usage.input_tokens_details.cached_tokens, usage.output_tokens_details.reasoning_tokens
    extra = {"reasoning": reasoning, **USES.get(name, {})} if reasoning else {}
    assert result.terminal.usage == Usage(
        usage.input_tokens - cached, usage.output_tokens, cached, 0, usage.total_tokens, extra
    )
    assert isinstance(result.terminal, Done)
    assert result.terminal.stop_reason == (
        "length" if final.status == "incomplete" else "tool_use" if calls else "stop"
    )
    assert server.requests[0].path == server.requests[1].path == "/v1/responses"


@pytest.mark.parametrize("name", BODIES)
async def test_any_cut_gives_the_same_events(name: str):
    await check_any_cut(FN, MODEL, BODIES[name])


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.more
async def test_a_reply_cut_short_is_never_a_success(name: str):
    await check_truncation(FN, MODEL, BODIES[name])


async def test_reasoning_goes_back_as_it_came():
    reply = await read(FN, MODEL, options=StreamOptions(http=MemoryClient(BODIES["reasoning_and_calls"])))
    thinking = reply.message.content[0]
    assert isinstance(thinking, Thinking)
    assert thinking.text == "**Plan**\n\nTwo calls."
    body = await sent(
        [
            UserMessage("x"),
            reply.message,
            ToolResultMessage("call_a", "weather", "18"),
            ToolResultMessage("call_b", "clock", "9"),
        ]
    )
    assert body["input"] == [
        {"role": "user", "content": [{"type": "input_text", "text": "x"}]},
        REASONING,
        called("call_a", "weather", '{"city":"Oslo"}', id="fc_1", status="completed"),
        called("call_b", "clock", "{}", id="fc_2", status="completed"),
        {"type": "function_call_output", "call_id": "call_a", "output": "18"},
        {"type": "function_call_output", "call_id": "call_b", "output": "9"},
    ]


async def test_a_server_without_indexes_and_argument_ends_is_understood():
    result = await replay(
        added(0, type="message", id="m") | {"output_index": None},
        delta("output_text", None, "Hi", item_id="m"),
        added(0, type="function_call", id="f", call_id="c", name="weather", arguments="")
        | {"output_index": None},
        delta("function_call_arguments", None, '{"city": ', item_id="f"),
        delta("function_call_arguments", None, '"Oslo"}', item_id="f"),
        ended(0, type="function_call", id="f", call_id="c", name="weather", arguments='{"city": "Oslo"}')
        | {"output_index": None},
        completed(),
    )
    assert result.message.content[0] == Text("Hi")
    assert [(made.id, made.name, made.arguments) for made in result.calls] == [
        ("c", "weather", {"city": "Oslo"})
    ]


async def test_items_that_come_whole_are_read():
    result = await replay(
        ended(
            0,
            type="reasoning",
            id="r",
            summary=[{"type": "summary_text", "text": "Hm."}],
            encrypted_content="e",
        ),
        ended(1, type="message", id="m", content=[{"type": "output_text", "text": "Hi"}]),
        ended(2, type="function_call", id="f", call_id="c", name="clock", arguments="{}"),
        completed(),
    )
    assert result.message.thinking == "Hm."
    assert result.message.text == "Hi"
    assert [(made.id, made.name, made.arguments) for made in result.calls] == [("c", "clock", {})]


async def test_a_reply_that_comes_whole_in_the_last_event_is_read():
    items = [
        {
            "type": "message",
            "id": "m",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Hi"}],
        },
        {"type": "function_call", "id": "f", "call_id": "c", "name": "clock", "arguments": "{}"},
    ]
    result = await replay(completed(output=items))
    assert result.message.text == "Hi"
    assert (result.calls[0].id, result.message.stop_reason) == ("c", "tool_use")


async def test_reasoning_text_of_open_models_is_thinking():
    result = await replay(
        added(0, type="reasoning", id="r", summary=[]),
        delta("reasoning_text", 0, "Hm."),
        *map(shifted, MESSAGE),
        completed(),
    )
    assert result.message.content == (Thinking("Hm."), Text("Hi"))


def shifted(event: dict[str, Any]) -> dict[str, Any]:
    return {**event, "output_index": event["output_index"] + 1}


@pytest.mark.parametrize(
    ("came", "finished", "texts"),
    [
        ([(1, "Hi")], ["Hi"], ["Hi"]),  # Bedrock counts the reasoning before it
        ([(1, "A"), (2, "B")], ["A", "B"], ["A", "B"]),
        ([(0, "A"), (1, "B")], ["AB"], ["A", "B"]),
        ([(1, "A"), (1, "B")], ["AB"], ["AB"]),
        ([(1, "B")], ["A", "B"], ["A", "B"]),
        ([(0, "A")], ["A", "A"], ["A", "A"]),
        ([(0, "A")], ["A."], ["A"]),
        ([(0, "A")], ["A", "B"], ["A", "B"]),
    ],
)
async def test_the_texts_of_a_finished_message_are_those_that_came_whatever_their_numbers(
    came: list[tuple[int, str]], finished: list[str], texts: list[str]
):
    note = {"type": "url_citation", "url": "https://x.example"}
    parts = [{"type": "output_text", "text": text, "annotations": [note]} for text in finished]
    result = await replay(
        added(0, type="message", id="m"),
        *(delta("output_text", 0, text, content_index=at) for at, text in came),
        ended(0, type="message", id="m", content=parts),
        completed(),
    )
    assert sorted(block.text for block in result.message.content) == texts
    assert all(block.signature for block in result.message.content)
    cited = [block for block in result.message.content if block.citations]
    assert len(cited) == len(finished)


async def test_unknown_events_are_read_past():
    result = await replay(
        {"type": "response.brand_new", "delta": {"x": 1}, "output_index": "?"}, *MESSAGE, completed()
    )
    assert result.message.content == (Text("Hi"),)


async def test_a_call_cut_off_by_the_limit_stays_incomplete():
    result = await replay(
        added(0, type="function_call", id="f", call_id="c", name="weather", arguments=""),
        ended(
            0, type="function_call", id="f", call_id="c", name="weather", arguments="", status="incomplete"
        ),
        completed("incomplete", incomplete_details={"reason": "max_output_tokens"}),
    )
    assert result.message.stop_reason == "length"
    assert result.calls == (ToolCall("c", "weather", {}, ""),)


async def test_a_call_without_arguments_is_a_call():
    result = await replay(
        added(0, type="function_call", id="f", call_id="c", name="clock", arguments=""),
        ended(0, type="function_call", id="f", call_id="c", name="clock", arguments="", status="completed"),
        completed(),
    )
    assert result.calls == (ToolCall("c", "clock", {}, None, '{"id":"f","status":"completed"}'),)
    assert result.message.stop_reason == "tool_use"


@pytest.mark.parametrize(
    ("end", "kind"),
    [
        (completed("incomplete", incomplete_details={"reason": "content_filter"}), "content_filtered"),
        (completed("incomplete", incomplete_details={"reason": "something_new"}), "stream"),
        (completed("failed", error={"code": "server_error", "message": "oops"}), "network"),
        (completed("failed", error={"code": "vector_store_timeout", "message": "too slow"}), "network"),
        (completed("failed", error={"code": "rate_limit_exceeded", "message": "slow down"}), "throttled"),
        (completed("failed", error={"code": "invalid_prompt", "message": "it violates our usage policy"}), "content_filtered"),
        (completed("failed", error={"code": "context_length_exceeded", "message": "too long"}), "context_window_exceeded"),
        (completed("failed"), "stream"),
        ({"type": "error", "code": "server_error", "message": "oops", "param": None}, "network"),
        ({"type": "error", "error": {"type": "server_error", "code": "server_error", "message": "oops"}}, "network"),
        ({"error": {"code": 500, "message": "It broke.", "type": "server_error"}}, "network"),
        ({"error": {"code": 400, "message": "It is too strange."}}, "stream"),
        ("{not json", "stream"),
        ({"type": "response.output_text.delta", "output_index": 9, "delta": "x"}, "stream"),
        ({"type": "response.output_text.delta", "output_index": 0, "delta": 5}, "stream"),
    ],
)  # fmt: skip
async def test_each_bad_end_has_its_own_kind_and_keeps_what_arrived(end: Any, kind: str):
    result = await replay(*MESSAGE, end)
    assert isinstance(result.terminal, Error)
    assert result.terminal.kind == kind
    assert result.message.text == "Hi"


async def test_a_refusal_is_content_filtered():
    result = await replay(
        added(0, type="message", id="m"),
        delta("refusal", 0, "I cannot "),
        delta("refusal", 0, "do that."),
        completed(),
    )
    assert isinstance(result.terminal, Error)
    assert (result.terminal.message, result.terminal.kind) == ("I cannot do that.", "content_filtered")


async def test_raw_events_are_shown_as_they_came():
    seen: list[Any] = []
    await replay(*MESSAGE, completed(), on_raw_payload=seen.append)
    assert seen == [*MESSAGE, completed()]


# --- sending ---------------------------------------------------------------------------------------------------------


def called(call_id: str, name: str, arguments: str, **rest: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments, **rest}


def said(position: int, text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {
        "type": "message",
        "id": f"msg_{position}",
        "role": "assistant",
        "status": "completed",
        "content": content,
    }


async def test_a_whole_conversation_is_sent_exactly_so():
    signature = msgspec.json.encode(REASONING).decode()
    history = [
        UserMessage((Text("Look: "), Image(Base64Source("QUJD", "image/png")))),
        AssistantMessage(
            (
                Thinking("x", signature),
                Text("Let me see."),
                ToolCall("call_1", "weather", {"city": "Oslo"}),
                ToolCall("a:b", "weather", {}),
            ),
            "openai-responses",
            "gpt-5",
        ),
        ToolResultMessage("call_1", "weather", (Text("18 °C"), Image(Base64Source("REVG", "image/png")))),
        ToolResultMessage("a:b", "weather", ""),
        AssistantMessage(
            (Text("Done."), Thinking("led to nothing", signature)), "openai-responses", "gpt-5", "aborted"
        ),
        AssistantMessage(
            (Thinking("of another's", signature), Text("ok"), ToolCall("c:d", "weather", {})),
            "openai-responses",
            "o3",
        ),
        ToolResultMessage("c:d", "weather", "20"),
        UserMessage("Thanks."),
    ]
    tools = [WEATHER, Tool("clock", "Time.", {})]
    body = await sent(
        history, system="Be brief.", tools=tools, max_tokens=500, tool_choice="weather", session_id="s1"
    )
    remapped = body["input"][9]["call_id"]
    assert remapped.startswith("call_")
    assert body == {
        "model": "gpt-5",
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "Look: "},
                    {"type": "input_image", "image_url": "data:image/png;base64,QUJD", "detail": "auto"},
                ],
            },
            REASONING,
            said(2, "Let me see."),
            called("call_1", "weather", '{"city":"Oslo"}'),
            called("a:b", "weather", "{}"),
            {
                "type": "function_call_output",
                "call_id": "call_1",
                "output": [
                    {"type": "input_text", "text": "18 °C"},
                    {"type": "input_image", "image_url": "data:image/png;base64,REVG", "detail": "auto"},
                ],
            },
            {"type": "function_call_output", "call_id": "a:b", "output": "(no output)"},
            said(7, "Done."),
            said(8, "ok"),
            called(remapped, "weather", "{}"),
            {"type": "function_call_output", "call_id": remapped, "output": "20"},
            {"role": "user", "content": [{"type": "input_text", "text": "Thanks."}]},
        ],
        "stream": True,
        "store": False,
        "instructions": "Be brief.",
        "max_output_tokens": 500,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "high", "summary": "auto"},
        "tools": [
            {
                "type": "function",
                "name": "weather",
                "description": "Current weather.",
                "parameters": WEATHER.parameters_schema,
                "strict": False,
            },
            {
                "type": "function",
                "name": "clock",
                "description": "Time.",
                "parameters": {"type": "object", "properties": {}},
                "strict": False,
            },
        ],
        "tool_choice": {"type": "function", "name": "weather"},
        "prompt_cache_key": "s1",
    }


async def test_a_model_that_does_not_reason_gets_a_temperature_and_no_effort(
    caplog: pytest.LogCaptureFixture,
):
    fn = ResponsesStreamFn(api_key="k")
    with caplog.at_level(logging.WARNING, "swink.providers"):
        body = await sent("x", fn=fn, model=ModelSpec("openai-responses", "gpt-4.1", "high"), temperature=0.2)
        assert "temperature" not in await sent("x", fn=fn, temperature=0.2)
    assert body["temperature"] == 0.2
    assert not {"reasoning", "include"} & set(body)
    assert len(caplog.records) == 2


async def test_without_a_key_the_error_names_the_variable():
    result = await read(ResponsesStreamFn(), MODEL)
    assert isinstance(result.terminal, Error)
    assert "OPENAI_API_KEY" in result.terminal.message
    assert len(result.events) == 2


def test_the_adapter_shows_no_key():
    assert (
        repr(ResponsesStreamFn(api_key="sekret")) == "ResponsesStreamFn(base_url='https://api.openai.com/v1')"
    )
    assert not {"stop", "seed"} & FN.honours
