"""Ollama: the adapter against Ollama's own SDK on the same bytes, and requests against the SDK's types."""

import asyncio
import json
import re
from itertools import pairwise

import ollama
import pytest
from histories import IDS, foreign_history
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loopback import WEATHER, MemoryClient, Tool, cut_places, own_fixtures, read
from ollama._client import _parse_host
from validators import check_ollama

from swink.errors import MisuseError, NetworkError
from swink.messages import (
    AssistantMessage,
    Audio,
    Base64Source,
    Document,
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
from swink.messages.providertools import WebSearch
from swink.providers.ollama import OllamaStreamFn, parse_host
from swink.stream import Done, Error, LlmContext, OutputSchema, Start, StreamOptions, Timeout

MODEL = ModelSpec("ollama", "qwen3:8b")
FIXTURES = {path.stem: path.read_bytes() for path in own_fixtures("ollama")}
STREAM = {"content-type": "application/x-ndjson"}
NOW = Tool("now", "The time.", {"type": "object"})
lean = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch):
    for name in ("OLLAMA_HOST", "OLLAMA_API_KEY"):
        monkeypatch.delenv(name, raising=False)


async def replay(body, *, model=MODEL, headers=STREAM, **client):
    memory = MemoryClient(body, headers=headers, **client)
    return await read(OllamaStreamFn(), model, options=StreamOptions(http=memory))


async def sent_for(messages, *, fn=None, model=MODEL, system="", tools=(), **options):
    memory = MemoryClient(FIXTURES["text"], headers=STREAM)
    options = StreamOptions(http=memory, **options)
    got = await read(fn or OllamaStreamFn(), model, messages, system=system, tools=tools, options=options)
    if not memory.requests:
        return got.terminal
    check_ollama(memory.sent)
    return memory.sent


def lines(*payloads):
    return b"".join(json.dumps(payload).encode() + b"\n" for payload in payloads)


# Schemas of tools in the words that the server knows

SPEC = {
    "type": "object",
    "$defs": {
        "Spot": {"type": "object", "description": "A spot.", "properties": {"x": {"$ref": "#/$defs/Axis"}}},
        "Axis": {"type": "number"},
        "Tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/Tree"}, "v": {"type": "string"}}},
        "a/b": {"const": 3},
        "Again": {"$ref": "#/$defs/Axis"},
    },
}


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"$ref": "#/$defs/Axis"}, {"type": "number"}),
        ({"$ref": "#/$defs/Again", "description": "Mine."}, {"type": "number", "description": "Mine."}),
        (
            {"type": "array", "items": {"$ref": "#/$defs/Spot"}},
            {
                "type": "array",
                "items": {
                    "type": "object",
                    "description": "A spot.",
                    "properties": {"x": {"type": "number"}},
                },
            },
        ),
        (
            {"$ref": "#/$defs/Tree"},
            {"type": "object", "properties": {"left": {"type": "object"}, "v": {"type": "string"}}},
        ),
        ({"$ref": "#/$defs/a~1b"}, {"enum": [3], "type": "integer"}),
        ({"$ref": "#/$defs/nobody"}, {}),
        ({"$ref": "https://x.example/schema"}, {}),
        ({"oneOf": [{"const": "a"}, {"$ref": "#/$defs/Axis"}]},
         {"anyOf": [{"enum": ["a"], "type": "string"}, {"type": "number"}]}),
        ({"const": None}, {"enum": [None], "type": "null"}),
        ({"allOf": [{"$ref": "#/$defs/Spot"}, {"properties": {"y": {"const": True}}}]},
         {"type": "object", "description": "A spot.",
          "properties": {"x": {"type": "number"}, "y": {"enum": [True], "type": "boolean"}}}),
        ({"type": "object", "additionalProperties": {"$ref": "#/$defs/Axis"}},
         {"type": "object", "additionalProperties": {"type": "number"}}),
        ({"enum": [{"const": 1}, {"$ref": "x"}]}, {"enum": [{"const": 1}, {"$ref": "x"}]}),
        ({"type": "object", "properties": {"const": {"type": "string"}, "oneOf": {"type": "null"}}},
         {"type": "object", "properties": {"const": {"type": "string"}, "oneOf": {"type": "null"}}}),
        (True, {}),
    ],
)  # fmt: skip
async def test_tool_schemas_are_sent_in_the_words_that_the_server_knows(given, sent):
    tool = Tool("t", "", {**SPEC, "properties": {"p": given}, "required": ["p"]})
    body = await sent_for("Hi", tools=[tool])
    assert body["tools"][0]["function"]["parameters"] == {
        "type": "object",
        "properties": {"p": sent},
        "required": ["p"],
    }


