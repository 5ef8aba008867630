"""Agent: running, queues, control, subscribers, settings, checkpoints, streams."""

import asyncio
import gc
import json
import sys
import threading
from typing import Any

import anyio
import pytest

from swink import (
    Agent,
    AlreadyRunning,
    AssistantMessage,
    AuthError,
    BrokenHistory,
    CustomMessage,
    Extension,
    Image,
    InvalidContinue,
    InvalidTool,
    ModelSpec,
    NetworkError,
    NoMessages,
    SyncInAsyncContext,
    Text,
    Tool,
    ToolCall,
    ToolContext,
    ToolResultMessage,
    UnknownModel,
    UserMessage,
    tool,
)
from swink.errors import Aborted, AgentError, MisuseError
from swink.events import AgentEnd, ContextCompacted, MessageEnd, MessageUpdate, ToolExecutionEnd, TurnEnd
from swink.stream import TextDelta
from swink.testing import EventCollector, Pause, ScriptedModel, history_problems


@tool
async def echo(text: str) -> str:
    """Say it back."""
    return text


def agent_on(*script: Any, **options: Any) -> Agent:
    return Agent("test:m", stream_fn=ScriptedModel(list(script)), **options)


# Three ways to run


SCRIPTS: dict[str, list[Any]] = {
    "text": ["hello"],
    "tools": [
        [ToolCall("1", "echo", {"text": "x"}), ToolCall("2", "nope"), ToolCall("3", "echo", {})],
        "done",
    ],
    "error": [["par", AuthError("bad key")]],
    "retried": [["par", NetworkError("cut")], "whole"],
    "cut off": [[ToolCall("1", "echo", {}, '{"te')], "done"],
}


@pytest.mark.parametrize("name", SCRIPTS)
async def test_run_run_sync_and_stream_give_equal_histories(name: str):
    from swink import ExponentialBackoff

    def fresh() -> Agent:
        return agent_on(*SCRIPTS[name], tools=[echo], retry=ExponentialBackoff(base_delay=0.001))

    plain, streamed = fresh(), fresh()
    first = await plain.run("hi")
    async with streamed.stream("hi") as run:
        async for _ in run:
            pass
        second = await run.result()
    third = await asyncio.to_thread(lambda: (agent := fresh()).run_sync("hi") and agent)
    assert list(plain.messages) == list(streamed.messages) == list(third.messages)
    assert first == second


async def test_input_may_be_text_blocks_messages_or_a_list_of_them():
    image = Image.from_url("https://x/cat.png")
    for value, expected in [
        ("hi", [UserMessage("hi")]),
        (Text("hi"), [UserMessage("hi")]),
        ([Text("look"), image], [UserMessage([Text("look"), image])]),
        (["look", image, Extension("x")], [UserMessage([Text("look"), image, Extension("x")])]),
        (UserMessage("hi"), [UserMessage("hi")]),
        (
            [CustomMessage("note"), UserMessage("a"), "b"],
            [CustomMessage("note"), UserMessage("a"), UserMessage("b")],
        ),
    ]:
        agent = agent_on("ok")
        await agent.run(value)
        assert list(agent.messages[:-1]) == expected


@pytest.mark.parametrize(
    "value",
    [
        "",
        [],
        [UserMessage("")],
        UserMessage(()),
        " ",
        "\n\t\u3000",
        ["", "\n"],
        Text(" "),
        UserMessage([Text(" "), Text("")]),
    ],
)
async def test_an_empty_input_is_refused_at_once(value: Any):
    agent = agent_on("never")
    with pytest.raises(NoMessages, match="empty"):
        await agent.run(value)
    assert len(agent.messages) == 0


async def test_an_input_of_another_type_says_what_is_taken():
    with pytest.raises(TypeError, match="str, a message"):
        await agent_on("never").run([3])  # type: ignore[list-item]


async def test_an_input_that_breaks_the_pairing_is_refused():
    agent = agent_on("never")
    with pytest.raises(BrokenHistory, match="does not fit"):
        await agent.run(ToolResultMessage("1", "echo", "x"))
    assert len(agent.messages) == 0


