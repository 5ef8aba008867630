"""Chat completions: what is sent, what is read from the many servers, and OpenAI's own SDK reading the same bytes."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from loopback import (
    WEATHER,
    WIRE,
    LoopbackServer,
    MemoryClient,
    Read,
    Tool,
    check_any_cut,
    check_truncation,
    check_types,
    cut,
    framed,
    own_fixtures,
    read,
    recorded,
    sse,
)
from tests.counts import in_cells

from swink import Agent
from swink.errors import MisuseError, StreamError
from swink.messages import (
    AssistantMessage,
    Audio,
    Base64Source,
    Capabilities,
    Citation,
    Cost,
    Document,
    Extension,
    Image,
    ModelSpec,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UrlSource,
    Usage,
    UserMessage,
)
from swink.messages.providertools import CodeExecution, Location, ProviderTool, WebSearch
from swink.models.keys.accounts import ACCOUNTS
from swink.providers.chat.fields import takes_schema
from swink.providers.chat.presets import PRESETS
from swink.providers.chat.usage import cost_of, usage_of
from swink.providers.openai import OpenAIStreamFn
from swink.stream import Done, Error, LlmContext, OutputSchema, Start, StreamOptions, Timeout

MODEL = ModelSpec("openai", "gpt-4.1")
FN = OpenAIStreamFn(api_key="key")
FIXTURES = [
    *own_fixtures("openai"),
    *(path for name in ("openai", "deepseek", "groq") for path in recorded(name)),
]


def body_of(path: Path) -> bytes:
    return path.read_bytes() if path in own_fixtures("openai") else framed(path, done=True)


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"id": "c1", "choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **fields}


def call(
    index: int | None = None, id: str | None = None, name: str | None = None, arguments: Any = None
) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    delta = {
        key: value
        for key, value in (("index", index), ("id", id), ("function", function))
        if value is not None
    }
    return chunk({"tool_calls": [delta]})


async def replay(*payloads: Any, done: bool = True, fn: Any = FN, **options: Any) -> Read:
    body = sse(*payloads) + (sse("[DONE]") if done else b"")
    return await read(fn, MODEL, options=StreamOptions(http=MemoryClient(body), **options))


async def calls_of(*payloads: Any) -> list[tuple[str, str, dict[str, Any]]]:
    result = await replay(*payloads, chunk(finish="tool_calls"))
    assert result.message.stop_reason == "tool_use", result.terminal
    return [(made.id, made.name, made.arguments) for made in result.calls]


async def sent(
    messages: Any,
    *,
    model: ModelSpec = MODEL,
    system: str = "",
    tools: Any = (),
    fn: Any = FN,
    **options: Any,
) -> dict[str, Any]:
    """The body of the request for a history; OpenAI's own has to pass its SDK's types."""
    client = MemoryClient(sse(chunk({"content": "x"}, "stop"), "[DONE]"))
    result = await read(
        fn, model, messages, system=system, tools=tools, options=StreamOptions(http=client, **options)
    )
    assert isinstance(result.terminal, Done), result.terminal
    if fn is FN:
        from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

        check_types(CompletionCreateParamsStreaming, client.sent)
    return client.sent


# --- reading ---------------------------------------------------------------------------------------------------------


@in_cells("path", FIXTURES, ids=lambda path: path.name, every=3)
async def test_the_sdk_reads_the_same_from_the_same_bytes(path: Path, server: LoopbackServer):
    server.reply(chunks=cut(body_of(path), 900))
    result = await read(OpenAIStreamFn(base_url=f"{server.url}/v1", api_key="k"), MODEL)
    final = await sdk_reads(server.url)
    choice = final.choices[0]
    assert result.message.text == (choice.message.content or "")
    assert result.message.thinking == (
        getattr(choice.message, "reasoning_content", None) or getattr(choice.message, "reasoning", None) or ""
    )
    assert [(made.id, made.name, made.arguments) for made in result.calls] == [
        (made.id, made.function.name, json.loads(made.function.arguments or "{}"))
        for made in choice.message.tool_calls or ()
    ]
    assert result.terminal.usage == sdk_usage(final)
    assert isinstance(result.terminal, Done)
    assert (
        result.terminal.stop_reason
        == {"stop": "stop", "tool_calls": "tool_use", "length": "length"}[choice.finish_reason or ""]
    )
    results = [ToolResultMessage(made.id, made.name, "18") for made in result.calls]
    again = (await sent([UserMessage("x"), result.message, *results]))["messages"][1:]
    if again:
        assert as_sent(again[0]) == as_sent(choice.message.to_dict())
        assert [turn["tool_call_id"] for turn in again[1:]] == [call.id for call in result.calls]


def as_sent(turn: Any) -> dict[str, Any]:
    """What of an assistant's turn has to go back; how its arguments are written does not matter."""
    calls = [
        (
            made["id"],
            made["type"],
            made["function"]["name"],
            json.loads(made["function"]["arguments"] or "{}"),
        )
        for made in turn.get("tool_calls") or ()
    ]
    return {"content": turn.get("content") or None, "tool_calls": calls}


async def sdk_reads(url: str) -> Any:
    import openai

    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
        manager = client.chat.completions.stream(model="m", messages=[{"role": "user", "content": "x"}])
        async with manager as stream:
            try:
                async for _ in stream:
                    pass
            except openai.LengthFinishReasonError as error:
                return error.completion
            return stream.current_completion_snapshot


def sdk_usage(completion: Any) -> Usage:
    usage = completion.usage
    cached = usage.prompt_tokens_details.cached_tokens or 0 if usage.prompt_tokens_details else 0
    reasoning = (
        usage.completion_tokens_details.reasoning_tokens or 0 if usage.completion_tokens_details else 0
    )
    extra = {"reasoning": reasoning} if reasoning else {}
    return Usage(usage.prompt_tokens - cached, usage.completion_tokens, cached, 0, usage.total_tokens, extra)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.name)
