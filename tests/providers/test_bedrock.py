"""Bedrock: the adapter against boto3 on the same bytes, requests against botocore's service model, signatures verified."""

import asyncio
import base64
import json
import os
import re
from itertools import pairwise

import boto3
import botocore.session
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials as BotoCredentials
from frames import encode_frame, event_frame, exception_frame, framed_events
from histories import IDS, foreign_history
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loopback import WEATHER, MemoryClient, Tool, cut_places, own_fixtures, read, recorded
from msgspec.structs import replace
from tests.counts import in_cells, tried
from validators import boto_parameters, check_bedrock

from swink.errors import NetworkError
from swink.messages import (
    AssistantMessage,
    Audio,
    Base64Source,
    Capabilities,
    Citation,
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
from swink.messages.providertools import CodeExecution, FileSearch, ProviderTool, WebSearch
from swink.providers.bedrock import BedrockStreamFn
from swink.providers.bedrock.sigv4 import Credentials
from swink.stream import Done, Error, LlmContext, OutputSchema, Start, StreamOptions

CLAUDE = ModelSpec("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0")
NOVA = ModelSpec("bedrock", "us.amazon.nova-2-lite-v1:0")
LLAMA = ModelSpec("bedrock", "meta.llama3-1-70b-instruct-v1:0")
FIXTURES = {path.stem: framed_events(path) for path in own_fixtures("bedrock")}
RECORDED = {path.name.removesuffix(".chunks.txt"): path for path in recorded("bedrock")}
KEYS = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG", "session/token==")
STREAM = {"content-type": "application/vnd.amazon.eventstream"}
SERVICE = botocore.session.Session().get_service_model("bedrock-runtime")
INPUT = SERVICE.operation_model("ConverseStream").input_shape
lean = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch, tmp_path):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def adapter(**keywords):
    return BedrockStreamFn(region="us-east-1", **({"api_key": "k"} | keywords))


async def replay(body, *, model=CLAUDE, headers=STREAM, **client):
    memory = MemoryClient(body, headers=headers, **client)
    return await read(adapter(), model, options=StreamOptions(http=memory))


async def sent_for(messages, *, model=CLAUDE, system="", tools=(), context=None, **options):
    memory = MemoryClient(FIXTURES["text"], headers=STREAM)
    got = await read(
        adapter(),
        model,
        messages,
        system=system,
        tools=tools,
        options=StreamOptions(http=memory, **options),
        **(context or {}),
    )
    if not memory.requests:
        return got.terminal
    check_bedrock(memory.sent, model)
    return memory.sent


# boto3 as the oracle


def boto_client(url):
    config = Config(retries={"max_attempts": 0})
    session = boto3.Session(KEYS.access_key, KEYS.secret_key, KEYS.session_token, "us-east-1")
    return session.client("bedrock-runtime", endpoint_url=url, config=config)


def boto_reads(url):
    """What boto3 makes of the reply: text, thinking, redacted thinking, calls, stop reason, usage."""
    client = boto_client(url)
    text, thinking, redacted, calls, stop, usage = "", "", b"", {}, None, {}
    for event in client.converse_stream(
        modelId=CLAUDE.model_id, messages=[{"role": "user", "content": [{"text": "Hello"}]}]
    )["stream"]:
        match event:
            case {"contentBlockStart": {"start": {"toolUse": {"type": "server_tool_use"}}}}:
                pass
            case {"contentBlockStart": {"contentBlockIndex": index, "start": {"toolUse": call}}}:
                calls[index] = [call["toolUseId"], call["name"], ""]
            case {"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}}:
                text += delta.get("text", "")
                thinking += delta.get("reasoningContent", {}).get("text", "")
                redacted += delta.get("reasoningContent", {}).get("redactedContent", b"")
                if "toolUse" in delta and index in calls:
                    calls[index][2] += delta["toolUse"]["input"]
            case {"messageStop": {"stopReason": reason}}:
                stop = reason
            case {"metadata": {"usage": counts}}:
                usage = counts
    client.close()
    return text, thinking, redacted, list(calls.values()), stop, usage


OUTCOMES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_use",
    "max_tokens": "length",
    "guardrail_intervened": "content_filtered",
}


@in_cells("name", [*FIXTURES, *RECORDED], every=3)
async def test_the_adapter_reads_what_boto3_reads(server, name):
    body = FIXTURES[name] if name in FIXTURES else framed_events(RECORDED[name])
    # boto3 refuses a start of nothing, which Bedrock has been seen to send.
    server.reply(
        body.replace(event_frame("contentBlockStart", {"contentBlockIndex": 0, "start": {}}), b""),
        headers=STREAM,
    )
    server.reply(body, headers=STREAM)
    text, thinking, redacted, calls, stop, usage = await asyncio.to_thread(boto_reads, server.url)
    got = await read(BedrockStreamFn(base_url=server.url, region="us-east-1", credentials=KEYS), CLAUDE)
    assert (got.message.text, got.message.thinking) == (text, thinking)
    hidden = [
        block.signature for block in got.message.content if isinstance(block, Thinking) and block.redacted
    ]
    assert b"".join(base64.b64decode(data) for data in hidden) == redacted
    assert [(call.id, call.name) for call in got.calls] == [(id, name) for id, name, _ in calls]
    for call, (_, _, arguments) in zip(got.calls, calls, strict=True):
        assert (
            call.partial_json == arguments
            if call.partial_json
            else call.arguments == json.loads(arguments or "{}")
        )
    outcome = got.terminal.stop_reason if isinstance(got.terminal, Done) else got.terminal.kind
    assert outcome == OUTCOMES[stop]
    counted = got.terminal.usage
    assert (counted.input, counted.output) == (usage.get("inputTokens", 0), usage.get("outputTokens", 0))
    assert (counted.cache_read, counted.cache_write) == (
        usage.get("cacheReadInputTokens", 0),
        usage.get("cacheWriteInputTokens", 0),
    )
    assert counted.total == usage.get("totalTokens", 0)


