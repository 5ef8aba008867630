"""Events (D7): each round-trips exactly, an unknown one is named, and every kind is in the union."""

import json
import pickle
from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import strategies
from tests.strategies import counts, json_objects, json_values, messages, numbers, words

from swink.errors import InvalidInput
from swink.events import (
    AgentEnd,
    AgentEvent,
    CompactionReport,
    ContextCompacted,
    MessageEnd,
    MessageUpdate,
    RetryScheduled,
    ToolExecutionEnd,
    TurnEnd,
    decode_agent_event,
    encode_agent_event,
    final_text,
)
from swink.events import kinds as events
from swink.messages import AssistantMessage, CustomMessage, Text, ToolResult, ToolResultMessage, UserMessage
from swink.messages.codec import to_builtins
from swink.stream import (
    AssistantMessageEvent,
    BlockAdded,
    Done,
    Error,
    TextDelta,
    TextEnd,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
    UsageUpdate,
    decode_event,
    encode_event,
    protocol,
)

# Anything a field can hold, by the field's annotation; what is not here is built from its own fields.
FIELDS = {
    "message": {TurnEnd: strategies.assistant_messages, MessageEnd: messages},
    "messages": {AgentEnd: st.lists(messages, max_size=3).map(tuple)},
    "tool_results": {TurnEnd: st.lists(strategies.tool_results, max_size=2).map(tuple)},
    "result": {ToolExecutionEnd: st.builds(ToolResult, strategies.user_content, json_values, st.booleans())},
    "delta": {
        MessageUpdate: st.builds(TextDelta, counts, words)
        | st.builds(ThinkingDelta, counts, words)
        | st.builds(ToolCallDelta, counts, words)
        | st.builds(ToolCallStart, counts, words, words)
        | st.builds(BlockAdded, counts, strategies.media | strategies.extensions)
    },
    "citations": {TextEnd: st.lists(strategies.citations, max_size=2).map(tuple)},
    "block": {BlockAdded: strategies.media | strategies.extensions},
    "report": {ContextCompacted: st.builds(CompactionReport, counts, counts, counts, st.booleans())},
    "delay": {RetryScheduled: numbers},
    "usage": dict.fromkeys((Done, Error, UsageUpdate), strategies.usages),
    "cost": dict.fromkeys((Done, UsageUpdate), st.none() | strategies.costs),
    "retry_after": {Error: st.none() | numbers},
}
BY_TYPE = {
    str: words,
    int: counts,
    bool: st.booleans(),
    dict[str, object]: json_objects,
    tuple[str, ...]: st.lists(words, max_size=3).map(tuple),
    str | None: st.none() | words,
}


def any_of(cls):
    fields = {}
    for field in msgspec.structs.fields(cls):
        if field.name in FIELDS and cls in FIELDS[field.name]:
            fields[field.name] = FIELDS[field.name][cls]
        elif field.type in BY_TYPE:
            fields[field.name] = BY_TYPE[field.type]
        elif getattr(field.type, "__origin__", None) is dict:
            fields[field.name] = json_objects
        elif get_args(field.type) and all(
            isinstance(item, str | type(None)) for item in get_args(field.type)
        ):
            fields[field.name] = st.sampled_from(get_args(field.type))
        elif repr(field.type) == "typing.Any":
            fields[field.name] = json_values
        else:
            fields[field.name] = st.from_type(field.type)
    return st.builds(cls, **fields)


@pytest.mark.parametrize("cls", get_args(AgentEvent))
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_every_agent_event_round_trips_exactly(cls, data):
    event = data.draw(any_of(cls))
    encoded = encode_agent_event(event)
    back = decode_agent_event(encoded)
    assert type(back) is cls
    assert back == event
    assert encode_agent_event(back) == encoded, "timestamps too"
    assert pickle.loads(pickle.dumps(event)) == event
    assert json.loads(encoded) == to_builtins(event)


@pytest.mark.parametrize("cls", get_args(AssistantMessageEvent))
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_every_stream_event_round_trips_exactly(cls, data):
    event = data.draw(any_of(cls))
    back = decode_event(encode_event(event))
    assert type(back) is cls
    assert back == event
    assert pickle.loads(pickle.dumps(event)) == event


@pytest.mark.parametrize(
    ("module", "union", "others"),
    [
        (events, AgentEvent, {"CompactionReport", "NestedEvent"}),
        (protocol, AssistantMessageEvent, {"Timeout", "StreamOptions", "LlmContext", "OutputSchema"}),
    ],
)
def test_every_event_of_the_module_is_in_the_union(module, union, others):
    own = {
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__
    }
    structs = {name for name in own if issubclass(getattr(module, name), msgspec.Struct)}
    assert structs - others == {cls.__name__ for cls in get_args(union)}


@pytest.mark.parametrize("decode", [decode_agent_event, decode_event])
def test_an_unknown_event_is_named(decode):
    with pytest.raises(InvalidInput, match="quantum_leap"):
        decode('{"type":"quantum_leap"}')


def test_unknown_fields_are_tolerated():
    assert decode_agent_event('{"type":"turn_start","turn":2,"future":[1]}') == events.TurnStart(2)
    assert decode_event('{"type":"text_delta","content_index":0,"delta":"x","future":1}') == TextDelta(0, "x")


def test_the_wire_of_the_stream_protocol():
    assert json.loads(encode_event(TextDelta(1, "x"))) == {
        "type": "text_delta",
        "content_index": 1,
        "delta": "x",
    }
    assert json.loads(encode_event(ToolCallDelta(1, "{"))) == {
        "type": "tool_call_delta",
        "content_index": 1,
        "delta": "{",
    }
    assert json.loads(encode_event(Error("m", "network", 2.0))) == {
        "type": "error",
        "message": "m",
        "kind": "network",
        "retry_after": 2.0,
    }


def test_events_match_by_position_and_name():
    match MessageUpdate(TextDelta(0, "hi")):
        case MessageUpdate(delta=TextDelta(text=text)):
            assert text == "hi"
        case _:
            pytest.fail("no match")


def test_the_final_text_is_the_last_assistants():
    history = [
        UserMessage("q"),
        AssistantMessage("a"),
        AssistantMessage((Text("b"), Text("c"))),
        ToolResultMessage("1", "t", "r"),
        CustomMessage("x"),
    ]
    assert final_text(history) == "bc"
    assert final_text(history[:1]) == ""
