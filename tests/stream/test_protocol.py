"""The stream protocol (S1-S3): what is valid assembles into one message, and every violation is named."""

import time
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.counts import tried
from tests.scripted import make
from tests.strategies import json_objects, words

from swink.errors import NetworkError, StreamError
from swink.messages import AssistantMessage, Cost, ModelSpec, Text, Thinking, ToolCall, Usage
from swink.stream import (
    Assembly,
    BlockWriter,
    Done,
    Error,
    PromptProgress,
    Start,
    StreamOptions,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    Timeout,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    accumulate,
    parse_arguments,
)
from swink.testing import ScriptedModel

MODEL = ModelSpec("acme", "m1")
STARTS = {Text: TextStart, Thinking: ThinkingStart}
DELTAS = {Text: TextDelta, Thinking: ThinkingDelta, ToolCall: ToolCallDelta}


def assemble(*events, stop_reason="stop"):
    assembly = Assembly()
    for event in events:
        assembly.feed(event)
    return assembly.message(MODEL, stop_reason, usage=Usage()).content


def violation(*events):
    assembly = Assembly()
    *before, last = events
    for event in before:
        assembly.feed(event)
    with pytest.raises(StreamError, match=r"^stream protocol: ") as caught:
        assembly.feed(last)
    assert not caught.value.retryable
    return caught.value.message.removeprefix("stream protocol: ")


# What is valid