async def test_continue_without_anything_to_answer_raises():
    with pytest.raises(NoMessages):
        await agent_on("never").run()
    agent = agent_on("ok", "never")
    await agent.run("hi")
    with pytest.raises(InvalidContinue):
        await agent.run()
    with pytest.raises(InvalidContinue):
        agent.stream()


async def test_continue_answers_what_is_queued():
    agent = agent_on("one", "two", "three")
    await agent.run("a")
    agent.follow_up("b")
    assert (await agent.run()).text == "two"
    agent.steer("c")
    assert (await agent.run()).text == "three"
    assert [message.text for message in agent.messages] == ["a", "one", "b", "two", "c", "three"]


async def test_a_second_run_raises_and_changes_nothing():
    agent = agent_on(["a", Pause(0.05), "b"])
    task = asyncio.create_task(agent.run("hi"))
    await asyncio.sleep(0.01)
    for again in (lambda: agent.run("x"), lambda: agent.run()):
        with pytest.raises(AlreadyRunning):
            await again()
    with pytest.raises(AlreadyRunning):
        agent.stream("x")
    with pytest.raises(AlreadyRunning):
        agent.reset()
    assert (await task).text == "ab"
    assert len(agent.messages) == 2


async def test_two_streams_made_while_idle_cannot_both_run():
    agent = agent_on(["a", Pause(0.01), "b"])
    first, second = agent.stream("one"), agent.stream("two")
    async with first:
        with pytest.raises(AlreadyRunning):
            await second.__aenter__()
        assert (await first.result()).text == "ab"
    assert len(agent.messages) == 2


