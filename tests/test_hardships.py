"""What others' code may do to a run, and what the run makes of it: each was a defect once."""

import asyncio
import gc
import json
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import pytest
from msgspec.structs import replace

from swink import (
    Agent,
    AgentContext,
    AgentLoopConfig,
    AssistantMessage,
    ExponentialBackoff,
    Inject,
    ModelSpec,
    Policy,
    Replace,
    ToolCall,
    ToolContext,
    UserMessage,
    agent_loop,
    tool,
)
from swink.agent import MessageQueue
from swink.codec import decode_messages, encode_messages
from swink.errors import AgentError, AuthError, BrokenHistory, MisuseError, NetworkError
from swink.events import (
    AgentEnd,
    AgentStart,
    ApprovalResolved,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnEnd,
    TurnStart,
)
from swink.messages import Cost, ToolResult, ToolResultMessage, Usage
from swink.schema import Shape
from swink.stream import Done, Error, Start, TextDelta, TextEnd, TextStart, ToolCallStart, accumulate
from swink.testing import EventCollector, Pause, ScriptedModel, history_problems, nesting_problems
from swink.tool import InvalidArguments, as_tools
from swink.wrappers import cached, recorded


@tool
async def echo(text: str) -> str:
    """Say it back."""
    return text


def make(script: list[Any], **options: Any) -> tuple[Agent, EventCollector]:
    agent = Agent("test:m", stream_fn=ScriptedModel(script), **options)
    seen = EventCollector()
    agent.subscribe(seen)
    return agent, seen


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ZeroDivisionError


class Odd(BaseException):
    pass


@pytest.mark.parametrize(
    "error",
    [Unspeakable(), Odd("odd"), BaseExceptionGroup("g", [SystemExit()]), StopAsyncIteration(), SystemExit(1)],
)
async def test_whatever_a_tool_raises_the_batch_ends(error: BaseException):
    @tool
    async def breaks() -> str:
        raise error

    @tool
    def breaks_in_a_thread() -> str:
        raise error

    agent, seen = make(
        [[ToolCall("1", "breaks"), ToolCall("2", "breaks_in_a_thread")], "ok"],
        tools=[breaks, breaks_in_a_thread],
    )
    result = await asyncio.wait_for(agent.run("go"), 3)
    assert result.text == "ok"
    assert all(message.is_error for message in agent.messages if message.role == "tool_result")
    seen.check()


async def test_a_subscriber_that_raises_anything_at_a_tool_does_not_hold_the_batch(
    caplog: pytest.LogCaptureFixture,
):
    agent, seen = make([[ToolCall("1", "echo", {"text": "x"})], "ok"], tools=[echo])

    def raises(event: Any) -> None:
        if isinstance(event, ToolExecutionStart):
            raise Odd

    agent.subscribe(raises)
    assert (await asyncio.wait_for(agent.run("go"), 3)).text == "ok"
    seen.check()


async def test_a_session_that_hangs_cannot_hold_the_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr("swink.engine.run.SAVE_ABORTED", 0.05)

    class Hanging:
        messages: tuple[Any, ...] = ()
        state: dict[str, Any] = {}

        async def append(self, messages: Any) -> None:
            await asyncio.sleep(1000)

    agent, _ = make(["ok"], session=Hanging())
    with pytest.raises(TimeoutError, match="did not save"):
        await asyncio.wait_for(agent.run("go", deadline=0.05), 3)
    assert not agent.is_running
    assert [message.text for message in agent.messages] == ["go", "ok"]


async def test_a_run_cancelled_before_its_first_step_is_saved_too():
    class Memory:
        def __init__(self) -> None:
            self.messages: list[Any] = []
            self.state: dict[str, Any] = {}

        async def append(self, messages: Any) -> None:
            self.messages.extend(messages)

    session = Memory()
    agent, _ = make(["a"], session=session)
    async with agent.stream("first"):
        agent.abort()
    await agent.run("second")
    assert session.messages == agent.messages
    assert [message.text for message in agent.messages if message.role == "user"] == ["first", "second"]