def pieces_of(draw, text):
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
    return [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def events_of(draw, index, block):
    """A block as stream events, its text cut anywhere, empty deltas included."""
    match block:
        case Text(text):
            return [
                TextStart(index),
                *(TextDelta(index, piece) for piece in pieces_of(draw, text)),
                TextEnd(index),
            ]
        case Thinking(text, signature, redacted):
            deltas = [ThinkingDelta(index, piece) for piece in pieces_of(draw, text)]
            return [ThinkingStart(index), *deltas, ThinkingEnd(index, signature, redacted)]
        case ToolCall(id, name, arguments, _, signature):
            text = "" if not arguments and draw(st.booleans()) else msgspec.json.encode(arguments).decode()
            deltas = [ToolCallDelta(index, piece) for piece in pieces_of(draw, text)]
            return [ToolCallStart(index, id, name), *deltas, ToolCallEnd(index, signature)]


@st.composite
def replies(draw):
    """Valid stream events, blocks interleaved at will, and the content they stand for."""
    block = (
        st.builds(Text, words)
        | st.builds(Thinking, words, st.none() | words, st.booleans())
        | st.builds(ToolCall, words, words, json_objects, st.none(), st.none() | words)
    )
    blocks = draw(st.lists(block, max_size=5))
    queues = [events_of(draw, index, item) for index, item in enumerate(blocks)]
    events = [Start()]
    opened = 0
    while any(queues):
        ready = [number for number in range(min(opened + 1, len(queues))) if queues[number]]
        number = draw(st.sampled_from(ready))
        if number == opened:
            opened += 1
        events.append(queues[number].pop(0))
    return events, tuple(item for item in blocks if not isinstance(item, Text) or item.text)


@given(replies(), st.sampled_from(["stop", "length", "tool_use"]))
@tried(25, 100)
def test_any_valid_sequence_assembles_into_what_was_said(reply, stop_reason):
    events, content = reply
    assembly = Assembly()
    for event in events:
        assert assembly.feed(event) == isinstance(
            event, TextDelta | ThinkingDelta | ToolCallStart | ToolCallDelta
        )
        assert assembly.terminal is None
    assembly.feed(Done(stop_reason))
    assert assembly.terminal == Done(stop_reason)
    message = assembly.message(MODEL, stop_reason, usage=Usage(1, 2), cost=Cost(1.0))
    assert message == AssistantMessage(content, "acme", "m1", stop_reason, Usage(1, 2), Cost(1.0))


@given(replies(), st.data())
@settings(max_examples=40, deadline=None)
def test_what_arrived_so_far_is_always_a_message_that_can_be_saved(reply, data):
    events, content = reply
    until = data.draw(st.integers(0, len(events)))
    assembly = Assembly()
    for event in events[:until]:
        assembly.feed(event)
    message = assembly.message(MODEL, "aborted", usage=Usage())
    assert msgspec.json.decode(msgspec.json.encode(message), type=AssistantMessage) == message
    for block in message.content:
        if isinstance(block, ToolCall) and block.partial_json is None:
            assert block in content


@given(replies(), st.data())
@tried(25, 60)
def test_a_sequence_with_one_event_out_of_place_is_refused(reply, data):
    events, _ = reply
    events = [*events, Done()]
    position = data.draw(st.integers(0, len(events)))
    extra = data.draw(
        st.sampled_from(
            [
                Start(),
                TextStart(97),
                TextDelta(97, "x"),
                TextEnd(97),
                ToolCallEnd(97),
                ThinkingDelta(97, "x"),
                events[-1],
            ]
        )
    )
    if position == len(events) - 1 and extra == Done():
        position += 1  # two terminals either way: the second is the one too many
    broken = [*events[:position], extra, *events[position:]]
    assembly = Assembly()
    with pytest.raises(StreamError, match="stream protocol"):
        for event in broken:
            assembly.feed(event)


# Violations, by name


def test_a_block_before_the_start_is_named():
    assert violation(TextStart(0)) == "text_start before start"
    assert violation(ThinkingStart(0)) == "thinking_start before start"
    assert violation(ToolCallStart(0, "1", "n")) == "tool_call_start before start"
    assert violation(Done()) == "done before start"
    assert violation(Error("x", "network")) == "error before start"
    assert "text_delta" in violation(TextDelta(0, "x"))
    assert "text_end" in violation(TextEnd(0))


def test_a_second_start_is_named():
    assert violation(Start(), Start()) == "a second start"
    assert violation(Start(), TextStart(0), TextEnd(0), Start()) == "a second start"


@pytest.mark.parametrize("index", [1, 2, -1])
def test_a_start_with_a_wrong_index_is_named(index):
    assert violation(Start(), TextStart(index)) == f"text_start opens block {index}, expected 0"


def test_an_index_used_twice_is_named():
    assert (
        violation(Start(), TextStart(0), ToolCallStart(0, "1", "n"))
        == "tool_call_start opens block 0, expected 1"
    )
    assert (
        violation(Start(), TextStart(0), TextEnd(0), TextStart(0)) == "text_start opens block 0, expected 1"
    )


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (TextStart(0), TextEnd(0)),
        (ThinkingStart(0), ThinkingEnd(0)),
        (ToolCallStart(0, "1", "n"), ToolCallEnd(0)),
    ],
)
@pytest.mark.parametrize(
    "event",
    [
        TextDelta(0, "x"),
        ThinkingDelta(0, "x"),
        ToolCallDelta(0, "x"),
        TextEnd(0),
        ThinkingEnd(0),
        ToolCallEnd(0),
    ],
)
def test_deltas_and_ends_hit_an_open_block_of_their_own_type(begin, end, event):
    name = event.__struct_config__.tag
    what = f"{name} for block 0, which is not open for it"
    assert violation(Start(), begin, end, event) == what, "the block is closed"
    if name.split("_")[0] == end.__struct_config__.tag.split("_")[0]:
        assemble(Start(), begin, event)
    else:
        assert violation(Start(), begin, event) == what, "the block is of another type"
    assert violation(Start(), event) == what, "there is no block"


@pytest.mark.parametrize("index", [-1, 1, None])
def test_a_delta_of_a_block_that_nobody_opened_is_named(index):
    what = f"text_delta for block {index}, which is not open for it"
    assert violation(Start(), TextDelta(index, "x")) == what
    assert violation(Start(), TextStart(0), TextEnd(0), TextDelta(index, "x")) == what