async def test_any_cut_gives_the_same_events(path: Path):
    await check_any_cut(FN, MODEL, body_of(path))


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.name)
@pytest.mark.more
async def test_a_reply_cut_short_is_never_a_success(path: Path):
    body = body_of(path)
    await check_truncation(
        FN, MODEL, body, step=1 if path in own_fixtures("openai") else max(1, len(body) // 40)
    )


async def test_a_recorded_stream_whose_calls_begin_at_index_one_is_read():
    path = WIRE / "openai-compatible" / "anthropic-fallback-tool-call.sse"
    if not path.exists():
        pytest.skip("no folder of recorded streams beside the checkout")
    result = await read(FN, MODEL, options=StreamOptions(http=MemoryClient(path.read_bytes())))
    assert result.message.content == (
        Text("Reading it."),
        ToolCall("toolu_sanitized", "read_file", {"path": "a.txt"}),
    )
    await check_any_cut(FN, MODEL, path.read_bytes())
    await check_truncation(FN, MODEL, path.read_bytes(), step=7)


async def test_text_before_calls_does_not_hide_them():
    path = next(path for path in own_fixtures("openai") if path.stem == "parallel_calls")
    result = await read(FN, MODEL, options=StreamOptions(http=MemoryClient(path.read_bytes())))
    assert result.message.content == (
        Text("Looking."),
        ToolCall("call_a", "weather", {"city": "Oslo"}),
        ToolCall("call_b", "clock", {}),
    )
    assert result.message.stop_reason == "tool_use"


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_reasoning_of_either_name_is_thinking(field: str):
    result = await replay(
        chunk({field: "Hm"}),
        chunk({field: ", yes."}),
        chunk({"content": "42"}),
        chunk({field: "Really?"}),
        chunk(finish="stop"),
    )
    assert result.message.content == (Thinking("Hm, yes."), Text("42"), Thinking("Really?"))


async def test_reasoning_sent_under_both_names_is_read_once():
    result = await replay(chunk({"reasoning_content": "Hm", "reasoning": "Hm"}), chunk(finish="stop"))
    assert result.message.thinking == "Hm"


async def test_empty_deltas_open_no_blocks():
    result = await replay(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": None, "reasoning_content": "", "tool_calls": []}),
        chunk(None, ""),
        {"choices": [{"index": 0, "delta": None}]},
        chunk(finish="stop"),
    )
    assert result.events == [Start(), Done("stop")]


async def test_usage_in_a_last_chunk_without_choices_is_read():
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 5,
        "total_tokens": 105,
        "prompt_tokens_details": {"cached_tokens": 80},
    }
    result = await replay(chunk({"content": "x"}), chunk(finish="stop"), {"choices": [], "usage": usage})
    assert result.terminal == Done("stop", Usage(20, 5, 80, 0, 105))


async def test_usage_where_groq_once_put_it_is_read():
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    assert (await replay(chunk({"content": "x"}, "stop", x_groq={"usage": usage}))).terminal.usage == Usage(
        3, 2
    )


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 3}, Usage(10, 3)),
        (
            {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13, "prompt_tokens_details": None},
            Usage(10, 3),
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13, "prompt_cache_hit_tokens": 4},
            Usage(6, 3, 4, 0, 13),
        ),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 9,
                "total_tokens": 19,
                "completion_tokens_details": {"reasoning_tokens": 7},
            },
            Usage(10, 9, 0, 0, 19, {"reasoning": 7}),
        ),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 2,
                "total_tokens": 19,
                "completion_tokens_details": {"reasoning_tokens": 7},
            },
            Usage(10, 9, 0, 0, 19, {"reasoning": 7}),
        ),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 1,
                "total_tokens": 11,
                "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 5},
            },
            Usage(1, 1, 4, 5, 11),
        ),
        ({"prompt_tokens": "many"}, Usage()),
    ],
)
def test_counts_are_disjoint_and_complete(usage: dict[str, Any], expected: Usage):
    assert usage_of(usage) == expected


async def test_money_that_the_provider_reports_is_the_cost():
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5, "cost": 0.0125}
    terminal = (await replay(chunk({"content": "x"}, "stop", usage=usage))).terminal
    assert terminal == Done("stop", Usage(3, 2), Cost(total=0.0125))


# --- tool calls as servers send them ---------------------------------------------------------------------------------

WHOLE = {"city": "Oslo"}
ARGUMENTS = '{"city": "Oslo"}'


async def test_a_call_in_pieces():
    pieces = [call(0, arguments=piece) for piece in ('{"ci', 'ty": "Os', 'lo"}')]
    assert await calls_of(call(0, "a", "weather", ""), *pieces) == [("a", "weather", WHOLE)]


async def test_a_whole_call_in_one_chunk():
    assert await calls_of(call(0, "a", "weather", ARGUMENTS)) == [("a", "weather", WHOLE)]


async def test_two_calls_interleaved():
    result = await calls_of(
        call(0, "a", "weather"),
        call(1, "b", "clock"),
        call(0, arguments='{"city": '),
        call(1, arguments="{}"),
        call(0, arguments='"Oslo"}'),
    )
    assert result == [("a", "weather", WHOLE), ("b", "clock", {})]


async def test_a_server_that_omits_the_index():
    assert await calls_of(call(None, "a", "weather", ARGUMENTS), call(None, "b", "weather", "{}")) == [
        ("a", "weather", WHOLE),
        ("b", "weather", {}),
    ]
    assert await calls_of(call(None, "a", "weather"), call(None, None, None, ARGUMENTS)) == [
        ("a", "weather", WHOLE)
    ]


async def test_a_server_that_repeats_the_index():
    assert await calls_of(call(0, "a", "weather", ARGUMENTS), call(0, "b", "weather", "{}")) == [
        ("a", "weather", WHOLE),
        ("b", "weather", {}),
    ]


async def test_a_server_that_omits_ids_and_repeats_the_index():
    result = await calls_of(call(0, None, "weather", ARGUMENTS), call(0, None, "weather", "{}"))
    assert [(name, arguments) for _, name, arguments in result] == [("weather", WHOLE), ("weather", {})]
    assert result[0][0] != result[1][0]


async def test_a_server_that_repeats_id_and_name_in_every_delta():
    assert await calls_of(call(0, "a", "weather", '{"city": '), call(0, "a", "weather", '"Oslo"}')) == [
        ("a", "weather", WHOLE)
    ]
    assert [
        made[1:]
        for made in await calls_of(call(0, None, "weather", '{"city": '), call(0, None, "weather", '"Oslo"}'))
    ] == [("weather", WHOLE)]


async def test_arguments_before_the_name_are_kept():
    assert await calls_of(
        call(0, "a", None, '{"city": '), call(0, None, "weather"), call(0, None, None, '"Oslo"}')
    ) == [("a", "weather", WHOLE)]


async def test_an_empty_name_after_the_first_changes_nothing():
    assert await calls_of(call(0, "a", "weather", ""), call(0, "", "", ARGUMENTS)) == [
        ("a", "weather", WHOLE)
    ]


async def test_a_missing_id_is_made_up_the_same_way_each_time():
    first = await calls_of(call(0, None, "weather", "{}"))
    assert first == await calls_of(call(0, None, "weather", "{}"))
    assert first[0][0].startswith("call_")


async def test_ids_made_up_out_of_order_differ():
    made = await calls_of(call(0, None, None, "{}"), call(1, None, "clock", "{}"), call(0, None, "weather"))
    assert len({id for id, _, _ in made}) == 2


async def test_arguments_as_an_object():
    assert await calls_of(call(0, "a", "weather", WHOLE)) == [("a", "weather", WHOLE)]


async def test_the_old_function_call_form():
    result = await replay(
        chunk({"function_call": {"name": "weather", "arguments": ""}}),
        chunk({"function_call": {"arguments": ARGUMENTS}}),
        chunk(finish="function_call"),
    )
    assert [(made.name, made.arguments) for made in result.calls] == [("weather", WHOLE)]
    assert result.message.stop_reason == "tool_use"


async def test_a_call_without_a_name_is_an_error():
    result = await replay(call(0, "a", None, "{}"), chunk(finish="tool_calls"))
    assert isinstance(result.terminal, Error)
    assert "without a name" in result.terminal.message


async def test_a_call_cut_off_by_the_limit_stays_incomplete():
    result = await replay(
        call(0, "a", "weather", ARGUMENTS),
        call(1, "b", "weather", '{"ci'),
        call(2, "c", "clock"),
        chunk(finish="length"),
    )
    assert result.message.stop_reason == "length"
    assert result.calls == (
        ToolCall("a", "weather", WHOLE),
        ToolCall("b", "weather", {}, '{"ci'),
        ToolCall("c", "clock", {}, ""),
    )