def test_run_sync_works_three_times_from_threads_and_after_asyncio_run():
    agent = agent_on("one", "two", "three")
    assert [agent.run_sync("x").text for _ in range(3)] == ["one", "two", "three"]

    async def main() -> None:
        await agent_on("y").run("x")

    asyncio.run(main())
    assert agent_on("after").run_sync("x").text == "after"
    texts: list[str] = []
    threads = [
        threading.Thread(target=lambda: texts.append(agent_on("t").run_sync("x").text)) for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == ["t"] * 5


async def test_run_sync_inside_an_event_loop_says_what_to_use_instead():
    with pytest.raises(SyncInAsyncContext, match=r"await agent\.run"):
        agent_on("never").run_sync("x")


# Ways out of a stream


async def test_abort_keeps_what_arrived():
    agent = agent_on(["par", Pause(10), "is"])
    async with agent.stream("Capital of France?") as run:
        async for event in run:
            if isinstance(event, MessageUpdate):
                agent.abort()
        result = await run.result()
    assert agent.messages[-1].text == "par"
    assert agent.messages[-1].stop_reason == "aborted"
    assert (result.stop_reason, result.error_kind) == ("aborted", "aborted")


async def test_abort_from_another_thread_and_when_idle():
    agent = agent_on(["par", Pause(600), "is"])
    agent.abort()
    another = threading.Thread(target=agent.abort)
    agent.subscribe(lambda event: another.start() if isinstance(event, MessageUpdate) else None)
    assert (await asyncio.wait_for(agent.run("hi"), 20)).stop_reason == "aborted"
    agent.abort()


async def test_leaving_the_block_early_cancels_the_run_and_keeps_the_history():
    agent = agent_on(["par", Pause(10), "is"])
    async with agent.stream("hi") as run:
        async for event in run:
            if isinstance(event, MessageUpdate):
                break
    assert not agent.is_running
    assert [message.text for message in agent.messages] == ["hi", "par"]
    assert agent.messages[-1].stop_reason == "aborted"


async def test_detach_lets_the_run_finish_in_the_background():
    agent = agent_on(["par", Pause(0.02), "is"])
    seen = EventCollector()
    agent.subscribe(seen)
    async with agent.stream("hi") as run:
        async for event in run:
            if isinstance(event, MessageUpdate):
                run.detach()
    assert agent.is_running
    await agent.wait_for_idle()
    assert agent.messages[-1].text == "paris"
    seen.check()


async def test_a_dropped_stream_ends_its_run():
    agent = agent_on(["par", Pause(600), "is"])
    async for event in agent.stream("hi"):
        if isinstance(event, MessageUpdate):
            break
    gc.collect()
    await asyncio.wait_for(agent.wait_for_idle(), 20)
    assert agent.messages[-1].stop_reason == "aborted"


async def test_a_stream_never_entered_leaves_the_agent_idle():
    agent = agent_on("ok")
    agent.stream("hi")
    assert not agent.is_running
    assert (await agent.run("hi")).text == "ok"


@pytest.mark.parametrize("how", ["wait_for", "task_group", "anyio"])
@pytest.mark.parametrize("face", ["run", "stream", "bare"])
async def test_cancellation_from_outside_stops_the_run_like_any_coroutine(how: str, face: str):
    agent = agent_on(["par", Pause(600), "is"])

    async def consume() -> None:
        if face == "run":
            await agent.run("hi")
        elif face == "stream":
            async with agent.stream("hi") as run:
                async for _ in run:
                    pass
        else:
            async for _ in agent.stream("hi"):
                pass

    if how == "wait_for":
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(consume(), 0.03)
    elif how == "anyio":
        with anyio.move_on_after(0.03) as scope:
            await consume()
        assert scope.cancelled_caught
    else:

        class Fail(Exception):
            pass

        async def fail() -> None:
            await asyncio.sleep(0.03)
            raise Fail

        with pytest.raises(ExceptionGroup):
            async with asyncio.TaskGroup() as group:
                group.create_task(consume())
                group.create_task(fail())
    assert not agent.is_running
    assert agent.messages[-1].stop_reason == "aborted"
    assert history_problems(agent.messages) == []


async def test_a_stale_stream_never_disturbs_a_newer_run():
    agent = agent_on(["a", Pause(10)], ["b", Pause(0.02), "c"])
    old = agent.stream("one")
    async for event in old:
        if isinstance(event, MessageUpdate):
            break
    agent.abort()
    await agent.wait_for_idle()
    task = asyncio.create_task(agent.run("two"))
    await asyncio.sleep(0.01)
    await old.aclose()
    del old
    gc.collect()
    assert (await task).text == "bc"


async def test_a_stream_function_that_swallows_cancellation_cannot_hold_the_agent(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("swink.agent.engine.run.ABANDON_AFTER", 0.05)
    release = asyncio.Event()

    async def stubborn(model: Any, context: Any, options: Any) -> Any:
        from swink.stream import Start

        yield Start()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    agent = Agent("test:m", stream_fn=stubborn)
    seen = EventCollector()
    agent.subscribe(seen)
    result = await asyncio.wait_for(agent.run("hi", deadline=0.02), 20)
    assert result.stop_reason == "aborted"
    assert not agent.is_running
    seen.check()
    count = len(seen.events)
    release.set()
    await asyncio.sleep(0.01)
    assert len(seen.events) == count
    assert len(agent.messages) == 2


async def test_a_hooks_exception_reaches_the_consumer_exactly_once():
    class Broken(Exception):
        pass

    def transform(messages: Any, overflow: bool) -> Any:
        raise Broken("bug")

    agent = agent_on("never", transform_context=transform)
    with pytest.raises(Broken):
        await agent.run("hi")
    assert "Broken" in (agent.error or "")
    seen: list[Any] = []
    with pytest.raises(Broken):
        async with agent.stream("hi") as run:
            async for event in run:
                seen.append(event)
    assert isinstance(seen[-1], AgentEnd)
    assert not agent.is_running


# Deadline


async def test_a_deadline_bounds_model_tool_hook_approval_and_back_off():
    from swink import ExponentialBackoff

    async def forever(*_: Any) -> Any:
        await asyncio.sleep(600)

    @tool(requires_approval=True)
    async def slow() -> str:
        await asyncio.sleep(600)
        return "never"

    cases = [
        agent_on(["x", Pause(600)]),
        agent_on([ToolCall("1", "slow")], tools=[slow], approval_mode="off"),
        agent_on([ToolCall("1", "slow")], tools=[slow], approve=forever),
        agent_on("x", transform_context=forever),
        agent_on("x", get_api_key=forever),
        agent_on(NetworkError("x"), "y", retry=ExponentialBackoff(base_delay=600)),
    ]
    for agent in cases:
        result = await agent.run("hi", deadline=0.05)
        assert result.stop_reason == "aborted"
        assert "deadline of 0.05 s passed" in (result.error or "")
        assert history_problems(agent.messages) == []


# Queues


async def test_queued_messages_are_accepted_from_any_thread_and_cleared_on_demand():
    agent = agent_on("ok")
    threads = [threading.Thread(target=agent.steer, args=(f"s{n}",)) for n in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    agent.follow_up("f")
    assert agent.has_pending
    agent.clear_steering()
    assert agent.has_pending
    agent.clear_follow_up()
    assert not agent.has_pending
    agent.steer("x")
    agent.follow_up("y")
    agent.clear_queues()
    assert not agent.has_pending


async def test_a_queued_message_is_taken_back_by_identity_and_once():
    agent, seen = agent_on("one", "two", "three"), EventCollector()
    agent.subscribe(seen)
    agent.follow_up("same")
    agent.follow_up(UserMessage(agent.follow_ups[0].content, agent.follow_ups[0].timestamp))
    first, second = agent.follow_ups
    assert first == second
    assert agent.unqueue(second)
    assert not agent.unqueue(second)
    assert agent.follow_ups == (first,)
    assert agent.follow_ups[0] is first
    agent.steer("aside")
    (aside,) = agent.steering
    await agent.run("go")
    assert not agent.unqueue(first)
    entered = [event.message for event in seen.of(MessageEnd) if event.message.role == "user"]
    assert [message is entered[place] for place, message in ((1, aside), (2, first))] == [True, True]
    assert (agent.steering, agent.follow_ups) == ((), ())


async def test_abort_ends_a_compaction_and_nothing_has_changed():
    began = asyncio.Event()

    async def slow(messages: Any, overflow: bool) -> Any:
        began.set()
        await asyncio.Event().wait()

    agent = agent_on("one", transform_context=slow, messages=[UserMessage("a")])
    work = asyncio.create_task(agent.compact())
    await began.wait()
    threading.Thread(target=agent.abort).start()
    with pytest.raises(Aborted):
        await work
    assert [message.text for message in agent.messages] == ["a"]
    work = asyncio.create_task(agent.compact())
    began.clear()
    await began.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    agent.abort()
    assert not agent.is_running


async def test_only_what_a_user_may_say_can_be_queued():
    with pytest.raises(MisuseError):
        agent_on().steer(ToolResultMessage("1", "x", "y"))
    agent = agent_on("ok")
    agent.steer([Text("look"), Image.from_url("https://x/cat.png")])
    await agent.run("hi")
    assert len(agent.messages[1].content) == 2


async def test_queued_messages_survive_an_abort():
    agent = agent_on(["par", Pause(10)], "next", "then")
    agent.follow_up("later")
    await agent.run("hi", deadline=0.02)
    assert agent.has_pending
    await agent.run("go on")
    assert [message.text for message in agent.messages if isinstance(message, UserMessage)] == [
        "hi",
        "go on",
        "later",
    ]


# Idle, reset, subscribers


async def test_every_waiter_wakes_when_the_run_ends():
    agent = agent_on([Pause(0.02), "ok"])
    await agent.wait_for_idle()
    task = asyncio.create_task(agent.run("hi"))
    await asyncio.sleep(0)
    in_thread = asyncio.create_task(asyncio.to_thread(lambda: asyncio.run(agent.wait_for_idle())))
    await asyncio.wait_for(asyncio.gather(*(agent.wait_for_idle() for _ in range(10))), 20)
    assert not agent.is_running
    await asyncio.wait_for(in_thread, 20)
    await task


async def test_reset_goes_back_to_how_the_agent_was_made():
    agent = agent_on(
        "ok", messages=[UserMessage("old")], system_prompt="be brief", state={"a": 1}, tools=[echo]
    )
    await agent.run("hi")
    agent.system_prompt, agent.tools, agent.state["b"] = "changed", [], 2
    agent.steer("x")
    agent.model = "test:other"
    agent.reset()
    assert list(agent.messages) == [UserMessage("old")]
    assert (agent.system_prompt, agent.state, len(agent.tools), str(agent.model)) == (
        "be brief",
        {"a": 1},
        1,
        "test:m",
    )
    assert not agent.has_pending
    assert agent.error is None


async def test_subscribers_hear_events_in_order_and_late_ones_only_later_events():
    agent = agent_on(["a", "b"])
    first, late = EventCollector(), EventCollector()

    def join(event: Any) -> None:
        first(event)
        if isinstance(event, MessageUpdate) and len(agent._subscribers.current) == 1:
            agent.subscribe(late)

    agent.subscribe(join)
    await agent.run("hi")
    assert first.events[-len(late.events) :] == late.events
    assert "AgentStart" not in late.names


async def test_a_subscriber_that_raises_is_logged_and_removed(caplog: pytest.LogCaptureFixture):
    agent = agent_on("a")
    calls: list[Any] = []
    good = EventCollector()

    def bad(event: Any) -> None:
        calls.append(event)
        raise ValueError("oops")

    agent.subscribe(bad)
    agent.subscribe(good)
    assert (await agent.run("hi")).text == "a"
    assert len(calls) == 1
    good.check()
    assert "a subscriber failed" in caplog.text


async def test_unsubscribing_inside_a_callback_takes_effect_after_the_dispatch():
    agent = agent_on("a")
    second = EventCollector()

    def first(event: Any) -> None:
        handle()

    agent.subscribe(first)
    handle = agent.subscribe(second)
    await agent.run("hi")
    assert second.names == ["AgentStart"]
    with agent.subscribe(EventCollector()) as subscription:
        assert subscription in agent._subscribers.current
    assert subscription not in agent._subscribers.current


# Settings


async def test_settings_changed_during_a_run_take_effect_at_the_next_turn():
    @tool
    async def other() -> str:
        return "other"

    @tool
    async def change() -> str:
        agent.system_prompt = "new"
        agent.tools = [other]
        agent.model = "test:new"
        agent.thinking_level = "high"
        return "ok"

    model = ScriptedModel([[ToolCall("1", "change"), ToolCall("2", "change")], "end"])
    agent = Agent("test:m", stream_fn=model, tools=[change], system_prompt="old")
    await agent.run("hi")
    assert [context.system_prompt for context in model.calls] == ["old", "new"]
    assert [[tool.name for tool in context.tools] for context in model.calls] == [["change"], ["other"]]
    assert [(spec.model_id, spec.thinking_level) for spec in model.models] == [("m", "off"), ("new", "high")]


async def test_messages_can_be_replaced_appended_and_cleared():
    agent = agent_on("ok")
    given = [UserMessage("a")]
    agent.messages = given
    agent.append_messages("b")
    assert [message.text for message in agent.messages] == ["a", "b"]
    assert len(given) == 1
    agent.clear_messages()
    assert list(agent.messages) == []
    agent.messages = [UserMessage("q")]
    assert (await agent.run()).text == "ok"


async def test_messages_replaced_during_a_run_are_used_from_the_next_turn():
    @tool
    async def forget() -> str:
        agent.messages = [UserMessage("fresh start")]
        return "ok"

    model = ScriptedModel([[ToolCall("1", "forget")], "end"])
    agent = Agent("test:m", stream_fn=model, tools=[forget])
    await agent.run("hi")
    assert [message.text for message in model.calls[1].messages] == ["fresh start"]
    assert [message.text for message in agent.messages] == ["fresh start", "end"]


async def test_what_the_agent_shows_while_it_works():
    shown: list[Any] = []

    @tool
    async def work() -> str:
        shown.append((agent.is_running, agent.pending_tool_calls))
        return "ok"

    agent = agent_on(["par", "is", ToolCall("1", "work")], "end", tools=[work])
    agent.subscribe(
        lambda event: shown.append(agent.streaming_message) if isinstance(event, MessageUpdate) else None
    )
    await agent.run("hi")
    assert [message.text for message in shown[:2]] == ["par", "paris"]
    assert (True, frozenset({"1"})) in shown
    assert agent.streaming_message is None
    assert agent.pending_tool_calls == frozenset()


async def test_a_run_that_is_not_read_as_a_stream_keeps_no_events():
    seen: list[Any] = []
    held = [object()]

    @tool
    async def look() -> str:
        seen.append(sys.getrefcount(seen[0]) - sys.getrefcount(held[0]))
        return "ok"

    agent = agent_on(["word", ToolCall("1", "look")], "end", tools=[look])
    agent.subscribe(lambda event: seen.append(event) if isinstance(event, MessageUpdate) else None)
    await agent.run("hi")
    assert [each for each in seen if isinstance(each, int)] == [0]


async def test_only_calls_that_still_run_are_pending():
    first_is_done, shown = asyncio.Event(), []

    @tool
    async def first() -> str:
        return "ok"

    @tool
    async def second() -> str:
        await first_is_done.wait()
        shown.append(agent.pending_tool_calls)
        return "ok"

    agent = agent_on([ToolCall("1", "first"), ToolCall("2", "second")], "end", tools=[first, second])
    agent.subscribe(lambda event: first_is_done.set() if isinstance(event, ToolExecutionEnd) else None)
    await agent.run("hi")
    assert shown == [frozenset({"2"})]


def test_bad_settings_raise_at_once_and_say_what_to_change():
    def untyped(x):  # type: ignore[no-untyped-def]
        return x

    for make, words in [
        (
            lambda: Agent("test:m", stream_fn=ScriptedModel([]), tools=[echo, echo]),
            "two tools are named 'echo'",
        ),
        (lambda: Agent("test:m", stream_fn=ScriptedModel([]), tools=[untyped]), "annotate it"),
        (lambda: Agent("test:m", stream_fn=ScriptedModel([]), tools=[3]), "not a tool"),
        (lambda: Agent("antropic:claude"), "did you mean 'anthropic'"),
        (lambda: Agent("claude-sonnet"), "provider:model"),
        (
            lambda: Agent("test:m", stream_fn=ScriptedModel([]), messages=[ToolResultMessage("1", "x", "y")]),
            "no call with that id",
        ),
    ]:
        with pytest.raises(AgentError, match=words) as caught:
            make()
        assert isinstance(caught.value, InvalidTool | UnknownModel | BrokenHistory)
    with pytest.raises(TypeError, match="wrap text in UserMessage"):
        Agent("test:m", stream_fn=ScriptedModel([]), messages=["hi"])  # type: ignore[list-item]


async def test_a_broken_history_is_repaired_before_it_is_sent():
    model = ScriptedModel(["ok"])
    broken = [
        UserMessage("q"),
        AssistantMessage([ToolCall("1", "echo"), ToolCall("2", "echo")]),
        ToolResultMessage("2", "echo", "two"),
        UserMessage("and?"),
    ]
    agent = Agent("test:m", stream_fn=model, messages=broken)
    await agent.run("go on")
    assert history_problems(model.calls[0].messages) == []
    assert "outcome is unknown" in model.calls[0].messages[2].text
    assert model.calls[0].messages[3].text == "two"
    assert len(broken) == 4


# Checkpoints


async def test_a_checkpoint_is_plain_json_and_restores_the_agent():
    agent = agent_on(
        [ToolCall("1", "echo", {"text": "x"})], "done", tools=[echo], system_prompt="brief", state={"n": 1}
    )
    await agent.run("hi")
    agent.follow_up("later")
    agent.steer("now")
    agent.thinking_level = "low"
    data = json.loads(json.dumps(agent.checkpoint()))
    twin = Agent.restore(data, stream_fn=ScriptedModel(["again", "more"]), tools=[echo])
    assert twin.messages == agent.messages
    assert twin.checkpoint() == agent.checkpoint()
    assert (twin.system_prompt, twin.state, twin.thinking_level) == ("brief", {"n": 1}, "low")
    await twin.run("next")
    assert not twin.has_pending
    assert len(agent.messages) == 4


async def test_pause_stops_after_the_turn_and_the_restored_agent_goes_on():
    ran: list[str] = []

    @tool
    async def step(n: int) -> str:
        ran.append(str(n))
        if n == 1:
            agent.pause()
        return "ok"

    agent = agent_on([ToolCall("1", "step", {"n": 1})], "never here", tools=[step])
    result = await agent.run("hi")
    assert result.reason == "paused"
    data = await agent.pause()
    twin = Agent.restore(
        data, stream_fn=ScriptedModel([[ToolCall("2", "step", {"n": 2})], "end"]), tools=[step]
    )
    assert (await twin.run()).text == "end"
    assert ran == ["1", "2"]


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"version": 99},
        {"version": 1},
        {"version": 1, "model": 3, "messages": [], "steering": [], "follow_up": []},
        {"version": 1, "model": {"provider": "a", "model_id": "b"}, "messages": ["\ud800"]},
    ],
)
def test_what_is_no_checkpoint_is_refused_before_anything_is_made(data: Any):
    with pytest.raises(MisuseError, match="checkpoint"):
        Agent.restore(data, stream_fn=ScriptedModel([]))