@pytest.mark.parametrize("where", ["approve", "pre_dispatch"])
async def test_no_tool_starts_after_an_abort(where: str):
    ran: list[str] = []

    @tool(requires_approval=True)
    async def danger() -> str:
        ran.append("ran")
        return "x"

    class Abort(Policy):
        def pre_dispatch(self, ctx: Any, call: Any) -> None:
            if where == "pre_dispatch":
                agent.abort()

    async def approve(request: Any) -> bool:
        agent.abort()
        return True

    agent, seen = make(
        [[ToolCall("1", "danger")], "never"], tools=[danger], approve=approve, policies=[Abort()]
    )
    result = await agent.run("go")
    assert result.stop_reason == "aborted"
    assert not ran
    assert not seen.of(ToolExecutionStart)
    assert not any(event.approved for event in seen.of(ApprovalResolved))
    seen.check()


@pytest.mark.parametrize("hook", ["transform_context", "get_api_key"])
async def test_no_model_is_asked_after_an_abort(hook: str):
    def abort(*values: Any) -> Any:
        agent.abort()
        return values[0]

    model = ScriptedModel(["never"])
    agent = Agent("test:m", stream_fn=model, **{hook: abort})  # type: ignore[arg-type]
    assert (await agent.run("go")).stop_reason == "aborted"
    assert not model.calls


@pytest.mark.parametrize("kind", [AgentStart, MessageStart])
async def test_an_abort_at_the_very_first_event_counts(kind: type):
    agent, seen = make(["never"])
    agent.subscribe(lambda event: agent.abort() if isinstance(event, kind) else None)
    assert (await agent.run("go")).stop_reason == "aborted"
    assert [message.text for message in agent.messages] == ["go"]
    seen.check()


async def test_a_deadline_of_nothing_opens_no_turn():
    agent, seen = make(["never"])
    assert (await agent.run("go", deadline=0)).stop_reason == "aborted"
    assert "TurnStart" not in seen.names


async def test_a_stale_run_writes_nothing_into_a_newer_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("swink.engine.run.ABANDON_AFTER", 0.03)
    asked = 0

    async def stubborn(model: Any, context: Any, options: Any) -> Any:
        nonlocal asked
        asked += 1
        yield Start()
        yield TextStart(0)
        if asked > 1:
            yield TextDelta(0, "new")
        else:
            yield TextDelta(0, "old")
            try:
                await asyncio.sleep(10)
            except asyncio.CancelledError:
                await asyncio.sleep(0.08)
            yield TextDelta(0, "stale")
        yield TextEnd(0)
        yield Done()

    agent = Agent("test:m", stream_fn=stubborn)
    seen = EventCollector()
    agent.subscribe(seen)
    await agent.run("one", deadline=0.02)
    await agent.run("two")
    await asyncio.sleep(0.1)
    assert [message.text for message in agent.messages] == ["one", "old", "two", "new"]
    seen.check()


async def test_messages_appended_during_a_run_come_after_the_results():
    @tool
    async def notes() -> str:
        agent.append_messages("n1")
        agent.append_messages("n2")
        return "real"

    agent, seen = make([[ToolCall("1", "notes")], "ok"], tools=[notes])
    await agent.run("go")
    assert [message.text for message in agent.messages] == ["go", "", "real", "n1", "n2", "ok"]
    seen.check()


async def test_messages_replaced_at_the_end_of_a_run_are_replaced():
    agent, _ = make(["ok"])
    agent.subscribe(lambda event: agent.clear_messages() if isinstance(event, AgentEnd) else None)
    await agent.run("go")
    assert list(agent.messages) == []


@pytest.mark.parametrize("value", ["\ud800", []])
async def test_state_that_no_file_takes_ends_nothing(value: Any, caplog: pytest.LogCaptureFixture):
    if value == []:
        value.append(value)

    @tool
    async def spoil(ctx: ToolContext) -> str:
        ctx.state["k"] = value
        return "ok"

    agent, seen = make([[ToolCall("1", "spoil")], "end"], tools=[spoil])
    assert (await agent.run("go")).text == "end"
    seen.check()
    assert agent.checkpoint()["state"] == {}


async def test_a_tool_named_like_the_output_tool_is_refused():
    @tool(name="final_output")
    async def mine() -> str:
        return "x"

    agent, _ = make(["x"], tools=[mine])
    with pytest.raises(MisuseError, match="rename"):
        await agent.run("go", output=int)
    assert not agent.is_running


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


@pytest.mark.parametrize("partition", [lambda calls: None, lambda calls: [["a"], [1]], lambda calls: 3])
async def test_a_partition_of_garbage_runs_nothing(partition: Any):
    agent, seen = make(
        [[ToolCall("1", "echo", {"text": "x"}), ToolCall("2", "echo", {"text": "y"})], "ok"],
        tools=[echo],
        tool_execution=partition,
    )
    assert (await agent.run("go")).text == "ok"
    assert not seen.of(ToolExecutionStart)


