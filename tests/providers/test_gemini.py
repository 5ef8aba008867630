"""Gemini: the adapter against Google's own SDK on the same bytes, and requests against the SDK's types."""

import asyncio
import json
import re
from itertools import pairwise

import pytest
from histories import IDS, foreign_history
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loopback import WEATHER, MemoryClient, Tool, cut_places, framed, own_fixtures, read, recorded, sse
from tests.counts import in_cells
from tests.pins import compares_with
from validators import check_gemini

from swink.errors import NetworkError
from swink.messages import (
    AssistantMessage,
    Base64Source,
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
from swink.providers.gemini import GeminiStreamFn
from swink.providers.gemini.arguments import ArgumentWriter, PartialArgument, parse_path
from swink.stream import Done, Error, Start, StreamOptions

MODEL = ModelSpec("gemini", "gemini-3-pro-preview")
OLDER = ModelSpec("gemini", "gemini-2.5-flash")
FIXTURES = {path.stem: path.read_bytes() for path in own_fixtures("gemini")}
RECORDED = {path.name.removesuffix(".chunks.txt"): path for path in recorded("google")}
lean = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch):
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_GENAI_USE_VERTEXAI"):
        monkeypatch.delenv(name, raising=False)


async def replay(body, *, tools=(), model=MODEL, messages="Hello", **client):
    memory = MemoryClient(body, **client)
    return await read(
        GeminiStreamFn(api_key="k"), model, messages, tools=tools, options=StreamOptions(http=memory)
    )


async def sent_for(messages, *, model=MODEL, system="", tools=(), **options):
    memory = MemoryClient(FIXTURES["text"])
    await read(
        GeminiStreamFn(api_key="k"),
        model,
        messages,
        system=system,
        tools=tools,
        options=StreamOptions(http=memory, **options),
    )
    return memory.sent


def chunk(*parts, finish=None, **more):
    candidate = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    return {"candidates": [{**candidate, "finishReason": finish} if finish else candidate], **more}


# The SDK as the oracle


def sdk_reads(url):
    """What Google's SDK makes of the reply: text, thinking, calls, finish reason, usage."""
    from google import genai
    from google.genai import types

    with genai.Client(
        api_key="k", http_options=types.HttpOptions(base_url=url, api_version="v1beta")
    ) as client:
        responses = list(
            client.models.generate_content_stream(model="gemini-3-pro-preview", contents="Hello")
        )
    text, thinking, calls, finish, counts = "", "", [], None, {}
    for response in responses:
        counts |= response.usage_metadata.model_dump(exclude_none=True) if response.usage_metadata else {}
        for candidate in response.candidates or []:
            finish = candidate.finish_reason or finish
            for part in (candidate.content and candidate.content.parts) or []:
                if part.function_call is not None:
                    add_call(calls, part.function_call)
                elif part.thought:
                    thinking += part.text or ""
                else:
                    text += part.text or ""
    cached = counts.get("cached_content_token_count", 0)
    usage = (
        counts.get("prompt_token_count", 0) + counts.get("tool_use_prompt_token_count", 0) - cached,
        counts.get("candidates_token_count", 0) + counts.get("thoughts_token_count", 0),
        cached,
        0,
    )
    return text, thinking, calls, finish and finish.value, usage


def add_call(calls, call):
    if call.name:
        calls.append([call.id, call.name, call.args or {}])
    for piece in call.partial_args or []:
        value = piece.number_value if piece.number_value is not None else piece.bool_value
        steps = re.findall(r"\.(\w+)|\[(\d+)\]|\['([^']*)'\]", piece.json_path)
        put(
            calls[-1][2],
            [int(index) if index else name or quoted for name, index, quoted in steps],
            piece.string_value,
            value,
        )


def put(target, path, string, value):
    """The naive reading of a JSON path: make what is missing, join strings."""
    for key, following in pairwise(path):
        if isinstance(target, list) and key == len(target):
            target.append([] if isinstance(following, int) else {})
        elif isinstance(target, dict):
            target.setdefault(key, [] if isinstance(following, int) else {})
        target = target[key]
    key = path[-1]
    if isinstance(target, list) and key == len(target):
        target.append("" if string is not None else None)
    elif isinstance(target, dict) and string is not None:
        target.setdefault(key, "")
    target[key] = value if string is None else target[key] + string


OUTCOMES = {"STOP": "stop", "MAX_TOKENS": "length", "SAFETY": "content_filtered", None: "content_filtered"}