def test_what_only_looks_like_a_number_is_restored_as_it_is():
    data = agent_on().checkpoint() | {"state": {"price": {"$number": "twelve"}}}
    assert Agent.restore(data, stream_fn=ScriptedModel([])).state == {"price": {"$number": "twelve"}}


async def test_tools_of_the_history_that_are_gone_get_an_explaining_placeholder():
    agent = agent_on([ToolCall("1", "echo", {"text": "x"})], "done", tools=[echo])
    await agent.run("hi")
    twin = Agent.restore(
        agent.checkpoint(), stream_fn=ScriptedModel([[ToolCall("2", "echo", {"text": "y"})], "end"])
    )
    await twin.run("again")
    assert "no longer available" in twin.messages[-2].text
    assert twin.messages[-2].is_error


class Folder:
    """A source of tools that come and go."""

    def __init__(self, *tools: Tool) -> None:
        self.held = list(tools)

    def tools(self) -> list[Tool]:
        return self.held


async def test_a_placeholder_makes_way_for_the_tool_of_a_source_that_comes_back():
    agent = agent_on([ToolCall("1", "echo", {"text": "x"})], "done", tools=[echo])
    await agent.run("hi")
    folder, model = Folder(), ScriptedModel([[ToolCall("2", "echo", {"text": "y"})], "end"])
    twin = Agent.restore(agent.checkpoint(), stream_fn=model, tools=[folder])
    folder.held.append(echo)
    await twin.run("again")
    assert twin.messages[-2].text == "y"
    assert [tool.name for tool in model.calls[0].tools] == ["echo"]