async def test_a_policy_cannot_change_a_call_in_place():
    class Sly(Policy):
        def pre_dispatch(self, ctx: Any, call: ToolCall) -> None:
            call.arguments["text"] = "changed"

    agent, _ = make([[ToolCall("1", "echo", {"text": "x"})], "ok"], tools=[echo], policies=[Sly()])
    await agent.run("go")
    assert agent.messages[2].text == "x"


async def test_pre_dispatch_may_inject():
    class Remark(Policy):
        def pre_dispatch(self, ctx: Any, call: ToolCall) -> Any:
            return Inject("be careful")

    agent, seen = make([[ToolCall("1", "echo", {"text": "x"})], "ok"], tools=[echo], policies=[Remark()])
    await agent.run("go")
    assert [message.text for message in agent.messages] == ["go", "", "x", "be careful", "ok"]
    assert history_problems(agent.messages) == []


async def test_a_second_reader_of_a_stream_is_refused():
    agent, _ = make([["a", Pause(0.05), "b"]])
    async with agent.stream("go") as run:

        async def read() -> None:
            async for _ in run:
                pass

        first = asyncio.create_task(read())
        await asyncio.sleep(0.02)
        with pytest.raises(MisuseError, match="two readers"):
            await run.__anext__()
        await first


async def test_a_detached_stream_gathers_nothing():
    agent, _ = make([["a", Pause(0.02), "b"]])
    stream = agent.stream("go")
    async for event in stream:
        if isinstance(event, MessageUpdate):
            stream.detach()
    await agent.wait_for_idle()
    assert not stream._events
    assert agent.messages[-1].text == "ab"


def test_an_agent_whose_event_loop_died_is_free_again():
    agent, seen = make([["par", Pause(5)], "ok"])
    loop = asyncio.new_event_loop()
    task = loop.create_task(agent.run("one"))
    loop.run_until_complete(asyncio.sleep(0.02))
    for left in asyncio.all_tasks(loop):
        left._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.close()
    agent.abort()
    assert agent.run_sync("two").text == "ok"
    assert [message.text for message in agent.messages] == ["one", "par", "two", "ok"]
    del task
    gc.collect()


async def test_wrappers_take_streams_that_cannot_be_closed(tmp_path: Any):
    class Plain:
        def __init__(self) -> None:
            self.events = iter([Start(), Done()])

        def __aiter__(self) -> "Plain":
            return self

        async def __anext__(self) -> Any:
            try:
                return next(self.events)
            except StopIteration:
                raise StopAsyncIteration from None

    for wrap in (recorded, cached):
        agent = Agent("test:m", stream_fn=wrap(lambda *call: Plain(), tmp_path / wrap.__name__))
        assert (await agent.run("go")).stop_reason == "stop"


async def test_a_cache_holds_no_secrets(tmp_path: Any):
    path = tmp_path / "cache.jsonl"
    await Agent("test:m", stream_fn=cached(ScriptedModel(["sk-proj-abcdefghijklmnop123456"]), path)).run("go")
    assert "abcdefghijklmnop" not in path.read_text()


async def test_accumulate_gives_the_whole_reply():
    agent, _ = make([])
    message = await accumulate(ScriptedModel([["a", "b"]])(agent.model, None, None), agent.model)  # type: ignore[arg-type]
    assert (message.text, message.stop_reason) == ("ab", "stop")


async def test_usage_that_arrived_before_an_abort_is_kept():
    async def lingering(model: Any, context: Any, options: Any) -> Any:
        yield Start()
        yield Done(usage=Usage(10, 5), cost=Cost(1.0))
        await asyncio.sleep(10)

    agent = Agent("test:m", stream_fn=lingering)
    assert (await agent.run("go", deadline=0.05)).usage.total == 15


async def test_a_replacement_in_pre_commit_keeps_its_message_type():
    class Wrong(Policy):
        def pre_commit(self, message: Any) -> Any:
            return Replace(UserMessage("x")) if message.role == "assistant" else None

    agent, seen = make(["ok"], policies=[Wrong()])
    await agent.run("go")
    assert agent.messages[-1].role == "assistant"
    seen.check()


