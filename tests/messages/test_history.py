"""History (D8, T5): snapshots never change and share their messages; every call has its result, or is refused."""

import pickle
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import strategies
from tests.counts import tried
from tests.strategies import paired_histories

from swink.errors import BrokenHistory
from swink.messages import AssistantMessage, CustomMessage, Text, ToolCall, ToolResultMessage, UserMessage
from swink.messages.history import INTERRUPTED, History, Snapshot, paired, violations
from swink.messages.tokens import estimate_tokens


def calls(*ids, **options):
    return AssistantMessage(tuple(ToolCall(id, "look") for id in ids), stop_reason="tool_use", **options)


def result(id, text="seen"):
    return ToolResultMessage(id, "look", text)


# Snapshots


def test_a_snapshot_never_changes():
    history = History([UserMessage("a")])
    before = history.snapshot()
    history.append(AssistantMessage("b"))
    history.append(CustomMessage("note"))
    assert list(before) == [UserMessage("a")]
    assert len(before) == 1
    assert not before.has_custom
    assert before[-1] == UserMessage("a")
    assert before[0:5] == [UserMessage("a")]
    with pytest.raises(IndexError):
        before[1]
    assert len(history.snapshot()) == len(history) == 3
    assert history.snapshot().has_custom


def test_a_snapshot_that_is_being_read_does_not_see_what_is_added():
    history = History([UserMessage("a"), AssistantMessage("b")])
    reader = iter(history.snapshot())
    next(reader)
    history.append(UserMessage("c"))
    assert [message.text for message in reader] == ["b"]


def test_replacing_a_message_leaves_older_snapshots_alone():
    first, reply, last = UserMessage("a"), AssistantMessage("b"), UserMessage("c")
    history = History([first, reply, last])
    before = history.snapshot()
    after = history.replaced(reply, AssistantMessage("B")).snapshot()
    assert [message.text for message in before] == ["a", "b", "c"]
    assert [message.text for message in after] == ["a", "B", "c"]
    assert after[0] is first
    assert after[2] is last
    assert before.history is not after.history, (
        "what was measured of the old one does not hold for the new one"
    )


def test_a_message_is_replaced_by_identity():
    one, two = AssistantMessage("same"), AssistantMessage("same")
    history = History([one, UserMessage("x"), two])
    history = history.replaced(one, AssistantMessage("other"))
    assert [message.text for message in history.snapshot()] == ["other", "x", "same"]


def test_growing_keeps_the_messages_themselves():
    history = History([UserMessage("a")])
    before = history.snapshot()
    history.append(AssistantMessage("b"))
    after = history.snapshot()
    assert after.history is before.history
    assert after[0] is before[0]
    assert after._items is before._items, "a snapshot costs nothing"


def test_a_history_keeps_its_own_list():
    given_list = [UserMessage("a")]
    history = History(given_list)
    given_list.append(UserMessage("b"))
    assert len(history) == 1
    assert history.snapshot()[0] is given_list[0]


@given(
    paired_histories(max_size=6), st.integers(-8, 8), st.integers(-8, 8), st.sampled_from([None, 1, -1, 2])
)
@tried(25, 60)
def test_a_snapshot_reads_like_a_list(messages, begin, end, step):
    history = History(messages)
    snapshot = history.snapshot()
    history.append(UserMessage("later"))
    assert snapshot[begin:end:step] == messages[begin:end:step]
    assert snapshot == messages
    assert snapshot == tuple(messages)
    assert messages == snapshot
    assert list(reversed(snapshot)) == messages[::-1]
    assert snapshot + iter([UserMessage("x")]) == [*messages, UserMessage("x")]
    assert repr(snapshot) == repr(messages)
    assert bool(snapshot) == bool(messages)
    assert pickle.loads(pickle.dumps(snapshot)) == messages
    assert snapshot != [*messages, UserMessage("x")]
    assert snapshot != "other"
    for index in range(-len(messages), len(messages)):
        assert snapshot[index] is messages[index]
    assert isinstance(snapshot, Snapshot)


def test_snapshots_are_not_hashable_like_lists():
    with pytest.raises(TypeError):
        hash(History().snapshot())


def test_a_history_is_gone_with_its_last_snapshot():
    history = History([UserMessage("a")])
    alive = weakref.ref(history)
    snapshot = history.snapshot()
    del history
    assert alive() is snapshot.history
    del snapshot
    assert alive() is None


# Pairing


@given(paired_histories())
@tried(25, 100)
def test_a_sound_history_stays_as_it_is(messages):
    assert violations(messages) == []
    assert [id(message) for message in paired(messages)] == [id(message) for message in messages]
    snapshot = History(messages).snapshot()
    assert [id(message) for message in snapshot] == [id(message) for message in messages]
    assert snapshot.has_custom == any(isinstance(message, CustomMessage) for message in messages)