def test_recorded_streams_are_there():
    if not RECORDED:
        pytest.skip("no recorded streams beside the checkout")
    assert "amazon-bedrock-reasoning" in RECORDED


async def test_thinking_blocks_and_usage_are_exactly_these():
    got = await replay(FIXTURES["thinking"])
    assert got.message.content == (
        Thinking("Let me count.", "c2lnbmF0dXJl"),
        Thinking("", "b3BhcXVl", True),
        Text("Three."),
    )
    assert got.terminal == Done("stop", Usage(51, 94, 10, 20, 175, {"cache_write_1h": 15}))


async def test_a_call_cut_off_by_length_stays_incomplete():
    got = await replay(FIXTURES["length"])
    assert got.terminal.stop_reason == "length"
    assert got.calls[0].partial_json == '{"city": "Os'


async def test_the_tier_that_served_a_reply_is_in_its_usage():
    usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
    stop = event_frame("messageStop", {"stopReason": "end_turn"})
    for tier, extra in (("default", {}), ("flex", {"service_tier_flex": 1})):
        counted = event_frame("metadata", {"usage": usage, "serviceTier": {"type": tier}})
        assert (await replay(stop + counted)).terminal.usage.extra == extra


async def test_redacted_thinking_in_pieces_is_joined_as_bytes():
    pieces = [base64.b64encode(piece).decode() for piece in (b"a", b"bc")]
    body = b"".join(
        event_frame(
            "contentBlockDelta",
            {"contentBlockIndex": 0, "delta": {"reasoningContent": {"redactedContent": piece}}},
        )
        for piece in pieces
    )
    got = await replay(body + event_frame("messageStop", {"stopReason": "end_turn"}))
    assert got.message.content == (Thinking("", base64.b64encode(b"abc").decode(), True),)


CITED = {
    "title": "Harbour tides",
    "source": "https://tides.example/oslo",
    "sourceContent": [{"text": "High water is at 14:20."}],
    "location": {"web": {"url": "https://tides.example/oslo", "domain": "tides.example"}},
}


async def test_what_hosted_tools_do_is_kept_counted_cited_and_sent_back():
    use = {"toolUseId": "tooluse_g1", "name": "nova_grounding", "type": "server_tool_use"}
    given = {"toolUseId": "tooluse_g1", "type": "nova_grounding_result", "status": "success"}
    sent_back = [
        {"toolUse": {**use, "input": {"query": "high water oslo"}}},
        {"toolResult": {**given, "content": [{"json": {"results": 1}}, {"text": "one page"}]}},
        {"citationsContent": {"content": [{"text": "High water is at 14:20."}], "citations": [CITED]}},
        {"text": "Bring a coat."},
    ]
    got = await replay(FIXTURES["grounding"], model=NOVA)
    page = Citation("https://tides.example/oslo", "Harbour tides", "High water is at 14:20.", data=CITED)
    assert got.message.content == (
        Extension("bedrock", sent_back[0], "nova_grounding: high water oslo"),
        Extension("bedrock", sent_back[1], "hosted tool: result"),
        Text("High water is at 14:20.", (page,)),
        Text("Bring a coat."),
    )
    assert got.terminal == Done("stop", Usage(50, 20, extra={"web_search": 1}))
    history = [UserMessage("Hi"), got.message, UserMessage("Thanks")]
    assert (await sent_for(history, model=NOVA))["messages"][1]["content"] == sent_back
    foreign = [UserMessage("Hi"), replace(got.message, provider="elsewhere"), UserMessage("Thanks")]
    texts = [{"text": "High water is at 14:20."}, {"text": "Bring a coat."}]
    assert (await sent_for(foreign, model=NOVA))["messages"][1]["content"] == texts
    assert (await sent_for(history, model=CLAUDE))["messages"][1]["content"] == texts


@pytest.mark.parametrize("kind", [{}, {"type": None}, {"type": "tool_use"}, {"type": "of_next_year"}])
async def test_only_a_call_of_a_server_tool_is_hosted(kind: dict[str, str | None]):
    use = {"toolUseId": "tooluse_1", "name": "now", **kind}
    got = await replay(
        event_frame("messageStart", {"role": "assistant"})
        + event_frame("contentBlockStart", {"contentBlockIndex": 0, "start": {"toolUse": use}})
        + event_frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"toolUse": {"input": "{}"}}})
        + event_frame("contentBlockStop", {"contentBlockIndex": 0})
        + event_frame("messageStop", {"stopReason": "tool_use"})
        + event_frame("metadata", {"usage": {"inputTokens": 1, "outputTokens": 1}})
    )
    assert got.message.content == (ToolCall("tooluse_1", "now", {}),)
    assert got.terminal == Done("tool_use", Usage(1, 1))


async def test_a_hosted_call_without_its_result_is_left_out_of_a_reply_that_was_cut_off():
    use = {"toolUseId": "g", "name": "nova_grounding", "type": "server_tool_use", "input": {}}
    for reason, kept in (("aborted", 1), ("tool_use", 2)):
        content = (Text("Looking."), Extension("bedrock", {"toolUse": use}))
        message = AssistantMessage(content, "bedrock", NOVA.model_id, reason)
        sent = await sent_for([UserMessage("Hi"), message, UserMessage("Well?")], model=NOVA)
        assert len(sent["messages"][1]["content"]) == kept


async def test_an_image_in_a_reply_is_a_block_and_goes_back():
    got = await replay(FIXTURES["image"], model=NOVA)
    assert got.message.content == (Text("Here:"), Image(Base64Source("aGVsbG8=", "image/png")))
    sent = await sent_for([UserMessage("Draw"), got.message, UserMessage("Again")], model=NOVA)
    assert sent["messages"][1]["content"][1] == {"image": {"format": "png", "source": {"bytes": "aGVsbG8="}}}