def test_every_error_of_ours_is_an_agent_error():
    assert issubclass(MisuseError, AgentError)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_program_in_a_hook_ends_it_quietly_and_leaves_the_agent_idle(
    kind: type[BaseException], caplog: pytest.LogCaptureFixture
):
    def hook(messages: Any, overflow: bool) -> Any:
        raise kind

    agent = Agent("test:m", stream_fn=ScriptedModel(["never"]), transform_context=hook)
    with pytest.raises(kind):
        agent.run_sync("hi")
    gc.collect()
    assert not agent.is_running
    assert agent.error is not None
    assert agent.error.startswith(kind.__name__)
    assert [record.message for record in caplog.records if record.name == "asyncio"] == []


@pytest.mark.parametrize("detached", [False, True])
async def test_a_run_whose_task_is_cancelled_before_its_first_step_is_over_like_any_other(detached: bool):
    agent, seen = make(["never", "later"])
    stream = agent.stream("hi")
    await stream.__aenter__()
    if detached:
        stream.detach()
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    async with asyncio.timeout(5):
        if not detached:
            assert [event async for event in stream][-1].stop_reason == "aborted"
        await agent.wait_for_idle()
    assert isinstance(seen.events[-1], AgentEnd)
    assert history_problems(agent.messages) == []
    assert (await agent.run("again")).stop_reason == "stop"


async def test_a_message_added_while_another_is_announced_enters_once():
    agent, _ = make([[ToolCall("1", "echo", {"text": "x"})], "done"], tools=[echo])
    added: list[str] = []

    def listen(event: Any) -> None:
        if isinstance(event, ToolExecutionStart):
            agent.append_messages("first")
        elif (
            isinstance(event, MessageStart)
            and event.role == "user"
            and agent.is_running
            and len(agent.messages) > 2
            and not added
        ):
            added.append("second")
            agent.append_messages("second")

    agent.subscribe(listen)
    await agent.run("go")
    texts = [message.text for message in agent.messages if isinstance(message, UserMessage)]
    assert texts == ["go", "first", "second"]


async def test_calls_that_a_policy_gives_one_id_get_a_result_each():
    class Twins(Policy):
        def pre_commit(self, message: Any) -> Any:
            if not getattr(message, "tool_calls", ()):
                return None
            return Replace(
                replace(
                    message,
                    content=(ToolCall("1", "echo", {"text": "a"}), ToolCall("1", "echo", {"text": "b"})),
                )
            )

    agent, _ = make([[ToolCall("1", "echo", {"text": "x"})], "done"], tools=[echo], policies=[Twins()])
    result = await agent.run("go")
    assert [message.text for message in result.messages if message.role == "tool_result"] == ["a", "b"]
    assert history_problems(agent.messages) == []


@pytest.mark.parametrize(
    ("error", "says"),
    [(Unspeakable(), "it cannot say"), (ValueError("key sk-abcdefgh12345678 refused"), "[redacted]")],
)
async def test_a_hook_that_fails_is_told_without_secrets_even_if_it_cannot_say(error: Exception, says: str):
    def hook(messages: Any, overflow: bool) -> Any:
        raise error

    agent, seen = make(["never"], transform_context=hook)
    with pytest.raises(type(error)):
        await agent.run("hi")
    assert not agent.is_running
    assert agent.error is not None
    assert says in agent.error
    assert "sk-abc" not in agent.error
    assert isinstance(seen.events[-1], AgentEnd)


async def test_details_that_are_no_json_do_not_cost_a_checkpoint():
    @tool
    async def odd(text: str) -> ToolResult:
        """Look."""
        return ToolResult("fine", details={(1, 2): object()})

    agent, _ = make([[ToolCall("1", "odd", {"text": "x"})], "done"], tools=[odd])
    await agent.run("go")
    restored = Agent.restore(
        json.loads(json.dumps(agent.checkpoint())), stream_fn=ScriptedModel(["later"]), tools=[odd]
    )
    assert [message.text for message in restored.messages] == [message.text for message in agent.messages]
    kept = [message.details for message in restored.messages if isinstance(message, ToolResultMessage)]
    assert kept == ["<dict>"]
    assert decode_messages(encode_messages(agent.messages)) == list(restored.messages)


class Late(Policy):
    def __init__(self, slot: str, messages: Any) -> None:
        self.slot, self.messages, self.asked = slot, messages, 0

    def say(self, slot: str) -> Any:
        if slot != self.slot or self.asked:
            return None
        self.asked += 1
        return Inject(self.messages)

    def pre_turn(self, ctx: Any) -> Any:
        return self.say("pre_turn")

    def pre_dispatch(self, ctx: Any, call: Any) -> Any:
        return self.say("pre_dispatch")

    def post_turn(self, ctx: Any, turn: Any) -> Any:
        return self.say("post_turn")

    def post_loop(self, ctx: Any) -> Any:
        return self.say("post_loop")