async def test_unparsable_arguments_are_kept_for_the_model_to_see():
    result = await replay(call(0, "a", "weather", '{"city": Oslo}'), chunk(finish="tool_calls"))
    assert result.calls == (ToolCall("a", "weather", {}, '{"city": Oslo}'),)


# --- how replies end -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("stop", "stop"),
        ("eos", "stop"),
        ("tool_calls", "tool_use"),
        ("function_call", "tool_use"),
        ("length", "length"),
        ("content_filter", "content_filtered"),
        ("error", "network"),
        ("insufficient_system_resource", "network"),
        ("something_new", "stream"),
    ],
)
async def test_each_finish_reason_has_its_own_outcome(reason: str, outcome: str):
    result = await replay(chunk({"content": "Hi"}), chunk(finish=reason))
    assert (
        result.terminal.stop_reason if isinstance(result.terminal, Done) else result.terminal.kind
    ) == outcome
    assert result.message.text == "Hi"


async def test_calls_that_end_in_stop_are_still_a_tool_turn():
    assert (
        await replay(call(0, "a", "weather", "{}"), chunk(finish="stop"))
    ).message.stop_reason == "tool_use"


async def test_a_finish_reason_and_a_clean_end_are_enough():
    assert (await replay(chunk({"content": "x"}, "stop"), done=False)).terminal == Done("stop")


async def test_done_without_a_finish_reason_is_a_whole_reply():
    assert (await replay(chunk({"content": "x"}))).message.stop_reason == "stop"
    assert (await replay(call(0, "a", "weather", "{}"))).message.stop_reason == "tool_use"


async def test_a_body_that_just_ends_is_a_network_error():
    result = await replay(chunk({"content": "x"}), done=False)
    assert isinstance(result.terminal, Error)
    assert result.terminal.kind == "network"


async def test_nothing_after_done_is_read():
    result = await replay(chunk({"content": "x"}, "stop"), "[DONE]", chunk({"content": "y"}))
    assert result.message.text == "x"


async def test_a_refusal_is_content_filtered():
    result = await replay(
        chunk({"refusal": "I cannot "}), chunk({"refusal": "do that."}), chunk(finish="stop")
    )
    assert result.terminal == Error("I cannot do that.", "content_filtered")


@pytest.mark.parametrize(
    ("payload", "message", "kind"),
    [
        (
            {"error": {"message": "The server had an error", "type": "server_error", "code": None}},
            "The server had an error",
            "network",
        ),
        ({"error": {"message": "Rate limit", "code": 429}}, "Rate limit", "throttled"),
        (
            {"error": {"message": "Provider returned error", "code": 502}, "choices": []},
            "Provider returned error",
            "network",
        ),
        (
            {"object": "error", "message": "maximum context length is 10", "code": 400},
            "maximum context length is 10",
            "context_window_exceeded",
        ),
        ({"error": "plain text"}, "plain text", "stream"),
        (
            {
                "choices": [
                    {
                        "delta": {"content": ""},
                        "finish_reason": "error",
                        "error": {"code": 503, "message": "gone"},
                    }
                ]
            },
            "gone",
            "network",
        ),
    ],
)
async def test_an_error_inside_the_stream_is_typed(payload: dict[str, Any], message: str, kind: str):
    result = await replay(chunk({"content": "partly"}), payload)
    advice = " (change the request, or use another model)" if kind == "stream" else ""
    assert result.terminal == Error(message + advice, kind)
    assert result.message.text == "partly"


@pytest.mark.parametrize(
    "payload", ["{not json", '{"choices": [{"delta": {"content": 5}}]}', '{"choices": "none"}', "[1]"]
)
async def test_a_malformed_chunk_is_an_error_that_shows_it(payload: str):
    result = await replay(chunk({"content": "partly"}), payload, chunk(finish="stop"))
    assert isinstance(result.terminal, Error)
    assert result.terminal.kind == "stream"
    assert payload[:15] in result.terminal.message
    assert result.message.text == "partly"


async def test_half_a_surrogate_pair_does_not_break_the_stream():
    result = await replay(
        '{"choices": [{"index": 0, "delta": {"content": "a\\ud83d"}}]}', chunk(finish="stop")
    )
    assert result.message.text == "a\ufffd"


async def test_raw_chunks_are_shown_as_they_came():
    seen: list[Any] = []
    first = chunk({"content": "x"}, "stop", provider="y")
    await replay(first, on_raw_payload=seen.append)
    assert seen == [first]


# --- sending ---------------------------------------------------------------------------------------------------------


async def test_a_whole_conversation_is_sent_exactly_so():
    history = [
        UserMessage(
            (Text("Look: "), Image(Base64Source("QUJD", "image/png")), Image(UrlSource("https://x/y.gif")))
        ),
        AssistantMessage(
            (
                Thinking("Hm.", "sig"),
                Text("Let me see."),
                ToolCall("call_1", "weather", {"city": "Oslo"}),
                ToolCall("x" * 450, "weather", {}),
            ),
            "elsewhere",
            "gpt-4.1",
            "tool_use",
        ),
        ToolResultMessage(
            "call_1",
            "weather",
            (Text("18 °C"), Image(Base64Source("REVG", "image/png"))),
            details={"secret": 1},
        ),
        ToolResultMessage("x" * 450, "weather", "", True),
        UserMessage("Thanks."),
    ]
    tools = [WEATHER, Tool("clock", "Time.", {})]
    body = await sent(
        history,
        system="Be brief.",
        tools=tools,
        max_tokens=500,
        temperature=0.5,
        tool_choice="weather",
        session_id="s1",
    )
    remapped = body["messages"][2]["tool_calls"][1]["id"]
    assert remapped.startswith("call_")
    assert len(remapped) <= 40
    assert body == {
        "model": "gpt-4.1",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look: "},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
                    {"type": "image_url", "image_url": {"url": "https://x/y.gif"}},
                ],
            },
            {
                "role": "assistant",
                "content": "Let me see.",
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "weather", "arguments": '{"city":"Oslo"}'},
                    },
                    {"id": remapped, "type": "function", "function": {"name": "weather", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "18 °C"},
            {"role": "tool", "tool_call_id": remapped, "content": "(no output)"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Image from the result of weather:"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,REVG"}},
                ],
            },
            {"role": "user", "content": "Thanks."},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_completion_tokens": 500,
        "temperature": 0.5,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "weather",
                    "description": "Current weather.",
                    "parameters": WEATHER.parameters_schema,
                },
            },
            {
                "type": "function",
                "function": {
                    "name": "clock",
                    "description": "Time.",
                    "parameters": {"type": "object", "properties": {}},
                },
            },
        ],
        "tool_choice": {"type": "function", "function": {"name": "weather"}},
        "prompt_cache_key": "s1",
    }