async def test_definitions_that_double_at_every_level_are_not_written_out():
    levels = {
        f"L{n}": {
            "type": "object",
            "properties": {"a": {"$ref": f"#/$defs/L{n + 1}"}, "b": {"$ref": f"#/$defs/L{n + 1}"}},
        }
        for n in range(40)
    }
    tool = Tool("t", "", {"type": "object", "$defs": levels, "properties": {"p": {"$ref": "#/$defs/L0"}}})
    body = await sent_for("Hi", tools=[tool])
    assert len(json.dumps(body["tools"])) < 1_000_000


async def test_definitions_that_go_ever_deeper_end_somewhere():
    levels = {
        f"L{n}": {"type": "object", "properties": {"a": {"$ref": f"#/$defs/L{n + 1}"}}} for n in range(900)
    }
    tool = Tool("t", "", {"type": "object", "$defs": levels, "properties": {"p": {"$ref": "#/$defs/L0"}}})
    assert "ref" not in json.dumps((await sent_for("Hi", tools=[tool]))["tools"])


# The SDK as the oracle


def sdk_reads(url):
    """What Ollama's SDK makes of the reply: text, thinking, calls, done reason, usage."""
    with ollama.Client(url) as client:
        parts = list(client.chat(MODEL.model_id, [{"role": "user", "content": "Hello"}], stream=True))
    calls = [call.function for part in parts for call in part.message.tool_calls or []]
    return (
        "".join(part.message.content or "" for part in parts),
        "".join(part.message.thinking or "" for part in parts),
        [(function.name, dict(function.arguments)) for function in calls],
        parts[-1].done_reason,
        (parts[-1].prompt_eval_count, parts[-1].eval_count),
    )


@pytest.mark.parametrize("name", FIXTURES)
async def test_the_adapter_reads_what_the_sdk_reads(server, name):
    server.reply(FIXTURES[name], headers=STREAM)
    text, thinking, calls, reason, usage = await asyncio.to_thread(sdk_reads, server.url)
    got = await read(OllamaStreamFn(base_url=server.url), MODEL)
    assert (got.message.text, got.message.thinking) == (text, thinking)
    assert [(call.name, call.arguments) for call in got.calls] == calls
    assert len({call.id for call in got.calls}) == len(calls)
    assert got.terminal == Done("tool_use" if calls else reason, Usage(*usage))
    assert [request.path for request in server.requests] == ["/api/chat"] * 2


async def test_ids_of_the_servers_are_kept():
    assert [call.id for call in (await replay(FIXTURES["calls-with-ids"])).calls] == ["call_a", "call_b"]


async def test_a_call_goes_back_with_the_id_that_the_server_gave_it():
    for name, ids in (("calls-with-ids", ["call_a", "call_b"]), ("calls", [None] * 3)):
        got = await replay(FIXTURES[name])
        results = [ToolResultMessage(call.id, call.name, "18 °C") for call in got.calls]
        for model in (MODEL, ModelSpec("ollama", "another")):
            [_, said, *answers] = (await sent_for([UserMessage("Hi"), got.message, *results], model=model))[
                "messages"
            ]
            assert [call.get("id") for call in said["tool_calls"]] == ids
            assert [answer.get("tool_call_id") for answer in answers] == ids
    foreign = AssistantMessage([ToolCall("toolu_1", "now")], "anthropic", "claude")
    sent = await sent_for([UserMessage("Hi"), foreign, ToolResultMessage("toolu_1", "now", "noon")])
    assert "toolu_1" not in json.dumps(sent)


async def test_two_calls_of_one_name_stay_two():
    got = await replay(FIXTURES["calls"])
    assert [call.name for call in got.calls] == ["weather", "weather", "now"]
    assert got.message.content[0] == Text("Two cities.")


# Requests