words = st.text('abc{}"\\\n äß😀', min_size=1, max_size=12)
said = words.filter(str.strip)
inputs = st.dictionaries(st.sampled_from("abc"), words | st.integers(-9, 9) | st.none(), max_size=3)
encoded = st.binary(min_size=1, max_size=9).map(lambda data: base64.b64encode(data).decode())
ids = st.uuids().map(str)
converse_blocks = st.one_of(
    st.builds(lambda text: {"text": text}, said),
    st.builds(lambda text: {"citationsContent": {"content": [{"text": text}], "citations": [CITED]}}, said),
    st.builds(
        lambda text, sign: {"reasoningContent": {"reasoningText": {"text": text, "signature": sign}}},
        words,
        words,
    ),
    st.builds(lambda data: {"reasoningContent": {"redactedContent": data}}, encoded),
    st.builds(lambda id, given: {"toolUse": {"toolUseId": id, "name": "now", "input": given}}, ids, inputs),
    st.builds(
        lambda id, given: {
            "toolUse": {"toolUseId": id, "name": "nova_grounding", "type": "server_tool_use", "input": given}
        },
        ids,
        inputs,
    ),
    st.builds(
        lambda id, text: {"toolResult": {"toolUseId": id, "status": "success", "content": [{"text": text}]}},
        ids,
        words,
    ),
    st.builds(lambda data: {"image": {"format": "png", "source": {"bytes": data}}}, encoded),
)


def pieces(text, size):
    return [text[at : at + size] for at in range(0, len(text), size)]


def streamed(blocks, size):
    """The frames that bring some blocks, texts and arguments in pieces."""
    frames = []
    for index, block in enumerate(blocks):
        start, deltas = None, []
        match block:
            case {"text": text}:
                deltas = [{"text": piece} for piece in pieces(text, size)]
            case {"citationsContent": {"content": [{"text": text}], "citations": citations}}:
                deltas = [{"text": piece} for piece in pieces(text, size)]
                deltas += [{"citation": citation} for citation in citations]
            case {"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}}:
                deltas = [{"reasoningContent": {"text": piece}} for piece in pieces(text, size)]
                deltas.append({"reasoningContent": {"signature": signature}})
            case {"reasoningContent": redacted}:
                deltas = [{"reasoningContent": redacted}]
            case {"toolUse": {"input": given, **named}}:
                start = {"toolUse": named}
                deltas = [{"toolUse": {"input": piece}} for piece in pieces(json.dumps(given), size)]
            case {"toolResult": {"content": content, **named}}:
                start, deltas = {"toolResult": named}, [{"toolResult": content}]
            case {"image": {"format": kind, "source": source}}:
                start, deltas = {"image": {"format": kind}}, [{"image": {"source": source}}]
        if start is not None:
            frames.append(event_frame("contentBlockStart", {"contentBlockIndex": index, "start": start}))
        for delta in deltas:
            frames.append(event_frame("contentBlockDelta", {"contentBlockIndex": index, "delta": delta}))
        frames.append(event_frame("contentBlockStop", {"contentBlockIndex": index}))
    return b"".join(frames) + event_frame("messageStop", {"stopReason": "end_turn"})


@tried(10, 200)
@given(st.lists(converse_blocks, max_size=6), st.integers(1, 9))
def test_any_reply_goes_back_as_it_came(blocks, size):
    blocks = [*blocks, {"text": "."}]

    async def there_and_back():
        got = await replay(streamed(blocks, size))
        assert isinstance(got.terminal, Done), got.terminal
        results = [ToolResultMessage(call.id, call.name, "18") for call in got.calls]
        sent = await sent_for([UserMessage("x"), got.message, *results, UserMessage("y")], tools=[NOW])
        return sent["messages"][1]["content"]

    assert asyncio.run(there_and_back()) == blocks


# Requests


HISTORY = [
    UserMessage(
        [
            Text("What is this?"),
            Image(Base64Source("aGk=", "image/png")),
            Image(UrlSource("s3://bucket/a.jpg")),
        ]
    ),
    AssistantMessage(
        [
            Thinking("Let me see.", "c2ln"),
            Thinking("", "b3BhcXVl", True),
            Text("Looking."),
            ToolCall("call:1", "weather", {"city": "Oslo"}),
            ToolCall("tooluse_2", "now"),
        ],
        "bedrock",
        CLAUDE.model_id,
        "tool_use",
    ),
    ToolResultMessage(
        "call:1",
        "weather",
        [Text("18 °C"), Image(Base64Source("eW8=", "image/jpeg"))],
        details={"private": 1},
    ),
    ToolResultMessage("tooluse_2", "now", [], True),
    UserMessage("And tomorrow?"),
    AssistantMessage([Thinking("cut off", "c2ln")], "bedrock", CLAUDE.model_id, "aborted"),
    UserMessage(
        [
            Text("Well?"),
            Extension("bedrock", {"guardContent": {"text": {"text": "x"}}}),
            Extension("other", 1),
        ]
    ),
]
NOW = Tool("now", "", {"type": "object"})
POINT = {"cachePoint": {"type": "default"}}


async def test_the_request_is_exactly_this():
    memory = MemoryClient(FIXTURES["text"], headers=STREAM)
    extra = {
        "inferenceConfig": {"topP": 0.9, "temperature": 2},
        "guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "1"},
    }
    options = StreamOptions(0.5, 3000, "option-key", tool_choice="weather", http=memory, extra=extra)
    await read(adapter(), CLAUDE, HISTORY, system="Be brief.", tools=[WEATHER, NOW], options=options)
    [request] = memory.requests
    assert request.url == (
        "https://bedrock-runtime.us-east-1.amazonaws.com/model/us.anthropic.claude-sonnet-4-5-20250929-v1:0/converse-stream"
    )
    assert request.headers == {
        "content-type": "application/json",
        "accept": "application/vnd.amazon.eventstream",
        "authorization": "Bearer option-key",
    }
    first_id = "call:1"
    assert memory.sent == {
        "messages": [
            {
                "role": "user",
                "content": [
                    {"text": "What is this?"},
                    {"image": {"format": "png", "source": {"bytes": "aGk="}}},
                    {"image": {"format": "jpeg", "source": {"s3Location": {"uri": "s3://bucket/a.jpg"}}}},
                    POINT,
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "Let me see.", "signature": "c2ln"}}},
                    {"reasoningContent": {"redactedContent": "b3BhcXVl"}},
                    {"text": "Looking."},
                    {"toolUse": {"toolUseId": first_id, "name": "weather", "input": {"city": "Oslo"}}},
                    {"toolUse": {"toolUseId": "tooluse_2", "name": "now", "input": {}}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "toolResult": {
                            "toolUseId": first_id,
                            "content": [
                                {"text": "18 °C"},
                                {"image": {"format": "jpeg", "source": {"bytes": "eW8="}}},
                            ],
                            "status": "success",
                        }
                    },
                    {
                        "toolResult": {
                            "toolUseId": "tooluse_2",
                            "content": [{"text": "(no output)"}],
                            "status": "error",
                        }
                    },
                    {"text": "And tomorrow?"},
                    {"text": "Well?"},
                    {"guardContent": {"text": {"text": "x"}}},
                    POINT,
                ],
            },
        ],
        "system": [{"text": "Be brief."}, POINT],
        "toolConfig": {
            "tools": [
                {
                    "toolSpec": {
                        "name": "weather",
                        "description": "Current weather.",
                        "inputSchema": {"json": WEATHER.parameters_schema},
                    }
                },
                {"toolSpec": {"name": "now", "inputSchema": {"json": {"type": "object", "properties": {}}}}},
                POINT,
            ],
            "toolChoice": {"tool": {"name": "weather"}},
        },
        "inferenceConfig": {"topP": 0.9, "temperature": 0.5, "maxTokens": 3000},
        "guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "1"},
    }
    check_bedrock(memory.sent, CLAUDE)