@in_cells("name", [*FIXTURES, *RECORDED], every=3)
async def test_the_adapter_reads_what_the_sdk_reads(server, name):
    server.reply(FIXTURES[name] if name in FIXTURES else framed(RECORDED[name]))
    text, thinking, calls, finish, usage = await asyncio.to_thread(sdk_reads, server.url)
    got = await read(GeminiStreamFn(base_url=server.url, api_key="k"), MODEL)
    assert (got.message.text, got.message.thinking) == (text, thinking)
    assert [(call.name, call.arguments) for call in got.calls] == [
        (name, arguments) for _, name, arguments in calls
    ]
    assert all(call.id == id for call, (id, *_) in zip(got.calls, calls, strict=True) if id)
    assert len({call.id for call in got.calls}) == len(calls)
    outcome = got.terminal.stop_reason if isinstance(got.terminal, Done) else got.terminal.kind
    assert outcome == ("tool_use" if finish == "STOP" and calls else OUTCOMES[finish])
    counted = got.terminal.usage
    assert (counted.input, counted.output, counted.cache_read, counted.cache_write) == usage
    assert counted.total == sum(usage)
    asked = [request.path for request in server.requests]
    assert asked == ["/v1beta/models/gemini-3-pro-preview:streamGenerateContent?alt=sse"] * 2


def test_recorded_streams_are_there():
    if not RECORDED:
        pytest.skip("no recorded streams beside the checkout")
    assert "google-reasoning-gemini3" in RECORDED


# Hand-checked usage (the numbers in the fixtures)


@pytest.mark.parametrize(
    ("name", "usage"),
    [
        ("parallel-calls", Usage(9, 75, 20, 0, 104, {"reasoning": 45})),
        ("thinking", Usage(12, 95, 0, 0, 107, {"reasoning": 90})),
        ("length", Usage(8, 6)),
        ("blocked-prompt", Usage(7)),
    ],
)
async def test_usage_categories_do_not_overlap(name, usage):
    assert (await replay(FIXTURES[name])).terminal.usage == usage


async def test_tokens_of_other_media_and_the_tier_are_named():
    def details(**counts):
        return [{"modality": name.upper(), "tokenCount": count} for name, count in counts.items()]

    metadata = {
        "promptTokenCount": 300,
        "cachedContentTokenCount": 100,
        "candidatesTokenCount": 1290,
        "promptTokensDetails": details(text=50, audio=150, image=100),
        "cacheTokensDetails": details(audio=100),
        "candidatesTokensDetails": details(image=1290),
        "serviceTier": "flex",
    }
    body = sse({**chunk({"text": "x"}, finish="STOP"), "usageMetadata": metadata})
    named = {
        "input_audio": 50,
        "cache_read_audio": 100,
        "input_image": 100,
        "output_image": 1290,
        "service_tier_flex": 1,
    }
    assert (await replay(body)).terminal.usage == Usage(200, 1290, 100, 0, 0, named)
    for tier, extra in (
        ({"trafficType": "ON_DEMAND_PRIORITY"}, {"service_tier_priority": 1}),
        ({"trafficType": "ON_DEMAND"}, {}),
        ({"serviceTier": "standard", "promptTokensDetails": ["odd", {"modality": 1}]}, {}),
    ):
        body = sse({**chunk({"text": "x"}, finish="STOP"), "usageMetadata": {"promptTokenCount": 1, **tier}})
        assert (await replay(body)).terminal.usage.extra == extra


# Signatures


async def test_signatures_go_back_on_the_parts_they_came_on():
    got = await replay(FIXTURES["thinking"])
    sent = await sent_for([UserMessage("Hi"), got.message, UserMessage("Go on")])
    assert sent["contents"][1]["parts"] == [
        {"text": "**Counting**\n\ns-t-r …", "thought": True},
        {"text": "There are "},
        {"text": "three.", "thoughtSignature": "c2lnbmF0dXJlIG9uIHRleHQ="},
        {"text": "", "thoughtSignature": "c2lnbmF0dXJlIG9uIG5vdGhpbmc="},
    ]
    assert got.message.text == "There are three."


async def test_a_signed_call_goes_back_signed_and_with_its_id():
    got = await replay(FIXTURES["parallel-calls"])
    results = [ToolResultMessage(call.id, call.name, "ok") for call in got.calls]
    sent = await sent_for([UserMessage("Hi"), got.message, *results])
    assert sent["contents"][1]["parts"] == [
        {"text": "Two cities."},
        {
            "functionCall": {"id": "fc-1", "name": "weather", "args": {"city": "Oslo"}},
            "thoughtSignature": "Zmlyc3QgY2FsbA==",
        },
        {
            "functionCall": {
                "id": "fc-2",
                "name": "weather",
                "args": {"city": "Bergen", "days": [1, 2.5, None, True]},
            }
        },
    ]
    assert [part["functionResponse"]["id"] for part in sent["contents"][2]["parts"]] == ["fc-1", "fc-2"]