@pytest.mark.parametrize("slot", ["pre_turn", "pre_dispatch", "post_turn", "post_loop"])
@pytest.mark.parametrize(
    "broken",
    [AssistantMessage((ToolCall("9", "echo", {"text": "?"}),)), ToolResultMessage("8", "echo", "stray")],
)
async def test_what_a_policy_injects_cannot_break_the_history(slot: str, broken: Any):
    agent, _ = make(
        [[ToolCall("1", "echo", {"text": "x"})], "done", "and done"],
        tools=[echo],
        policies=[Late(slot, [broken, UserMessage("so")])],
    )
    assert (await agent.run("go")).stop_reason == "stop"
    assert history_problems(agent.messages) == []


@pytest.mark.parametrize("running", [False, True])
async def test_what_is_appended_cannot_break_the_history(running: bool):
    agent, _ = make([[ToolCall("1", "echo", {"text": "x"})], "done"], tools=[echo])
    refused: list[BaseException] = []

    def add() -> None:
        agent.append_messages([AssistantMessage((ToolCall("9", "echo", {"text": "?"}),)), UserMessage("so")])
        try:
            agent.append_messages([ToolResultMessage("8", "echo", "stray")])
        except BrokenHistory as error:
            refused.append(error)

    if running:
        agent.subscribe(lambda event: add() if isinstance(event, ToolExecutionStart) else None)
    else:
        add()
    await agent.run("go")
    assert len(refused) == 1
    assert history_problems(agent.messages) == []
    assert "so" in [message.text for message in agent.messages]


async def test_what_a_poll_gives_cannot_break_the_history():
    given = [[AssistantMessage((ToolCall("9", "echo", {"text": "?"}),)), UserMessage("so")]]
    config = AgentLoopConfig(
        model=ModelSpec("test", "m"),
        stream_fn=ScriptedModel(["one", "two"]),
        get_follow_up=lambda: given.pop() if given else [],
    )
    async with agent_loop("go", AgentContext(), config) as run:
        result = await run.result()
    assert history_problems(result.messages) == []
    assert result.text == "two"


ANNOUNCED = [
    AgentStart,
    MessageStart,
    MessageUpdate,
    MessageEnd,
    ToolExecutionStart,
    ToolExecutionEnd,
    TurnStart,
    TurnEnd,
    AgentEnd,
]


@pytest.mark.parametrize("kind", ANNOUNCED)
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("calls", [1, 3])
def test_a_subscriber_that_ends_the_program_leaves_a_sound_history_and_an_idle_agent(
    kind: type, error: type[BaseException], calls: int
):
    script = [
        ["first", *(ToolCall(str(number), "echo", {"text": "x"}) for number in range(calls))],
        "done",
        "again",
    ]
    agent = Agent("test:m", stream_fn=ScriptedModel(script), tools=[echo])
    seen: list[Any] = []

    def listen(event: Any) -> None:
        seen.append(event)
        if isinstance(event, kind):
            raise error

    agent.subscribe(listen)
    with pytest.raises(error):
        agent.run_sync("go")
    assert isinstance(seen[-1], kind), "it is not called again"
    assert not agent.is_running
    assert history_problems(agent.messages) == []
    assert agent.run_sync("more").stop_reason == "stop"