async def test_boto3_sends_the_same_bytes(server):
    server.reply(FIXTURES["text"], headers=STREAM)
    sent = await sent_for(HISTORY, system="Be brief.", tools=[WEATHER, NOW], tool_choice="auto")

    def send():
        client = boto_client(server.url)
        list(client.converse_stream(modelId=CLAUDE.model_id, **boto_parameters(sent))["stream"])
        client.close()

    await asyncio.to_thread(send)
    assert server.requests[0].json == sent


async def test_another_models_thinking_is_left_out():
    foreign = AssistantMessage(
        [Thinking("t", "s"), Text("Hi"), ToolCall("c", "weather")], "anthropic", "claude"
    )
    sent = await sent_for(
        [UserMessage("Hi"), foreign, ToolResultMessage("c", "weather", "ok")], tools=[WEATHER]
    )
    assert [next(iter(block)) for block in sent["messages"][1]["content"]] == ["text", "toolUse"]


async def test_a_foreign_id_has_the_characters_that_claude_takes():
    foreign = AssistantMessage([ToolCall("functions.weather:0", "weather")], "moonshot", "kimi-k2")
    result = ToolResultMessage("functions.weather:0", "weather", "ok")
    sent = await sent_for([UserMessage("Hi"), foreign, result], tools=[WEATHER])
    id = sent["messages"][1]["content"][0]["toolUse"]["toolUseId"]
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", id)
    assert sent["messages"][2]["content"][0]["toolResult"]["toolUseId"] == id


async def test_caching_is_asked_for_only_where_it_is_known():
    for model, points in [
        (CLAUDE, 4),
        (ModelSpec("bedrock", "anthropic.claude-3-haiku-20240307-v1:0"), 0),
        (ModelSpec("bedrock", "anthropic.claude-3-5-haiku-20241022-v1:0"), 4),
        (ModelSpec("bedrock", "amazon.nova-pro-v1:0"), 3),
        (LLAMA, 0),
    ]:
        history = [UserMessage("a"), AssistantMessage("b"), UserMessage("c")]
        assert (
            json.dumps(await sent_for(history, model=model, system="S", tools=[WEATHER])).count("cachePoint")
            == points
        ), model
        assert "cachePoint" not in json.dumps(
            await sent_for(history, model=model, system="S", tools=[WEATHER], cache=False)
        )


async def test_tools_of_the_history_are_named_even_if_none_is_offered():
    history = [
        UserMessage("Hi"),
        AssistantMessage([ToolCall("c", "weather")]),
        ToolResultMessage("c", "weather", "ok"),
    ]
    for keywords in ({}, {"tools": [WEATHER], "tool_choice": "none"}):
        sent = await sent_for(history, model=LLAMA, **keywords)
        schema = {"json": {"type": "object", "properties": {}}}
        assert sent["toolConfig"] == {
            "tools": [
                {
                    "toolSpec": {
                        "name": "weather",
                        "inputSchema": schema,
                        "description": "No longer available.",
                    }
                }
            ]
        }
    assert "toolConfig" not in await sent_for("Hi", tools=[WEATHER], tool_choice="none")


@pytest.mark.parametrize(
    ("choice", "wanted"),
    [("auto", {"auto": {}}), ("required", {"any": {}}), ("weather", {"tool": {"name": "weather"}})],
)
async def test_tool_choice(choice, wanted):
    assert (await sent_for("Hi", tools=[WEATHER], tool_choice=choice))["toolConfig"]["toolChoice"] == wanted