async def test_empty_turns_are_dropped_and_cut_off_calls_have_object_arguments():
    body = await sent(
        [
            UserMessage("x"),
            AssistantMessage((Thinking("only"), Text(" "))),
            AssistantMessage((ToolCall("a", "weather", {}, '{"ci'),), stop_reason="error"),
            UserMessage((Text(""), Extension("anthropic", {}))),
            UserMessage("y"),
        ]
    )
    assert body["messages"] == [
        {"role": "user", "content": "x"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "error: no result; the call was interrupted"},
        {"role": "user", "content": "y"},
    ]


@pytest.mark.parametrize("choice", ["auto", "none", "required"])
async def test_tool_choice_is_passed_on(choice: str):
    assert (await sent("x", tools=[WEATHER], tool_choice=choice))["tool_choice"] == choice
    assert "tool_choice" not in await sent("x", tool_choice=choice)


@pytest.mark.parametrize(
    ("model_id", "level", "expected"),
    [
        ("gpt-5", "minimal", "minimal"),
        ("gpt-5-mini", "extra_high", "high"),
        ("gpt-5.2", "minimal", "low"),
        ("gpt-5.2", "extra_high", "xhigh"),
        ("o3", "minimal", "low"),
        ("o4-mini", "high", "high"),
        ("gpt-5", "off", "minimal"),
        ("gpt-5.1", "off", "none"),
        ("gpt-4.1", "off", None),
        ("gpt-4.1", "high", None),
        ("gpt-5-chat-latest", "high", None),
    ],
)
async def test_effort_is_sent_where_the_model_takes_it(model_id: str, level: Any, expected: str | None):
    assert (await sent("x", model=ModelSpec("openai", model_id, level))).get("reasoning_effort") == expected


async def test_a_reasoning_model_gets_no_temperature_and_that_is_said_once(caplog: pytest.LogCaptureFixture):
    fn = OpenAIStreamFn(api_key="k")
    with caplog.at_level(logging.WARNING, "swink.providers"):
        for _ in range(2):
            assert "temperature" not in await sent(
                "x", fn=fn, model=ModelSpec("openai", "o3"), temperature=0.3
            )
    assert [record.getMessage() for record in caplog.records] == [
        "openai: option 'temperature' is ignored: o3 takes none"
    ]


async def test_the_models_own_limit_is_the_default():
    assert (await sent("x", model=ModelSpec("openai", "gpt-4.1", max_output=9)))["max_completion_tokens"] == 9
    assert "max_completion_tokens" not in await sent("x")


async def test_extra_fields_are_merged_but_typed_ones_win(caplog: pytest.LogCaptureFixture):
    fn = OpenAIStreamFn(api_key="k")
    extra = {
        "model": "other",
        "response_format": {"type": "json_object"},
        "stream_options": {"include_obfuscation": False},
        "tools": [{"type": "custom", "custom": {"name": "patch"}}],
    }
    body = await sent("x", fn=fn, tools=[WEATHER], extra=extra)
    assert (body["model"], body["response_format"]) == ("gpt-4.1", {"type": "json_object"})
    assert body["stream_options"] == {"include_usage": True, "include_obfuscation": False}
    assert [tool["type"] for tool in body["tools"]] == ["function", "custom"]
    assert [record.getMessage() for record in caplog.records] == [
        "openai: option 'extra.model' is ignored: the adapter sets it itself"
    ]


async def test_url_and_headers_are_as_the_sdk_has_them(server: LoopbackServer):
    server.reply(own_fixtures("openai")[-1].read_bytes())
    await read(OpenAIStreamFn(base_url=f"{server.url}/v1/", api_key="own"), MODEL)
    await sdk_reads(server.url)
    ours, theirs = server.requests
    assert ours.path == theirs.path == "/v1/chat/completions"
    assert ours.headers["authorization"] == "Bearer own"


# --- presets and other servers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["groq", "together", "openrouter", "deepseek"])
async def test_a_preset_has_its_own_url_and_key(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "of-openai")
    missing = await read(OpenAIStreamFn(preset=name), MODEL)
    assert isinstance(missing.terminal, Error)
    assert f"{name.upper()}_API_KEY" in missing.terminal.message
    monkeypatch.setenv(f"{name.upper()}_API_KEY", f"of-{name}")
    client = MemoryClient(sse(chunk({"content": "x"}, "stop")))
    await read(OpenAIStreamFn(preset=name), MODEL, options=StreamOptions(http=client))
    await read(OpenAIStreamFn(base_url=ACCOUNTS[name].base_url), MODEL, options=StreamOptions(http=client))
    for request in client.requests:
        assert request.url == f"{ACCOUNTS[name].base_url}/chat/completions"
        assert request.headers["authorization"] == f"Bearer of-{name}"


@pytest.mark.parametrize("name", ["vllm", "llamacpp", "lmstudio", "sglang"])
async def test_a_local_preset_needs_no_key_and_waits_longer(name: str):
    fn = OpenAIStreamFn(preset=name)
    client = MemoryClient(sse(chunk({"content": "x"}, "stop")))
    await read(fn, ModelSpec(name, "m", max_output=100), options=StreamOptions(http=client, max_tokens=5))
    assert "authorization" not in client.requests[0].headers
    assert client.sent["max_tokens"] == 5
    assert fn.timeout == Timeout(idle=600, first=600)


def test_an_unknown_preset_is_refused():
    with pytest.raises(MisuseError, match="there are openai, groq"):
        OpenAIStreamFn(preset="qroq")


async def test_openais_key_is_not_sent_to_another_host(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "of-openai")
    client = MemoryClient(sse(chunk({"content": "x"}, "stop")))
    result = await read(
        OpenAIStreamFn(base_url="https://llm.example/v1"), MODEL, options=StreamOptions(http=client)
    )
    assert isinstance(result.terminal, Error)
    assert result.terminal.kind == "auth"
    assert client.requests == []


async def test_another_server_gets_max_tokens_and_no_field_it_may_not_know():
    fn = OpenAIStreamFn(base_url="http://127.0.0.1:9/v1")
    body = await sent("x", fn=fn, model=ModelSpec("openai", "m", max_output=100), max_tokens=5)
    assert set(body) == {"model", "messages", "stream", "stream_options", "max_tokens"}
    assert "max_tokens" not in await sent("x", fn=fn, model=ModelSpec("openai", "m", max_output=100))


async def test_an_option_that_a_server_lacks_is_reported_by_name(caplog: pytest.LogCaptureFixture):
    fn = OpenAIStreamFn(preset="groq", api_key="k")
    with caplog.at_level(logging.WARNING, "swink.providers"):
        await sent("x", fn=fn, session_id="s", cache=False)
        await sent("x", fn=fn, session_id="s", cache=False)
    assert len(caplog.records) == 2
    assert "session_id" not in fn.honours
    assert "session_id" in FN.honours


TAGGED = OpenAIStreamFn(base_url="http://127.0.0.1:9/v1")
REASONED = ModelSpec("deepseek", "deepseek-v4-pro", "high")
DEEPSEEK = OpenAIStreamFn(preset="deepseek", api_key="k")


def deepseek_turn(*blocks: Any, provider: str = "deepseek") -> AssistantMessage:
    return AssistantMessage(blocks, provider, REASONED.model_id)