@pytest.mark.skipif(not RECORDED, reason="no recorded streams beside the checkout")
async def test_every_signature_of_the_recorded_streams_survives_a_round_trip():
    for path in RECORDED.values():
        wanted = re.findall(r'"thoughtSignature":"([^"]+)"', path.read_text())
        got = await replay(framed(path))
        results = [ToolResultMessage(call.id, call.name, "ok") for call in got.calls]
        stored = json.loads(
            json.dumps(await sent_for([UserMessage("Hi"), got.message, *results, UserMessage("Go on")]))
        )
        back = [
            part["thoughtSignature"]
            for content in stored["contents"]
            for part in content["parts"]
            if "thoughtSignature" in part
        ]
        assert back == wanted, path.name


async def test_a_signed_thought_is_a_block_of_its_own():
    body = sse(
        chunk({"text": "one ", "thought": True}),
        chunk({"text": "two", "thought": True, "thoughtSignature": "cw=="}),
        chunk({"text": "three", "thought": True}),
        chunk({"text": "Hi"}, finish="STOP"),
    )
    got = await replay(body)
    assert got.message.content == (Thinking("one "), Thinking("two", "cw=="), Thinking("three"), Text("Hi"))


async def test_another_models_thinking_and_signatures_are_left_out():
    foreign = AssistantMessage(
        [
            Thinking("t", "s"),
            Thinking("", "text:x", True),
            Text("Hi"),
            ToolCall("toolu_1", "weather", {"city": "Oslo"}, None, "sig"),
        ],
        "anthropic",
        "claude",
    )
    history = [UserMessage("Hi"), foreign, ToolResultMessage("toolu_1", "weather", "18 °C")]
    newer, older = await sent_for(history), await sent_for(history, model=OLDER)
    assert (await sent_for(history, model=ModelSpec("gemini", "gemini-flash-latest")))["contents"] == newer[
        "contents"
    ]
    call = {"functionCall": {"id": "toolu_1", "name": "weather", "args": {"city": "Oslo"}}}
    assert older["contents"][1]["parts"] == [{"text": "Hi"}, call]
    assert newer["contents"][1]["parts"] == [
        {"text": "Hi"},
        {**call, "thoughtSignature": "skip_thought_signature_validator"},
    ]


async def test_a_message_of_thinking_alone_is_left_out():
    cut = AssistantMessage([Thinking("hm")], "gemini", MODEL.model_id, "aborted")
    sent = await sent_for([UserMessage("Hi"), cut, UserMessage("Go on")])
    assert sent["contents"] == [{"role": "user", "parts": [{"text": "Hi"}, {"text": "Go on"}]}]


# Requests


HISTORY = [
    UserMessage(
        [
            Text("What is this?"),
            Image(Base64Source("aGk=", "image/png")),
            Image(UrlSource("https://x.example/a.png")),
            Text("   "),
        ]
    ),
    AssistantMessage(
        [
            Thinking("Let me see.", "dGhvdWdodA=="),
            Text("Looking."),
            ToolCall("a", "weather", {"city": "Oslo"}, None, "Y2FsbA=="),
            ToolCall("swink-1", "now"),
        ],
        "gemini",
        MODEL.model_id,
        "tool_use",
    ),
    ToolResultMessage(
        "a", "weather", [Text("18 °C"), Image(Base64Source("eW8=", "image/jpeg"))], details={"private": 1}
    ),
    ToolResultMessage("swink-1", "now", "clock is broken", True),
    UserMessage("And tomorrow?"),
    AssistantMessage([Text("  ")], "gemini", MODEL.model_id),
    UserMessage(
        [
            Text("Well?"),
            Extension(
                "gemini", {"videoMetadata": {"fps": 2}, "fileData": {"fileUri": "https://y.example/v"}}
            ),
            Extension("other", 1),
        ]
    ),
]
NOW = Tool("now", "The time.", {"type": "object"})