@pytest.mark.parametrize(("done", "total"), [(-1, 2), (3, 2), ("1", 2), (True, 2), (1, None)])
def test_progress_that_cannot_be_is_named(done, total):
    said = violation(Start(), PromptProgress(done, total))
    assert said == f"prompt_progress of {done!r} of {total!r} tokens"


@pytest.mark.parametrize("terminal", [Done(), Done("length"), Error("x", "network")])
@pytest.mark.parametrize(
    "event", [Start(), TextStart(0), TextDelta(0, "x"), TextEnd(0), Done(), Error("y"), ToolCallDelta(0, "")]
)
def test_nothing_comes_after_a_terminal(terminal, event):
    said = violation(Start(), terminal, event)
    assert said == f"{event.__struct_config__.tag} after {terminal.__struct_config__.tag}"


@pytest.mark.parametrize("stop_reason", ["stop", "tool_use", "transfer"])
@pytest.mark.parametrize("begin", [TextStart(0), ThinkingStart(0), ToolCallStart(0, "1", "n")])
def test_done_with_an_open_block_is_named(stop_reason, begin):
    assert violation(Start(), begin, Done(stop_reason)) == "done with block 0 still open"


@pytest.mark.parametrize("junk", ["text", None, {"type": "start"}, 5, Usage()])
def test_what_is_no_event_is_named(junk):
    assert violation(Start(), junk) == f"{type(junk).__name__} is not a stream event"
    assert violation(Start(), Done(), junk) == f"{type(junk).__name__} after done"


@pytest.mark.parametrize("delta", [TextDelta(0, None), TextDelta(0, b"x"), TextDelta(0, 5)])
def test_a_delta_that_is_no_text_is_named_and_harms_nothing(delta):
    assembly = Assembly()
    for event in (Start(), TextStart(0), TextDelta(0, "a"), delta, TextDelta(0, "b")):
        assembly.feed(event)
    assert assembly.message(MODEL, "aborted", usage=Usage()).text == "ab"
    with pytest.raises(StreamError, match="a delta of block 0 is not text"):
        assembly.feed(TextEnd(0))
    assert assembly.message(MODEL, "error", usage=Usage()).text == "ab"


# Tolerances


@pytest.mark.parametrize("terminal", [Done("length"), Error("cut", "network")])
@pytest.mark.parametrize(
    ("begin", "delta"),
    [
        (TextStart(0), TextDelta(0, "late")),
        (ThinkingStart(0), ThinkingDelta(0, "late")),
        (ToolCallStart(0, "1", "n"), ToolCallDelta(0, "{}")),
    ],
)
def test_a_delta_of_a_block_that_was_open_at_the_end_comes_too_late(begin, delta, terminal):
    said = violation(Start(), begin, terminal, delta)
    assert said == f"{delta.__struct_config__.tag} after {terminal.__struct_config__.tag}"


@pytest.mark.parametrize("terminal", [Done("length"), Error("cut", "network")])
def test_open_blocks_are_kept_as_they_stand_at_length_and_at_error(terminal):
    events = [
        Start(),
        TextStart(0),
        TextDelta(0, "par"),
        ThinkingStart(1),
        ThinkingDelta(1, "hm"),
        ToolCallStart(2, "1", "look"),
        ToolCallDelta(2, '{"at": "th'),
        terminal,
    ]
    assert assemble(*events) == (Text("par"), Thinking("hm"), ToolCall("1", "look", {}, '{"at": "th'))


def test_an_open_call_stays_incomplete_even_if_what_arrived_is_whole_json():
    (call,) = assemble(Start(), ToolCallStart(0, "1", "n"), ToolCallDelta(0, '{"a":1}'), Done("length"))
    assert call == ToolCall("1", "n", {}, '{"a":1}')