async def test_deepseek_gets_the_reasoning_of_every_turn_with_calls_back_in_all_later_requests():
    history = [
        UserMessage("x"),
        deepseek_turn(Thinking("about a"), ToolCall("a", "weather", {})),
        ToolResultMessage("a", "weather", "18"),
        deepseek_turn(Text("18.")),
        UserMessage("y"),
        deepseek_turn(ToolCall("b", "weather", {})),
        ToolResultMessage("b", "weather", "19"),
        UserMessage("z"),
        deepseek_turn(Thinking("not theirs"), ToolCall("c", "weather", {}), provider="elsewhere"),
        ToolResultMessage("c", "weather", "20"),
        UserMessage("and"),
        deepseek_turn(Text("plain")),
        UserMessage("?"),
    ]
    body = await sent(history, fn=DEEPSEEK, model=REASONED)
    turns = [message for message in body["messages"] if message["role"] == "assistant"]
    assert [turn.get("reasoning_content") for turn in turns] == ["about a", "", "", "", None]
    assert body["thinking"] == {"type": "enabled"}


@pytest.mark.parametrize(
    ("preset", "chunks", "field", "value"),
    [
        ("vllm", [{"reasoning": "Hm."}, {"content": "4"}], "reasoning_content", "Hm."),
        ("groq", [{"reasoning": "Hm."}, {"content": "4"}], "reasoning", "Hm."),
        ("minimax", [{"content": "<think>\nHm.\n</think>\n\n4"}], "content", "<think>\nHm.\n</think>\n\n4"),
        ("lmstudio", [{"content": "<think>Hm.</think>4"}], "content", "4"),
    ],
)
async def test_thinking_goes_back_as_the_server_takes_it(preset: str, chunks: Any, field: str, value: str):
    fn, model = OpenAIStreamFn(preset=preset, api_key="k"), ModelSpec(preset, "m")
    body = sse(*[chunk(delta) for delta in chunks], chunk(finish="stop"), "[DONE]")
    reply = await read(fn, model, options=StreamOptions(http=MemoryClient(body)))
    assert reply.message.content == (Thinking(reply.message.thinking), Text("4"))
    again = await sent([UserMessage("x"), reply.message, UserMessage("y")], fn=fn, model=model)
    assert again["messages"][1][field] == value
    other = await sent(
        [UserMessage("x"), reply.message, UserMessage("y")], fn=fn, model=ModelSpec(preset, "n")
    )
    assert other["messages"][1] == {"role": "assistant", "content": "4"}


async def test_what_google_says_beside_a_call_goes_back_with_it():
    beside = {"google": {"thought_signature": "c2ln"}}
    made = call(0, "a", "weather", "{}")
    made["choices"][0]["delta"]["tool_calls"][0]["extra_content"] = beside
    reply = await replay(made, chunk(finish="tool_calls"))
    history = [UserMessage("x"), reply.message, ToolResultMessage("a", "weather", "18")]
    assert (await sent(history, fn=TAGGED))["messages"][1]["tool_calls"][0]["extra_content"] == beside
    other = await sent(history, fn=TAGGED, model=ModelSpec("openai", "another"))
    assert "extra_content" not in json.dumps(other)


async def test_an_error_in_minimaxs_words_is_an_error():
    result = await replay({"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}})
    assert isinstance(result.terminal, Error)
    assert result.terminal.kind == "auth"
    whole = await replay(chunk({"content": "x"}, base_resp={"status_code": 0, "status_msg": ""}))
    assert whole.message.text == "x"


@pytest.mark.parametrize("id", ["functions.add:0", "call_" + "x" * 80, "ид"])
async def test_an_id_goes_back_as_it_came_to_the_provider_that_made_it(id: str):
    made = await replay(call(0, id, "add", "{}"), chunk(finish="tool_calls"))
    history = [UserMessage("x"), made.message, ToolResultMessage(id, "add", "3")]
    own = (await sent(history * 2))["messages"]
    assert [turn["tool_calls"][0]["id"] for turn in own if turn["role"] == "assistant"] == [id, id]
    assert [turn["tool_call_id"] for turn in own if turn["role"] == "tool"] == [id, id]
    for target in (ModelSpec("groq", "m"), ModelSpec("openrouter", "m")):
        fn = OpenAIStreamFn(preset=target.provider, api_key="k")
        other = (await sent(history, fn=fn, model=target))["messages"]
        mapped = other[1]["tool_calls"][0]["id"]
        assert mapped == other[2]["tool_call_id"] != id
        assert len(mapped) <= 40


async def test_openrouter_reasoning_details_go_back_unchanged():
    fn = OpenAIStreamFn(preset="openrouter", api_key="k")
    model = ModelSpec("openrouter", "anthropic/claude-sonnet-4.5", "high")
    details = [
        {"type": "reasoning.text", "text": "Let me ", "index": 0, "format": "anthropic-claude-v1"},
        {"index": 0, "text": "see"},
    ]
    signed = {"type": "reasoning.text", "index": 0, "signature": "sig"}
    body = sse(
        chunk({"reasoning": "Let me ", "reasoning_details": [details[0]]}),
        chunk({"reasoning": "see", "reasoning_details": [details[1]]}),
        chunk({"content": "", "reasoning_details": [signed]}),
        call(0, "a", "weather", "{}"),
        chunk(finish="tool_calls"),
        "[DONE]",
    )
    reply = await read(fn, model, options=StreamOptions(http=MemoryClient(body)))
    assert reply.message.thinking == "Let me see"
    again = await sent(
        [UserMessage("x"), reply.message, ToolResultMessage("a", "weather", "18")],
        fn=fn,
        model=model,
        system="s",
    )
    assert again["messages"][2]["reasoning_details"] == [
        {
            "type": "reasoning.text",
            "text": "Let me see",
            "index": 0,
            "format": "anthropic-claude-v1",
            "signature": "sig",
        }
    ]
    assert again["reasoning"] == {"effort": "high"}
    assert again["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral"}
    longer = await sent([UserMessage("x")], fn=fn, model=model, cache="1h")
    assert longer["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    other = await sent(
        [UserMessage("x"), reply.message], fn=fn, model=ModelSpec("openrouter", "openai/gpt-5"), cache=True
    )
    assert "reasoning_details" not in str(other)
    assert "cache_control" not in str(other)


async def test_reasoning_details_are_kept_per_type_and_index_and_go_back_as_they_came():
    fn = OpenAIStreamFn(preset="openrouter", api_key="k")
    model = ModelSpec("openrouter", "google/gemini-3-pro", "high")
    text = {"type": "reasoning.text", "index": 0, "format": "google-gemini-v1"}
    first = {"type": "reasoning.encrypted", "index": 0, "id": "functions.add:0", "data": "QQ=="}
    second = {"type": "reasoning.encrypted", "index": 0, "id": "functions.add:1", "data": "Qg=="}
    summary = {"type": "reasoning.summary", "index": 1, "summary": "Sum", "id": None}
    body = sse(
        chunk({"reasoning": "Let ", "reasoning_details": [{**text, "text": "Let "}]}),
        chunk({"reasoning": None, "reasoning_details": [{**text, "text": "me"}]}),
        chunk({"reasoning_details": [summary]}),
        chunk({"reasoning_details": [{"type": "reasoning.summary", "index": 1, "summary": "med"}]}),
        call(0, "functions.add:0", "add", "{}"),
        call(1, "functions.add:1", "add", "{}"),
        chunk({"reasoning_details": [first, second]}),
        chunk(finish="tool_calls"),
    )
    reply = await read(fn, model, options=StreamOptions(http=MemoryClient(body + sse("[DONE]"))))
    assert reply.message.thinking == "Let meSummed"
    results = [ToolResultMessage(made.id, "add", "3") for made in reply.calls]
    again = await sent([UserMessage("x"), reply.message, *results], fn=fn, model=model)
    turn = again["messages"][1]
    assert turn["reasoning_details"] == [
        {**text, "text": "Let me"},
        {**summary, "summary": "Summed"},
        first,
        second,
    ]
    assert [made["id"] for made in turn["tool_calls"]] == [first["id"], second["id"]]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("<think>\nHm.\n</think>\n\nFour.", (Thinking("Hm.\n"), Text("Four."))),
        ("\n<think>Hm.</think>Four <think> not.", (Thinking("Hm."), Text("Four <think> not."))),
        ("<think>\n\n</think>\n\nFour.", (Text("Four."),)),
        ("<think>endless", (Thinking("endless"),)),
        ("<thin", (Text("<thin"),)),
        ("  a <think>b</think>", (Text("  a <think>b</think>"),)),
        ("<table>", (Text("<table>"),)),
    ],
)
async def test_thinking_in_tags_is_thinking_at_the_start_of_a_reply_however_it_is_cut(
    said: str, expected: Any
):
    for size in (1, 3, 100):
        pieces = [chunk({"content": said[at : at + size]}) for at in range(0, len(said), size)]
        assert (await replay(*pieces, chunk(finish="stop"), fn=TAGGED)).message.content == expected
        whole = (await replay(*pieces, chunk(finish="stop"))).message.content
        assert whole == (Text(said),)  # OpenAI's models write none