HISTORY = [
    UserMessage([Text("What is"), Text("this?"), Image(Base64Source("aGk=", "image/png"))]),
    AssistantMessage(
        [
            Thinking("Let me see."),
            Text("Looking."),
            ToolCall("swink-1", "weather", {"city": "Oslo"}),
            ToolCall("swink-2", "now"),
        ],
        "ollama",
        MODEL.model_id,
        "tool_use",
    ),
    ToolResultMessage(
        "swink-1",
        "weather",
        [Text("18 °C"), Image(Base64Source("eW8=", "image/jpeg"))],
        details={"private": 1},
    ),
    ToolResultMessage("swink-2", "now", "clock is broken", True),
    AssistantMessage([Thinking("t", "s"), Text("Done.")], "anthropic", "claude"),
    AssistantMessage([Thinking("cut off")], "ollama", MODEL.model_id, "aborted"),
    UserMessage("Thanks"),
]


async def test_the_request_is_exactly_this():
    memory = MemoryClient(FIXTURES["text"], headers=STREAM)
    extra = {"options": {"top_p": 0.9, "temperature": 2}, "format": "json", "keep_alive": "10m"}
    options = StreamOptions(0.5, 300, "option-key", tool_choice="auto", http=memory, extra=extra)
    model = ModelSpec("ollama", MODEL.model_id, "high")
    await read(
        OllamaStreamFn(api_key="constructor-key"),
        model,
        HISTORY,
        system="Be brief.",
        tools=[WEATHER, NOW],
        options=options,
    )
    [request] = memory.requests
    assert request.url == "http://127.0.0.1:11434/api/chat"
    assert request.headers == {
        "content-type": "application/json",
        "accept": "application/x-ndjson",
        "authorization": "Bearer option-key",
    }
    assert memory.sent == {
        "model": "qwen3:8b",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "What is\nthis?", "images": ["aGk="]},
            {
                "role": "assistant",
                "content": "Looking.",
                "thinking": "Let me see.",
                "tool_calls": [
                    {"function": {"name": "weather", "arguments": {"city": "Oslo"}}},
                    {"function": {"name": "now", "arguments": {}}},
                ],
            },
            {"role": "tool", "tool_name": "weather", "content": "18 °C"},
            {"role": "tool", "tool_name": "now", "content": "error: clock is broken"},
            {"role": "user", "content": "(images from the tool results above)", "images": ["eW8="]},
            {"role": "assistant", "content": "Done."},
            {"role": "user", "content": "Thanks"},
        ],
        "stream": True,
        "truncate": False,
        "think": True,
        "options": {"num_ctx": 8192, "top_p": 0.9, "temperature": 0.5, "num_predict": 300},
        "format": "json",
        "keep_alive": "10m",
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
                    "name": "now",
                    "description": "The time.",
                    "parameters": {"type": "object", "properties": {}},
                },
            },
        ],
    }
    check_ollama(memory.sent)


async def test_the_sdk_sends_the_same_body(server):
    server.reply(FIXTURES["text"], headers=STREAM)
    sent = await sent_for(HISTORY, system="Be brief.", tools=[WEATHER, NOW])

    def send():
        with ollama.Client(server.url) as client:
            keywords = {
                name: sent[name] for name in ("model", "messages", "tools", "think", "options", "stream")
            }
            list(client.chat(**keywords))

    await asyncio.to_thread(send)
    theirs = server.requests[0].json
    assert theirs["messages"] == sent["messages"]
    assert theirs["tools"] == sent["tools"]
    assert {name: theirs[name] for name in ("model", "think", "options", "stream")} == {
        name: sent[name] for name in ("model", "think", "options", "stream")
    }


async def test_pictures_of_the_last_results_are_sent():
    history = [
        UserMessage("Hi"),
        AssistantMessage([ToolCall("a", "shot")]),
        ToolResultMessage("a", "shot", [Image(Base64Source("eW8="))]),
    ]
    assert (await sent_for(history))["messages"][2:] == [
        {"role": "tool", "tool_name": "shot", "content": "(no output)"},
        {"role": "user", "content": "(images from the tool results above)", "images": ["eW8="]},
    ]


async def test_an_image_on_the_web_is_a_clear_error():
    terminal = await sent_for([UserMessage([Image(UrlSource("https://x.example/a.png"))])])
    assert terminal.kind == "stream"
    assert "image" in terminal.message