async def test_the_request_is_exactly_this():
    memory = MemoryClient(FIXTURES["text"])
    options = StreamOptions(
        0.5,
        3000,
        "option-key",
        tool_choice="weather",
        http=memory,
        extra={"generationConfig": {"topP": 0.9, "temperature": 2}, "labels": {"a": "b"}},
    )
    model = ModelSpec("gemini", "gemini-3-pro-preview", "high")
    await read(
        GeminiStreamFn(api_key="constructor-key"),
        model,
        HISTORY,
        system="Be brief.",
        tools=[WEATHER, NOW],
        options=options,
    )
    [request] = memory.requests
    assert (
        request.url
        == "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro-preview:streamGenerateContent?alt=sse"
    )
    assert request.headers == {
        "content-type": "application/json",
        "accept": "text/event-stream",
        "x-goog-api-key": "option-key",
    }
    assert memory.sent == {
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"text": "What is this?"},
                    {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
                    {"fileData": {"mimeType": "image/png", "fileUri": "https://x.example/a.png"}},
                ],
            },
            {
                "role": "model",
                "parts": [
                    {"text": "Let me see.", "thought": True, "thoughtSignature": "dGhvdWdodA=="},
                    {"text": "Looking."},
                    {
                        "functionCall": {"id": "a", "name": "weather", "args": {"city": "Oslo"}},
                        "thoughtSignature": "Y2FsbA==",
                    },
                    {"functionCall": {"name": "now", "args": {}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {
                        "functionResponse": {
                            "id": "a",
                            "name": "weather",
                            "response": {"output": "18 °C"},
                            "parts": [{"inlineData": {"mimeType": "image/jpeg", "data": "eW8="}}],
                        }
                    },
                    {"functionResponse": {"name": "now", "response": {"error": "clock is broken"}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"text": "And tomorrow?"},
                    {"text": "Well?"},
                    {"videoMetadata": {"fps": 2}, "fileData": {"fileUri": "https://y.example/v"}},
                ],
            },
        ],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "weather",
                        "description": "Current weather.",
                        "parametersJsonSchema": WEATHER.parameters_schema,
                    },
                    {
                        "name": "now",
                        "description": "The time.",
                        "parametersJsonSchema": {"type": "object", "properties": {}},
                    },
                ]
            }
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["weather"]}},
        "generationConfig": {
            "topP": 0.9,
            "temperature": 0.5,
            "maxOutputTokens": 3000,
            "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "HIGH"},
        },
        "labels": {"a": "b"},
    }
    check_gemini(memory.sent)


async def test_the_sdk_sends_the_same_contents(server):
    server.reply(FIXTURES["text"])
    sent = await sent_for(HISTORY, tools=[WEATHER, NOW], tool_choice="auto")

    def send():
        from google import genai
        from google.genai import types

        contents = [types.Content.model_validate_json(json.dumps(content)) for content in sent["contents"]]
        config = types.GenerateContentConfig(
            tools=[types.Tool.model_validate_json(json.dumps(tool)) for tool in sent["tools"]],
            tool_config=types.ToolConfig.model_validate_json(json.dumps(sent["toolConfig"])),
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )
        with genai.Client(
            api_key="k", http_options=types.HttpOptions(base_url=server.url, api_version="v1beta")
        ) as client:
            list(
                client.models.generate_content_stream(model=MODEL.model_id, contents=contents, config=config)
            )

    await asyncio.to_thread(send)
    for name in ("contents", "tools", "toolConfig"):
        assert camel(server.requests[0].json[name]) == sent[name]


def camel(value):
    """The SDK writes some names with underscores, which the API takes as well."""
    if isinstance(value, dict):
        return {
            re.sub(r"_(\w)", lambda found: found[1].upper(), key): camel(item) for key, item in value.items()
        }
    return [camel(item) for item in value] if isinstance(value, list) else value


async def test_pictures_in_results_stand_beside_them_before_gemini_3():
    picture = Image(Base64Source("eW8=", "image/jpeg"))
    history = [
        UserMessage("Hi"),
        AssistantMessage([ToolCall("a", "shot"), ToolCall("b", "shot")]),
        ToolResultMessage("a", "shot", [picture]),
        ToolResultMessage("b", "shot", []),
        UserMessage("Well?"),
    ]
    sent = await sent_for(history, model=OLDER)
    assert sent["contents"][2:] == [
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "a", "name": "shot", "response": {"output": "(see image)"}}},
                {"functionResponse": {"id": "b", "name": "shot", "response": {"output": "(no output)"}}},
            ],
        },
        {
            "role": "user",
            "parts": [{"inlineData": {"mimeType": "image/jpeg", "data": "eW8="}}, {"text": "Well?"}],
        },
    ]
    assert (await sent_for(history[:-1], model=OLDER))["contents"][3]["parts"] == [
        {"inlineData": {"mimeType": "image/jpeg", "data": "eW8="}}
    ]
    check_gemini(sent)


async def test_a_history_that_begins_with_the_model_gets_a_beginning():
    sent = await sent_for([AssistantMessage("Welcome."), UserMessage("Hi")])
    assert [content["role"] for content in sent["contents"]] == ["user", "model", "user"]


