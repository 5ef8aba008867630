"""JSON data: any value is written down, and read back as it was."""

import dataclasses
import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any
from uuid import UUID

import msgspec
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import tried

from swink.errors import InvalidInput
from swink.events import (
    NestedEvent,
    ToolExecutionUpdate,
    TurnStart,
    decode_agent_event,
    encode_agent_event,
)
from swink.messages import AssistantMessage, Cost, ToolCall, ToolResultMessage
from swink.messages.codec import decode_messages, encode_messages
from swink.messages.jsondata import DEEPEST, as_data, clean, copy_data, decode, encode, from_data, refuse
from swink.tools import as_result

keys = st.text(max_size=4) | st.sampled_from(["$number", "$$number", "$", "number", "\ud800"])
anything: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(0, 9).map(lambda digit: (digit + 1) * 10**4000)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["\ud800", "inf", "0x10"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
strange = anything | st.binary(max_size=3) | st.sampled_from([object(), {1, 2}, (1, object()), len, int])


def cleaned(value: Any) -> Any:
    """The value as its JSON should read: nan, which is not equal to itself, by name."""
    match value:
        case str():
            return clean(value)
        case float() if math.isnan(value):
            return "not a number"
        case dict():
            return {clean(key): cleaned(item) for key, item in value.items()}
        case list():
            return [cleaned(item) for item in value]
        case _:
            return value


@given(anything)
@tried(100, 1_000)
def test_data_reads_back_as_it_was(value: Any):
    assert cleaned(decode(encode(value))) == cleaned(value)
    assert cleaned(from_data(json.loads(json.dumps(as_data(value), allow_nan=False)))) == cleaned(value)


@given(strange, st.sampled_from(["details", "update"]))
@tried(60, 1_000)
def test_messages_and_events_are_written_whatever_they_hold(value: Any, place: str):
    if place == "details":
        data = encode_messages([ToolResultMessage("1", "t", details=value)])
        assert encode_messages(decode_messages(data)) == data
    else:
        data = encode_agent_event(ToolExecutionUpdate("1", "t", value))
        assert encode_agent_event(decode_agent_event(data)) == data


def test_infinite_times_and_costs_read_back():
    message = AssistantMessage("x", cost=Cost(math.inf), timestamp=-math.inf)
    (back,) = decode_messages(encode_messages([message]))
    assert back == message
    assert back.timestamp == -math.inf


def test_a_nested_event_reads_back_as_an_event():
    event = ToolExecutionUpdate("1", "ask", NestedEvent(("helper",), TurnStart(1), ("c",)))
    assert decode_agent_event(encode_agent_event(event)) == event


def test_what_only_looks_like_a_nested_event_stays_as_it_is():
    event = ToolExecutionUpdate("1", "ask", {"type": "nested_event", "path": 3})
    assert decode_agent_event(encode_agent_event(event)) == event


def test_a_cycle_is_written_once_however_often_it_meets_itself():
    value: dict[str, Any] = {"a": 1}
    value["b"] = value["c"] = value["d"] = [value] * 3
    assert as_data(value)["b"] == ["[circular]"] * 3


@pytest.mark.parametrize("levels", [DEEPEST, 900, 10_000])
def test_depth_is_cut_where_readers_would_give_up(levels: int):
    value: Any = "inmost"
    for _ in range(levels):
        value = [value]
    data = encode(value)
    assert decode(data) is not None
    assert (b"inmost" in data) == (levels == DEEPEST)
    assert (b"nested too deeply" in data) == (levels != DEEPEST)


def test_what_is_no_json_is_refused_where_only_json_will_do():
    for value in (object(), [object()], {"a": len}):
        with pytest.raises(InvalidInput, match="is not JSON-able"):
            copy_data(value)
        with pytest.raises(InvalidInput):
            encode(value, refuse)


class Colour(Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    where: Path


class Place(msgspec.Struct, tag="place", omit_defaults=True):
    x: int
    y: int = 0
    long_name: str = msgspec.field(default="", name="longName")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (numpy.int64(3), "3"),
        (numpy.float32(0.5), "0.5"),
        (numpy.float64(0.5), "0.5"),
        (numpy.bool_(True), "true"),
        (numpy.str_("x"), "x"),
        (numpy.array([[1, 2], [3, 4]]), "[[1,2],[3,4]]"),
        (numpy.datetime64("2026-01-02"), '"2026-01-02"'),
        ({"mean": numpy.float64(1.5), "n": numpy.int32(2)}, '{"mean":1.5,"n":2}'),
        (PurePosixPath("a/b"), '"a/b"'),
        ([Path("a")], '["a"]'),
        (Path("\udcff"), '"\ufffd"'),
        (Decimal("1.50"), '"1.50"'),
        (date(2026, 1, 2), '"2026-01-02"'),
        (datetime(2026, 1, 2, tzinfo=UTC), '"2026-01-02T00:00:00Z"'),
        (UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (Colour.RED, '"red"'),
        (b"ab", '"YWI="'),
        ((1, 2), "[1,2]"),
        (range(3), "[0,1,2]"),
        (MappingProxyType({"a": 1}), '{"a":1}'),
        (Point(1, Path("p")), '{"x":1,"where":"p"}'),
        (Place(1), '{"type":"place","x":1}'),
        ([math.inf, math.nan], "[Infinity,NaN]"),
        ({"n": 2**70}, '{"n":1180591620717411303424}'),
        (ToolCall("1", "n", {"a": 1}), '{"type":"tool_call","id":"1","name":"n","arguments":{"a":1}}'),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_tool_may_return_it(value: Any, text: str):
    assert as_result(value).text == text


def test_the_slow_way_writes_what_the_fast_way_writes():
    for value in (Place(1, 2, "n"), AssistantMessage([ToolCall("1", "n", {"a": [1]})], "p", "m")):
        assert as_data(value) == msgspec.json.decode(msgspec.json.encode(value))


def test_an_array_too_large_for_a_message_is_not_written():
    assert as_data({"a": numpy.zeros(200_000)}) == {"a": "<ndarray>"}