@pytest.mark.parametrize(
    ("model", "options", "fields", "limits"),
    [
        (
            ModelSpec("bedrock", CLAUDE.model_id, "medium"),
            {},
            {"thinking": {"type": "enabled", "budget_tokens": 5000}},
            None,
        ),
        (
            ModelSpec("bedrock", CLAUDE.model_id, "medium"),
            {"max_tokens": 2000},
            {"thinking": {"type": "enabled", "budget_tokens": 5000}},
            {"maxTokens": 7000},
        ),
        (
            ModelSpec("bedrock", CLAUDE.model_id, "low", {"low": 3000}, max_output=4096),
            {},
            {"thinking": {"type": "enabled", "budget_tokens": 3000}},
            {"maxTokens": 4096},
        ),
        (
            ModelSpec("bedrock", "anthropic.claude-opus-4-6-v1", "extra_high"),
            {},
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}},
            None,
        ),
        (
            ModelSpec("bedrock", "amazon.nova-2-lite-v1:0", "low"),
            {},
            {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"}},
            None,
        ),
        (ModelSpec("bedrock", "openai.gpt-oss-120b-1:0", "high"), {}, {"reasoning_effort": "high"}, None),
        (ModelSpec("bedrock", LLAMA.model_id, "high"), {}, None, None),
        (
            ModelSpec("bedrock", CLAUDE.model_id, "high"),
            {"tool_choice": "required", "temperature": 0.5},
            None,
            {"temperature": 0.5},
        ),
        (
            ModelSpec("bedrock", CLAUDE.model_id, "low"),
            {"temperature": 0.5},
            {"thinking": {"type": "enabled", "budget_tokens": 2048}},
            None,
        ),
    ],
)
async def test_thinking_levels(model, options, fields, limits):
    sent = await sent_for("Hi", model=model, tools=[WEATHER], **options)
    if fields is not None and fields.get("thinking", {}).get("type") == "enabled":
        fields = {**fields, "anthropic_beta": ["interleaved-thinking-2025-05-14"]}
    assert sent.get("additionalModelRequestFields") == fields
    assert sent.get("inferenceConfig") == limits


async def test_what_cannot_be_honoured_is_reported_once(caplog):
    fn = adapter()
    for _ in range(2):
        memory = MemoryClient(FIXTURES["text"], headers=STREAM)
        await read(
            fn,
            ModelSpec("bedrock", LLAMA.model_id, "high"),
            options=StreamOptions(session_id="s", http=memory),
        )
    assert caplog.text.count("'session_id'") == 1
    assert caplog.text.count("'thinking_level'") == 1


@pytest.mark.parametrize("source", [UrlSource("https://x.example/a.png"), Base64Source("aGk=", "image/tiff")])
async def test_images_that_bedrock_cannot_take_are_a_clear_error(source):
    terminal = await sent_for([UserMessage([Image(source)])])
    assert terminal.kind == "stream"
    assert "image" in terminal.message


# Who asks, and where


async def test_the_signature_holds_for_what_arrives(server):
    server.reply(FIXTURES["text"], headers=STREAM)
    for name in (
        "anthropic.claude-3-haiku-20240307-v1:0",
        "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.x-v1:0",
    ):
        fn = BedrockStreamFn(base_url=server.url, region="eu-west-1", credentials=KEYS)
        assert isinstance((await read(fn, ModelSpec("bedrock", name))).terminal, Done)
        arrived = server.requests[-1]
        names = arrived.headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
        request = AWSRequest(
            "POST", server.url + arrived.path, {name: arrived.headers[name] for name in names}, arrived.body
        )
        request.context["timestamp"] = arrived.headers["x-amz-date"]
        auth = SigV4Auth(
            BotoCredentials(KEYS.access_key, KEYS.secret_key, KEYS.session_token), "bedrock", "eu-west-1"
        )
        wanted = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
        assert arrived.headers["authorization"].endswith(f"Signature={wanted}")
        assert arrived.headers["x-amz-security-token"] == KEYS.session_token
        assert {"host", "x-amz-date", "content-type", "x-amz-security-token"} <= set(names)


async def request_of(fn, **options):
    memory = MemoryClient(FIXTURES["text"], headers=STREAM)
    got = await read(fn, CLAUDE, options=StreamOptions(http=memory, **options))
    return memory.requests[0] if memory.requests else got.terminal


async def test_keys_come_from_options_then_constructor_then_environment(monkeypatch):
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKENV")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "env-secret")
    assert "Credential=AKENV/" in (await request_of(BedrockStreamFn())).headers["authorization"]
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "from-environment")
    assert (await request_of(BedrockStreamFn())).headers["authorization"] == "Bearer from-environment"
    assert (await request_of(BedrockStreamFn(api_key="constructor"))).headers[
        "authorization"
    ] == "Bearer constructor"
    assert (await request_of(BedrockStreamFn(api_key="constructor"), api_key="option")).headers[
        "authorization"
    ] == "Bearer option"
    assert (
        "Credential=AKIDEXAMPLE/"
        in (await request_of(BedrockStreamFn(credentials=KEYS))).headers["authorization"]
    )
    assert "authorization" not in (await request_of(BedrockStreamFn(api_key=""))).headers


async def test_credentials_may_be_a_function(monkeypatch):
    async def later():
        return KEYS

    for source in (later, lambda: KEYS):
        request = await request_of(BedrockStreamFn(region="us-east-1", credentials=source))
        assert "Credential=AKIDEXAMPLE/" in request.headers["authorization"]


async def test_a_profile_gives_keys_and_region(tmp_path):
    (tmp_path / "credentials").write_text(
        "[work]\naws_access_key_id = AKWORK\naws_secret_access_key = secret\n"
    )
    (tmp_path / "config").write_text("[profile work]\nregion = ap-south-1\n")
    request = await request_of(BedrockStreamFn(profile="work"))
    assert request.url.startswith("https://bedrock-runtime.ap-south-1.amazonaws.com/model/")
    assert "Credential=AKWORK/" in request.headers["authorization"]
    assert "/ap-south-1/bedrock/aws4_request" in request.headers["authorization"]