async def test_googles_own_tools_stand_beside_ours():
    sent = await sent_for("Hi", tools=[WEATHER], extra={"tools": [{"googleSearch": {}}]})
    assert [next(iter(tool)) for tool in sent["tools"]] == ["functionDeclarations", "googleSearch"]
    assert (await sent_for("Hi", extra={"tools": [{"googleSearch": {}}]}))["tools"] == [{"googleSearch": {}}]


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        ("auto", {"mode": "AUTO"}),
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        ("now", {"mode": "ANY", "allowedFunctionNames": ["now"]}),
    ],
)
async def test_tool_choice(choice, config):
    assert (await sent_for("Hi", tools=[NOW], tool_choice=choice))["toolConfig"] == {
        "functionCallingConfig": config
    }


@pytest.mark.parametrize(
    ("name", "level", "config"),
    [
        ("gemini-2.5-flash", "off", {"thinkingBudget": 0}),
        ("gemini-2.5-pro", "off", {"thinkingBudget": 128}),
        ("gemini-2.5-flash", "low", {"includeThoughts": True, "thinkingBudget": 1024}),
        ("gemini-2.5-pro", "extra_high", {"includeThoughts": True, "thinkingBudget": 24_576}),
        ("gemini-3-pro-preview", "off", {"thinkingLevel": "LOW"}),
        ("gemini-3-flash-preview", "off", {"thinkingLevel": "MINIMAL"}),
        ("gemini-3-pro-preview", "medium", {"includeThoughts": True, "thinkingLevel": "HIGH"}),
        ("gemini-3.1-pro-preview", "medium", {"includeThoughts": True, "thinkingLevel": "MEDIUM"}),
        ("gemini-3-flash-preview", "minimal", {"includeThoughts": True, "thinkingLevel": "MINIMAL"}),
        ("gemini-3-pro-preview", "extra_high", {"includeThoughts": True, "thinkingLevel": "HIGH"}),
        ("gemini-2.0-flash", "high", None),
        ("gemini-2.5-flash-image", "high", None),
        ("gemma-3-27b-it", "high", None),
    ],
)
async def test_thinking_levels(name, level, config):
    sent = await sent_for("Hi", model=ModelSpec("gemini", name, level))
    assert sent.get("generationConfig", {}).get("thinkingConfig") == config
    check_gemini(sent)


async def test_a_budget_of_the_callers_wins_and_leaves_room_for_the_answer():
    chosen = ModelSpec("gemini", "gemini-3-pro-preview", "low", {"low": 77})
    assert (await sent_for("Hi", model=chosen))["generationConfig"]["thinkingConfig"] == {
        "includeThoughts": True,
        "thinkingBudget": 77,
    }
    sent = await sent_for("Hi", model=ModelSpec("gemini", "gemini-2.5-flash", "high"), max_tokens=2000)
    assert sent["generationConfig"]["thinkingConfig"]["thinkingBudget"] == 1000


async def test_keys_come_from_options_then_constructor_then_environment(monkeypatch):
    async def key_of(fn, given=None):
        memory = MemoryClient(FIXTURES["text"])
        await read(fn, MODEL, options=StreamOptions(http=memory, api_key=given))
        return memory.requests[0].headers.get("x-goog-api-key")

    monkeypatch.setenv("GEMINI_API_KEY", "second")
    assert await key_of(GeminiStreamFn()) == "second"
    monkeypatch.setenv("GOOGLE_API_KEY", "first")
    assert await key_of(GeminiStreamFn()) == "first"
    assert await key_of(GeminiStreamFn(api_key="constructor")) == "constructor"
    assert await key_of(GeminiStreamFn(api_key="constructor"), "option") == "option"
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "https://gateway.example")
    assert "gateway.example" in repr(GeminiStreamFn())


async def test_without_a_key_it_says_which_variable_to_set():
    got = await read(GeminiStreamFn(), MODEL)
    assert got.events == [Start(), got.terminal]
    assert got.terminal.kind == "auth"
    assert "GEMINI_API_KEY" in got.terminal.message


async def test_a_key_from_the_environment_does_not_go_elsewhere(monkeypatch):
    monkeypatch.setenv("GEMINI_API_KEY", "secret-key")
    memory = MemoryClient(FIXTURES["text"])
    got = await read(
        GeminiStreamFn(base_url="https://elsewhere.example"), MODEL, options=StreamOptions(http=memory)
    )
    assert got.terminal.kind == "auth"
    assert memory.requests == []