@pytest.mark.parametrize(
    ("name", "level", "think"),
    [
        ("qwen3:8b", "off", False),
        ("qwen3:8b", "low", True),
        ("gpt-oss:20b", "off", "low"),
        ("gpt-oss:20b", "minimal", "low"),
        ("gpt-oss:20b", "medium", "medium"),
        ("gpt-oss:120b", "extra_high", "high"),
    ],
)
async def test_thinking_levels(name, level, think):
    assert (await sent_for("Hi", model=ModelSpec("ollama", name, level)))["think"] == think


async def test_documents_of_text_are_text_and_any_other_is_a_clear_error():
    told = [Document.from_bytes(b"one page", title="a.txt"), Text("Sum it up.")]
    sent = await sent_for([UserMessage(told)])
    assert sent["messages"][0]["content"] == "a.txt:\none page\nSum it up."
    for block in (
        Document(Base64Source("JVBERg==", "application/pdf")),
        Audio(Base64Source("bGE=", "audio/wav")),
    ):
        refused = await sent_for([UserMessage([block])])
        assert refused.kind == "stream"
        assert "ollama takes" in refused.message


async def test_the_output_is_held_to_a_schema():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    memory = MemoryClient(FIXTURES["text"], headers=STREAM)
    context = LlmContext("", [UserMessage("Hi")], output=OutputSchema("answer", schema))
    model = ModelSpec("ollama", MODEL.model_id, "low")
    assert [event async for event in OllamaStreamFn()(model, context, StreamOptions(http=memory))]
    assert (memory.sent["format"], memory.sent["think"]) == (schema, True)
    fn = OllamaStreamFn()
    assert fn.native_output(MODEL, LlmContext("", []))
    assert not fn.native_output(MODEL, LlmContext("", [], [WEATHER]))  # then it could not call it
    assert not fn.native_output(ModelSpec("ollama", "gpt-oss:120b-cloud"), LlmContext("", []))


async def test_hosted_tools_are_refused_by_name():
    context = LlmContext("", [UserMessage("Hi")], hosted=[WebSearch()])
    events = [event async for event in OllamaStreamFn()(MODEL, context, StreamOptions())]
    assert "WebSearch" in events[-1].message


async def test_the_options_that_ollama_has():
    options = (await sent_for("Hi", top_p=0.9, stop=("END",), seed=7))["options"]
    assert options == {"top_p": 0.9, "stop": ["END"], "seed": 7, "num_ctx": 8192}


async def test_tool_choice_is_honoured_where_it_can_be(caplog):
    assert "tools" not in await sent_for("Hi", tools=[WEATHER], tool_choice="none")
    assert "tools" in await sent_for("Hi", tools=[WEATHER], tool_choice="auto")
    assert "tool_choice" not in caplog.text
    fn = OllamaStreamFn()
    for _ in range(2):
        await sent_for("Hi", fn=fn, tools=[WEATHER], tool_choice="required")
    assert caplog.text.count("'tool_choice'") == 1


async def test_options_without_an_equivalent_are_reported_once(caplog):
    fn = OllamaStreamFn()
    for _ in range(2):
        await sent_for("Hi", fn=fn, session_id="s", cache=False)
    assert caplog.text.count("'session_id'") == 1
    assert caplog.text.count("'cache'") == 1


# The size of the context


async def test_the_context_grows_with_the_conversation_in_few_steps():
    async def size(characters, **keywords):
        return (await sent_for("x" * characters, **keywords))["options"]["num_ctx"]

    assert await size(10) == 8192
    assert await size(20_000) == 16_384
    assert await size(100_000) == 65_536
    assert await size(10, max_tokens=20_000) == 32_768
    assert await size(100_000, model=ModelSpec("ollama", "small", context_window=40_000)) == 40_000
    assert await size(10, fn=OllamaStreamFn(num_ctx=1234)) == 1234
    assert await size(10, fn=OllamaStreamFn(num_ctx=1234), extra={"options": {"num_ctx": 99}}) == 99