async def test_sources_that_share_a_name_can_be_restored_with():
    sources = [Folder(echo), Folder(echo)]
    agent = agent_on([ToolCall("1", "echo", {"text": "x"})], "done", tools=sources)
    await agent.run("hi")
    twin = Agent.restore(agent.checkpoint(), stream_fn=ScriptedModel(["end"]), tools=sources)
    assert (await twin.run("again")).text == "end"


# Compaction, sessions


async def test_compact_keeps_only_what_the_transformers_keep_and_only_when_idle():
    old = [UserMessage("x" * 4000) if n % 2 == 0 else AssistantMessage("y" * 4000) for n in range(50)]
    agent = agent_on("ok", messages=old, transform_context=lambda messages, overflow: messages[-2:])
    seen = EventCollector()
    agent.subscribe(seen)
    report = await agent.compact()
    assert report.dropped == 48
    assert report.tokens_after < report.tokens_before
    assert len(agent.messages) == 2
    assert len(seen.of(ContextCompacted)) == 1
    await agent.run("hi")


async def test_compact_knows_the_tools_of_a_source():
    old = [UserMessage("x" * 40_000) if n % 2 == 0 else AssistantMessage("y" * 40_000) for n in range(50)]
    agent = agent_on("ok", messages=old, transform_context="window", tools=[Folder(echo)])
    assert (await agent.compact()).dropped