async def test_options_without_an_equivalent_are_reported_once(caplog):
    fn = GeminiStreamFn(api_key="k")
    for _ in range(2):
        await read(
            fn,
            MODEL,
            options=StreamOptions(session_id="s", cache=False, http=MemoryClient(FIXTURES["text"])),
        )
    assert caplog.text.count("'session_id'") == 1
    assert caplog.text.count("'cache'") == 1


# How replies end


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("CONTINUATION", "length"),
        ("SAFETY", "content_filtered"),
        ("RECITATION", "content_filtered"),
        ("BLOCKLIST", "content_filtered"),
        ("PROHIBITED_CONTENT", "content_filtered"),
        ("SPII", "content_filtered"),
        ("IMAGE_SAFETY", "content_filtered"),
        ("IMAGE_PROHIBITED_CONTENT", "content_filtered"),
        ("IMAGE_RECITATION", "content_filtered"),
        ("IMAGE_OTHER", "content_filtered"),
        ("LANGUAGE", "stream"),
        ("OTHER", "stream"),
        ("NO_IMAGE", "stream"),
        ("UNEXPECTED_TOOL_CALL", "stream"),
        ("TOO_MANY_TOOL_CALLS", "stream"),
        ("MALFORMED_FUNCTION_CALL", "tool_use"),
        ("MALFORMED_RESPONSE", "network"),
        ("FINISH_REASON_UNSPECIFIED", "stream"),
        ("A_REASON_OF_NEXT_YEAR", "stream"),
    ],
)
async def test_every_finish_reason_has_its_outcome(reason, outcome):
    got = await replay(sse(chunk({"text": "par"}, finish=reason)))
    terminal = got.terminal
    assert (terminal.stop_reason if isinstance(terminal, Done) else terminal.kind) == outcome
    assert got.message.text == "par"
    if isinstance(terminal, Error):
        assert (
            reason in terminal.message
            or "malformed" in terminal.message
            or "could not read" in terminal.message
        )


@compares_with("google-genai")
def test_every_finish_reason_of_the_sdk_is_in_the_table():
    from google.genai import types

    [mark] = [
        mark for mark in test_every_finish_reason_has_its_outcome.pytestmark if mark.name == "parametrize"
    ]
    assert {reason.value for reason in types.FinishReason} <= {reason for reason, _ in mark.args[1]}


async def test_a_blocked_prompt_is_content_filtered():
    from google.genai import types

    for reason in types.BlockedReason:
        got = await replay(sse({"promptFeedback": {"blockReason": reason.value}}))
        assert got.events[0] == Start()
        assert got.terminal.kind == "content_filtered"
        assert reason.value in got.terminal.message


async def test_a_malformed_call_comes_back_to_the_model_as_its_own_error():
    event = chunk(finish="MALFORMED_FUNCTION_CALL")
    event["candidates"][0]["finishMessage"] = "Malformed function call: print(default_api.weather(city='Oslo)"
    got = await replay(sse(event), tools=[WEATHER, NOW])
    assert got.terminal.stop_reason == "tool_use"
    [call] = got.calls
    assert call.name == "weather"
    assert call.partial_json == "Malformed function call: print(default_api.weather(city='Oslo)"
    sent = await sent_for(
        [UserMessage("Hi"), got.message, ToolResultMessage(call.id, call.name, "not JSON", True)],
        tools=[WEATHER],
    )
    assert sent["contents"][1]["parts"][0]["thoughtSignature"] == "skip_thought_signature_validator"
    check_gemini(sent)


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("Malformed function call: print(default_api.weather(x) + default_api.now())", "weather"),
        ("Malformed function call: print(default_api.now() + default_api.weather(x))", "now"),
        ("Malformed function call: print(default_api.knowing())", "weather"),
        ("", "weather"),
    ],
)
async def test_a_malformed_call_among_several_tools_comes_back_to_the_model_too(message: str, name: str):
    event = chunk(finish="MALFORMED_FUNCTION_CALL")
    event["candidates"][0]["finishMessage"] = message
    got = await replay(sse(event), tools=[WEATHER, NOW])
    assert got.terminal.stop_reason == "tool_use"
    assert [call.name for call in got.calls] == [name]
    assert got.calls[0].partial_json


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("Malformed function call: print(default_api.now(tz='x)", "now"),
        ("Malformed function call: call:weather{city:Oslo", "unknown"),
        ("", "unknown"),
    ],
)
async def test_a_malformed_call_where_there_are_no_tools_comes_back_to_the_model_too(message: str, name: str):
    event = chunk(finish="MALFORMED_FUNCTION_CALL")
    event["candidates"][0]["finishMessage"] = message
    got = await replay(sse(event))
    assert got.terminal.stop_reason == "tool_use"
    assert [call.name for call in got.calls] == [name]