@given(paired_histories(), paired_histories())
@tried(25, 60)
def test_a_history_never_takes_more_tokens_than_it_says(messages, more):
    history = History()
    for added in (messages, more):
        for message in added:
            history.append(message)
        exact, most = sum(map(estimate_tokens, history.snapshot())), history.most_tokens()
        assert exact <= most <= exact + len(history)


@given(paired_histories(), st.data())
@tried(37, 150)
def test_a_damaged_history_is_repaired_or_refused_never_kept(messages, data):
    damaged = list(messages)
    for _ in range(data.draw(st.integers(1, 3))):
        if not damaged:
            break
        index = data.draw(st.integers(0, len(damaged) - 1))
        match data.draw(st.sampled_from(["drop", "swap", "twice", "cut"])):
            case "drop":
                del damaged[index]
            case "swap":
                other = data.draw(st.integers(0, len(damaged) - 1))
                damaged[index], damaged[other] = damaged[other], damaged[index]
            case "twice":
                damaged.insert(data.draw(st.integers(0, len(damaged))), damaged[index])
            case _:
                del damaged[index:]
    if not violations(damaged):
        assert paired(damaged) == damaged
    try:
        repaired = paired(damaged)
    except BrokenHistory:
        return
    assert violations(repaired) == []
    kept = {id(message) for message in repaired}
    assert all(id(message) in kept for message in damaged), "a repair only adds"
    assert paired(repaired) == repaired


@given(st.lists(strategies.messages, max_size=6))
@tried(25, 60)
def test_any_messages_at_all_are_repaired_or_refused(messages):
    try:
        repaired = paired(messages)
    except BrokenHistory:
        return
    assert violations(repaired) == []


def test_a_call_without_a_result_gets_one_that_says_so():
    repaired = paired([UserMessage("q"), calls("1", "2"), result("2"), UserMessage("next")])
    assert [message.role for message in repaired] == [
        "user",
        "assistant",
        "tool_result",
        "tool_result",
        "user",
    ]
    made = repaired[2]
    assert isinstance(made, ToolResultMessage)
    assert (made.tool_call_id, made.tool_name, made.is_error, made.text) == ("1", "look", True, INTERRUPTED)
    assert repaired[3].text == "seen"


def test_a_call_at_the_very_end_gets_a_result_too():
    assert paired([calls("1")])[-1].text == INTERRUPTED


def test_results_out_of_order_are_put_in_call_order():
    repaired = paired([calls("1", "2", "3"), result("3"), result("1"), result("2")])
    assert [message.tool_call_id for message in repaired[1:]] == ["1", "2", "3"]


def test_custom_messages_stay_where_they_are_unless_the_results_move():
    note = CustomMessage("note")
    sound = [calls("1", "2"), note, result("1"), note, result("2"), note]
    assert paired(sound) == sound
    assert [message.role for message in paired([calls("1", "2"), note, result("2")])] == [
        "assistant",
        "tool_result",
        "tool_result",
        "custom",
    ]


def test_an_id_may_come_back_in_a_later_turn():
    messages = [calls("1"), result("1", "a"), calls("1"), result("1", "b")]
    assert paired(messages) == messages


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        (
            [result("1")],
            "message 0 is a result for '1', but no call with that id is open there; remove it or add the call",
        ),
        ([calls("1"), UserMessage("x"), result("1")], "message 2 is a result for '1'"),
        ([calls("1"), result("1"), result("1")], "message 2 is a second result for call '1'; remove one"),
        ([calls("1", "1"), result("1")], "message 0 has two tool calls with one id; give each its own"),
    ],
)
def test_what_cannot_be_repaired_is_refused_with_what_to_change(messages, says):
    with pytest.raises(BrokenHistory, match=says.replace("(", r"\(")):
        History(messages)
    assert violations(messages) != []


@pytest.mark.parametrize("stranger", ["text", {"role": "user"}, None, Text("x"), object()])
@pytest.mark.parametrize("others", [[], [UserMessage("a")], [calls("1"), result("1")]])
def test_what_is_no_message_is_refused_with_what_to_change(stranger, others):
    with pytest.raises(TypeError, match="wrap text in UserMessage"):
        History([*others, stranger])


def test_every_break_is_put_into_words():
    broken = [result("0"), calls("1", "2"), result("2"), UserMessage("x"), calls("3")]
    said = "\n".join(violations(broken))
    for id in ("'0'", "'1'", "'2'", "'3'"):
        assert id in said
    assert violations([]) == []
