"""Runs of a process that was killed: each goes on as it was begun, and none that was accepted is lost."""

import asyncio
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import tried
from tests.serve.killed import ANNA, Heard, all_of, host, killed, said, until_told

from swink.agent.policy import Rejected
from swink.errors import SessionError
from swink.events import AgentEnd, MessageDiscarded, MessageEnd, MessageStart, MessageUpdate
from swink.memory import JsonlStore, MemoryStore
from swink.messages import AssistantMessage, ToolCall, UserMessage
from swink.messages.records import MessageSaved, RunEvents, RunStarted
from swink.serve.hosting import ClientTool, FolderClaims
from swink.serve.hosting.runrecords import unended_run
from swink.serve.web import Refused
from swink.testing import Pause, ScriptedModel

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


async def test_a_run_that_cannot_be_recorded_is_not_accepted_into_the_queue():
    class Full(MemoryStore):
        pass

    store = Full()
    first = host(store, ScriptedModel([["a", Pause(60)], "b"]))
    conversation = await first.create(ANNA)
    await until_told(await conversation.start("one"), lambda event: isinstance(event, MessageUpdate))

    def refuse(*_: object, **__: object) -> None:
        raise SessionError("the disk is full")

    store.sync.backend.append = refuse  # type: ignore[method-assign]
    with pytest.raises(Refused) as refused:
        await conversation.start("two", when_busy="queue", key="k")
    assert refused.value.status == 503
    assert len(conversation.runs) == 1
    await first.aclose()


async def test_an_accepted_run_that_waits_begins_in_the_next_process_after_the_one_before_it():
    store = MemoryStore()
    first = host(store, ScriptedModel([["a", Pause(60)]]))
    conversation = await first.create(ANNA)
    await until_told(await conversation.start("one"), lambda event: isinstance(event, MessageUpdate))
    queued = [
        await conversation.start(text, when_busy="queue", key=text) for text in ("two", "three", "four")
    ]
    await conversation.abort(queued[1])
    left = killed(store)
    await first.aclose()
    model = Heard(["to one", "to two", "to four"])
    second = host(left, model)
    await second.take_up()
    again = await second.open(ANNA, conversation.id)
    ends = [(await all_of(await again.find_run(run.id)))[-1].event for run in queued]
    assert [end.stop_reason for end in ends] == ["stop", "aborted", "stop"]
    assert (await again.start("two", when_busy="queue", key="two")).id == queued[0].id
    assert said(again) == ["one", "to one", "two", "to two", "four", "to four"]
    assert len(model.contexts) == 3
    await second.aclose()


async def test_a_queue_that_is_killed_twice_begins_in_its_order_and_each_run_once():
    store = MemoryStore()
    first = host(store, ScriptedModel([["a", Pause(60)]]))
    conversation = await first.create(ANNA)
    await until_told(await conversation.start("one"), lambda event: isinstance(event, MessageUpdate))
    queued = [await conversation.start(text, when_busy="queue", key=text) for text in ("two", "three")]
    once = killed(store)
    await first.aclose()
    second = host(once, ScriptedModel(["to one", ["b", Pause(60)]]))
    await second.take_up()
    again = await second.open(ANNA, conversation.id)
    two = await again.find_run(queued[0].id)
    await until_told(two, lambda event: isinstance(event, MessageUpdate))
    queued.append(await again.start("four", when_busy="queue", key="four"))
    twice = killed(once)
    await second.aclose()
    model = Heard(["to two", "to three", "to four"])
    third = host(twice, model)
    await third.take_up()
    again = await third.open(ANNA, conversation.id)
    ends = [(await all_of(await again.find_run(run.id)))[-1].event for run in queued]
    assert [end.stop_reason for end in ends] == ["stop"] * 3
    assert said(again) == ["one", "to one", "two", "to two", "three", "to three", "four", "to four"]
    assert len(model.contexts) == 3
    for text, run in zip(("two", "three", "four"), queued, strict=True):
        assert (await again.start(text, when_busy="queue", key=text)).id == run.id
    await third.aclose()


async def test_a_run_that_waits_and_is_aborted_does_not_begin_and_tells_its_end():
    first = host(MemoryStore(), ScriptedModel([["a", Pause(0.05)], "never"]))
    conversation = await first.create(ANNA)
    await until_told(await conversation.start("one"), lambda event: isinstance(event, MessageUpdate))
    run = await conversation.start("two", when_busy="queue")
    await conversation.abort(run)
    assert [type(each.event).__name__ for each in await all_of(run)] == ["AgentStart", "AgentEnd"]
    assert said(conversation) == ["one", "a"]
    await first.aclose()


async def test_a_resumed_run_has_the_instructions_tools_and_schema_of_its_client():
    store = MemoryStore()
    first = host(store, ScriptedModel([["a", Pause(60)]]))
    conversation = await first.create(ANNA)
    look = ClientTool("look", "Look outside.", {"type": "object", "properties": {"at": {"type": "string"}}})
    run = await conversation.start(
        "Where?",
        instructions="Answer in French.",
        output=SCHEMA,
        client_tools=[look],
        options={"temperature": 0.5},
        unanswered=Rejected("nobody can be asked"),
    )
    await until_told(run, lambda event: isinstance(event, MessageUpdate))
    left = killed(store)
    await first.aclose()
    model = Heard([ToolCall("c1", "final_output", {"city": "Paris"})])
    second = host(left, model, system_prompt="You are a guide.")
    again = await (await second.open(ANNA, conversation.id)).find_run(run.id)
    events = await all_of(again)
    [context] = model.contexts
    assert context.system_prompt == "You are a guide.\n\nAnswer in French."
    assert "look" in [tool.name for tool in context.tools]
    assert next(tool for tool in context.tools if tool.name == "look").parameters_schema["properties"] == {
        "at": {"type": "string"}
    }
    assert again.start.unanswered == Rejected("nobody can be asked")
    assert again.result is not None
    assert again.result.output == {"city": "Paris"}, events[-1]
    await second.aclose()