async def test_a_malformed_call_after_a_good_one_leaves_the_good_one():
    good = chunk({"functionCall": {"name": "now", "args": {}}})
    event = chunk(finish="MALFORMED_FUNCTION_CALL")
    event["candidates"][0]["finishMessage"] = "Malformed function call: weather(city='Oslo)"
    got = await replay(sse(good, event), tools=[WEATHER, NOW])
    assert got.terminal.stop_reason == "tool_use"
    assert [(call.name, call.partial_json is None) for call in got.calls] == [
        ("now", True),
        ("weather", False),
    ]


async def test_a_call_cut_off_by_length_stays_incomplete():
    for pieces in ([], [{"jsonPath": "$.city", "stringValue": "Os", "willContinue": True}]):
        start = chunk({"functionCall": {"name": "weather", "willContinue": True}})
        more = chunk({"functionCall": {"partialArgs": pieces, "willContinue": True}}, finish="MAX_TOKENS")
        got = await replay(sse(start, more))
        assert got.terminal.stop_reason == "length"
        assert got.calls[0].partial_json is not None


async def test_servers_that_only_speak_like_gemini_may_name_the_call_as_their_reason():
    called = await replay(sse(chunk({"functionCall": {"name": "now"}}, finish="FUNCTION_CALL")))
    assert called.terminal.stop_reason == "tool_use"
    assert (await replay(sse(chunk({"text": "x"}, finish="FUNCTION_CALL")))).terminal.kind == "stream"


async def test_other_candidates_and_parts_without_a_block_are_read_past():
    body = sse(
        {"candidates": [{"index": 1, "content": {"parts": [{"text": "second"}]}, "finishReason": "SAFETY"}]},
        chunk(
            {"executableCode": {"code": "1"}},
            {"inlineData": {"mimeType": "image/png", "data": ""}},
            {"text": "first"},
            finish="STOP",
        ),
    )
    assert (await replay(body)).message.text == "first"


# Errors


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (400, "API key not valid. Please pass a valid API key.", "auth"),
        (
            400,
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            "context_window_exceeded",
        ),
        (400, "Unable to submit request", "stream"),
        (403, "Permission denied", "auth"),
        (
            404,
            "models/gemini-1.0-pro is not found for API version v1beta, or is not supported",
            "model_retired",
        ),
        (429, "Resource exhausted", "throttled"),
        (500, "An internal error has occurred", "network"),
        (503, "The model is overloaded. Please try again later.", "network"),
        (504, "Deadline expired", "network"),
    ],
)
async def test_an_error_has_its_kind(status, message, kind):
    body = json.dumps({"error": {"code": status, "message": message, "status": "X"}}).encode()
    refused = await replay(body, status=status, headers={"content-type": "application/json"})
    assert refused.events == [Start(), refused.terminal]
    assert refused.terminal.kind == kind
    assert message in refused.terminal.message
    in_stream = await replay(sse(chunk({"text": "par"})) + sse(body.decode()))
    assert in_stream.terminal.kind == kind or status == 404
    assert in_stream.message.text == "par"


async def test_retry_info_says_how_long_to_wait():
    body = json.dumps(
        {
            "error": {
                "code": 429,
                "message": "You exceeded your current quota.",
                "status": "RESOURCE_EXHAUSTED",
                "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.4s"}],
            }
        }
    ).encode()
    assert (await replay(body, status=429)).terminal.retry_after == 34.4
    assert (await replay(body, status=429, headers={"retry-after": "7"})).terminal.retry_after == 7
    assert (await replay(sse(body.decode()))).terminal.retry_after == 34.4


async def test_a_refused_connection_is_given_back():
    memory = MemoryClient(b"{}", status=500)
    await read(GeminiStreamFn(api_key="k"), MODEL, options=StreamOptions(http=memory))
    assert memory.responses[0].closed


@pytest.mark.parametrize(
    "event",
    [
        "{half",
        '{"candidates": 5}',
        '{"candidates": [{"content": {"parts": [{"text": 5}]}}]}',
        '"text"',
        "[1]",
        "null",
        '{"candidates":[null]}',
    ],
)
async def test_a_malformed_event_is_an_error_that_shows_it(event):
    got = await replay(sse(chunk({"text": "par"}), event))
    assert got.terminal.kind == "stream"
    assert event[:10] in got.terminal.message
    assert got.message.text == "par"