class MemorySession:
    def __init__(self, messages: Any = (), state: Any = None) -> None:
        self.messages = list(messages)
        self.state = state or {}
        self.appends: list[list[str]] = []

    async def append(self, messages: Any) -> None:
        await asyncio.sleep(0)
        self.appends.append([message.role for message in messages])
        self.messages.extend(messages)


async def test_a_session_gives_the_history_and_gets_every_turn():
    session = MemorySession([UserMessage("old"), AssistantMessage("answer")], {"n": 1})
    agent = agent_on([ToolCall("1", "echo", {"text": "x"})], "done", tools=[echo], session=session)
    await agent.run("hi")
    assert session.appends == [["user", "assistant", "tool_result"], ["assistant"]]
    assert session.messages == agent.messages
    assert agent.state == {"n": 1}


async def test_a_session_has_everything_after_an_abort_a_cancellation_and_an_error():
    for script, how in [
        (["par", Pause(10)], "deadline"),
        (["par", Pause(10)], "cancel"),
        (["par", AuthError("x")], "error"),
    ]:
        session = MemorySession()
        agent = agent_on(script, session=session)
        if how == "cancel":
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(agent.run("hi"), 0.02)
        else:
            await agent.run("hi", deadline=0.02)
        assert session.messages == agent.messages
        assert [message.text for message in session.messages] == ["hi", "par"]