class Kept:
    """A session in memory."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.state: dict[str, Any] = {}

    async def append(self, messages: Any) -> None:
        await asyncio.sleep(0)
        self.messages.extend(messages)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("hook", ["transform_context", "get_api_key", "convert_to_llm"])
def test_what_ends_the_program_lets_the_session_be_saved_first(hook: str, error: type[BaseException]):
    def end(*values: Any) -> Any:
        raise error

    session = Kept()
    agent = Agent("test:m", stream_fn=ScriptedModel(["never"]), session=session, **{hook: end})
    with pytest.raises(error):
        agent.run_sync("hi")
    assert not agent.is_running
    assert session.messages == list(agent.messages)


@pytest.mark.parametrize("ticks", range(14))
def test_a_detached_run_that_ends_as_its_loop_ends_is_saved_and_frees_the_agent(ticks: int):
    session = Kept()
    agent = Agent("test:m", stream_fn=ScriptedModel(["one", "two", "three"]), session=session)

    async def leave() -> None:
        agent.stream("hi").detach()
        for _ in range(ticks):
            await asyncio.sleep(0)

    asyncio.run(leave())
    assert agent.run_sync("more").stop_reason == "stop"
    assert session.messages == list(agent.messages)
    assert history_problems(agent.messages) == []


@pytest.mark.parametrize(
    "mode", ["sequential", "priority", lambda calls: [[number] for number in range(len(calls))]]
)
async def test_steering_spares_the_calls_of_later_groups(mode: Any):
    ran: list[int] = []

    @tool
    async def work(number: int) -> str:
        """Work."""
        ran.append(number)
        agent.steer("stop it")
        return "ok"

    calls = [ToolCall(str(number), "work", {"number": number}) for number in range(3)]
    tools = (
        [replace(work, name=f"work{number}", priority=-number) for number in range(3)]
        if mode == "priority"
        else [work]
    )
    if mode == "priority":
        calls = [replace(call, name=f"work{number}") for number, call in enumerate(calls)]
    agent, _ = make([calls, "heard"], tools=tools, tool_execution=mode)
    assert (await agent.run("go")).text == "heard"
    assert ran == [0]
    assert [message.text for message in agent.messages if message.role == "user"] == ["go", "stop it"]
    assert history_problems(agent.messages) == []


async def test_what_a_slow_steering_provider_gives_is_delivered():
    asked = 0

    async def slowly() -> Any:
        nonlocal asked
        asked += 1
        if asked != 2:
            return []
        await asyncio.sleep(0.05)
        return [UserMessage("late")]

    model = ScriptedModel(
        [[ToolCall("1", "echo", {"text": "a"}), ToolCall("2", "echo", {"text": "b"})], "heard"]
    )
    config = AgentLoopConfig(model=ModelSpec("test", "m"), stream_fn=model, get_steering=slowly)
    async with agent_loop("go", AgentContext(tools=[echo]), config) as run:
        result = await run.result()
    assert [message.text for message in result.messages if message.role == "user"] == ["go", "late"]


def test_what_arrives_while_a_queue_is_emptied_stays_in_it():
    class Busy(MessageQueue):
        def __iter__(self) -> Any:
            yield from super().__iter__()
            self.append(UserMessage("meanwhile"))

    queue = Busy("all")
    queue.append(UserMessage("before"))
    assert [message.text for message in queue()] == ["before"]
    assert [message.text for message in list.__iter__(queue)] == ["meanwhile"]


async def test_a_tool_given_another_shape_is_held_to_it():
    @tool
    async def small(number: int) -> int:
        """Small numbers."""
        return number

    strict = replace(
        small, shape=Shape({"type": "object", "properties": {"number": {"type": "integer", "maximum": 9}}})
    )
    with pytest.raises(InvalidArguments, match="9"):
        await strict.execute("1", {"number": 10}, ToolContext("1", "small"))


async def test_a_second_reader_that_comes_just_as_the_first_wakes_is_told_so_or_reads():
    spoke = asyncio.Event()

    async def talk(*call: Any) -> Any:
        yield Start()
        yield TextStart(0)
        await asyncio.sleep(0.01)
        spoke.set()
        yield TextDelta(0, "x")
        await asyncio.sleep(0.01)
        yield TextEnd(0)
        yield Done()

    stream = Agent("test:m", stream_fn=talk).stream("hi")

    async def read(first: bool) -> int:
        if not first:
            await spoke.wait()
        return len([event async for event in stream])

    async with asyncio.timeout(5):
        ended = await asyncio.gather(read(True), read(False), return_exceptions=True)
    assert any(isinstance(outcome, MisuseError) for outcome in ended)


def test_a_stream_dropped_after_its_loop_was_closed_ends_its_run_without_a_word(
    recwarn: pytest.WarningsRecorder,
):
    agent = Agent("test:m", stream_fn=ScriptedModel([["x", Pause(5)], "later"]))
    loop = asyncio.new_event_loop()

    async def leave() -> Any:
        stream = agent.stream("hi")
        await stream.__aenter__()
        await asyncio.sleep(0)
        for task in asyncio.all_tasks():
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        return stream

    stream = loop.run_until_complete(leave())
    loop.close()
    del stream
    gc.collect()
    assert not agent.is_running
    assert agent.run_sync("more").text == "later"
    assert [warning for warning in recwarn if "ignored" in str(warning.message)] == []


@pytest.mark.parametrize("error", [asyncio.CancelledError, GeneratorExit, SystemExit])
@pytest.mark.parametrize("role", ["user", "assistant", "tool_result"])
def test_a_pre_commit_policy_that_raises_anything_breaks_neither_events_nor_history(
    role: str, error: type[BaseException]
):
    class Raises(Policy):
        def pre_commit(self, message: Any) -> Any:
            if message.role == role:
                raise error

    agent, seen = make([[ToolCall("1", "echo", {"text": "x"})], "done"], tools=[echo], policies=[Raises()])
    try:
        agent.run_sync("go")
    except SystemExit:
        assert error is SystemExit
    assert not agent.is_running
    assert history_problems(agent.messages) == []
    assert nesting_problems(seen.events) == []


if hasattr(asyncio, "eager_task_factory"):  # Python 3.12 and later

    async def test_tasks_that_begin_at_once_change_nothing():
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        ran: list[str] = []

        @tool
        async def work(text: str) -> str:
            """Work."""
            ran.append(text)
            if text == "steer":
                agent.steer("stop it")
            return text

        calls = [
            [ToolCall(f"{first}{number}", "work", {"text": first}) for number in range(3)]
            for first in ("go", "steer")
        ]
        agent, seen = make([calls[0], calls[1], "heard"], tools=[work])
        assert (await agent.run("hi")).text == "heard"
        assert ran == ["go", "go", "go", "steer"]
        assert history_problems(agent.messages) == []
        assert nesting_problems(seen.events) == []


TENANT: ContextVar[str] = ContextVar("tenant")


async def test_what_a_timer_ends_still_sees_the_callers_context():
    @tool(timeout=0.05)
    async def stubborn(text: str) -> str:
        """Ignore everything."""
        while not over:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)
        return text

    over: list[bool] = []
    seen: list[tuple[type, str | None]] = []
    TENANT.set("acme")
    agent, _ = make([[ToolCall("1", "stubborn", {"text": "x"})], "done"], tools=[stubborn])
    agent.subscribe(lambda event: seen.append((type(event), TENANT.get(None))))
    await agent.run("go")
    over.append(True)
    await asyncio.sleep(0.05)
    assert (ToolExecutionEnd, "acme") in seen
    assert {tenant for _, tenant in seen} == {"acme"}


async def test_an_abort_does_not_wait_for_a_steering_provider_nor_leave_it_behind():
    asked = asyncio.Event()

    async def provider() -> Any:
        if not working:
            return []
        asked.set()
        await asyncio.Event().wait()
        return []

    working: list[bool] = []

    @tool
    async def work(text: str) -> str:
        """Work."""
        working.append(True)
        if text == "slow":
            await asyncio.Event().wait()
        return text

    model = ScriptedModel(
        [[ToolCall("1", "work", {"text": "fast"}), ToolCall("2", "work", {"text": "slow"})]]
    )
    config = AgentLoopConfig(model=ModelSpec("test", "m"), stream_fn=model, get_steering=provider)
    stream = agent_loop("go", AgentContext(tools=as_tools([work])), config)
    reader = asyncio.create_task(stream.result())
    await asked.wait()
    began = asyncio.get_running_loop().time()
    reader.cancel()
    await asyncio.wait([reader])
    assert asyncio.get_running_loop().time() - began < 0.5
    await asyncio.sleep(0.01)
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_a_second_exit_does_not_break_the_end_that_the_first_began():
    class Leaves(Policy):
        def pre_commit(self, message: Any) -> Any:
            if message.role == "tool_result":
                raise SystemExit(3)

    session = Kept()
    calls = [ToolCall(str(number), "echo", {"text": "x"}) for number in range(2)]
    agent = Agent(
        "test:m",
        stream_fn=ScriptedModel([calls, "never"]),
        tools=[echo],
        policies=[Leaves()],
        session=session,
    )
    with pytest.raises(SystemExit) as ended:
        agent.run_sync("go")
    assert ended.value.code == 3
    assert not agent.is_running
    assert session.messages == list(agent.messages)
    assert history_problems(agent.messages) == []


async def test_a_run_that_was_left_behind_asks_the_model_no_more(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("swink.engine.run.ABANDON_AFTER", 0.03)
    asked, over = [0], asyncio.Event()

    async def deaf(*call: Any) -> Any:
        asked[0] += 1
        yield Start()
        while not over.is_set():
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)
        raise NetworkError("back again")

    agent = Agent("test:m", stream_fn=deaf, retry=ExponentialBackoff(base_delay=0.0))
    result = await agent.run("hi", deadline=0.02)
    over.set()
    await asyncio.sleep(0.05)
    assert result.stop_reason == "aborted"
    assert asked == [1]


@pytest.mark.parametrize("waits", [0, 0.02])
def test_a_detached_run_is_saved_by_a_slow_session_before_its_loop_ends(waits: float):
    class Slow(Kept):
        async def append(self, messages: Any) -> None:
            await asyncio.sleep(waits)
            self.messages.extend(messages)

    session = Slow()
    agent = Agent("test:m", stream_fn=ScriptedModel([["x", Pause(5)], "later"]), session=session)

    async def leave() -> None:
        agent.stream("hi").detach()
        await asyncio.sleep(0.01)

    asyncio.run(leave())
    assert session.messages == list(agent.messages)
    assert [message.role for message in session.messages] == ["user", "assistant"]


async def test_a_session_whose_append_cancels_itself_is_given_up():
    class Cancels(Kept):
        async def append(self, messages: Any) -> None:
            raise asyncio.CancelledError

    agent = Agent("test:m", stream_fn=ScriptedModel([AuthError("no")]), session=Cancels())
    async with asyncio.timeout(5):
        with pytest.raises(TimeoutError, match="did not save"):
            await agent.run("hi")
    assert not agent.is_running


async def test_messages_given_while_the_last_save_goes_on_are_kept():
    class Slow(Kept):
        async def append(self, messages: Any) -> None:
            await asyncio.sleep(0.03)

    agent = Agent("test:m", stream_fn=ScriptedModel([AuthError("no")]), session=Slow())
    agent.subscribe(
        lambda event: (
            asyncio.get_running_loop().call_soon(agent.append_messages, "note")
            if isinstance(event, AgentEnd)
            else None
        )
    )
    await agent.run("hi")
    assert agent.messages[-1].text == "note"


@pytest.mark.parametrize("given", ["hello", ["hello"], [{"role": "user"}]])
async def test_a_poll_that_gives_no_messages_is_understood_or_refused(given: Any):
    polls = [given]
    config = AgentLoopConfig(
        model=ModelSpec("test", "m"),
        stream_fn=ScriptedModel(["one", "two"]),
        get_follow_up=lambda: polls.pop() if polls else [],
    )
    stream = agent_loop("go", AgentContext(), config)
    async with asyncio.timeout(5):
        if isinstance(given, list) and isinstance(given[0], dict):
            with pytest.raises(TypeError, match="not dict"):
                await stream.result()
        else:
            assert (await stream.result()).text == "two"


async def test_state_that_fails_to_say_what_it_is_does_not_hold_up_the_run():
    class Odd:
        def model_dump(self, mode: str) -> Any:
            raise KeyError("odd")

    @tool
    async def keep(text: str, ctx: ToolContext) -> str:
        """Keep."""
        ctx.state["odd"] = Odd()
        return text

    agent, _ = make([[ToolCall("1", "keep", {"text": "x"})], "done"], tools=[keep])
    async with asyncio.timeout(5):
        assert (await agent.run("go")).text == "done"


@pytest.mark.parametrize("then", ["run", "abort", "reset", "wait"])
def test_a_loop_closed_under_running_tools_and_a_reader_frees_the_agent(then: str):
    @tool
    async def hang(text: str) -> str:
        """Hang."""
        await asyncio.Event().wait()
        return text

    calls = [ToolCall(str(number), "hang", {"text": "x"}) for number in range(2)]
    agent, seen = make([calls, "later", "later"], tools=[hang])
    loop = asyncio.new_event_loop()

    async def read() -> None:
        async for _ in agent.stream("hi"):
            pass

    async def leave() -> None:
        asyncio.create_task(read())  # noqa: RUF006
        await asyncio.sleep(0.02)
        for task in asyncio.all_tasks():
            task._log_destroy_pending = False  # type: ignore[attr-defined]

    loop.run_until_complete(leave())
    loop.close()
    match then:
        case "abort":
            agent.abort()
        case "reset":
            agent.reset()
        case "wait":
            asyncio.run(asyncio.wait_for(agent.wait_for_idle(), 5))
        case _:
            assert agent.run_sync("more").text == "later"
    assert not agent.is_running
    assert history_problems(agent.messages) == []
    assert nesting_problems(seen.events) == []
