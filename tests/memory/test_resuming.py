"""A session opened again is the agent as it was: what each append tells it, and what an agent takes from it."""

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import tried

from swink import (
    Agent,
    Approved,
    AuthError,
    ExponentialBackoff,
    ModelSpec,
    Policy,
    Rejected,
    Replace,
    Rewrite,
    ToolCall,
    ToolContext,
    UserMessage,
    defer,
    tool,
)
from swink.errors import InvalidInput, NotSaved, SessionConflict
from swink.memory import JsonlStore, MemoryStore, Session, SyncSession
from swink.memory.meta import SessionMeta
from swink.messages import AssistantMessage, CustomMessage, Message, ToolResultMessage, Usage
from swink.messages.records import (
    Compaction,
    Conversation,
    ModelChange,
    Record,
    StateChange,
    ThinkingLevelChange,
    type_of,
)
from swink.policies import Checkpoint
from swink.stream import UsageUpdate
from swink.system.threads import Serial
from swink.testing import EventCollector, Pause, ScriptedModel, history_problems


class Counting:
    """A tool that counts, and waits at its door while `gate` is closed."""

    def __init__(self, **options: Any) -> None:
        self.runs: list[str] = []
        self.entered = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

        @tool(**options)
        async def count(name: str) -> str:
            self.runs.append(name)
            self.entered.set()
            await self.gate.wait()
            return f"counted {name}"

        self.tool = count


def calls(*names: str) -> list[ToolCall]:
    return [ToolCall(name, "count", {"name": name}) for name in names]


def agent_of(session: Any, script: Sequence[Any], *tools: Any, **options: Any) -> Agent:
    return Agent("test:m", stream_fn=ScriptedModel(list(script)), tools=tools, session=session, **options)


def texts(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages]


async def types(store: MemoryStore, session: Session) -> list[str]:
    return [type_of(record) for record in await store.load(session.id)]


async def killed_in(agent: Agent, counting: Counting, prompt: str | None, store: MemoryStore) -> Session:
    """The session as another process finds it when this one dies in the middle of the tool."""
    assert agent._state.session is not None
    counting.gate.clear()
    counting.entered.clear()
    running = asyncio.create_task(agent.run(prompt))
    await counting.entered.wait()
    saver = (
        agent._running.active
        and agent._state.session
        and agent._state.session._recorder
        and agent._state.session._recorder.saver
    )
    while saver and saver.notes:  # what ended before is on its way
        await asyncio.sleep(0)
    id = agent._state.session.id  # type: ignore[union-attr]
    copy = await store.fork_as_is(id)
    running.cancel()
    counting.gate.set()
    await asyncio.gather(running, return_exceptions=True)
    return copy


class Store(MemoryStore):
    async def fork_as_is(self, id: str) -> Session:
        """Another session with the same records, journal and all."""
        stored = self.sync.read(id)
        return Session(self._backend, self.sync.read(await self._same(stored.records)))

    async def _same(self, records: Sequence[Record]) -> str:
        session = await self.create()
        self._backend.append(session.id, 0, records)
        return session.id


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr("swink.agent.session.saver.LATER", 600.0)  # however slow the machine
    return Store()


# What an append tells


async def test_a_turn_is_one_append_with_all_that_is_new(store: Store):
    session = await store.create()
    agent = agent_of(session, ["one", "two"], system_prompt="Be brief.", state={"n": 1})
    await agent.run("first")
    assert session.meta.sequence == 1
    assert await types(store, session) == [
        "message",
        "message",
        "state",
        "model_change",
        "system_prompt_change",
    ]
    await agent.run("second")
    assert session.meta.sequence == 2
    assert (await types(store, session))[5:] == ["message", "message"]


async def test_what_changed_is_told_once(store: Store):
    session = await store.create()
    agent = agent_of(session, ["one", "two", "three", "four"])
    await agent.run("first")
    agent.thinking_level = "high"
    agent.system_prompt = "Think."
    agent.state["seen"] = [1]
    await agent.run("second")
    agent.model = "test:other"
    await agent.run("third")
    await agent.run("fourth")
    records = await store.load(session.id, types=["model_change", "thinking_level_change", "state"])
    assert records == [
        ModelChange(ModelSpec("test", "m")),
        StateChange({"seen": [1]}),
        ThinkingLevelChange("high"),
        ModelChange(ModelSpec("test", "other")),
    ]


async def test_a_session_that_takes_only_messages_is_told_nothing_else():
    class Plain:
        def __init__(self) -> None:
            self.messages: list[Any] = []
            self.state: dict[str, Any] = {}

        async def append(self, messages: Any) -> None:
            self.messages.extend(messages)

    counting, session = Counting(), Plain()
    agent = agent_of(session, [calls("a"), "done"], counting.tool, system_prompt="x", state={"n": 1})
    await agent.run("go")
    agent.messages = []
    assert (await agent.run("again")).stop_reason == "error"  # the script is at its end
    assert texts(session.messages)[:4] == ["go", "", "counted a", "done"]
    assert agent_of(session, ["x"]).messages == session.messages