async def test_a_prompt_that_the_server_cut_is_reported(caplog):
    async def ask(read_tokens, characters, tools=()):
        caplog.clear()
        body = lines(
            {
                "message": {"content": "Hi"},
                "done": True,
                "done_reason": "stop",
                "prompt_eval_count": read_tokens,
                "eval_count": 1,
            }
        )
        memory = MemoryClient(body, headers=STREAM)
        got = await read(
            OllamaStreamFn(), MODEL, "x" * characters, tools=tools, options=StreamOptions(http=memory)
        )
        return got.terminal.usage.extra, "cut the beginning off" in caplog.text

    assert await ask(2048, 40_000) == ({"prompt_missing": 10_000 - 2048}, True)
    assert await ask(6999, 40_000) == ({"prompt_missing": 3001}, True)
    assert await ask(7000, 40_000) == ({}, False)
    assert await ask(0, 40_000) == ({}, False)  # not reported
    wordy = Tool("wordy", "x" * 40_000, {"type": "object"})
    assert (await ask(100, 10, [wordy]))[1]


async def test_an_input_that_does_not_fit_is_an_overflow():
    message = "the input length exceeds the context length"
    refused = await replay(json.dumps({"error": message}).encode(), status=400)
    assert refused.terminal.kind == "context_window_exceeded"
    assert (await replay(lines({"error": message}))).terminal.kind == "context_window_exceeded"


# Who asks, and where


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "1.2.3.4",
        ":56789",
        "1.2.3.4:56789",
        "http://1.2.3.4",
        "https://1.2.3.4",
        "https://1.2.3.4:56789",
        "example.com",
        "example.com:56789",
        "http://example.com",
        "https://example.com",
        "https://example.com:56789/path",
        "example.com/",
        "example.com:56789/path/",
        "[0001:002:003:0004::1]",
        "[0001:002:003:0004::1]:56789/path/",
        "http://[::1]",
        "0.0.0.0",
    ],
)
def test_a_host_means_what_the_sdk_means_by_it(host):
    assert parse_host(host) == _parse_host(host)


def test_hosts_from_the_environment(monkeypatch):
    monkeypatch.setenv("OLLAMA_HOST", "192.168.1.5:8080")
    assert repr(OllamaStreamFn(api_key="secret-key")) == "OllamaStreamFn(base_url='http://192.168.1.5:8080')"
    assert repr(OllamaStreamFn(base_url="localhost")) == "OllamaStreamFn(base_url='http://localhost:11434')"
    assert OllamaStreamFn().timeout == Timeout(idle=600, first=600)


@pytest.mark.parametrize(
    "host", ["http://ollama.example", "https://user:pass@ollama.example", "ftp://x", "localhost:port"]
)
def test_a_host_that_will_not_do_is_refused(host):
    with pytest.raises(MisuseError):
        OllamaStreamFn(base_url=host)


async def test_keys_go_to_ollama_and_to_private_servers_only(monkeypatch):
    async def key_of(fn, **options):
        memory = MemoryClient(FIXTURES["text"], headers=STREAM)
        got = await read(fn, MODEL, options=StreamOptions(http=memory, **options))
        return memory.requests[0].headers.get("authorization") if memory.requests else got.terminal.kind

    assert await key_of(OllamaStreamFn()) is None
    assert await key_of(OllamaStreamFn(base_url="https://ollama.com")) == "auth"
    monkeypatch.setenv("OLLAMA_API_KEY", "from-environment")
    assert await key_of(OllamaStreamFn()) == "Bearer from-environment"
    assert await key_of(OllamaStreamFn(base_url="https://ollama.com")) == "Bearer from-environment"
    assert await key_of(OllamaStreamFn(base_url="https://elsewhere.example")) == "auth"
    assert await key_of(OllamaStreamFn(base_url="https://elsewhere.example", api_key="")) is None
    assert await key_of(OllamaStreamFn(api_key="constructor")) == "Bearer constructor"
    assert await key_of(OllamaStreamFn(api_key="constructor"), api_key="option") == "Bearer option"