async def test_a_tag_that_a_call_cuts_off_is_text():
    result = await replay(
        chunk({"content": "<th"}), call(0, "a", "weather", "{}"), chunk(finish="tool_calls"), fn=TAGGED
    )
    assert result.message.content == (Text("<th"), ToolCall("a", "weather", {}))


async def test_an_error_line_is_an_error():
    said = b'error: {"code":500,"message":"out of memory","type":"server_error"}\n\n'
    body = sse(chunk({"content": "par"})) + said + sse("[DONE]")
    result = await read(FN, MODEL, options=StreamOptions(http=MemoryClient(body)))
    assert isinstance(result.terminal, Error)
    assert (result.terminal.kind, result.message.text) == ("network", "par")
    assert "out of memory" in result.terminal.message


FAILED = {
    "message": "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
    "type": "invalid_request_error",
    "code": "tool_use_failed",
    "failed_generation": '<function=weather={"city": "Oslo"}</function>',
}


@pytest.mark.parametrize("in_stream", [True, False])
async def test_a_call_that_groq_could_not_read_goes_back_to_the_model(in_stream: bool):
    fn = OpenAIStreamFn(preset="groq", api_key="k")
    body = json.dumps({"error": FAILED}).encode()
    client = (
        MemoryClient(b"event: error\ndata: " + body + b"\n\n")
        if in_stream
        else MemoryClient(body, status=400)
    )
    tools = [Tool("clock", "Time.", {}), WEATHER]
    result = await read(fn, ModelSpec("groq", "m"), tools=tools, options=StreamOptions(http=client))
    assert result.message.stop_reason == "tool_use", result.terminal
    (made,) = result.message.tool_calls
    assert (made.name, made.partial_json) == ("weather", FAILED["failed_generation"])
    refused = await read(
        fn, ModelSpec("groq", "m"), options=StreamOptions(http=MemoryClient(body, status=400))
    )
    assert isinstance(refused.terminal, Error)


async def test_citations_stand_on_the_text_that_they_support():
    note = {
        "type": "url_citation",
        "url_citation": {
            "url": "https://x/y",
            "title": "Y",
            "start_index": 0,
            "end_index": 4,
            "content": "is",
        },
    }
    noted = await replay(chunk({"content": "Oslo"}), chunk({"annotations": [note]}), chunk(finish="stop"))
    assert noted.message.content == (Text("Oslo", (Citation("https://x/y", "Y", "is", 0, 4, note),)),)
    found = {"title": "Y", "url": "https://x/y", "date": None, "snippet": "is"}
    sources = {"citations": ["https://x/y"], "search_results": [found]}
    cost = {"input_tokens_cost": 0.001, "total_cost": 0.007}
    used = {
        "prompt_tokens": 3,
        "completion_tokens": 2,
        "total_tokens": 5,
        "num_search_queries": 1,
        "cost": cost,
    }
    asked = await replay(
        chunk({"content": "Oslo[1]"}, **sources), chunk(finish="stop", usage=used, **sources)
    )
    assert asked.message.content == (Text("Oslo[1]", (Citation("https://x/y", "Y", "is", data=found),)),)
    assert asked.terminal == Done("stop", Usage(3, 2, 0, 0, 5, {"web_search": 1}), Cost(total=0.007))
    plain = await replay(chunk({"content": "Oslo"}), chunk(finish="stop", citations=["https://x/y"]))
    assert plain.message.content == (Text("Oslo", (Citation("https://x/y", data="https://x/y"),)),)


async def test_images_and_sound_in_a_reply_are_blocks():
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}, "index": 0}
    drawn = await replay(chunk({"content": "Look."}), chunk({"images": [image]}), chunk(finish="stop"))
    assert drawn.message.content == (Text("Look."), Image(Base64Source("QUJD", "image/png")))
    sound = [
        {"id": "a1", "transcript": "Hel"},
        {"data": "QUI="},
        {"transcript": "lo", "data": "Qw=="},
        {"expires_at": 1},
    ]
    spoken = await replay(*[chunk({"audio": piece}) for piece in sound], chunk(finish="stop"))
    assert spoken.message.content == (Text("Hello"), Audio(Base64Source("QUJD", "audio/pcm")))


async def test_what_groqs_own_tools_did_is_kept_and_cited():
    found = {"title": "Y", "url": "https://x/y", "content": "is", "score": 0.9}
    tool = {
        "index": 0,
        "type": "search",
        "arguments": '{"query": "oslo"}',
        "search_results": {"results": [found]},
    }
    result = await replay(chunk({"executed_tools": [tool]}), chunk({"content": "Oslo"}), chunk(finish="stop"))
    kept, text = result.message.content
    assert kept == Extension("openai", {"executed_tool": tool}, 'search: {"query": "oslo"}')
    assert text == Text("Oslo", (Citation("https://x/y", "Y", "is", data=found),))


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({"cost": 0, "is_byok": False}, Cost()),
        (
            {"cost": 0.01, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.25}},
            Cost(total=0.26),
        ),
        ({"cost": 0}, None),
        ({"cost": {"total_cost": 0.5}}, Cost(total=0.5)),
        ({"cost_in_usd_ticks": 10**9}, Cost(total=0.1)),
        ({"cost": "much"}, None),
    ],
)
def test_a_price_in_the_reply_is_read(usage: dict[str, Any], cost: Cost | None):
    assert cost_of(usage) == cost