@pytest.mark.parametrize(
    ("keywords", "kind", "says"),
    [
        ({}, "stream", "AWS_REGION"),
        ({"region": "us-east-1"}, "auth", "AWS_BEARER_TOKEN_BEDROCK"),
        ({"region": "x.evil.example/", "api_key": "k"}, "stream", "not the name of a region"),
    ],
)
async def test_what_is_missing_is_said(keywords, kind, says):
    terminal = await request_of(BedrockStreamFn(**keywords))
    assert terminal.kind == kind
    assert says in terminal.message


async def test_a_bearer_from_the_environment_does_not_go_elsewhere(monkeypatch):
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "from-environment")
    assert (
        await request_of(BedrockStreamFn(region="us-east-1", base_url="https://elsewhere.example"))
    ).kind == "auth"
    endpoint = "https://vpce-1.bedrock-runtime.us-east-1.vpce.amazonaws.com"
    assert (await request_of(BedrockStreamFn(base_url=endpoint))).headers[
        "authorization"
    ] == "Bearer from-environment"


async def test_endpoints(monkeypatch):
    assert (await request_of(BedrockStreamFn(region="cn-north-1", api_key="k"))).url.startswith(
        "https://bedrock-runtime.cn-north-1.amazonaws.com.cn/"
    )
    named = BedrockStreamFn(base_url="https://bedrock-runtime.eu-west-3.amazonaws.com", credentials=KEYS)
    assert "/eu-west-3/bedrock/" in (await request_of(named)).headers["authorization"]
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "https://gateway.example/base/")
    request = await request_of(BedrockStreamFn(region="us-east-1", api_key="k"))
    assert request.url.startswith("https://gateway.example/base/model/")


def test_keys_show_nowhere():
    shown = repr(BedrockStreamFn(api_key="secret-key", region="us-east-1", credentials=KEYS))
    assert shown == "BedrockStreamFn(region='us-east-1')"


# How replies end


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "tool_use"),
        ("max_tokens", "length"),
        ("guardrail_intervened", "content_filtered"),
        ("content_filtered", "content_filtered"),
        ("model_context_window_exceeded", "context_window_exceeded"),
        ("malformed_model_output", "network"),
        ("malformed_tool_use", "stream"),
        ("a_reason_of_next_year", "stream"),
    ],
)
async def test_every_stop_reason_has_its_outcome(reason, outcome):
    body = event_frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "par"}}) + event_frame(
        "messageStop", {"stopReason": reason}
    )
    got = await replay(body)
    assert (got.terminal.stop_reason if isinstance(got.terminal, Done) else got.terminal.kind) == outcome
    assert got.message.text == "par"


def test_every_stop_reason_of_the_service_model_is_in_the_table():
    [mark] = [
        mark for mark in test_every_stop_reason_has_its_outcome.pytestmark if mark.name == "parametrize"
    ]
    assert set(SERVICE.shape_for("StopReason").enum) <= {reason for reason, _ in mark.args[1]}


async def test_a_malformed_call_comes_back_to_the_model_as_its_own_error():
    body = (
        event_frame(
            "contentBlockStart",
            {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "c", "name": "weather"}}},
        )
        + event_frame(
            "contentBlockDelta", {"contentBlockIndex": 0, "delta": {"toolUse": {"input": '{"city": '}}}
        )
        + event_frame("contentBlockStop", {"contentBlockIndex": 0})
        + event_frame("messageStop", {"stopReason": "malformed_tool_use"})
    )
    got = await replay(body)
    assert got.terminal.stop_reason == "tool_use"
    assert got.calls[0].partial_json == '{"city": '


EXCEPTIONS = [
    ("throttlingException", "Too many requests, please wait before trying again.", 429, "throttled"),
    (
        "validationException",
        "The model returned the following errors: Input is too long for requested model.",
        400,
        "context_window_exceeded",
    ),
    (
        "validationException",
        "prompt is too long: 210000 tokens > 200000 maximum",
        400,
        "context_window_exceeded",
    ),
    ("validationException", "Malformed input request", 400, "stream"),
    ("validationException", "The provided model identifier is invalid.", 400, "model_retired"),
    ("accessDeniedException", "You don't have access to the model with the specified model ID.", 403, "auth"),
    ("unrecognizedClientException", "The security token included in the request is invalid.", 403, "auth"),
    ("expiredTokenException", "The security token included in the request is expired", 403, "auth"),
    ("internalServerException", "Internal error", 500, "network"),
    ("modelStreamErrorException", "The model's stream broke", 424, "network"),
    ("modelTimeoutException", "Model has timed out", 408, "network"),
    ("modelErrorException", "The model failed", 424, "network"),
    ("serviceUnavailableException", "Bedrock is unable to process your request.", 503, "network"),
    ("modelNotReadyException", "The model is starting", 429, "throttled"),
    ("resourceNotFoundException", "Could not resolve the foundation model", 404, "model_retired"),
    ("somethingNewException", "What?", 418, "stream"),
]


@pytest.mark.parametrize(("name", "message", "status", "kind"), EXCEPTIONS)
async def test_an_exception_has_its_kind(name, message, status, kind):
    in_stream = await replay(
        event_frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "par"}})
        + exception_frame(name, message)
    )
    assert (in_stream.terminal.kind, in_stream.message.text) == (kind, "par")
    assert message in in_stream.terminal.message
    capital = name[0].upper() + name[1:]
    for headers, body in [
        ({"x-amzn-errortype": f"{capital}:http://internal.amazon.com/coral/"}, {"message": message}),
        ({}, {"__type": f"com.amazon.coral#{capital}", "Message": message}),
    ]:
        refused = await replay(
            json.dumps(body).encode(), status=status, headers={"content-type": "application/json", **headers}
        )
        assert refused.events == [Start(), refused.terminal]
        assert refused.terminal.kind == kind
        assert message in refused.terminal.message


