"""The stream function with the real model: words as they come, a cache between turns, errors as any provider's."""

import json
import logging
from types import SimpleNamespace

import pytest
from msgspec.structs import replace
from talking import SMOL, WEATHER, Spec, ask, events_of
from tests.counts import MORE, left_to_more

from swink.errors import StreamError
from swink.local import LocalStreamFn
from swink.local.llamacpp import physical_cores
from swink.messages import (
    AssistantMessage,
    Cost,
    Image,
    LlmMessage,
    Text,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from swink.messages.providertools import WebSearch
from swink.stream import (
    Done,
    Error,
    LlmContext,
    OutputSchema,
    PromptProgress,
    Start,
    StreamFn,
    StreamOptions,
    TextDelta,
)

TOOL_TEMPLATE = """{% if tools %}{{ '<|im_start|>system\\nTool: ' + tools[0]['function']['name'] + '<|im_end|>\\n' }}{% endif %}\
{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' }}{% if message['tool_calls'] %}{% for call in message['tool_calls'] %}\
{{ '<tool_call>\\n{"name": "' + call['function']['name'] + '", "arguments": ' + (call['function']['arguments'] | tojson) + '}\\n</tool_call>' }}\
{% endfor %}{% else %}{{ message['content'] }}{% endif %}{{ '<|im_end|>\\n' }}{% endfor %}\
{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
"""A chat template that knows tools, in the manner of Hermes and Qwen."""


async def test_words_arrive_one_by_one(model: LocalStreamFn):
    events = await events_of(model, "What is the capital of France?", system="Be brief.", max_tokens=8)
    assert events[0] == Start()
    assert sum(isinstance(event, TextDelta) for event in events) >= 5
    read = [event for event in events if isinstance(event, PromptProgress)]
    assert read[-1].done == read[-1].total
    assert isinstance(events[-1], Done)
    assert events[-1].cost == Cost()
    assert events[-1].usage.output >= 5


@left_to_more
async def test_the_next_turn_reads_only_what_is_new(model: LocalStreamFn):
    history = [UserMessage("What is the capital of France?")]
    first, done = await ask(model, history, system="Be brief.", max_tokens=16)
    assert "Paris" in first.text
    _, later = await ask(
        model, [*history, first, UserMessage("And Italy?")], system="Be brief.", max_tokens=2
    )
    assert later.usage.cache_read > done.usage.input + done.usage.cache_read
    assert later.usage.input < 20
    _, uncached = await ask(model, history, system="Be brief.", max_tokens=1, cache=False)
    assert uncached.usage.cache_read == 0


async def test_a_prompt_that_does_not_fit_is_an_overflow(model: LocalStreamFn):
    events = await events_of(model, "word " * 3000)
    assert events[0] == Start()
    error = events[-1]
    assert isinstance(error, Error)
    assert error.kind == "context_window_exceeded"
    assert "2048" in error.message


async def test_a_limit_on_the_length_is_kept(model: LocalStreamFn):
    message, done = await ask(model, "Tell me a long story.", max_tokens=3)
    assert isinstance(done, Done)
    assert (done.stop_reason, done.usage.output) == ("length", 3)
    assert message.text


async def test_options_reach_llama_cpp_and_chunks_reach_the_caller(model: LocalStreamFn):
    raw: list[dict[str, object]] = []
    message, _ = await ask(
        model, "Hi", max_tokens=24, extra={"grammar": 'root ::= "日本語🙂é"'}, on_raw_payload=raw.append
    )
    assert message.text == "日本語🙂é"  # characters that are several tokens each
    assert any("usage" in chunk for chunk in raw)


@left_to_more
async def test_thinking_is_told_from_words(model: LocalStreamFn):
    grammar = 'root ::= "<think>\\nhm\\n</think>\\n\\nYes."'
    message, _ = await ask(model, "Hi", max_tokens=30, extra={"grammar": grammar})
    assert (message.thinking.strip(), message.text) == ("hm", "Yes.")


async def test_images_are_refused_clearly(model: LocalStreamFn):
    with pytest.raises(StreamError, match="takes no images"):
        await events_of(model, [UserMessage((Text("What is this?"), Image.from_url("https://x/x.png")))])


async def test_an_empty_context_is_refused(model: LocalStreamFn):
    with pytest.raises(StreamError, match="nothing to answer"):
        await events_of(model, [])


async def test_options_without_meaning_are_reported_once(
    model: LocalStreamFn, caplog: pytest.LogCaptureFixture
):
    fresh = LocalStreamFn(context=2048, threads=physical_cores())
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            await events_of(
                fresh,
                "Hi",
                spec=replace(SMOL, thinking_level="high"),
                max_tokens=1,
                api_key="sk-secret-secret",
            )
    assert [record.getMessage() for record in caplog.records] == [
        f"{SMOL}: option 'api_key' is ignored: the model runs in this process",
        f"{SMOL}: option 'thinking_level' is ignored: the model's chat template cannot turn thinking on or off",
    ]


async def test_an_option_is_honoured_or_reported(model: LocalStreamFn, caplog: pytest.LogCaptureFixture):
    fresh = LocalStreamFn(context=2048, threads=physical_cores())
    given = {
        "temperature": 0.5, "top_p": 0.5, "stop": ("END",), "seed": 7, "session_id": "s", "tool_choice": "none",
        "cache": False, "timeout": 60, "transport": "auto", "on_raw_payload": lambda _: None, "extra": {"top_k": 3},
        "api_key": "sk-secret-secret", "http": SimpleNamespace(send=print, aclose=print), "service_tier": "flex", "verbosity": "low",
        "parallel_tool_calls": False, "headers": {"x-team": "a"},
    }  # fmt: skip
    assert {*given, "max_tokens"} == {*StreamOptions.__struct_fields__}
    with caplog.at_level(logging.WARNING):
        await events_of(fresh, "Hi", max_tokens=1, **given)
    reported = {record.getMessage().split("'")[1] for record in caplog.records}
    assert reported == {*given} - fresh.honours


@left_to_more
async def test_an_option_wins_over_extra_and_the_loser_is_reported_by_name(
    model: LocalStreamFn, caplog: pytest.LogCaptureFixture
):
    own = LocalStreamFn(context=2048, threads=physical_cores())
    extra = {"n_predict": 6, "temperature": 1.9, "cache_prompt": True, "ignore_eos": True, "max_tokens": 5}
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            _, done = await ask(own, "Hi", max_tokens=3, temperature=0.0, cache=False, extra=extra)
            assert (done.stop_reason, done.usage.output, done.usage.cache_read) == ("length", 3, 0)
    assert [record.getMessage() for record in caplog.records] == [
        f"{SMOL}: option 'extra[{name!r}]' is ignored: set StreamOptions.{option} instead"
        for name, option in [
            ("n_predict", "max_tokens"),
            ("temperature", "temperature"),
            ("cache_prompt", "cache"),
            ("max_tokens", "max_tokens"),
        ]
    ]


async def test_a_request_that_llama_cpp_refuses_is_an_error_not_a_hang(model: LocalStreamFn):
    _, error = await ask(model, "Hi", extra={"grammar": "root ::= ("})
    assert isinstance(error, Error)
    with pytest.raises(StreamError, match=r"llama\.cpp refused"):
        await events_of(model, "Hi", extra={"messages": 3})


@left_to_more
async def test_a_template_that_knows_tools_gets_them_natively(weights: object):
    native = LocalStreamFn(context=1024, parallel=1, threads=physical_cores(), chat_template=TOOL_TEMPLATE)
    call = ToolCall("1", "weather", {"city": "Rome"})
    history: list[LlmMessage] = [
        UserMessage("Weather in Rome?"),
        AssistantMessage((call,)),
        ToolResultMessage(call.id, "weather", "14"),
    ]
    try:
        message, done = await ask(
            native, [*history, UserMessage("Weather in Oslo?")], tools=[WEATHER], max_tokens=40
        )
        assert isinstance(done, Done)
        assert done.stop_reason == "tool_use"
        assert [(call.name, call.arguments) for call in message.tool_calls] == [("weather", {"city": "Oslo"})]
        message, _ = await ask(native, "Oslo?", tools=[Spec("t", "T.")], tool_choice="t", max_tokens=20)
        assert [call.name for call in message.tool_calls] == ["t"]
        read = Spec("read_file", "Read a file.", {"path": {"type": "string"}})
        message, done = await ask(native, "What does notes.txt say?", tools=[read], max_tokens=60)
        assert isinstance(done, Done)
        assert [(call.name, type(call.arguments["path"])) for call in message.tool_calls] == [
            ("read_file", str)
        ]
    finally:
        native.model(SMOL.model_id).unload()


def test_it_is_a_stream_function_that_waits_long_for_words():
    function: StreamFn = LocalStreamFn()
    assert (LocalStreamFn.timeout.idle, LocalStreamFn.timeout.first) == (600, 600)
    assert callable(function)


@left_to_more
async def test_a_sentence_over_and_over_is_said_once_and_the_reply_ends_with_a_warning(
    model: LocalStreamFn, caplog: pytest.LogCaptureFixture
):
    sentence = "Fix the tests of the parser.\n"
    loop = 'root ::= ("Fix the tests of the parser.\\n")+'
    with caplog.at_level(logging.WARNING):
        message, done = await ask(model, "A commit message:", max_tokens=240, extra={"grammar": loop})
    assert (message.text, done.stop_reason) == (sentence, "stop")
    assert 60 < done.usage.output < 240  # what was held back and dropped counts as well
    assert [record.getMessage() for record in caplog.records] == [
        f"{SMOL}: the model kept repeating itself, so its text was cut short"
    ]


@pytest.mark.more
@pytest.mark.skipif(not MORE, reason="a long reply")
async def test_a_loop_within_a_sentence_is_left_by_other_sampling(model: LocalStreamFn):
    loop = 'root ::= "It is " ("the dog and the cat and the mouse and ")+'
    message, done = await ask(model, "Who is it?", max_tokens=300, extra={"grammar": loop})
    assert isinstance(done, Done)
    assert message.text.count("the dog and the cat") < 6
    assert done.usage.total < 400


@left_to_more
async def test_an_answer_fits_its_schema_without_a_tool(model: LocalStreamFn):
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    context = LlmContext(
        "", [UserMessage("Which city is the capital of France?")], output=OutputSchema("city", schema)
    )
    assert model.native_output(SMOL, context)
    events = [event async for event in model(SMOL, context, StreamOptions(max_tokens=20))]
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert json.loads(text)["city"].startswith("Paris")
    assert not model.native_output(SMOL, LlmContext("", context.messages, [WEATHER]))
    with pytest.raises(StreamError, match="not both"):
        _ = [event async for event in model(SMOL, replace(context, tools=[WEATHER]), StreamOptions())]


async def test_a_text_at_which_to_stop_is_honoured_and_options_without_meaning_are_named(
    model: LocalStreamFn, caplog: pytest.LogCaptureFixture
):
    own = LocalStreamFn(context=2048, threads=physical_cores())
    with caplog.at_level(logging.WARNING):
        message, done = await ask(
            own,
            "What is the capital of France?",
            max_tokens=30,
            stop=("Paris",),
            top_p=0.9,
            seed=3,
            verbosity="low",
            parallel_tool_calls=True,
        )
    assert (done.stop_reason, "Paris" in message.text) == ("stop", False)
    assert [record.getMessage().split("'")[1] for record in caplog.records] == [
        "verbosity",
        "parallel_tool_calls",
    ]


async def test_hosted_tools_are_refused_by_name(model: LocalStreamFn):
    context = LlmContext("", [UserMessage("?")], hosted=[WebSearch()])
    with pytest.raises(StreamError, match="WebSearch"):
        _ = [event async for event in model(SMOL, context, StreamOptions())]