@pytest.mark.parametrize(
    "pieces",
    [
        [{"jsonPath": "$", "stringValue": "x"}],
        [{"jsonPath": "city", "stringValue": "x"}],
        [
            {"jsonPath": "$.a[0]", "numberValue": 1},
            {"jsonPath": "$.b", "numberValue": 1},
            {"jsonPath": "$.a[1]", "numberValue": 1},
        ],
        [{"jsonPath": "$.a[1]", "numberValue": 1}, {"jsonPath": "$.a[0]", "numberValue": 1}],
        [{"jsonPath": "$.a[9999999999]", "numberValue": 1}],
        [{"jsonPath": "$.a.b", "numberValue": 1}, {"jsonPath": "$.a[0]", "numberValue": 1}],
    ],
)
async def test_streamed_arguments_that_cannot_be_written_are_an_error(pieces):
    got = await replay(
        sse(
            chunk({"functionCall": {"name": "f", "willContinue": True}}),
            chunk({"functionCall": {"partialArgs": pieces}}, finish="STOP"),
        )
    )
    assert got.terminal.kind == "stream"
    assert "arguments" in got.terminal.message


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-99, 99), st.text('ab"\\\n ü🦊', max_size=6)),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3),
        st.dictionaries(st.sampled_from(["a", "b c", "d'e"]), inner, min_size=1, max_size=3),
    ),
    max_leaves=8,
)


@lean
@given(st.dictionaries(st.sampled_from(["x", "y z", "q"]), json_values, max_size=3), st.integers(1, 4))
def test_streamed_arguments_add_up_to_the_object(arguments, size):
    writer, out = ArgumentWriter(), ""
    for path, value in leaves("$", arguments):
        if isinstance(value, str):
            pieces = [value[at : at + size] for at in range(0, len(value), size)]
            for piece in pieces:
                out += writer.write(PartialArgument(path, string_value=piece, will_continue=True))
            out += writer.write(PartialArgument(path, string_value=""))
        elif isinstance(value, bool):
            out += writer.write(PartialArgument(path, bool_value=value))
        else:
            out += writer.write(PartialArgument(path, number_value=value))
    assert json.loads(out + writer.finish()) == arguments


def leaves(path, value):
    if isinstance(value, dict):
        for key, item in value.items():
            quoted = key.replace("'", "\\'")
            yield from leaves(f"{path}['{quoted}']" if not key.isalpha() else f"{path}.{key}", item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(f"{path}[{index}]", item)
    else:
        yield path, value


def test_paths():
    assert parse_path("$.a.b[0]['c d'][\"e'f\"].g_h") == ("a", "b", 0, "c d", "e'f", "g_h")


# Bytes


@pytest.mark.parametrize("name", ["thinking", "parallel-calls", "streamed-arguments", "length"])
async def test_cut_anywhere_it_is_a_network_error_or_whole(name):
    body = FIXTURES[name]
    whole = (await replay(body)).terminal
    last = body.rindex(b"data: ")
    for at in cut_places(body):
        got = (await replay(body[:at])).terminal
        if at < last or got != whole:  # only the blank line after the last event may be cut into
            assert isinstance(got, Error), at
            assert got.kind == "network", at
        else:
            assert body[at:].strip() == b"", at


@pytest.mark.parametrize("name", ["thinking", "streamed-arguments"])
async def test_a_connection_that_breaks_keeps_what_arrived(name):
    body = FIXTURES[name]
    for at in range(0, len(body), 41):
        got = await replay(body[:at], failure=NetworkError("reset"))
        assert got.terminal.kind == "network"


@lean
@given(st.sampled_from(sorted(FIXTURES)), st.lists(st.integers(1, 3000), max_size=20))
async def test_any_division_of_the_bytes_gives_the_same_events(name, cuts):
    body = FIXTURES[name]
    edges = sorted({0, len(body), *(cut % len(body) for cut in cuts)})
    whole, divided = await replay(body), await replay([body[start:end] for start, end in pairwise(edges)])
    assert shape(divided.events) == shape(whole.events)


def shape(events):
    """Events without the ids that were made up."""
    return re.sub(r"swink-\w+", "swink-", repr(events))


# Conversations from elsewhere, and cancellation


@pytest.mark.parametrize("provider", IDS)
async def test_a_conversation_of_any_other_provider_goes_on(provider):
    for model in (MODEL, OLDER):
        sent = await sent_for(foreign_history(provider, "some-model"), model=model, tools=[WEATHER])
        check_gemini(sent)
        parts = [part for content in sent["contents"] for part in content["parts"]]
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        results = [part["functionResponse"] for part in parts if "functionResponse" in part]
        assert [(call.get("id"), call["name"]) for call in calls] == [
            (result.get("id"), result["name"]) for result in results
        ]
        assert "Let me see." not in json.dumps(sent)