async def test_a_session_that_fails_to_save_is_told_to_the_caller_and_nothing_is_lost_or_doubled():
    class Failing(MemorySession):
        failures = 1

        async def append(self, messages: Any) -> None:
            if self.failures:
                self.failures -= 1
                raise OSError("disk full")
            await super().append(messages)

    session = Failing()
    agent = agent_on("ok", session=session)
    with pytest.raises(OSError, match="disk full"):
        await agent.run("hi")
    assert not agent.is_running
    assert session.messages == agent.messages
    assert [message.text for message in session.messages] == ["hi", "ok"]


async def test_a_save_cut_off_by_an_abort_is_finished_once():
    class Slow(MemorySession):
        async def append(self, messages: Any) -> None:
            await asyncio.sleep(0.03)
            await super().append(messages)

    session = Slow()
    agent = agent_on([ToolCall("1", "echo", {"text": "x"})], "end", tools=[echo], session=session)
    await agent.run("hi", deadline=0.015)
    assert session.messages == agent.messages
    assert [message.role for message in session.messages] == ["user", "assistant", "tool_result"]


# Results


async def test_a_model_failure_is_a_result_and_the_agent_remembers_it():
    agent = agent_on(AuthError("bad key"), "fine")
    result = await agent.run("hi")
    assert (result.stop_reason, result.error_kind) == ("error", "auth")
    assert "test:m" in (result.error or "")
    assert agent.error == result.error
    assert (await agent.run("again")).text == "fine"
    assert agent.error is None