async def test_a_history_that_was_set_is_told_by_numbers(store: Store):
    session = await store.create()
    agent = agent_of(session, ["one", "two", "three", "four"])
    await agent.run("first")
    await agent.run("second")
    agent.messages = [agent.messages[0], UserMessage("new"), agent.messages[3]]
    await agent.run("third")
    (record,) = await store.load(session.id, types=["compaction"])
    assert isinstance(record, Compaction)
    assert [item if isinstance(item, int) else item.text for item in record.kept] == [0, "new", 3, 4, 5]
    opened = await store.open(session.id)
    assert list(opened.messages) == list(agent.messages)
    assert texts(list(opened.conversation.everything.values())) == [
        "first",
        "one",
        "second",
        "two",
        "third",
        "three",
    ]
    await agent.run("fourth")
    assert len(await store.load(session.id, types=["compaction"])) == 1


@pytest.mark.parametrize("how", ["clear", "reset", "append", "compact", "assign in a run"])
async def test_whatever_makes_the_history_another_one_is_in_the_session(how: str, store: Store):
    session = await store.create()
    agent = agent_of(
        session, ["one", "two", "three"], transform_context=lambda messages, overflow: messages[-2:]
    )
    await agent.run("first")
    await agent.run("second")
    match how:
        case "clear":
            agent.clear_messages()
        case "reset":
            agent.reset()
        case "append":
            agent.append_messages("by the way")
        case "compact":
            await agent.compact()
        case _:
            agent.subscribe(lambda event: setattr(agent, "messages", agent.messages[-1:]))
    await agent.run("third")
    await agent.aclose()
    opened = await store.open(session.id)
    assert list(opened.messages) == list(agent.messages)
    assert len(opened.conversation.everything) == 7 if how == "append" else 6
    assert agent_of(opened, []).messages == agent.messages
    kinds = [record.reason for record in await store.load(session.id) if isinstance(record, Compaction)]
    assert set(kinds) == ({"compacted"} if how == "compact" else set() if how == "append" else {"replaced"})


async def test_messages_that_could_not_be_saved_go_with_the_next_append(store: Store):
    class Failing(Session):
        fails = True

        async def append(self, messages: Any, **more: Any) -> None:
            if self.fails:
                raise OSError("no space left")
            await super().append(messages, **more)

    created = await store.create()
    session = Failing(store._backend, store.sync.read(created.id))
    agent = agent_of(session, ["one", "two"])
    with pytest.raises(OSError, match="no space"):
        await agent.run("first")
    session.fails = False
    await agent.run("second")
    assert texts((await store.open(session.id)).messages) == ["first", "one", "second", "two"]


async def test_a_reply_that_a_policy_replaced_is_saved_as_it_is_kept(store: Store):
    class Shout(Policy):
        def post_turn(self, ctx: Any, turn: Any) -> Any:
            return Replace(AssistantMessage(turn.message.text.upper(), "test", "m"))

    session = await store.create()
    agent = agent_of(session, ["one", "two"], policies=[Shout()])
    await agent.run("first")
    await agent.run("second")
    assert texts((await store.open(session.id)).messages) == ["first", "ONE", "second", "TWO"]
    assert "compaction" not in await types(store, session)


# What an agent takes


async def test_an_agent_is_taken_up_as_it_was(store: Store):
    session = await store.create()
    first = agent_of(session, ["one"], system_prompt="Be brief.", state={"n": 1})
    first.thinking_level = "high"
    first.follow_up("later")  # when the agent would stop
    await first.run("first")
    first.steer("steered")
    first.follow_up("at last")
    await first.aclose()
    again = Agent(session=await store.open(session.id), stream_fn=ScriptedModel(["x"]))
    assert again.model == ModelSpec("test", "m", thinking_level="high")
    assert again.system_prompt == "Be brief."
    assert again.state == {"n": 1}
    assert again.messages == first.messages
    assert texts(again._queues.steering) == ["steered"]
    assert texts(again._queues.follow_up) == ["at last"]
    assert again.has_pending


async def test_what_is_given_wins_over_what_was_saved(store: Store):
    session = await store.create()
    first = agent_of(session, ["one"], system_prompt="Be brief.")
    first.thinking_level = "high"
    await first.run("first")
    opened = await store.open(session.id)
    ask = ScriptedModel([])
    named = Agent("test:other", session=opened, system_prompt="", stream_fn=ask)
    assert (str(named.model), named.thinking_level, named.system_prompt) == ("test:other", "high", "")
    assert Agent(ModelSpec("test", "other"), session=opened, stream_fn=ask).thinking_level == "off"
    with pytest.raises(InvalidInput, match="needs a model; the session has none yet"):
        Agent(session=await store.create())
    with pytest.raises(InvalidInput, match="needs a model"):
        Agent()


async def test_a_synchronous_session_is_as_good(store: Store):
    session = store.sync.create()
    agent = agent_of(session, [calls("a"), "done"], Counting().tool)
    await agent.run("go")
    opened = store.sync.open(session.id)
    assert isinstance(opened, SyncSession)
    assert agent_of(opened, []).messages == agent.messages


