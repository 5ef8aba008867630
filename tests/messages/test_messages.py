"""Values (D1-D5, D7, D8): they round-trip, pickle, compare by what they say, and take what people pass."""

import dataclasses
import json
import operator
import pickle
from pathlib import Path
from typing import TypedDict

import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import strategies
from tests.counts import tried

from swink.errors import InvalidInput
from swink.messages import (
    AssistantMessage,
    Cost,
    CustomMessage,
    Extension,
    Image,
    ModelSpec,
    NamedFile,
    Price,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolResultMessage,
    UrlSource,
    Usage,
    UserMessage,
    as_blocks,
    as_messages,
    clean,
    register_custom,
)
from swink.messages import message as module
from swink.messages.codec import decode_messages, encode_messages, messages_from_builtins, to_builtins
from swink.messages.records import decode_record

EVERY = [
    UserMessage("hi"),
    AssistantMessage((Thinking("hm", "sig"), Text("ho"), ToolCall("1", "look", {"at": [1]}))),
    ToolResultMessage("1", "look", "seen", True, {"rows": 3}),
    CustomMessage("note", {"x": 1}),
]


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    monkeypatch.setattr(module, "_custom_types", {})


# Round trips


@given(st.lists(strategies.messages, max_size=4))
@tried(37, 150)
def test_messages_round_trip_through_json_exactly(messages):
    back = decode_messages(encode_messages(messages))
    assert back == messages
    assert [message.timestamp for message in back] == [message.timestamp for message in messages]
    assert encode_messages(back) == encode_messages(messages)


@given(st.lists(strategies.messages, max_size=3))
@tried(25, 60)
def test_messages_round_trip_through_plain_data_and_the_standard_json_module(messages):
    data = to_builtins(messages)
    again = json.loads(json.dumps(data))
    assert again == data, "plain data is JSON data already: lists, not tuples"
    assert messages_from_builtins(again) == messages


@given(strategies.messages)
@tried(25, 60)
def test_messages_pickle(message):
    back = pickle.loads(pickle.dumps(message))
    assert back == message
    assert back.timestamp == message.timestamp


def test_the_wire_names_are_those_of_the_data_model():
    data = to_builtins(EVERY)
    assert [item["role"] for item in data] == ["user", "assistant", "tool_result", "custom"]
    assert data[1]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "text", "text": "ho"},
        {"type": "tool_call", "id": "1", "name": "look", "arguments": {"at": [1]}},
    ]
    assert to_builtins(Image(UrlSource("u"))) == {"type": "image", "source": {"type": "url", "url": "u"}}
    assert to_builtins(Image(NamedFile("a/b.png")))["source"]["path"] == "a/b.png"
    assert to_builtins(ToolCall("1", "n", {}, ""))["partial_json"] == "", "set and empty is not unset"


def test_unknown_fields_are_tolerated_at_every_level():
    data = to_builtins(EVERY)
    for item in data:
        item["from_the_future"] = {"x": 1}
        for block in item.get("content", []):
            block["future"] = [1]
        item.get("usage", {})["future"] = 1
    assert decode_messages(json.dumps(data)) == EVERY


def test_missing_optional_fields_take_their_defaults():
    old = '[{"role":"assistant","content":[]},{"role":"tool_result","tool_call_id":"1","tool_name":"t"}]'
    assistant, result = decode_messages(old)
    assert isinstance(assistant, AssistantMessage)
    assert (assistant.stop_reason, assistant.usage, assistant.cost) == ("stop", Usage(), None)
    assert isinstance(result, ToolResultMessage)
    assert not result.is_error


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ('[{"role":"robot","content":[]}]', "robot"),
        ('[{"role":"user","content":[{"type":"video"}]}]', "video"),
        ('[{"role":"assistant","content":[],"stop_reason":"bored"}]', "bored"),
        ('[{"content":[]}]', "role"),
    ],
)
def test_what_is_unknown_is_named(data, name):
    with pytest.raises(InvalidInput, match=name):
        decode_messages(data)
    with pytest.raises(InvalidInput, match=name):
        messages_from_builtins(json.loads(data))


@pytest.mark.parametrize("line", ['{"type":"label"}', "{", "[1]", "{}", b"\xff"])
def test_a_record_that_is_none_is_an_error_of_ours(line):
    with pytest.raises(InvalidInput, match="a record cannot be read"):
        decode_record(line)


# Custom messages