# How replies end


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("stop", "stop"),
        (None, "stop"),
        ("length", "length"),
        ("load", "stream"),
        ("unload", "stream"),
        ("tired", "stream"),
    ],
)
async def test_every_done_reason_has_its_outcome(reason, outcome):
    got = await replay(
        lines({"message": {"content": "par"}, "done": False}, {"done": True, "done_reason": reason})
    )
    assert (got.terminal.stop_reason if isinstance(got.terminal, Done) else got.terminal.kind) == outcome
    assert got.message.text == "par"
    if reason in ("load", "unload"):
        assert "asked nothing" in got.terminal.message


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (404, 'model "qwen9" not found, try pulling it first', "model_retired"),
        (400, '"smollm" does not support tools', "stream"),
        (401, "unauthorized", "auth"),
        (429, "too many concurrent requests", "throttled"),
        (500, "llama runner process has terminated: exit status 2", "network"),
        (503, "server busy, please try again.  maximum pending requests exceeded", "network"),
    ],
)
async def test_an_error_has_its_kind(status, message, kind):
    refused = await replay(
        json.dumps({"error": message}).encode(),
        status=status,
        headers={"content-type": "application/json", "retry-after": "2"},
    )
    assert refused.events == [Start(), refused.terminal]
    assert (refused.terminal.kind, refused.terminal.retry_after) == (kind, 2)
    assert message in refused.terminal.message


async def test_an_error_line_is_an_error():
    got = await replay(
        lines(
            {"message": {"content": "par"}, "done": False},
            {"error": "an error was encountered while running the model"},
        )
    )
    assert isinstance(got.terminal, Error)
    assert got.message.text == "par"
    assert "while running the model" in got.terminal.message


async def test_a_last_line_without_its_newline_counts_if_it_is_whole():
    body = FIXTURES["text"].rstrip(b"\n")
    assert (await replay(body)).terminal == Done("stop", Usage(26, 9))
    assert (await replay(body[:-1])).terminal.kind == "network"


@pytest.mark.parametrize(
    "line",
    [
        "{half",
        "[]",
        '{"message": 5}',
        '{"message": {"content": 5}}',
        '{"message": {"tool_calls": [{"function": {}}]}}',
        '{"done": "yes"}',
    ],
)
async def test_a_malformed_line_is_an_error_that_shows_it(line):
    got = await replay(lines({"message": {"content": "par"}}) + line.encode() + b"\n" + FIXTURES["text"])
    assert got.terminal.kind == "stream"
    assert line[:20] in got.terminal.message
    assert got.message.text == "par"


async def test_arguments_as_text_are_taken_as_they_are():
    call = {"function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    got = await replay(lines({"message": {"tool_calls": [call]}}, {"done": True, "done_reason": "stop"}))
    assert got.calls[0].arguments == {"city": "Oslo"}


async def test_blank_lines_and_unknown_fields_are_ignored():
    got = await replay(b"\r\n\n" + lines({"news": 1}) + FIXTURES["text"].replace(b"\n", b"\r\n"))
    assert got.terminal == Done("stop", Usage(26, 9))


# Bytes


@pytest.mark.parametrize("name", ["thinking", "calls", "length"])
async def test_cut_anywhere_it_is_a_network_error_or_whole(name):
    body = FIXTURES[name]
    for at in cut_places(body):
        got = (await replay(body[:at])).terminal
        if at == len(body) - 1:  # only the last newline is missing
            assert isinstance(got, Done)
        else:
            assert isinstance(got, Error), at
            assert got.kind == "network", at


async def test_a_connection_that_breaks_keeps_what_arrived():
    body = FIXTURES["thinking"]
    got = await replay(body[: body.index(b"three")], failure=NetworkError("reset"))
    assert (got.terminal.kind, got.message.text, got.message.thinking) == (
        "network",
        "There are ",
        "Let me count.",
    )


@lean
@given(st.sampled_from(sorted(FIXTURES)), st.lists(st.integers(1, 3000), max_size=20))
async def test_any_division_of_the_bytes_gives_the_same_events(name, cuts):
    body = FIXTURES[name]
    edges = sorted({0, len(body), *(cut % len(body) for cut in cuts)})
    whole, divided = await replay(body), await replay([body[start:end] for start, end in pairwise(edges)])
    assert shape(divided.events) == shape(whole.events)


def shape(events):
    """Events without the ids that were made up."""
    return re.sub(r"swink-[0-9a-f]{20}", "swink-", repr(events))


# Conversations from elsewhere, and cancellation


@pytest.mark.parametrize("provider", IDS)
async def test_a_conversation_of_any_other_provider_goes_on(provider):
    sent = await sent_for(foreign_history(provider, "some-model"), tools=[WEATHER])
    roles = [message["role"] for message in sent["messages"]]
    assert roles == ["user", "assistant", "tool", "tool", "user", "user", "assistant", "tool", "user"]
    assert "Let me see." not in json.dumps(sent)