async def test_an_error_page_and_a_wait_are_understood():
    page = await replay(
        b"<html><body>Bad Gateway</body></html>", status=502, headers={"content-type": "text/html"}
    )
    assert page.terminal.kind == "network"
    assert "Bad Gateway" in page.terminal.message
    slow = await replay(
        b'{"message":"slow down"}',
        status=429,
        headers={"x-amzn-errortype": "ThrottlingException", "retry-after": "3"},
    )
    assert (slow.terminal.kind, slow.terminal.retry_after) == ("throttled", 3)
    gateway = await replay(b'{"error":{"message":"slow down"}}', status=429)
    assert (gateway.terminal.kind, gateway.terminal.message) == ("throttled", "HTTP 429: slow down")


async def test_an_error_frame_is_an_error():
    frame = encode_frame(
        {":message-type": "error", ":error-code": "InternalFailure", ":error-message": "gone"}, b""
    )
    terminal = (await replay(frame)).terminal
    assert (terminal.kind, terminal.message) == ("network", "gone")


@pytest.mark.parametrize(
    "payload",
    [
        b"{half",
        b"[]",
        b'{"contentBlockIndex": "x"}',
        b'{"delta": {"text": 5}}',
        b'{"delta": {"text": "\xff"}}',
    ],
)
async def test_a_malformed_event_is_an_error_that_shows_it(payload):
    got = await replay(event_frame("contentBlockDelta", payload))
    assert got.terminal.kind == "stream"
    assert payload[:8].decode() in got.terminal.message


async def test_unknown_events_are_ignored():
    got = await replay(event_frame("weatherReport", b"\xff") + FIXTURES["text"])
    assert got.message.text == "Grüße aus Zürich 🦊"


# Bytes


@pytest.mark.parametrize("name", ["thinking", "parallel-calls"])
async def test_cut_anywhere_it_is_a_network_error_or_whole(name):
    body = FIXTURES[name]
    metadata = (
        body.rindex(b":event-type") - 13
    )  # where the frame of the metadata begins, without which a reply may end
    for at in cut_places(body):
        got = (await replay(body[:at])).terminal
        if at == metadata:
            assert isinstance(got, Done)
        else:
            assert isinstance(got, Error), at
            assert got.kind == "network", at


async def test_a_changed_byte_is_a_network_error():
    body = FIXTURES["text"]
    for at in range(0, len(body), 7):
        got = await replay(body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :])
        assert got.terminal.kind == "network"


async def test_a_connection_that_breaks_keeps_what_arrived():
    body = FIXTURES["text"]
    got = await replay(body[: len(body) // 2], failure=NetworkError("reset"))
    assert got.terminal.kind == "network"
    assert got.message.text.startswith("Grüße")


@lean
@given(st.sampled_from(sorted(FIXTURES)), st.lists(st.integers(1, 5000), max_size=20))
async def test_any_division_of_the_bytes_gives_the_same_events(name, cuts):
    body = FIXTURES[name]
    edges = sorted({0, len(body), *(cut % len(body) for cut in cuts)})
    whole, divided = await replay(body), await replay([body[start:end] for start, end in pairwise(edges)])
    assert divided.events == whole.events


# Conversations from elsewhere, and cancellation


@pytest.mark.parametrize("provider", IDS)
async def test_a_conversation_of_any_other_provider_goes_on(provider):
    for model in (CLAUDE, LLAMA):
        sent = await sent_for(foreign_history(provider, "some-model"), model=model, tools=[WEATHER])
        blocks = [block for message in sent["messages"] for block in message["content"]]
        calls = [block["toolUse"]["toolUseId"] for block in blocks if "toolUse" in block]
        assert calls == [block["toolResult"]["toolUseId"] for block in blocks if "toolResult" in block]
        assert len(set(calls)) == len(calls) == 3
        assert [message["role"] for message in sent["messages"]] == [
            "user",
            "assistant",
            "user",
            "assistant",
            "user",
        ]
        assert "Let me see." not in json.dumps(sent)


# Documents, hosted tools, structured output, options


async def test_documents_have_plain_names_of_their_own_and_a_text_beside_them():
    pdf, note = Document.from_bytes(b"%PDF-1.7", title="Lease: §1/2_final.pdf"), Document.from_bytes(b"hello")
    stored = Document.from_url("s3://bucket/a.docx", title="Lease: §1/2_final.pdf")
    sent = await sent_for([UserMessage([pdf, note, note, stored])], cache=False)
    blocks = sent["messages"][0]["content"]
    names = [block["document"]["name"] for block in blocks[:4]]
    assert names == ["Lease 1 2 final pdf", "document", "document (2)", "Lease 1 2 final pdf (2)"]
    assert [block["document"]["format"] for block in blocks[:4]] == ["pdf", "txt", "txt", "docx"]
    assert blocks[4] == {"text": "(see the document)"}
    result = [AssistantMessage([ToolCall("c", "weather")]), ToolResultMessage("c", "weather", [note])]
    sent = await sent_for([UserMessage("Hi"), *result], tools=[WEATHER], cache=False)
    [block] = sent["messages"][2]["content"][0]["toolResult"]["content"]
    assert block == {"document": {"name": "document", "format": "txt", "source": {"bytes": "aGVsbG8="}}}


async def test_sound_is_sent_in_messages_and_refused_in_results():
    sound = Audio(Base64Source("UklGRg==", "audio/wav"))
    sent = await sent_for([UserMessage([Text("Listen"), sound])], cache=False)
    assert sent["messages"][0]["content"][1] == {"audio": {"format": "wav", "source": {"bytes": "UklGRg=="}}}
    result = [AssistantMessage([ToolCall("c", "weather")]), ToolResultMessage("c", "weather", [sound])]
    assert "no audio in tool results" in (await sent_for([UserMessage("Hi"), *result])).message


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (Document.from_url("https://x/y.pdf"), "fetches none from the web"),
        (Document(Base64Source("QUJD", "application/zip")), "not application/zip"),
        (Audio(Base64Source("QUJD", "audio/midi")), "bedrock takes audio"),
    ],
)
async def test_media_that_bedrock_does_not_take_are_refused(block, said):
    assert said in (await sent_for([UserMessage([Text("x"), block])])).message


