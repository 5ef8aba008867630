"""Families of sessions, what a fork has cost, names of places, and what becomes of values."""

import base64
import math
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.scripted import make

from swink import AssistantMessage, UserMessage
from swink.errors import InvalidInput
from swink.memory import JsonlStore, MemoryStore, family
from swink.memory.meta import check_id, new_meta
from swink.messages import Cost, CustomMessage, Text, ToolCall, ToolResultMessage
from swink.messages.records import Label


def test_a_family_stands_below_its_oldest_member():
    store = MemoryStore().sync
    root = store.create("root")
    root.append([UserMessage("a"), UserMessage("b")])
    first, second = store.fork(root.id, 1), store.fork(root.id)
    deep = store.fork(first.id)
    alone = store.create("alone")
    everything = [(branch.depth, branch.meta.id) for branch in store.tree()]
    expected = [(0, root.id), (1, first.id), (2, deep.id), (1, second.id)]
    assert sorted(everything) == sorted([*expected, (0, alone.id)])
    for id in (root.id, first.id, second.id, deep.id):
        assert [(branch.depth, branch.meta.id) for branch in store.tree(id)] == expected
    store.delete(first.id)
    assert [(branch.depth, branch.meta.id) for branch in store.tree(deep.id)] == [(0, deep.id)]
    assert [(branch.depth, branch.meta.id) for branch in store.tree(root.id)] == [expected[0], (1, second.id)]


def test_a_family_may_be_deep_or_go_round_in_circles():
    metas = [replace(new_meta(id=f"s{n}"), parent=f"s{n - 1}" if n else None) for n in range(5000)]
    assert [branch.depth for branch in family(metas, "s4999")] == list(range(5000))
    circle = [replace(new_meta(id="a"), parent="b"), replace(new_meta(id="b"), parent="a")]
    assert {branch.meta.id for branch in family(circle)} == {"a", "b"}
    assert {branch.meta.id for branch in family(circle, "b")} == {"a", "b"}


def test_a_fork_does_not_count_what_its_parent_has_paid():
    store = MemoryStore().sync
    reply = AssistantMessage("paid", "test", "m", cost=Cost(input=1.0, output=2.0))
    root = store.create()
    root.append([UserMessage("a"), reply])
    fork = store.fork(root.id)
    assert (root.meta.cost, fork.meta.cost, fork.meta.messages) == (3.0, 0.0, 2)
    fork.append([UserMessage("b"), reply])
    assert (fork.meta.cost, store.open(root.id).meta.cost) == (3.0, 3.0)
    empty = store.fork(root.id, 0)
    empty.append([UserMessage("b"), reply])
    assert empty.meta.cost == 3.0


def test_a_fork_is_never_between_a_call_and_its_result_also_with_messages_of_the_applications_own():
    store = MemoryStore().sync
    root = store.create()
    reply = AssistantMessage((ToolCall("1", "look", {}), ToolCall("2", "look", {})))
    first, second = (ToolResultMessage(id, "look", (Text("seen"),)) for id in "12")
    note = CustomMessage("note", {})
    root.append([UserMessage("a"), reply, first, note, second, note, AssistantMessage("b")])
    assert [len(store.fork(root.id, at).messages) for at in range(8)] == [0, 1, 1, 1, 1, 5, 6, 7]


def test_a_place_in_a_session_can_be_named(tmp_path: Path):
    store = JsonlStore(tmp_path).sync
    session = store.create()
    session.append([UserMessage("a"), AssistantMessage("b")])
    session.label("first answer")
    session.append([UserMessage("c"), AssistantMessage("d")])
    session.label("the question", at=1)
    again = store.open(session.id)
    assert again.labels == session.labels == (Label("first answer", 2), Label("the question", 1))
    assert again.meta.messages == 4
    fork = store.fork(session.id, again.labels[0].at)
    assert [message.text for message in fork.messages] == ["a", "b"]
    assert fork.labels == again.labels
    assert store.fork(session.id, 1).labels == (Label("the question", 1),)


async def test_a_place_can_be_named_while_an_agent_has_the_session():
    session = await MemoryStore().create()
    agent, _ = make(["one", "two"], session=session)
    await agent.run("a")
    await session.label("here")
    await agent.run("b")
    assert session.labels == (Label("here", 2),)


@pytest.mark.parametrize(("text", "at"), [("", None), (" ", 0), ("x", 3), ("x", -1), (7, None), ("x", "1")])
def test_a_label_that_names_no_place_is_refused(text: Any, at: Any):
    session = MemoryStore().sync.create()
    session.append([UserMessage("a"), AssistantMessage("b")])
    with pytest.raises(InvalidInput):
        session.label(text, at)
    assert session.labels == ()


def test_values_in_details_come_back_as_the_docs_say(tmp_path: Path):
    store = JsonlStore(tmp_path).sync
    details = {
        "tuple": (1, (2,)),
        "set": {3},
        "bytes": b"abc",
        "path": Path("a/b"),
        "inf": math.inf,
        "odd": object(),
    }
    session = store.create()
    session.append(
        [AssistantMessage([ToolCall("1", "look", {})]), ToolResultMessage("1", "look", "x", details=details)]
    )
    kept = store.open(session.id).messages[1]
    assert isinstance(kept, ToolResultMessage)
    assert kept.details == {
        "tuple": [1, [2]],
        "set": [3],
        "bytes": base64.b64encode(b"abc").decode(),
        "path": "a/b",
        "inf": math.inf,
        "odd": "<object>",
    }


@pytest.mark.parametrize("id", [7, None, b"a", Path("a")])
def test_an_id_that_is_no_text_is_refused_by_its_type(id: Any):
    with pytest.raises(InvalidInput, match=f"is a str, not {type(id).__name__}"):
        check_id(id)