async def test_reset_and_copy_go_back_to_the_session_as_it_was_opened(store: Store):
    session = await store.create()
    await agent_of(session, ["one"], system_prompt="Be brief.").run("first")
    agent = Agent(session=await store.open(session.id), stream_fn=ScriptedModel(["two"]))
    await agent.run("second")
    copied = agent.copy()
    assert texts(copied.messages) == ["first", "one", "second", "two"]
    agent.reset()
    copied.reset()
    assert texts(agent.messages) == texts(copied.messages) == ["first", "one"]
    assert agent.system_prompt == copied.system_prompt == "Be brief."


# At most once


async def test_a_call_is_in_the_session_before_it_runs_and_its_result_as_it_ends(store: Store):
    session, seen = await store.create(), []

    @tool
    async def count(name: str) -> str:
        if name == "b":
            while (await types(store, session))[-1] != "call_ended":
                await asyncio.sleep(0)
        seen.append(await types(store, session))
        return name

    agent = agent_of(session, [calls("a", "b"), "done"], count)
    await agent.run("go")
    opened = ["message", "model_change", "turn_opened", "call_started", "call_started"]
    assert seen == [opened, [*opened, "call_ended"]]
    assert session.meta.sequence == 4
    assert (await store.open(session.id)).conversation.open is None


async def test_there_is_no_journal_for_tools_that_only_read(store: Store):
    session = await store.create()
    agent = agent_of(session, [calls("a", "b"), "done"], Counting(read_only=True).tool)
    await agent.run("go")
    assert "turn_opened" not in await types(store, session)
    assert session.meta.sequence == 2


async def test_each_group_is_stored_before_it_starts(store: Store):
    session, seen = await store.create(), []

    @tool
    async def count(name: str) -> str:
        records = await store.load(session.id, types=["call_started", "call_ended"])
        seen.append([f"{type_of(record)} {record.call_id}" for record in records])  # type: ignore[union-attr]
        return name

    await agent_of(session, [calls("a", "b"), "done"], count, tool_execution="sequential").run("go")
    assert seen == [["call_started a"], ["call_started a", "call_ended a", "call_started b"]]


async def test_a_call_whose_intent_cannot_be_stored_does_not_run(store: Store):
    session, counting = await store.create(), Counting()
    agent = agent_of(session, [calls("a"), "done"], counting.tool)
    await (await store.open(session.id)).append([UserMessage("from elsewhere")])
    with pytest.raises(SessionConflict, match="continued elsewhere; open it again, or fork it"):
        await agent.run("go")
    assert counting.runs == []
    assert texts(agent.messages)[0] == "go"
    assert history_problems(agent.messages) == []
    assert texts((await store.open(session.id)).messages) == ["from elsewhere"]


@pytest.mark.parametrize("options", [{}, {"idempotent": True}, {"read_only": True}])
async def test_a_call_that_was_running_runs_again_only_if_that_is_safe(options: Any, store: Store):
    session, counting = await store.create(), Counting(**options)

    @tool
    async def change() -> str:
        return "changed"

    script = [[ToolCall("z", "change"), *calls("a")], "never"]
    first = agent_of(session, script, counting.tool, change, tool_execution="sequential")
    found = await killed_in(first, counting, "go", store)
    counting.runs.clear()
    model = ScriptedModel(["done"])
    agent = Agent(session=found, stream_fn=model, tools=[counting.tool, change])
    seen = EventCollector()
    agent.subscribe(seen)
    assert texts(agent.messages) == ["go"]
    assert agent.has_pending
    result = await agent.run()
    assert result.text == "done"
    assert history_problems(agent.messages) == []
    seen.check()
    ran = [message for message in agent.messages if isinstance(message, ToolResultMessage)]
    assert ran[0].text == "changed"
    if options:
        assert (counting.runs, ran[1].text, ran[1].is_error) == (["a"], "counted a", False)
    else:
        assert counting.runs == []
        assert ran[1].text.startswith("outcome unknown: ")
        assert ran[1].is_error
    opened = await store.open(found.id)
    assert list(opened.messages) == list(agent.messages)
    assert opened.conversation.open is None


async def test_what_has_ended_keeps_its_result_and_what_never_began_runs(store: Store):
    session, counting = await store.create(), Counting()
    script = [calls("a", "b", "c"), "never"]
    first = agent_of(session, script, counting.tool, tool_execution="sequential")
    counting.gate.clear()
    running = asyncio.create_task(first.run("go"))
    await counting.entered.wait()
    counting.entered.clear()
    counting.gate.set()
    await asyncio.sleep(0)
    counting.gate.clear()
    await counting.entered.wait()
    assert counting.runs == ["a", "b"]
    found = await store.fork_as_is(session.id)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    counting.gate.set()
    agent = Agent(session=found, stream_fn=ScriptedModel(["done"]), tools=[counting.tool])
    await agent.run()
    assert counting.runs == ["a", "b", "c"]
    assert [text[:15] for text in texts(agent.messages)] == [
        "go",
        "",
        "counted a",
        "outcome unknown",
        "counted c",
        "done",
    ]