PDF = Document(Base64Source("JVBERg==", "application/pdf"), "plan.pdf")
NOTES = Document.from_bytes("Grüße".encode(), title="notes.txt")
SOUND = Audio(Base64Source("QUJD", "audio/mpeg"))
FILE = {"type": "file", "file": {"filename": "plan.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}}
HEARD = {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "mp3"}}


async def test_documents_and_sound_are_parts_and_text_documents_are_text():
    body = await sent([UserMessage([Text("Read."), PDF, NOTES, SOUND])])
    assert body["messages"][0]["content"] == [
        {"type": "text", "text": "Read."},
        FILE,
        {"type": "text", "text": "notes.txt:\n\nGrüße"},
        HEARD,
    ]


async def test_media_of_results_and_replies_follow_in_a_message_after_the_batch():
    picture = Image(Base64Source("QUJD", "image/png"))
    shown = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
    calls = [ToolCall("a", "weather", {}), ToolCall("b", "weather", {})]
    history = [
        UserMessage("x"),
        AssistantMessage([picture, *calls], "elsewhere", "m"),
        ToolResultMessage("a", "weather", [PDF]),
        ToolResultMessage("b", "weather", "18"),
        UserMessage("y"),
    ]
    messages = (await sent(history))["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool", "user", "user"]
    assert messages[2]["content"] == "(a file follows)"
    assert messages[4]["content"] == [
        {"type": "text", "text": "Image of the reply:"},
        shown,
        {"type": "text", "text": "File from the result of weather:"},
        FILE,
    ]


async def test_a_router_gets_its_images_and_what_it_read_of_files_back():
    fn, model = OpenAIStreamFn(preset="openrouter", api_key="k"), ModelSpec("openrouter", "google/nano")
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
    note = {"type": "file", "file": {"hash": "h", "name": "plan.pdf", "content": []}}
    body = sse(
        chunk({"content": "Look."}), chunk({"annotations": [note], "images": [image]}, "stop"), "[DONE]"
    )
    reply = await read(fn, model, options=StreamOptions(http=MemoryClient(body)))
    again = await sent([UserMessage("x"), reply.message, UserMessage("y")], fn=fn, model=model)
    turn = {"role": "assistant", "content": "Look.", "images": [image], "annotations": [note]}
    assert again["messages"][1] == turn


@pytest.mark.parametrize(
    ("preset", "block", "words"),
    [
        ("groq", PDF, "groq takes no Document but text"),
        ("openai", Document.from_url("https://x/y.pdf"), "openai takes no Document by URL"),
        ("groq", SOUND, "groq takes no Audio"),
        ("openai", Audio.from_url("https://x/y.mp3"), "openai takes no Audio by URL"),
    ],
)
async def test_what_a_server_does_not_take_is_refused_by_name(preset: str, block: Any, words: str):
    client = MemoryClient(b"")
    fn = OpenAIStreamFn(preset=preset, api_key="k")
    result = await read(
        fn, ModelSpec(preset, "m"), [UserMessage([block])], options=StreamOptions(http=client)
    )
    assert isinstance(result.terminal, Error)
    assert words in result.terminal.message
    assert not client.requests


async def test_a_thinker_that_cannot_be_forced_is_asked_and_that_is_said(caplog: pytest.LogCaptureFixture):
    fn = OpenAIStreamFn(preset="deepseek", api_key="k")
    thinking = await sent("x", fn=fn, model=REASONED, tools=[WEATHER], tool_choice="required")
    assert "tool_choice" not in thinking
    assert "tool_choice" not in await sent("x", fn=fn, model=REASONED, tools=[WEATHER], tool_choice="auto")
    assert "'tool_choice' is ignored" in caplog.text
    plain = ModelSpec("deepseek", "deepseek-v4-pro")
    forced = await sent("x", fn=fn, model=plain, tools=[WEATHER], tool_choice="weather")
    assert forced["tool_choice"]["function"] == {"name": "weather"}
    assert forced["thinking"] == {"type": "disabled"}


async def test_structured_output_works_where_a_call_cannot_be_forced(server: LoopbackServer):
    fn = OpenAIStreamFn(preset="deepseek", base_url=server.url, api_key="k")
    server.reply(sse(chunk({"reasoning_content": "Hm."}), chunk({"content": "It is 42."}, "stop"), "[DONE]"))
    made = call(0, "c1", "final_output", '{"value": 42}')
    server.reply(sse(chunk({"reasoning_content": "Again."}), made, chunk(finish="tool_calls"), "[DONE]"))
    result = await Agent(REASONED, stream_fn=fn).run("How many?", output=int)
    assert result.value == 42
    first, second = (json.loads(request.body) for request in server.requests)
    assert "tool_choice" not in first
    assert first["thinking"] == {"type": "enabled"}
    assert second["messages"][1] == {"role": "assistant", "content": "It is 42.", "reasoning_content": "Hm."}


@pytest.mark.parametrize(
    ("level", "expected"),
    [("minimal", "low"), ("low", "low"), ("medium", "high"), ("high", "high"), ("extra_high", "max")],
)
async def test_deepseek_takes_three_efforts(level: Any, expected: str):
    body = await sent("x", fn=DEEPSEEK, model=ModelSpec("deepseek", "deepseek-v4-flash", level))
    assert body["reasoning_effort"] == expected


async def test_options_are_said_in_the_words_of_the_server_or_reported(caplog: pytest.LogCaptureFixture):
    chosen: Any = {
        "top_p": 0.5,
        "stop": ("END",),
        "seed": 7,
        "service_tier": "flex",
        "verbosity": "low",
        "parallel_tool_calls": False,
    }
    body = await sent("x", tools=[WEATHER], **chosen)
    assert {name: body[name] for name in chosen} == {**chosen, "stop": ["END"]}
    fn = OpenAIStreamFn(preset="moonshot", api_key="k")
    kimi = await sent("x", fn=fn, model=ModelSpec("moonshot", "kimi-k2.6"), tools=[WEATHER], **chosen)
    assert [name for name in chosen if name in kimi] == ["stop"]
    ignored = [record.getMessage() for record in caplog.records]
    assert len(ignored) == 5
    reasoner = ModelSpec("openai", "gpt-5")
    assert not {"top_p", "stop"} & set(await sent("x", model=reasoner, top_p=0.5, stop=("END",)))


PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}


async def bodied(
    provider: str, model_id: str, *hosted: Any, tools: Any = (), output: Any = None
) -> dict[str, Any]:
    """The body of a request for hosted tools, or for an answer of a schema."""
    client = MemoryClient(sse(chunk({"content": "x"}, "stop"), "[DONE]"))
    fn = OpenAIStreamFn(preset=provider, api_key="k")
    context = LlmContext("", [UserMessage("x")], tools, hosted, output)
    events = [event async for event in fn(ModelSpec(provider, model_id), context, StreamOptions(http=client))]
    if isinstance(last := events[-1], Error):
        raise StreamError(last.message)
    return client.sent


async def test_a_schema_is_held_by_the_server():
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

    body = await bodied("openai", "gpt-4.1", output=OutputSchema("person", PERSON))
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "person", "schema": PERSON, "strict": True},
    }
    check_types(CompletionCreateParamsStreaming, body)
    loose = await bodied("openai", "gpt-4.1", output=OutputSchema("any", {"type": "object"}))
    assert loose["response_format"]["json_schema"]["strict"] is False