def test_an_open_call_of_which_nothing_arrived_is_incomplete_too():
    (call,) = assemble(Start(), ToolCallStart(0, "1", "n"), Done("length"))
    assert call.partial_json == ""


# Arguments (S3)


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_a_call_that_ends_with_an_empty_buffer_has_no_arguments(text):
    (call,) = assemble(Start(), ToolCallStart(0, "1", "n"), ToolCallDelta(0, text), ToolCallEnd(0, "sig"))
    assert call == ToolCall("1", "n", {}, None, "sig")
    assert assemble(Start(), ToolCallStart(0, "1", "n"), ToolCallEnd(0)) == (ToolCall("1", "n", {}),)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": ',
        "nonsense",
        '{"a": 1} x',
        "[1]",
        "null",
        '"x"',
        "{'a': 1}",
        "[" * 10_000,
        '{"a": "\\ud800"}',
        "NaN",
    ],
)
def test_bad_json_stays_where_it_can_be_shown(text):
    (call,) = assemble(Start(), ToolCallStart(0, "1", "n"), ToolCallDelta(0, text), ToolCallEnd(0))
    assert call == ToolCall("1", "n", {}, text)
    assert parse_arguments(text) is None


@given(json_objects)
def test_any_json_object_is_parsed(value):
    assert parse_arguments(msgspec.json.encode(value).decode()) == value


# The message


def test_blocks_without_a_word_are_left_out_but_signed_thinking_stays():
    content = assemble(
        Start(),
        TextStart(0),
        TextDelta(0, ""),
        TextEnd(0),
        TextStart(1),
        TextEnd(1),
        ThinkingStart(2),
        ThinkingEnd(2, "s", True),
        Done(),
    )
    assert content == (Thinking("", "s", True),)


def test_halves_of_a_character_in_two_deltas_are_joined():
    content = assemble(
        Start(), TextStart(0), TextDelta(0, "\ud83d"), TextDelta(0, "\ude00 \ud800"), TextEnd(0), Done()
    )
    assert content == (Text("😀 \ufffd"),)


def test_a_failed_reply_carries_its_error():
    assembly = Assembly()
    assembly.feed(Start())
    message = assembly.message(MODEL, "error", usage=Usage(), error=NetworkError("lost", model="acme:m1"))
    assert message.failed
    assert message.error_kind == "network"
    assert "lost" in (message.error_message or "")
    assert assembly.message(MODEL, "error", usage=Usage(), error=ValueError("odd")).error_kind == "stream"


def test_the_size_grows_with_content_alone():
    assembly = Assembly()
    sizes = [0]
    for event in (
        Start(),
        TextStart(0),
        TextDelta(0, "x"),
        TextDelta(0, "y"),
        TextEnd(0),
        ToolCallStart(1, "1", "n"),
        ToolCallEnd(1),
        Done(),
    ):
        assembly.feed(event)
        sizes.append(assembly.size)
    assert sizes == [0, 0, 0, 1, 2, 2, 3, 3, 3]
    assert assembly.has_content
    assert not Assembly().has_content


def test_the_timestamp_is_when_the_reply_began():
    before = time.time()
    assembly = Assembly()
    time.sleep(0.002)
    assert before <= assembly.message(MODEL, "stop", usage=Usage()).timestamp <= assembly.began


def test_options_have_the_documented_defaults():
    assert Timeout() == Timeout(idle=120.0, connect=30.0)
    assert StreamOptions().cache
    assert repr(StreamOptions(temperature=0.5, api_key="k")) == "StreamOptions(temperature=0.5, cache=True)"


# What a writer makes


def written(writer):
    return [Start(), *writer.take(), writer.terminal]