async def test_a_new_prompt_settles_the_open_turn_without_running_anything(store: Store):
    session, counting = await store.create(), Counting(idempotent=True)
    first = agent_of(session, [calls("a", "b"), "never"], counting.tool, tool_execution="sequential")
    found = await killed_in(first, counting, "go", store)
    counting.runs.clear()
    agent = Agent(session=found, stream_fn=ScriptedModel(["fine"]), tools=[counting.tool])
    await agent.run("something else")
    assert counting.runs == []
    assert [text[:15] for text in texts(agent.messages)] == [
        "go",
        "",
        "outcome unknown",
        "tool call not r",
        "something else",
        "fine",
    ]
    assert history_problems(agent.messages) == []
    opened = await store.open(found.id)
    assert list(opened.messages) == list(agent.messages)
    assert opened.conversation.open is None


@pytest.mark.parametrize("how", ["clear", "reset", "assign"])
async def test_a_history_that_is_set_gives_up_the_open_turn(how: str, store: Store):
    session, counting = await store.create(), Counting()
    found = await killed_in(agent_of(session, [calls("a"), "never"], counting.tool), counting, "go", store)
    agent = Agent(session=found, stream_fn=ScriptedModel(["fine"]), tools=[counting.tool])
    match how:
        case "clear":
            agent.clear_messages()
        case "reset":
            agent.reset()
        case _:
            agent.messages = [UserMessage("hello")]
    assert not agent.has_pending
    await agent.aclose()
    opened = await store.open(found.id)
    assert opened.conversation.open is None
    assert list(opened.messages) == list(agent.messages)


async def test_an_aborted_turn_leaves_nothing_open(store: Store):
    session, counting = await store.create(), Counting()
    agent = agent_of(session, [calls("a"), "never"], counting.tool)
    counting.gate.clear()
    running = asyncio.create_task(agent.run("go"))
    await counting.entered.wait()
    agent.abort()
    assert (await running).stop_reason == "aborted"
    opened = await store.open(session.id)
    assert opened.conversation.open is None
    assert list(opened.messages) == list(agent.messages)


async def test_of_two_that_take_up_one_turn_one_runs_the_tool(store: Store):
    session, counting = await store.create(), Counting(idempotent=True)
    first = agent_of(session, [calls("a"), "never"], counting.tool)
    found = await killed_in(first, counting, "go", store)
    counting.runs.clear()
    agents = [
        Agent(session=await store.open(found.id), stream_fn=ScriptedModel(["done"]), tools=[counting.tool])
        for _ in range(2)
    ]
    outcomes = await asyncio.gather(*(agent.run() for agent in agents), return_exceptions=True)
    assert counting.runs == ["a"]
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["AgentResult", "SessionConflict"]
    assert all(history_problems(agent.messages) == [] for agent in agents)


async def test_state_that_a_tool_changed_is_saved_with_its_result(store: Store):
    session, gate = await store.create(), asyncio.Event()

    @tool
    async def change(name: str, ctx: ToolContext) -> str:
        if name == "b":
            await gate.wait()
        ctx.state["last"] = name
        return name

    script = [[ToolCall(name, "change", {"name": name}) for name in "ab"], "never"]
    agent = agent_of(session, script, change)
    running = asyncio.create_task(agent.run("go"))
    while "call_ended" not in await types(store, session):
        await asyncio.sleep(0)
    assert (await store.open(session.id)).state == {"last": "a"}
    gate.set()
    await running