@pytest.mark.parametrize(
    ("provider", "known", "tools", "held"),
    [
        ("openai", True, True, True),
        ("openai", None, False, False),
        ("vllm", True, False, True),
        ("vllm", True, True, False),
        ("deepseek", True, False, False),
        ("groq", True, False, False),
    ],
)
def test_schemas_are_held_where_server_and_model_can(
    provider: str, known: bool | None, tools: bool, held: bool
):
    model = ModelSpec(provider, "m", capabilities=Capabilities(json_schema=known))
    assert takes_schema(model, PRESETS[provider], has_tools=tools) is held


OSLO = Location(country="NO", city="Oslo")


@pytest.mark.parametrize(
    ("provider", "model_id", "tool", "fields"),
    [
        ("openai", "gpt-4o-search-preview", WebSearch(), {"web_search_options": {}}),
        (
            "openai",
            "gpt-5-search-api",
            WebSearch(location=OSLO),
            {
                "web_search_options": {
                    "user_location": {"type": "approximate", "approximate": {"country": "NO", "city": "Oslo"}}
                }
            },
        ),
        ("openrouter", "openai/gpt-5", WebSearch(), {"tools": [{"type": "openrouter:web_search"}]}),
        (
            "openrouter",
            "openai/gpt-5",
            WebSearch(allowed_domains=["x.org"], location=OSLO),
            {
                "tools": [
                    {
                        "type": "openrouter:web_search",
                        "parameters": {
                            "allowed_domains": ["x.org"],
                            "user_location": {"type": "approximate", "country": "NO", "city": "Oslo"},
                        },
                    }
                ]
            },
        ),
        ("perplexity", "sonar", WebSearch(blocked_domains=["x.org"]), {"search_domain_filter": ["-x.org"]}),
        (
            "groq",
            "groq/compound",
            WebSearch(allowed_domains=["x.org"]),
            {
                "compound_custom": {"tools": {"enabled_tools": ["web_search"]}},
                "search_settings": {"include_domains": ["x.org"]},
            },
        ),
        ("groq", "openai/gpt-oss-20b", CodeExecution(), {"tools": [{"type": "code_interpreter"}]}),
        ("zai", "glm-5", ProviderTool("zai", {"type": "web_search"}), {"tools": [{"type": "web_search"}]}),
    ],
)
async def test_hosted_tools_are_asked_for_in_the_words_of_the_server(
    provider: str, model_id: str, tool: Any, fields: dict[str, Any]
):
    plain = await bodied(provider, model_id)
    assert await bodied(provider, model_id, tool) == {**plain, **fields}
    beside = await bodied(provider, model_id, tool, tools=[WEATHER])
    assert len(beside["tools"]) == 1 + len(fields.get("tools", ()))


@pytest.mark.parametrize(
    ("provider", "model_id", "tool", "words"),
    [
        (
            "openai",
            "gpt-5",
            WebSearch(),
            "no hosted WebSearch for gpt-5; it has WebSearch, for its search models",
        ),
        ("openai", "gpt-4o-search-preview", WebSearch(allowed_domains=["x.org"]), "allowed_domains"),
        ("openai", "gpt-5", CodeExecution(), "openai-responses has more"),
        (
            "groq",
            "llama-3.3-70b-versatile",
            WebSearch(),
            "it has WebSearch, WebFetch and CodeExecution for groq",
        ),
        ("mistral-like", "m", WebSearch(), "use a provider that has it"),
        ("openrouter", "m", ProviderTool("groq", {"type": "x"}), "no hosted ProviderTool of groq"),
    ],
)
async def test_a_hosted_tool_that_a_server_lacks_is_refused_by_name(
    provider: str, model_id: str, tool: Any, words: str
):
    with pytest.raises(StreamError, match=words):
        await bodied("vllm" if provider == "mistral-like" else provider, model_id, tool)


async def test_only_text_is_marked_for_claudes_cache_behind_openrouter():
    fn, model = (
        OpenAIStreamFn(preset="openrouter", api_key="k"),
        ModelSpec("openrouter", "anthropic/claude-x"),
    )
    picture, paper = (
        Image.from_url("https://x.example/a.png"),
        Document.from_bytes(b"%PDF-", "application/pdf"),
    )
    history = [
        UserMessage("first"),
        AssistantMessage("a", "openrouter", "m"),
        UserMessage([Text("second"), picture, paper]),
        AssistantMessage("b", "openrouter", "m"),
        UserMessage([picture]),
    ]
    body = await sent(history, fn=fn, model=model, cache=True)
    marked = [
        part
        for message in body["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
        if "cache_control" in part
    ]
    assert [part["text"] for part in marked] == ["second", "first"][::-1]


async def test_perplexity_is_asked_in_its_own_words(caplog: pytest.LogCaptureFixture):
    fn, model = OpenAIStreamFn(preset="perplexity", api_key="k"), ModelSpec("perplexity", "sonar")
    client = MemoryClient(sse(chunk({"content": "x"}, "stop"), "[DONE]"))
    search = WebSearch(location=Location("NO", city="Oslo", timezone="Europe/Oslo"))
    for choice, expected in (("weather", "required"), ("auto", "auto")):
        options = StreamOptions(http=client, tool_choice=choice)
        await read(fn, model, tools=[WEATHER], hosted=[search], options=options)
        assert client.sent["tool_choice"] == expected
    assert client.sent["web_search_options"] == {"user_location": {"country": "NO", "city": "Oslo"}}
    assert "stream_options" not in client.sent
    assert [record.getMessage().split("'")[1] for record in caplog.records] == [
        "tool_choice",
        "WebSearch.location.timezone",
    ]


async def test_perplexity_is_spoken_to_in_turns():
    client = MemoryClient(sse(chunk({"content": "Hi"}, "stop"), "[DONE]"))
    model = ModelSpec("perplexity", "sonar")
    picture = Image(UrlSource("https://example.com/cat.png"))
    history = [
        AssistantMessage("Welcome.", "perplexity", "sonar"),
        AssistantMessage("Ask me.", "perplexity", "sonar"),
        UserMessage("One"),
        AssistantMessage([], "perplexity", "sonar", "error", error_message="boom", error_kind="network"),
        UserMessage("Two"),
        UserMessage([Text("Three"), picture]),
    ]
    fn = OpenAIStreamFn(preset="perplexity", api_key="k")
    await read(fn, model, history, options=StreamOptions(http=client))
    assert client.sent["messages"] == [
        {"role": "user", "content": "(continued)"},
        {"role": "assistant", "content": "Welcome.\n\nAsk me."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "One\n\nTwo"},
                {"type": "text", "text": "Three"},
                {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}},
            ],
        },
    ]


async def test_two_calls_with_one_id_are_told_apart_by_their_index():
    body = sse(
        call(0, "x", "weather", '{"city": "Oslo"}'),
        call(1, "x", "weather", '{"city": '),
        call(1, "x", "weather", '"Bergen"}'),
        chunk(finish="tool_calls"),
        "[DONE]",
    )
    result = await read(FN, MODEL, tools=[WEATHER], options=StreamOptions(http=MemoryClient(body)))
    assert [made.arguments["city"] for made in result.calls] == ["Oslo", "Bergen"]