async def test_usage_of_a_sub_agent_counts_in_the_run():
    from swink import Cost, Usage

    @tool
    async def delegate(ctx: ToolContext) -> str:
        ctx.charge(Usage(100, 50), Cost(1.0))
        return "ok"

    agent = agent_on([ToolCall("1", "delegate")], "end", tools=[delegate])
    assert (await agent.run("hi")).usage.total == 150 + 4


async def test_the_design_example_of_matching_deltas_works():
    parts: list[str] = []
    async with agent_on(["a", "b"]).stream("hi") as run:
        async for event in run:
            match event:
                case MessageUpdate(delta=TextDelta(text=text)):
                    parts.append(text)
                case _:
                    pass
    assert parts == ["a", "b"]


async def test_every_turn_ends_with_its_message_and_agent_end_has_all():
    agent = agent_on([ToolCall("1", "echo", {"text": "x"})], "done", tools=[echo])
    seen = EventCollector()
    agent.subscribe(seen)
    result = await agent.run("hi")
    assert (
        seen.of(AgentEnd)[0].messages
        == result.messages
        == tuple(event.message for event in seen.of(MessageEnd))
    )
    assert [len(end.tool_results) for end in seen.of(TurnEnd)] == [1, 0]


def test_a_model_spec_is_accepted_where_a_string_is():
    agent = Agent(ModelSpec("test", "m", thinking_level="low"), stream_fn=ScriptedModel(["ok"]))
    assert agent.thinking_level == "low"
    assert agent.run_sync("hi").text == "ok"