class Note(msgspec.Struct, frozen=True):
    text: str
    stars: int = 0


@dataclasses.dataclass
class Job:
    id: int


class Place(TypedDict):
    city: str


@pytest.mark.parametrize(
    ("cls", "value", "data"), [(Note, Note("a", 3), {"text": "a", "stars": 3}), (Job, Job(3), {"id": 3})]
)
def test_custom_messages_come_back_as_the_registered_type(cls, value, data):
    assert register_custom("mine", cls) is cls
    message = CustomMessage("mine", value)
    assert CustomMessage("mine", data).data == value, "plain data is decoded on the way in"
    (back,) = decode_messages(encode_messages([message]))
    assert back.data == value
    assert messages_from_builtins(to_builtins([message]))[0].data == value
    assert pickle.loads(pickle.dumps(message)) == message


def test_custom_messages_may_be_typed_dicts():
    register_custom("place", Place)
    message = CustomMessage("place", Place(city="Oslo"))
    assert decode_messages(encode_messages([message])) == [message]
    with pytest.raises(InvalidInput, match="city"):
        decode_messages('[{"role":"custom","kind":"place","data":{}}]')


def test_custom_messages_without_a_registration_keep_plain_data():
    (back,) = decode_messages(encode_messages([CustomMessage("mine", Note("a"))]))
    assert back.data == {"text": "a", "stars": 0}
    assert back.text == ""


def test_custom_data_that_does_not_fit_its_type_is_refused_by_name():
    register_custom("mine", Note)
    with pytest.raises(InvalidInput, match="text"):
        decode_messages('[{"role":"custom","kind":"mine","data":{}}]')


def test_foreign_values_in_details_are_saved_as_plain_data():
    class Row(pydantic.BaseModel):
        n: int

    message = ToolResultMessage("1", "t", "x", details={"row": Row(n=1), "path": Path("/tmp/x")})
    (back,) = decode_messages(encode_messages([message]))
    assert back.details == {"row": {"n": 1}, "path": "/tmp/x"}


# Equality


@pytest.mark.parametrize("message", EVERY)
def test_equality_and_hash_look_at_everything_but_the_clock(message):
    later = msgspec.structs.replace(message, timestamp=message.timestamp + 60)
    assert later == message
    assert not operator.ne(later, message)
    assert hash(later) == hash(message)
    assert len({later, message}) == 1


@pytest.mark.parametrize("message", EVERY)
def test_messages_of_other_content_or_kind_differ(message):
    assert message != "hi"
    for other in EVERY:
        assert (other == message) == (other is message)
        assert (other != message) == (other is not message)
    for name in message.__struct_fields__:
        if name not in ("timestamp", "cost"):
            changed = msgspec.structs.replace(message)
            msgspec.structs.force_setattr(changed, name, "something else")
            assert changed != message, name


@given(strategies.messages, strategies.messages)
@tried(25, 100)
def test_equal_messages_have_equal_hashes(one, two):
    assert (one == two) != operator.ne(one, two)
    if one == two:
        assert hash(one) == hash(two)


def test_equal_arguments_in_another_order_hash_the_same():
    one, two = (
        AssistantMessage((ToolCall("1", "n", arguments),))
        for arguments in ({"a": 1, "b": True}, {"b": 1, "a": 1.0})
    )
    assert one == two
    assert hash(one) == hash(two)


def test_a_message_with_anything_in_its_details_has_a_hash():
    assert isinstance(hash(ToolResultMessage("1", "t", "\ud800", details=object())), int)


def test_values_are_frozen():
    for value in (*EVERY, Text("x"), Usage(), Cost(), ModelSpec("a", "b"), ToolResult("x")):
        with pytest.raises(AttributeError):
            setattr(value, value.__struct_fields__[0], "other")


# What people pass


@pytest.mark.parametrize(
    "make", [UserMessage, AssistantMessage, ToolResult, lambda content: ToolResultMessage("1", "t", content)]
)
@pytest.mark.parametrize(
    "content", ["hi", ["hi"], ("hi",), Text("hi"), [Text("hi")], (Text("hi"),), iter(["hi"])]
)
def test_content_may_be_text_a_block_or_several(make, content):
    if not isinstance(content, str | Text | list | tuple):
        content = iter(["hi"])
    message = make(content)
    assert message.content == (Text("hi"),)
    assert message.text == "hi"


def test_an_empty_string_is_no_block():
    assert UserMessage("").content == ()
    assert ToolResultMessage("1", "t").content == ()