async def test_nova_runs_its_own_tools_and_others_are_refused_by_name():
    tools = [WebSearch(), CodeExecution(), ProviderTool("bedrock", {"systemTool": {"name": "other"}})]
    sent = await sent_for("Hi", model=NOVA, tools=[WEATHER], context={"hosted": tools}, cache=False)
    named = [tool["systemTool"]["name"] for tool in sent["toolConfig"]["tools"][1:]]
    assert named == ["nova_grounding", "nova_code_interpreter", "other"]
    for model, hosted in ((CLAUDE, WebSearch()), (NOVA, FileSearch(("s",))), (NOVA, WebSearch(max_uses=1))):
        refused = await sent_for("Hi", model=model, context={"hosted": [hosted]})
        assert type(hosted).__name__ in refused.message or "takes no domains" in refused.message


async def test_an_answer_is_held_to_a_schema():
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}
    for model, kept in ((LLAMA, True), (CLAUDE, False)):
        sent = await sent_for("Hi", model=model, context={"output": OutputSchema("number", schema)})
        held = sent["outputConfig"]["textFormat"]["structure"]["jsonSchema"]
        assert held["name"] == "number"
        assert (json.loads(held["schema"]) == schema) is kept


async def test_options_become_fields():
    sent = await sent_for("Hi", model=LLAMA, top_p=0.5, stop=("END",), service_tier="flex", temperature=0.1)
    assert sent["inferenceConfig"] == {"topP": 0.5, "temperature": 0.1, "stopSequences": ["END"]}
    assert sent["serviceTier"] == {"type": "flex"}
    fast = {"performanceConfig": {"latency": "optimized"}}
    assert (await sent_for("Hi", extra=fast))["performanceConfig"] == {"latency": "optimized"}


async def test_the_cache_lives_as_long_as_it_is_asked_to(caplog):
    hour = {"cachePoint": {"type": "default", "ttl": "1h"}}
    assert (await sent_for("Hi", system="S", cache="1h"))["system"][1] == hour
    assert caplog.records == []
    assert (await sent_for("Hi", system="S", cache="1h", model=NOVA))["system"][1] == POINT
    assert "option 'cache'" in caplog.text


async def test_headers_that_are_given_are_sent_and_signed():
    memory = MemoryClient(FIXTURES["text"], headers=STREAM)
    fn = BedrockStreamFn(region="us-east-1", credentials=KEYS, headers={"X-Amzn-Bedrock-Trace": "ENABLED"})
    await read(fn, CLAUDE, options=StreamOptions(http=memory, headers={"x-team": "tides"}))
    headers = memory.requests[0].headers
    assert (headers["x-amzn-bedrock-trace"], headers["x-team"]) == ("ENABLED", "tides")
    signed = headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    assert {"content-type", "host", "x-amz-date", "x-amzn-bedrock-trace", "x-team"} <= {*signed}


@pytest.mark.parametrize(
    ("model", "schema", "native"),
    [
        (CLAUDE.model_id, {"type": "object", "properties": {"n": {"type": "integer"}}}, True),
        (CLAUDE.model_id, {"type": "object", "additionalProperties": {"type": "integer"}}, False),
        (LLAMA.model_id, {"type": "object", "additionalProperties": {"type": "integer"}}, True),
    ],
)
def test_a_schema_is_left_to_the_model_where_it_can_hold_it(model, schema, native):
    context = LlmContext("", [UserMessage("Hi")], output=OutputSchema("x", schema))
    able = ModelSpec("bedrock", model, capabilities=Capabilities(json_schema=True))
    assert adapter().native_output(able, context) is native
    for spec, asked in (
        (ModelSpec("bedrock", model), context),
        (ModelSpec("bedrock", model, capabilities=Capabilities(json_schema=None)), context),
        (able, replace(context, hosted=[WebSearch()])),
    ):
        assert not adapter().native_output(spec, asked)


async def test_a_region_is_asked_for_only_where_it_is_needed():
    for keywords in (
        {"base_url": "https://gateway.example", "api_key": "k"},
        {"base_url": "https://gateway.example", "credentials": KEYS},
        {"base_url": "http://127.0.0.1:9", "credentials": KEYS},
        {"base_url": "https://bedrock-runtime.eu-west-1.amazonaws.com", "credentials": KEYS},
        {"base_url": "https://bedrock.internal.amazonaws.com", "api_key": "k"},
    ):
        memory = MemoryClient(FIXTURES["text"], headers=STREAM)
        got = await read(BedrockStreamFn(**keywords), CLAUDE, options=StreamOptions(http=memory))
        assert isinstance(got.terminal, Done), (keywords, got.terminal)
    for keywords in (
        {"api_key": "k"},
        {"base_url": "https://bedrock.internal.amazonaws.com", "credentials": KEYS},
    ):
        got = await read(BedrockStreamFn(**keywords), CLAUDE)
        assert "no region" in got.terminal.message


async def test_claude_does_not_begin_to_think_between_calls_and_their_results():
    history = [
        UserMessage("Hi"),
        AssistantMessage([ToolCall("a", "weather")], "elsewhere", "m", "tool_use"),
        ToolResultMessage("a", "weather", "1"),
    ]
    model = replace(CLAUDE, thinking_level="high")
    sent = await sent_for(history, model=model, tools=[WEATHER])
    assert "additionalModelRequestFields" not in sent
    sent = await sent_for([*history, UserMessage("And now?")], model=model, tools=[WEATHER])
    assert sent["additionalModelRequestFields"]["thinking"]["type"] == "enabled"