async def test_a_prompt_is_saved_while_its_answer_takes_long(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("swink.agent.session.saver.LATER", 0.0)
    session = await store.create()
    agent = agent_of(session, [["one", Pause(600)]])
    running = asyncio.create_task(agent.run("go"))
    while not session.meta.sequence:
        await asyncio.sleep(0)
    found = await store.fork_as_is(session.id)
    assert texts(agent_of(found, []).messages) == ["go"]
    agent.abort()
    await running
    assert texts((await store.open(session.id)).messages) == ["go", "one"]


@pytest.mark.parametrize("answer", [True, False])
async def test_a_question_that_was_open_at_a_kill_is_asked_again(
    answer: bool, store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("swink.agent.session.saver.LATER", 0.0)
    session, counting, answered = await store.create(), asked(), asyncio.Event()

    async def slowly(request: Any) -> bool:
        if request.call_id == "b":
            await answered.wait()
        return answer

    agent = agent_of(session, [calls("a", "b"), "done"], counting.tool, approve=slowly)
    running = asyncio.create_task(agent.run("go"))
    while not any(pending.call_id == "b" for pending in session.pending):
        await asyncio.sleep(0)
    found = await store.fork_as_is(session.id)
    answered.set()
    await running
    assert counting.runs == (["a", "b"] if answer else [])
    assert (await store.open(session.id)).conversation.open is None
    counting.runs.clear()
    questions: list[str] = []

    async def at_once(request: Any) -> bool:
        questions.append(request.call_id)
        return True

    other = Agent(session=found, stream_fn=ScriptedModel(["done"]), tools=[counting.tool], approve=at_once)
    assert [pending.call_id for pending in other.pending][-1:] == ["b"]
    assert (await other.run()).text == "done"
    assert "b" in questions
    assert "b" in counting.runs


# Queues


async def test_what_is_queued_during_a_run_is_saved_soon(store: Store):
    session, counting = await store.create(), Counting()
    agent = agent_of(session, [[Pause(0), *calls("a")], "heard", "more"], counting.tool)
    counting.gate.clear()
    running = asyncio.create_task(agent.run("go"))
    await counting.entered.wait()
    agent.follow_up("one")
    agent.follow_up("two")
    agent.steer("now")
    while "queue" not in await types(store, session):
        await asyncio.sleep(0)
    assert (await types(store, session)).count("queue") == 1
    found = await store.fork_as_is(session.id)
    counting.gate.set()
    await running
    other = Agent(session=found, stream_fn=ScriptedModel(["x"]))
    assert (texts(other._queues.steering), texts(other._queues.follow_up)) == (["now"], ["one", "two"])
    last = (await store.open(session.id)).conversation
    assert (last.steering, last.follow_up) == ((), ())


async def test_a_queued_message_is_in_one_place_in_whatever_is_saved(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    session, counting, seen = await store.create(), Counting(), list[Conversation]()
    append = store._backend.append

    def look(id: str, *values: Any, **options: Any) -> Any:
        meta = append(id, *values, **options)
        seen.append(Conversation(store.sync.read(id).records))
        return meta

    monkeypatch.setattr(store._backend, "append", look)
    script = [calls("a"), "heard", calls("b"), "more", "end"]
    agent = agent_of(session, script, counting.tool)
    agent.steer("now")
    agent.follow_up("later")
    await agent.run("go")
    assert len(seen) == session.meta.sequence > 4
    for conversation in seen:
        places = texts([*conversation.messages, *conversation.steering, *conversation.follow_up])
        assert places.count("now") == places.count("later") == 1


# Deferred approvals


def asked(**options: Any) -> Counting:
    return Counting(requires_approval=True, **options)


async def test_a_deferred_approval_ends_the_run_and_another_process_answers(store: Store):
    session, counting = await store.create(), asked()
    agent = agent_of(session, [calls("a"), "done"], counting.tool, approve=defer)
    seen = EventCollector()
    agent.subscribe(seen)
    result = await agent.run("go")
    seen.check()
    assert (result.stop_reason, result.reason, result.error) == ("tool_use", "approval", None)
    assert [(pending.call_id, pending.name) for pending in result.pending] == [("a", "count")]
    assert result.pending == agent.pending == session.pending
    assert texts(agent.messages) == ["go"]
    assert counting.runs == []
    other = Agent(
        session=await store.open(session.id), stream_fn=ScriptedModel(["done"]), tools=[counting.tool]
    )
    assert other.pending == result.pending
    seen = EventCollector()
    other.subscribe(seen)
    result = await other.run(approvals={"a": Approved(note="once only")})
    seen.check()
    assert (result.text, result.reason, result.pending, other.pending) == ("done", None, (), ())
    assert counting.runs == ["a"]
    told = "counted a\n\nnote from the user on this call: once only"
    assert texts((await store.open(session.id)).messages) == ["go", "", told, "done"]
    assert (await store.open(session.id)).pending == ()


async def test_the_same_with_a_checkpoint():
    counting = asked()
    agent = agent_of(None, [calls("a"), "never"], counting.tool, approve=defer)
    await agent.run("go")
    data = agent.checkpoint()
    other = Agent.restore(data, stream_fn=ScriptedModel(["done"]), tools=[counting.tool])
    assert other.pending == agent.pending
    assert (await other.run(approvals={"a": True})).text == "done"
    assert counting.runs == ["a"]
    assert other.checkpoint()["open"] is None


async def test_the_same_with_the_checkpoint_that_a_policy_saved():
    counting, kept = asked(), list[Any]()
    agent = agent_of(
        None, [calls("a"), "never"], counting.tool, approve=defer, policies=[Checkpoint(kept.append)]
    )
    await agent.run("go")
    other = Agent.restore(kept[-1], stream_fn=ScriptedModel(["done"]), tools=[counting.tool])
    assert (await other.run(approvals={"a": True})).text == "done"
    assert counting.runs == ["a"]


def test_a_checkpoint_of_version_1_is_read():
    data = agent_of(None, []).checkpoint()
    del data["open"]
    restored = Agent.restore({**data, "version": 1}, stream_fn=ScriptedModel([]))
    assert restored.checkpoint() == {**data, "version": 2, "open": None}


@pytest.mark.parametrize("ticks", range(0, 16, 3))
def test_what_is_stored_while_its_event_loop_ends_is_stored_once(ticks: int, tmp_path: Path):
    store = JsonlStore(tmp_path)
    session = store.sync.create()
    script = [calls("a", "b"), "one", "two", "three"]

    async def leave() -> Agent:
        agent = agent_of(await store.open(session.id), script, Counting().tool)
        agent.stream("hi").detach()
        for _ in range(ticks):
            await asyncio.sleep(0)
        return agent

    agent = asyncio.run(leave())
    agent.run_sync("more")
    assert list(store.sync.open(session.id).messages) == list(agent.messages)
    assert history_problems(agent.messages) == []


@pytest.mark.parametrize(
    ("answer", "text", "runs"),
    [
        (True, "counted a", ["a"]),
        (Approved({"name": "b"}), "counted b", ["b"]),
        (False, "tool call rejected by the user", []),
        (Rejected("too late"), "tool call rejected: too late", []),
    ],
)
async def test_every_answer_means_what_it_means_in_a_callback(
    answer: Any, text: str, runs: list[str], store: Store
):
    counting = asked()
    agent = agent_of(await store.create(), [calls("a"), "done"], counting.tool, approve=defer)
    await agent.run("go")
    await agent.run(approvals={"a": answer})
    assert counting.runs == runs
    assert texts(agent.messages)[2] == text


async def test_calls_that_need_no_word_run_before_the_run_ends(store: Store):
    session, counting = await store.create(), Counting(requires_approval=lambda a: a["name"] == "b")
    agent = agent_of(session, [calls("a", "b", "c"), "done"], counting.tool, approve=defer)
    result = await agent.run("go")
    assert counting.runs == ["a", "c"]
    assert [pending.call_id for pending in result.pending] == ["b"]
    other = Agent(
        session=await store.open(session.id), stream_fn=ScriptedModel(["done"]), tools=[counting.tool]
    )
    await other.run(approvals={"b": True})
    assert counting.runs == ["a", "c", "b"]
    assert texts(other.messages)[2:5] == ["counted a", "counted b", "counted c"]


async def test_calls_in_later_groups_wait_for_those_that_wait_for_a_word(store: Store):
    counting = Counting(requires_approval=lambda a: a["name"] == "b")
    agent = agent_of(
        await store.create(),
        [calls("a", "b", "c"), "done"],
        counting.tool,
        approve=defer,
        tool_execution="sequential",
    )
    await agent.run("go")
    assert counting.runs == ["a"]
    await agent.run(approvals={"b": False})
    assert counting.runs == ["a", "c"]


async def test_a_missing_answer_stays_pending_and_an_unknown_one_is_refused(store: Store):
    session, counting = await store.create(), asked()
    agent = agent_of(session, [calls("a", "b"), "done"], counting.tool, approve=defer)
    await agent.run("go")
    for wrong, text in [
        ({"x": True}, r"no call 'x' waits for approval; pending: 'a' \(count\), 'b' \(count\)"),
        ({"a": "yes"}, "True, False, Approved or Rejected, not str"),
        ([], "a dict of answers by call id, not list"),
    ]:
        with pytest.raises(InvalidInput, match=text):
            await agent.run(approvals=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="without an input"):
        await agent.run("and", approvals={"a": True})
    assert not agent.is_running
    result = await agent.run(approvals={"a": True})
    assert (result.reason, [pending.call_id for pending in result.pending]) == ("approval", ["b"])
    assert counting.runs == ["a"]
    assert [pending.call_id for pending in (await store.open(session.id)).pending] == ["b"]
    for again in (await agent.run(), await agent.run(approvals={})):
        assert [pending.call_id for pending in again.pending] == ["b"]
    other = Agent(
        session=await store.open(session.id), stream_fn=ScriptedModel(["done"]), tools=[counting.tool]
    )
    assert (await other.run()).reason == "approval"  # without a callback it stays pending, too
    assert (await other.run(approvals={"b": True})).text == "done"
    assert counting.runs == ["a", "b"]


async def test_a_new_prompt_rejects_what_is_pending(store: Store):
    session, counting = await store.create(), asked()
    agent = agent_of(session, [calls("a"), "fine"], counting.tool, approve=defer)
    await agent.run("go")
    await agent.run("never mind")
    assert counting.runs == []
    assert texts(agent.messages)[2:] == [
        "tool call not run: instead of an approval the user sent a new message",
        "never mind",
        "fine",
    ]
    assert agent.pending == ()
    assert (await store.open(session.id)).pending == ()


async def test_what_policies_changed_since_it_was_approved_waits_again(store: Store):
    class Renames(Policy):
        def pre_dispatch(self, ctx: Any, call: Any) -> Any:
            return Rewrite({"name": "other"})

    session, counting = await store.create(), asked()
    await agent_of(session, [calls("a")], counting.tool, approve=defer).run("go")
    other = Agent(
        session=await store.open(session.id),
        stream_fn=ScriptedModel(["done"]),
        tools=[counting.tool],
        policies=[Renames()],
    )
    result = await other.run(approvals={"a": True})
    assert counting.runs == []
    assert [pending.arguments for pending in result.pending] == [{"name": "other"}]
    await other.run(approvals={"a": True})
    assert counting.runs == ["other"]


async def test_of_two_that_answer_at_once_one_runs_the_tool(store: Store):
    session, counting = await store.create(), asked()
    await agent_of(session, [calls("a")], counting.tool, approve=defer).run("go")
    agents = [
        Agent(session=await store.open(session.id), stream_fn=ScriptedModel(["done"]), tools=[counting.tool])
        for _ in range(2)
    ]
    outcomes = await asyncio.gather(
        *(agent.run(approvals={"a": True}) for agent in agents), return_exceptions=True
    )
    assert counting.runs == ["a"]
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["AgentResult", "SessionConflict"]


async def test_a_callback_may_defer_some_and_a_callback_answers_what_was_deferred(store: Store):
    async def approve(request: Any) -> Any:
        return True if request.call_id == "a" else await defer(request)

    session, counting = await store.create(), asked()
    result = await agent_of(session, [calls("a", "b")], counting.tool, approve=approve).run("go")
    assert counting.runs == ["a"]
    assert [pending.call_id for pending in result.pending] == ["b"]
    other = Agent(
        session=await store.open(session.id),
        stream_fn=ScriptedModel(["done"]),
        tools=[counting.tool],
        approve=lambda request: True,
    )
    assert (await other.run()).text == "done"
    assert counting.runs == ["a", "b"]


async def test_a_pending_call_whose_tool_is_gone_or_needs_no_word_any_more_goes_on(store: Store):
    session = await store.create()
    await agent_of(session, [calls("a")], asked().tool, approve=defer).run("go")
    free = Counting()
    found = await store.fork_as_is(session.id)
    await Agent(session=found, stream_fn=ScriptedModel(["done"]), tools=[free.tool]).run()
    assert free.runs == ["a"]
    other = Agent(session=session, stream_fn=ScriptedModel(["done"]))
    assert (await other.run(approvals={"a": True})).text == "done"
    assert texts(other.messages)[2].startswith("error: there is no tool named 'count'")


async def test_a_run_without_a_session_defers_as_well():
    counting = asked()
    agent = agent_of(None, [calls("a"), "done"], counting.tool, approve=defer)
    assert (await agent.run("go")).reason == "approval"
    copied = agent.copy(stream_fn=ScriptedModel(["copied"]))
    assert (await agent.run(approvals={"a": True})).text == "done"
    assert copied.pending != ()
    assert (await copied.run("never mind")).text == "copied"
    assert counting.runs == ["a"]


async def test_usage_of_a_turn_that_waits_is_counted_once(store: Store):
    def reply(*content: Any, usage: Usage) -> list[Any]:
        return [*content, UsageUpdate(usage)]

    session, counting = await store.create(), asked()
    agent = agent_of(
        session,
        [reply(*calls("a"), usage=Usage(10, 5)), reply("done", usage=Usage(1, 1))],
        counting.tool,
        approve=defer,
    )
    assert (await agent.run("go")).usage.total == 15
    assert (await agent.run(approvals={"a": True})).usage.total == 2


# Whatever is done to it

STEPS = st.lists(
    st.sampled_from(
        [
            "run",
            "tools",
            "fail",
            "assign",
            "keep last",
            "append",
            "clear",
            "reset",
            "compact",
            "steer",
            "follow up",
            "drop queues",
            "model",
            "level",
            "prompt",
            "state",
            "defer",
            "answer",
            "refuse",
            "reopen",
        ]
    ),
    max_size=14,
)


@tried(25, 600)
@given(STEPS)
def test_whatever_is_done_to_an_agent_its_session_is_that_agent(steps: list[str]):
    asyncio.run(do_all(steps))


async def do_all(steps: list[str]) -> None:
    store = Store()
    session = await store.create()
    free = Counting()
    numbers = iter(range(1000))
    scripts: list[list[Any]] = []

    def ask(model: Any, context: Any, options: Any) -> Any:
        assert history_problems(context.messages) == []
        return ScriptedModel([scripts.pop(0) if scripts else "fine"])(model, context, options)

    @tool(requires_approval=True)
    async def danger() -> str:
        return "dared"

    def make() -> Agent:
        return Agent(
            "test:m" if session.model is None else None,
            stream_fn=ask,
            tools=[free.tool, danger],
            session=session,
            approve=defer,
            transform_context=lambda messages, overflow: (
                [message for message in messages if message.role == "user"][-3:] if overflow else messages
            ),
            retry=ExponentialBackoff(1),
        )

    agent = make()
    for step in steps:
        number = next(numbers)
        match step:
            case "run":
                await agent.run(f"prompt {number}")
            case "tools":
                scripts.append([*calls(f"{number}a", f"{number}b")])
                await agent.run(f"prompt {number}")
            case "fail":
                scripts.append([AuthError("no")])
                await agent.run(f"prompt {number}")
            case "assign":
                agent.messages = [UserMessage(f"set {number}")]
            case "keep last":
                agent.messages = (
                    agent.messages[-1:] if agent.messages[-1:] and agent.messages[-1].role == "user" else []
                )
            case "append":
                agent.append_messages(f"note {number}")
            case "clear":
                agent.clear_messages()
            case "reset":
                agent.reset()
            case "compact":
                await agent.compact()
            case "steer":
                agent.steer(f"steered {number}")
            case "follow up":
                agent.follow_up(f"later {number}")
            case "drop queues":
                agent.clear_queues()
            case "model":
                agent.model = ModelSpec("test", f"m{number}")
            case "level":
                agent.thinking_level = "high" if agent.thinking_level == "off" else "off"
            case "prompt":
                agent.system_prompt = f"system {number}"
            case "state":
                agent.state[f"key {number % 3}"] = number
            case "defer":
                scripts.append([*calls(f"{number}a"), ToolCall(f"{number}d", "danger")])
                await agent.run(f"prompt {number}")
            case "answer" if agent.pending:
                await agent.run(approvals={pending.call_id: True for pending in agent.pending})
            case "refuse" if agent.pending:
                await agent.run(approvals={pending.call_id: False for pending in agent.pending})
            case "reopen":
                await agent.aclose()
                session = await store.open(session.id)
                agent = make()
            case _:
                pass
    await agent.aclose()
    before, session = agent, await store.open(session.id)
    agent = make()
    for name in ("model", "system_prompt", "state", "pending"):
        assert getattr(agent, name) == getattr(before, name), name
    assert list(agent.messages) == list(before.messages)
    assert (agent._queues.steering, agent._queues.follow_up) == (
        before._queues.steering,
        before._queues.follow_up,
    )
    assert (agent._state.open and agent._state.open.reply) == (
        before._state.open and before._state.open.reply
    )
    assert history_problems(agent.messages) == []
    assert len(free.runs) == len(set(free.runs))


class _SlowOnce(MemoryStore):
    """A store whose first append waits at a gate."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.gate = threading.Event(), threading.Event()
        append = self.sync.backend.append

        def slow(*values: Any, **options: Any) -> SessionMeta:
            self.entered.set()
            self.gate.wait()
            return append(*values, **options)

        self.sync.backend.append = slow  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("door", ["async", "sync"])
@pytest.mark.parametrize("stuck", [0.01, 60.0])
async def test_an_append_that_ends_after_its_run_is_not_repeated_by_the_next(
    door: str, stuck: float, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("swink.agent.engine.laststeps.SAVE_ABORTED", 0.05)
    monkeypatch.setattr("swink.system.aio.STUCK", stuck)
    store = _SlowOnce()
    session = await store.create() if door == "async" else store.sync.create()
    agent = agent_of(session, ["one", "two"])
    first = asyncio.create_task(agent.run("first"))
    await asyncio.to_thread(store.entered.wait)
    agent.abort()
    with pytest.raises(NotSaved):
        await first
    second = asyncio.create_task(agent.run("second"))
    while len(agent.messages) < 4:
        await asyncio.sleep(0)
    for _ in range(10):
        await asyncio.sleep(0)
    store.gate.set()
    await second
    await agent.aclose()
    assert texts((await store.open(session.id)).messages) == ["first", "one", "second", "two"]


class _Plain:
    """A session that keeps messages, and counts nothing."""

    state: dict[str, Any] = {}

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.entered, self.gate = threading.Event(), threading.Event()

    def append(self, messages: Sequence[Message]) -> None:
        self.entered.set()
        self.gate.wait()
        self.messages.extend(messages)


async def test_an_append_of_a_plain_function_that_ends_after_its_run_is_not_repeated(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("swink.agent.engine.laststeps.SAVE_ABORTED", 0.05)
    session = _Plain()
    agent = agent_of(session, ["one", "two"])
    first = asyncio.create_task(agent.run("first"))
    await asyncio.to_thread(session.entered.wait)
    agent.abort()
    with pytest.raises(NotSaved):
        await first
    session.gate.set()
    await agent.run("second")
    assert texts(session.messages) == ["first", "one", "second", "two"]


class Incomparable:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not comparable")

    def __hash__(self) -> int:
        return 0


async def test_queued_data_that_cannot_be_compared_is_saved_all_the_same():
    @tool
    def change() -> str:
        """Queue something else."""
        agent.clear_follow_up()
        agent.follow_up(CustomMessage("mine", Incomparable()))
        return "changed"

    session = await MemoryStore().create()
    model = ScriptedModel([ToolCall("1", "change", {}), "done", "more"])
    agent = Agent("test:m", stream_fn=model, tools=[change], session=session)
    agent.follow_up(CustomMessage("mine", Incomparable()))
    assert (await asyncio.wait_for(agent.run("go"), 60)).stop_reason == "stop"
    assert [message.role for message in session.messages][-2:] == ["custom", "assistant"]


@pytest.mark.parametrize("where", ["class", "object"])
async def test_an_append_of_ones_own_is_the_one_that_is_called(where: str):
    heard: list[str] = []

    class Loud(Session):
        async def append(self, messages: Sequence[Message], **more: Any) -> None:
            heard.extend(texts(messages))
            await super().append(messages, **more)

    store = MemoryStore()
    session = await store.create()
    append = session.append

    async def loud(messages: Sequence[Message], **more: Any) -> None:
        heard.extend(texts(messages))
        await append(messages, **more)

    if where == "class":
        session.__class__ = Loud
    else:
        session.append = loud
    await agent_of(session, ["one"]).run("first")
    assert heard == texts((await store.open(session.id)).messages) == ["first", "one"]


async def test_a_save_for_which_there_is_no_thread_fails_and_the_next_one_has_it_all(
    monkeypatch: pytest.MonkeyPatch,
):
    def fail(self: Serial, job: Any) -> None:
        raise RuntimeError("can't start new thread")

    store = MemoryStore()
    session = await store.create()
    agent = agent_of(session, ["one", "two"])
    with monkeypatch.context() as patch:
        patch.setattr(Serial, "start", fail)
        with pytest.raises(RuntimeError, match="new thread"):
            await agent.run("first")
    await agent.run("second")
    assert texts((await store.open(session.id)).messages) == ["first", "one", "second", "two"]