@pytest.mark.parametrize("content", [5, {"role": "user"}, [5], [{"type": "text"}], ("a", None), b"bytes"])
def test_content_that_is_none_is_refused_at_once(content):
    with pytest.raises(TypeError, match=r"content takes|not"):
        UserMessage(content)


def test_input_is_text_blocks_or_messages():
    image = Image(UrlSource("u"))
    assert as_messages("hi") == (UserMessage("hi"),)
    assert as_messages(image) == (UserMessage((image,)),)
    assert as_messages(EVERY[1]) == (EVERY[1],)
    assert as_messages(["look", image, Extension("x")]) == (
        UserMessage((Text("look"), image, Extension("x"))),
    )
    mixed = as_messages(["a", EVERY[1], Text("b"), "c"])
    assert mixed == (UserMessage("a"), EVERY[1], UserMessage(("b", "c")))
    assert as_messages(()) == ()


@pytest.mark.parametrize(
    "value",
    [
        5,
        None,
        {"role": "user", "content": "hi"},
        [{"role": "user"}],
        b"hi",
        [5],
        ToolCall("1", "n"),
        Thinking("x"),
        [ToolCall("1", "n")],
    ],
)
def test_input_that_is_none_says_what_it_takes(value):
    with pytest.raises(TypeError, match="input takes a str, a message"):
        as_messages(value)


def test_properties_of_an_assistant_message():
    message = AssistantMessage(
        (Thinking("a"), Text("b"), Thinking("c"), ToolCall("1", "n"), Text("d"), ToolCall("2", "n"))
    )
    assert message.text == "bd"
    assert message.thinking == "ac"
    assert [call.id for call in message.tool_calls] == ["1", "2"]
    assert not message.failed
    assert all(AssistantMessage("", stop_reason=reason).failed for reason in ("error", "aborted"))


# Surrogates


@given(st.text(st.characters(codec=None, categories=["Cs", "Lu", "So"]), max_size=12))
def test_text_with_lone_surrogates_becomes_text_that_encodes(text):
    message = UserMessage([text, text]) if text else UserMessage(text)
    encode_messages([message, AssistantMessage(text), ToolResultMessage("1", "t", text)])
    assert clean(clean(text)) == clean(text)


def test_only_what_is_broken_changes():
    assert clean("naïve 😀") == "naïve 😀"
    assert clean("a\ud83d\ude00b") == "a😀b", "two halves that belong together are joined"
    assert clean("a\udcffb") == "a\ufffdb"
    assert as_blocks("\ud800x") == (Text("\ufffdx"),)


# Usage, cost, price


@given(strategies.usages, strategies.usages)
@settings(max_examples=50, deadline=None)
def test_adding_usage_sums_every_field(one, two):
    total = one + two
    for name in ("input", "output", "cache_read", "cache_write", "total"):
        assert getattr(total, name) == getattr(one, name) + getattr(two, name)
    for key in {*one.extra, *two.extra}:
        assert total.extra[key] == one.extra.get(key, 0) + two.extra.get(key, 0)
    assert one + Usage() == one
    assert Usage() + one == one


def test_a_total_is_the_sum_unless_it_was_reported():
    assert Usage(1, 2, 3, 4).total == 10
    assert Usage(1, 2, total=7).total == 7
    assert Cost(1.0, 2.0).total == 3.0
    assert Cost(1.0, total=9.0) + Cost(output=1.0) == Cost(1.0, 1.0, total=10.0)


def test_price_charges_caches_at_their_own_rate_or_as_input():
    usage = Usage(input=1_000_000, output=500_000, cache_read=2_000_000, cache_write=100_000)
    assert Price(3.0, 15.0, 0.3, 3.75).cost(usage) == Cost(3.0, 7.5, 0.6, 0.375)
    assert Price(3.0, 15.0).cost(usage) == Cost(3.0, 7.5, 6.0, 0.3)
    assert Price(3.0, 15.0, 0.0).cost(usage).cache_read == 0.0, "free is not unpriced"


def test_a_model_spec_prints_as_it_is_written():
    spec = ModelSpec("anthropic", "claude-sonnet-4-6", thinking_budgets={"low": 100})
    assert str(spec) == "anthropic:claude-sonnet-4-6"
    assert msgspec.json.decode(msgspec.json.encode(spec), type=ModelSpec) == spec
    assert pickle.loads(pickle.dumps(spec)) == spec