@tried(15, 200)
@given(st.lists(st.integers(0, 9), min_size=2, max_size=4, unique=True), st.booleans())
def test_after_a_kill_all_clients_agree_wherever_each_of_them_was(seen: list[int], taken_up: bool):
    asyncio.run(agree(seen, taken_up))


async def agree(seen: list[int], taken_up: bool) -> None:
    """Clients that have seen so many deltas each of a reply that is lost, and what they show at the end."""
    store = MemoryStore()
    first = host(store, ScriptedModel([[*"0123456789", Pause(60)]]))
    conversation = await first.create(ANNA)
    run = await conversation.start("Hello")
    told = await until_told(run, lambda event: isinstance(event, MessageUpdate) and event.delta.text == "9")
    begin = next(
        place
        for place, each in enumerate(told)
        if isinstance(each.event, MessageStart) and each.event.role == "assistant"
    )
    left = killed(store)
    await first.aclose()
    second = host(left, ScriptedModel([[*"abcdefghijklmno"]]))
    again = await second.open(ANNA, conversation.id)
    if taken_up:
        await again.take_up()
    clients = [told[: begin + 1 + count] for count in seen]
    rests = []
    for client in clients:
        rests.append(await all_of(await again.find_run(run.id, client[-1].id), client[-1].id))
    for client, rest in zip(clients, rests, strict=True):
        numbers = [each.id for each in [*client, *rest]]
        assert numbers == sorted(set(numbers))
        assert isinstance(rest[0].event, MessageDiscarded)
        assert shown([each.event for each in [*client, *rest]]) == "abcdefghijklmno"
        assert sum(isinstance(each.event, MessageEnd) for each in [*client, *rest]) == 2
    assert len({tuple(each.id for each in rest) for rest in rests}) == 1
    await second.aclose()


def shown(events: list[object]) -> str:
    """What a client shows that goes by deltas alone, until the message is whole."""
    text = ""
    for event in events:
        match event:
            case MessageDiscarded() | MessageStart():
                text = ""
            case MessageUpdate(delta):
                text += delta.text  # type: ignore[union-attr]
            case MessageEnd(message=AssistantMessage() as message):
                assert text == message.text
            case AgentEnd():
                break
            case _:
                pass
    return text


async def test_two_programs_over_one_folder_never_run_one_conversation(tmp_path: Path):
    claims = FolderClaims(tmp_path / "claims")
    first = host(JsonlStore(tmp_path), ScriptedModel([["a", Pause(60)]]), claims=claims)
    second = host(JsonlStore(tmp_path), ScriptedModel(["never"]), claims=claims)
    conversation = await first.create(ANNA)
    run = await conversation.start("one")
    other = await second.open(ANNA, conversation.id)
    with pytest.raises(Refused, match="another worker"):
        await other.start("two")
    assert await other.find_unended() == run.id
    assert not await second.leaves_alone(other)
    following = await other.find_run(run.id)
    await until_told(run, lambda event: isinstance(event, MessageUpdate))
    await conversation.abort(run)
    told = await all_of(following)
    assert [each.id for each in told] == [each.id for each in await all_of(run)]
    assert said(await second.open(ANNA, conversation.id)) == ["one", "a"]
    await first.aclose()
    await second.aclose()
    assert list((tmp_path / "claims").iterdir()) == []


async def test_a_run_of_a_folder_that_was_killed_is_offered_and_goes_on_when_it_is_asked_for(tmp_path: Path):
    before, after = tmp_path / "before", tmp_path / "after"
    first = host(
        JsonlStore(before), ScriptedModel([["a", Pause(60)]]), claims=FolderClaims(before / "claims")
    )
    conversation = await first.create(ANNA)
    run = await conversation.start("one")
    await until_told(run, lambda event: isinstance(event, MessageUpdate))
    shutil.copytree(before, after, ignore=lambda *_: ["claims"])
    await first.aclose()
    second = host(JsonlStore(after), ScriptedModel(["b"]), claims=FolderClaims(after / "claims"))
    again = await second.open(ANNA, conversation.id)
    assert await again.find_unended() == run.id
    assert await second.leaves_alone(again)
    assert said(again) == ["one"]
    await all_of(await again.find_run(run.id))
    assert said(await second.open(ANNA, conversation.id)) == ["one", "b"]
    assert await again.find_unended() is None
    await second.aclose()


def test_a_run_that_others_talked_over_is_not_offered():
    begun = [RunStarted("r1", "anna"), RunEvents("r1", 1, [{"type": "agent_start"}])]
    assert unended_run(begun) == "r1"
    assert unended_run([*begun, MessageSaved(UserMessage("Hello"))]) is None
    assert unended_run([*begun, RunEvents("r1", 2, [], ended=True)]) is None
    assert unended_run([*begun, RunStarted("r2", "anna")]) == "r1"
    assert unended_run([*begun, RunStarted("r2", "anna"), RunEvents("r2", 1, [])]) == "r2"