def test_blocks_that_are_open_at_a_failure_close_in_index_order():
    writer = BlockWriter(Usage(3, 1))
    thinking, text, call = writer.begin_thinking(), writer.begin_text(), writer.begin_call("a", "x")
    writer.add(text, "hi")
    writer.fail(NetworkError("lost"))
    events = written(writer)
    assert events[-4:-1] == [ThinkingEnd(thinking), TextEnd(text), ToolCallEnd(call)]
    assert events[-1] == Error("lost", "network", usage=Usage(3, 1, unknown=True))
    assert Text("hi") in assemble(*events)


def test_a_terminal_that_is_given_whole_ends_the_reply_unchanged():
    writer = BlockWriter(Usage(3, 1))
    writer.say("hi")
    writer.finish(Error("odd", "throttled", 2.5))
    assert written(writer)[-2:] == [TextEnd(0), Error("odd", "throttled", 2.5)]


@pytest.mark.parametrize(("stop_reason", "partial"), [("length", ""), ("tool_use", None)])
def test_a_call_without_arguments_stays_open_at_the_limit_and_closes_otherwise(stop_reason, partial):
    writer = BlockWriter()
    writer.begin_call("a", "x")
    writer.done(stop_reason)
    assert assemble(*written(writer)) == (ToolCall("a", "x", {}, partial),)


def test_a_block_that_was_closed_is_never_joined():
    writer = BlockWriter()
    writer.say("a")
    assert writer.current == 0
    writer.end(0)
    assert writer.current is None
    writer.say("b")
    writer.done("stop")
    assert assemble(*written(writer)) == (Text("a"), Text("b"))


def test_every_new_block_closes_what_was_said_before_it():
    writer = BlockWriter()
    writer.think("hm")
    writer.sign("signed")
    writer.say("a")
    writer.add(writer.begin_text(), "b")
    writer.say("c")
    call = writer.begin_call("1", "n")
    writer.end(call, "sealed")
    writer.done("tool_use")
    assert [event.index for event in writer.take() if isinstance(event, TextStart | TextEnd)] == [
        1,
        1,
        2,
        3,
        3,
        2,
    ]


actions = st.sampled_from(["say", "think", "sign", "text", "thinking", "call", "add", "end", "end_current"])


@given(
    st.lists(st.tuples(actions, st.integers(0, 5)), max_size=25),
    st.sampled_from(["stop", "length", "tool_use", "error"]),
)
def test_whatever_is_written_keeps_the_protocol(steps, end):
    writer = BlockWriter()
    for action, index in steps:
        match action:
            case "say" | "think" | "sign":
                getattr(writer, action)("x")
            case "text" | "thinking":
                getattr(writer, f"begin_{action}")()
            case "call":
                writer.begin_call("1", "n")
            case "end_current":
                writer.end_current()
                assert writer.current is None
            case "add" if writer.is_open(index):
                writer.add(index, "x")
                assert writer.is_filled(index)
            case "end" if writer.is_open(index):
                writer.end(index)
    if end == "error":
        writer.fail(NetworkError("lost"))
    else:
        writer.done(end)
    assert len(assemble(*written(writer))) <= len(steps)


async def test_accumulate_gives_the_whole_reply():
    agent, _ = make([])
    message = await accumulate(ScriptedModel([["a", "b"]])(agent.model, None, None), agent.model)  # type: ignore[arg-type]
    assert (message.text, message.stop_reason) == ("ab", "stop")


@pytest.mark.parametrize(
    "event",
    [
        Done("stop", None),  # type: ignore[arg-type]
        Done("banana"),  # type: ignore[arg-type]
        Error(None),  # type: ignore[arg-type]
        Error("m", "throttled", "soon"),  # type: ignore[arg-type]
        ToolCallStart(0, None, None),  # type: ignore[arg-type]
    ],
)
async def test_garbage_in_an_event_is_a_named_violation(event: Any):
    agent, seen = make([[Start(), event]])
    result = await agent.run("go")
    assert result.error_kind == "stream"
    assert "stream protocol" in (result.error or "")
    seen.check()
