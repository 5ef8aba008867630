"""Interruption-proof history: scripted conversations, interrupted at every event and at every turn of the event loop.

Each conversation is run undisturbed once, then again and again with an interruption one step later each time: by abort,
by cancelling the caller, by closing the stream, by a hook that raises. After each the history pairs, the events nest,
every queued message is in exactly one place, the agent is idle, a new prompt works, and no task is left.
"""

import asyncio
import gc
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from tests.counts import MORE, in_cells

from swink import (
    Agent,
    AgentError,
    Approved,
    ContextWindowOverflow,
    ExponentialBackoff,
    Inject,
    NetworkError,
    Policy,
    Rewrite,
    Skip,
    Stop,
    Thinking,
    ToolCall,
    ToolContext,
    ToolError,
    UserMessage,
    defer,
    tool,
)
from swink.agent.config import AgentContext, AgentLoopConfig
from swink.agent.functions import agent_loop
from swink.errors import MisuseError
from swink.messages import AssistantMessage, ModelSpec, Text, ToolResult
from swink.messages.records import CallEnded, CallStarted, Conversation, StateChange, TurnOpened, saved
from swink.system.aio import resolve
from swink.testing import EventCollector, ScriptedModel, history_problems


@pytest.fixture(autouse=True)
def _save_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is saved when it takes long is saved in the background of every run here."""
    monkeypatch.setattr("swink.agent.session.saver.LATER", 0.0)


class HookFailure(Exception):
    pass


class Fuse:
    """Burns in every hook; blows at the chosen one."""

    def __init__(self) -> None:
        self.left: int | None = None

    def __call__(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise HookFailure("blown")


class Scene:
    """One conversation: an agent, its prompt, and what was queued on it."""

    def __init__(self, script: list[Any], fuse: Fuse, **options: Any) -> None:
        self.model = ScriptedModel(script)
        self.queued: list[str] = []
        self.fuse = fuse
        self.recovering = False
        self.session: Kept | Recorded | None = None
        self.prompt: str | None = "prompt"
        self.agent = Agent(
            "test:a",
            stream_fn=self._stream,
            retry=ExponentialBackoff(3, 0.0001, 0.0002),
            get_api_key=self._key,
            **options,
        )
        self.collector = EventCollector()
        self.agent.subscribe(self.collector)
        self.misplaced: list[str] = []
        self.agent.subscribe(self.look)
        self.asked: dict[str, Any] = {}

    def stream(self) -> Any:
        """The run as a stream, with what this scene asks of it."""
        return self.agent.stream(self.prompt, **self.asked)

    def look(self, event: Any) -> None:
        """At every event, each queued message is in exactly one of queue, in flight, history."""
        run = self.agent._running.active
        places = [
            *self.agent._queues.steering,
            *self.agent._queues.follow_up,
            *(run.ledger.inbox.pending if run else ()),
            *self.agent.messages,
        ]
        texts = [message.text for message in places if isinstance(message, UserMessage)]
        self.misplaced.extend(
            f"{text!r} is in {texts.count(text)} places at {event}"
            for text in self.queued
            if texts.count(text) != 1
        )

    def steer(self, text: str) -> None:
        self.agent.steer(text)
        self.queued.append(text)

    def follow_up(self, text: str) -> None:
        self.agent.follow_up(text)
        self.queued.append(text)

    def _stream(self, model: Any, context: Any, options: Any) -> Any:
        return (ScriptedModel(["recovered"]) if self.recovering else self.model)(model, context, options)

    async def _key(self, provider: str) -> str:
        self.fuse()
        await asyncio.sleep(0)
        return "key"


def parallel_tools(fuse: Fuse) -> Scene:
    @tool
    async def work(n: int, ctx: ToolContext) -> str:
        ctx.update(f"begun {n}")
        for _ in range(n):
            await asyncio.sleep(0)
        return f"done {n}"

    @tool(sequential=True)
    async def alone() -> str:
        await asyncio.sleep(0)
        raise ValueError("broken")

    calls = [
        ToolCall("a", "work", {"n": 1}),
        ToolCall("b", "work", {"n": 4}),
        ToolCall("c", "alone"),
        ToolCall("d", "nope"),
        ToolCall("e", "work", {"n": "x"}),
    ]
    return Scene(
        [["text ", Thinking("hm", "sig"), *calls], [ToolCall("f", "work", {}, '{"n": 1')], "all done"],
        fuse,
        tools=[work, alone],
    )


def found_tools(fuse: Fuse) -> Scene:
    @tool(deferred=True)
    async def work(n: int) -> str:
        """Work for some time."""
        for _ in range(n):
            await asyncio.sleep(0)
        return f"done {n}"

    calls = [
        ToolCall("a", "find_tools", {"query": "work"}),
        ToolCall("b", "call_tool", {"name": "work", "arguments": {"n": 3}}),
        ToolCall("c", "call_tool", {"name": "nope"}),
        ToolCall("d", "call_tool", {"name": "call_tool"}),
    ]
    return Scene([calls, [ToolCall("e", "call_tool", {}, '{"name": "wo')], "all done"], fuse, tools=[work])


def retries_and_fallback(fuse: Fuse) -> Scene:
    dead = NetworkError("down")
    script = [["partial ", dead], dead, ["part", dead], "answer", [ToolCall("a", "noop")], "end"]

    @tool
    async def noop() -> None:
        return None

    scene = Scene(script, fuse, tools=[noop], fallback_models=["test:b"])
    scene.follow_up("and then")
    return scene


def overflow_recovery(fuse: Fuse) -> Scene:
    async def prune(messages: Any, overflow: bool) -> Any:
        fuse()
        await asyncio.sleep(0)
        return [messages[0], *messages[3:]] if overflow else messages

    def keep(message: Any) -> Any:
        fuse()
        return message

    old = [UserMessage("one " * 50), UserMessage("two " * 50), UserMessage("three " * 50)]
    script: list[Any] = [
        ["par", ContextWindowOverflow("too long")],
        "short",
        ContextWindowOverflow("too long"),
        ContextWindowOverflow("too long"),
    ]
    scene = Scene(script, fuse, messages=old, transform_context=prune, convert_to_llm=keep)
    scene.follow_up("more")
    return scene


def steering_and_follow_ups(fuse: Fuse) -> Scene:
    @tool
    async def quick() -> str:
        scene.steer("steered 1")
        scene.steer("steered 2")
        return "ok"

    @tool
    async def slow() -> str:
        await asyncio.sleep(10)
        return "never"

    script = [
        [ToolCall("a", "quick"), ToolCall("b", "slow"), ToolCall("c", "slow")],
        "heard",
        "heard both",
        "follow one",
        "follow two",
        "end",
    ]
    scene = Scene(script, fuse, tools=[quick, slow])
    scene.steer("before")
    scene.follow_up("later 1")
    scene.follow_up("later 2")
    return scene


def approvals(fuse: Fuse) -> Scene:
    @tool(requires_approval=True)
    async def danger(n: int) -> int:
        await asyncio.sleep(0)
        return n

    async def approve(request: Any) -> Any:
        fuse()
        await asyncio.sleep(0)
        return {"a": True, "b": False, "c": Approved({"n": 7})}[request.call_id]

    calls = [ToolCall(id, "danger", {"n": 1}) for id in "abc"]
    return Scene([calls, "end"], fuse, tools=[danger], approve=approve)


class Meddling(Policy):
    def __init__(self, fuse: Fuse) -> None:
        self.fuse = fuse

    async def pre_turn(self, ctx: Any) -> Any:
        self.fuse()
        await asyncio.sleep(0)
        return Inject("injected") if ctx.turn == 1 else None

    async def pre_dispatch(self, ctx: Any, call: Any) -> Any:
        await asyncio.sleep(0)
        return {"a": Skip("skipped"), "b": Rewrite({"n": 2})}.get(call.id)

    async def post_turn(self, ctx: Any, turn: Any) -> Any:
        await asyncio.sleep(0)
        return Stop("enough") if ctx.turn == 3 else None

    async def post_loop(self, ctx: Any) -> Any:
        await asyncio.sleep(0)
        return Inject("go on") if ctx.turn == 2 else None

    async def pre_retry(self, ctx: Any) -> Any:
        await asyncio.sleep(0)

    async def post_run(self, ctx: Any, ending: Any) -> Any:
        await asyncio.sleep(0)


def policies(fuse: Fuse) -> Scene:
    @tool
    async def work(n: int) -> int:
        await asyncio.sleep(0)
        return n

    script = [[ToolCall(id, "work", {"n": 1}) for id in "abc"], "text", "stop here", "unused"]
    return Scene(script, fuse, tools=[work], policies=[Meddling(fuse)])


def policy_stop_in_dispatch(fuse: Fuse) -> Scene:
    class Halt(Policy):
        async def pre_dispatch(self, ctx: Any, call: Any) -> Any:
            await asyncio.sleep(0)
            return Stop("no more") if call.id == "b" else None

    @tool
    async def work() -> None: ...

    scene = Scene(
        [[ToolCall("a", "work"), ToolCall("b", "work"), ToolCall("c", "work")], "unused"],
        fuse,
        tools=[work],
        policies=[Halt()],
    )
    scene.follow_up("never taken")
    return scene


def written_prompt(fuse: Fuse) -> Scene:
    async def write(context: Any) -> str:
        fuse()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return f"{len(context.messages)} messages"

    async def rewrite(context: Any) -> str:
        await asyncio.sleep(0)
        return "another"

    @tool
    async def switch() -> None:
        scene.agent.system_prompt = rewrite

    scene = Scene([[ToolCall("a", "switch")], "end", "more"], fuse, tools=[switch], system_prompt=write)
    scene.follow_up("later")
    return scene


def validated_output(fuse: Fuse) -> Scene:
    async def check(city: dict[str, int]) -> dict[str, int]:
        fuse()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if city["n"] < 3:
            raise ToolError("more")
        return {"n": city["n"] + 1}

    def give(id: str, n: int) -> ToolCall:
        return ToolCall(id, "final_output", {"n": n})

    scene = Scene([[give("a", 1)], "words", [give("b", 2)], [give("c", 3)], [give("d", 4)]], fuse)
    scene.asked = {"output": dict[str, int], "validate": check}
    return scene


def validated_in_a_thread(fuse: Fuse) -> Scene:
    def check(n: int) -> None:
        fuse()
        if n < 2:
            raise ToolError("more")

    def give(id: str, n: int) -> ToolCall:
        return ToolCall(id, "final_output", {"value": n})

    scene = Scene([[give("a", 1)], [give("b", 2)], [give("c", 3)]], fuse)
    scene.asked = {"output": int, "validate": check}
    return scene


class Kept:
    """A session that takes its time, and must end up with the whole history, once."""

    def __init__(self, fuse: Fuse) -> None:
        self.fuse = fuse
        self.messages: list[Any] = []
        self.state: dict[str, Any] = {}
        self.appended: list[Any] = []

    async def append(self, messages: Any) -> None:
        self.fuse()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self.appended.extend(messages)


def saved_to_a_session(fuse: Fuse) -> Scene:
    @tool
    async def work() -> str:
        await asyncio.sleep(0)
        return "done"

    session = Kept(fuse)
    scene = Scene([[ToolCall("a", "work")], "end", "more"], fuse, tools=[work], session=session)
    scene.session = session
    scene.follow_up("later")
    return scene


class Recorded:
    """A session that keeps records as well, and takes its time with each."""

    def __init__(self, fuse: Fuse) -> None:
        self.fuse = fuse
        self.conversation = Conversation()

    @property
    def messages(self) -> list[Any]:
        return list(self.conversation.messages)

    @property
    def appended(self) -> list[Any]:
        assert self.conversation.open is None, "what is complete is not open"
        return self.messages

    @property
    def state(self) -> dict[str, Any]:
        return self.conversation.state

    async def append(self, messages: Any, *, state: Any = None, records: Any = ()) -> None:
        self.fuse()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for message in messages:
            self.conversation.take(saved(message, len(self.conversation.everything)))
        for record in (*([] if state is None else [StateChange(state)]), *records):
            self.conversation.take(record)
        assert history_problems(self.messages) == []
        places = [*self.messages, *self.conversation.steering, *self.conversation.follow_up]
        texts = [message.text for message in places if isinstance(message, UserMessage)]
        assert len(texts) == len(set(texts)), f"in two places: {texts}"


def journaled(fuse: Fuse) -> Scene:
    @tool
    async def work(n: int, ctx: ToolContext) -> str:
        for _ in range(n):
            await asyncio.sleep(0)
        ctx.state[str(n)] = n
        if n == 1:
            scene.follow_up("later 2")
        return f"done {n}"

    @tool(sequential=True)
    async def alone() -> str:
        await asyncio.sleep(0)
        return "alone"

    calls = [ToolCall("a", "work", {"n": 1}), ToolCall("b", "work", {"n": 3}), ToolCall("c", "alone")]
    session = Recorded(fuse)
    scene = Scene([calls, "end", "more", "most"], fuse, tools=[work, alone], session=session)
    scene.session = session
    scene.follow_up("later 1")
    return scene


def deferred(fuse: Fuse) -> Scene:
    @tool(requires_approval=lambda arguments: arguments["n"] == 2)
    async def work(n: int) -> str:
        await asyncio.sleep(0)
        return f"done {n}"

    session = Recorded(fuse)
    calls = [ToolCall("a", "work", {"n": 1}), ToolCall("b", "work", {"n": 2})]
    scene = Scene(["one", calls, "unused"], fuse, tools=[work], session=session, approve=defer)
    scene.session = session
    scene.follow_up("later")
    return scene


def taken_up(fuse: Fuse) -> Scene:
    @tool(idempotent=True)
    async def work(n: int) -> str:
        await asyncio.sleep(0)
        return f"done {n}"

    session = Recorded(fuse)
    calls = [ToolCall(id, "work", {"n": 1}) for id in "abc"]
    reply = AssistantMessage((Text("working"), *calls), "test", "a", stop_reason="tool_use")
    done = CallEnded("a", ToolResult("was done"))
    records = [saved(UserMessage("do it"), 0), TurnOpened(reply), CallStarted("a"), done, CallStarted("b")]
    for record in records:
        session.conversation.take(record)
    scene = Scene(["end", "more"], fuse, tools=[work], session=session)
    scene.session = session
    scene.prompt = None
    scene.follow_up("later")
    return scene


SCENES = [
    parallel_tools,
    found_tools,
    retries_and_fallback,
    overflow_recovery,
    steering_and_follow_ups,
    approvals,
    policies,
    policy_stop_in_dispatch,
    written_prompt,
    validated_output,
    validated_in_a_thread,
    saved_to_a_session,
]
SAVED = [journaled, deferred, taken_up]
"""Scenes of sessions; what differs between the ways to read a run does not concern them."""


async def run_plainly(scene: Scene) -> None:
    await scene.agent.run(scene.prompt, **scene.asked)


async def run_streamed(scene: Scene) -> None:
    async with scene.stream() as run:
        async for _ in run:
            pass


async def run_read(scene: Scene) -> None:
    """The run by its text, or by its output as it grows, which raises if there is none."""
    async with scene.stream() as run:
        with suppress(AgentError):
            async for _ in run.output() if scene.asked else run.text():
                pass


def interrupt_by_abort(scene: Scene, caller: "asyncio.Task[None]") -> None:
    scene.agent.abort()


def interrupt_by_cancel(scene: Scene, caller: "asyncio.Task[None]") -> None:
    caller.cancel()


async def check_after(scene: Scene) -> None:
    """All that must hold after any interruption."""
    agent = scene.agent
    await asyncio.wait_for(agent.wait_for_idle(), 20)
    assert not agent.is_running
    assert history_problems(agent.messages) == []
    scene.collector.check()
    assert scene.misplaced == []
    history = [message.text for message in agent.messages if isinstance(message, UserMessage)]
    waiting = [message.text for message in (*agent._queues.steering, *agent._queues.follow_up)]
    for text in scene.queued:
        assert history.count(text) + waiting.count(text) == 1, f"{text!r} is not in exactly one place"
    for kind in ("steered", "later"):
        places = [text for text in history + waiting if text.startswith(kind)]
        assert places == sorted(places)
    scene.recovering = True
    scene.fuse.left = None
    agent._config.approve = None
    agent._config.policies = ()
    result = await agent.run("again")
    assert result.stop_reason == "stop"
    assert result.text == "recovered"
    assert history_problems(agent.messages) == []
    scene.collector.check()
    if scene.session is not None:
        assert scene.session.appended == list(agent.messages), "everything is saved, once and in order"
    await asyncio.sleep(0)
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert not left, left


async def finish(caller: "asyncio.Task[None]") -> BaseException | None:
    try:
        await asyncio.wait_for(asyncio.shield(caller), 20)
    except (asyncio.CancelledError, HookFailure) as error:
        return error
    return None


DRIVEN = [
    *[(make, drive) for make in SCENES for drive in (run_plainly, run_streamed, run_read)],
    *[(make, run_plainly) for make in SAVED],
]


INTERRUPTED = [
    (make, drive, interrupt)
    for number, (make, drive) in enumerate(DRIVEN)
    for way, interrupt in enumerate([interrupt_by_abort, interrupt_by_cancel])
    if MORE or make in SAVED or number % 2 == way
]
"""Every day each scene is interrupted in one way when it is run plainly, and in the other when it is streamed."""


@pytest.mark.more
@pytest.mark.parametrize(("make", "drive", "interrupt"), INTERRUPTED)
async def test_interrupted_at_every_tick(make: Callable[[Fuse], Scene], interrupt: Any, drive: Any):
    tick = 0
    while True:
        scene = make(Fuse())
        caller = asyncio.create_task(drive(scene))
        for _ in range(tick):
            await asyncio.sleep(0)
        late = caller.done()
        if not late:
            interrupt(scene, caller)
        await finish(caller)
        await check_after(scene)
        if late:
            break
        tick += 1
    assert tick > 10, "nothing was interrupted"


@in_cells(
    ("make", "interrupt"),
    [pair for make in SCENES for pair in ((make, interrupt_by_abort), (make, interrupt_by_cancel))],
    every=3,
)
async def test_interrupted_at_every_event(make: Callable[[Fuse], Scene], interrupt: Any):
    number = 0
    while True:
        scene = make(Fuse())
        seen = 0

        def watch(event: Any) -> None:
            nonlocal seen
            seen += 1
            if seen == number + 1:
                interrupt(scene, caller)

        scene.agent.subscribe(watch)
        caller = asyncio.create_task(run_plainly(scene))
        await finish(caller)
        reached = seen > number
        scene.agent._subscribers.current = scene.agent._subscribers.current[:2]
        await check_after(scene)
        if not reached:
            break
        number += 1
    assert number > 10, "nothing was interrupted"


@pytest.mark.parametrize("make", SCENES)
async def test_stream_closed_at_every_tick(make: Callable[[Fuse], Scene]):
    tick = 0
    while True:
        scene = make(Fuse())
        stream = scene.stream()
        await stream.__aenter__()
        for _ in range(tick):
            await asyncio.sleep(0)
        late = not scene.agent.is_running
        await stream.aclose()
        await check_after(scene)
        if late:
            break
        tick += 1
    assert tick > 10, "nothing was interrupted"


@in_cells("make", [*SCENES, *SAVED], every=2)
async def test_stream_left_at_every_event(make: Callable[[Fuse], Scene]):
    number = 0
    while True:
        scene = make(Fuse())
        seen = 0
        async with scene.stream() as run:
            async for _ in run:
                seen += 1
                if seen > number:
                    break
        assert not scene.agent.is_running
        await check_after(scene)
        if seen <= number:
            break
        number += 1
    assert number > 10, "nothing was interrupted"


@in_cells("make", [*SCENES[1:], SCENES[0]], every=2)
async def test_stream_dropped_at_every_event(make: Callable[[Fuse], Scene]):
    number = 0
    while True:
        scene = make(Fuse())
        seen = 0
        async for _ in scene.stream():
            seen += 1
            if seen > number:
                break
        gc.collect()
        await check_after(scene)
        if seen <= number:
            break
        number += 5
    assert number > 10, "nothing was interrupted"


@pytest.mark.parametrize(("make", "drive"), DRIVEN)
async def test_every_hook_fails_once(make: Callable[[Fuse], Scene], drive: Any):
    number = 0
    while True:
        fuse = Fuse()
        scene = make(fuse)
        fuse.left = number
        caller = asyncio.create_task(drive(scene))
        error = await finish(caller)
        blown = fuse.left is None
        # A policy or an approval that fails is not the run's failure; any other hook's exception reaches the caller.
        if isinstance(error, HookFailure):
            assert scene.agent.error is not None
        await check_after(scene)
        if not blown:
            break
        number += 1
    assert number > 0, "no hook was reached"


async def test_a_bare_loop_with_async_providers_interrupted_at_every_tick():
    """What a provider still has, or the run has taken, is in exactly one place."""
    for kind in ("steering", "follow_up"):
        tick = 0
        while True:
            waiting = [UserMessage("one"), UserMessage("two")]

            async def take() -> list[Any]:
                await asyncio.sleep(0)
                return [waiting.pop(0)] if waiting else []

            @tool
            async def work() -> str:
                await asyncio.sleep(0)
                return "ok"

            config = AgentLoopConfig(
                model=ModelSpec("test", "m"),
                stream_fn=ScriptedModel([[ToolCall("a", "work"), ToolCall("b", "work")], "1", "2", "3"]),
                **{f"get_{kind}": take},  # type: ignore[arg-type]
            )
            stream = agent_loop("prompt", AgentContext("", (), [work]), config)
            events: list[Any] = []
            async with stream as run:
                reading = asyncio.create_task(collect(run, events))
                for _ in range(tick):
                    await asyncio.sleep(0)
                late = reading.done()
                await run.aclose()
                await reading
                result = await run.result()
            texts = [message.text for message in (*result.messages, *waiting)]
            assert texts.count("one") == 1, texts
            assert texts.count("two") == 1, texts
            assert history_problems(result.messages) == []
            if late:
                break
            tick += 1
        assert tick > 10, "nothing was interrupted"


async def collect(run: Any, events: list[Any]) -> None:
    async for event in run:
        events.append(event)


async def test_a_compaction_that_is_cancelled_or_overtaken_changes_nothing():
    async def slowly(messages: Any, overflow: bool) -> Any:
        if not overflow:
            return messages
        await asyncio.sleep(0.02)
        return messages[-1:]

    old = [UserMessage("one"), UserMessage("two")]
    agent = Agent("test:m", stream_fn=ScriptedModel(["a", "b"]), messages=old, transform_context=slowly)
    task = asyncio.create_task(agent.compact())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert list(agent.messages) == old
    changes: list[Callable[[], Any]] = [
        lambda: agent.append_messages("three"),
        lambda: setattr(agent, "messages", [*old, UserMessage("four")]),
        lambda: agent.run("five"),
    ]
    for change in changes:
        task = asyncio.create_task(agent.compact())
        await asyncio.sleep(0)
        await resolve(change())
        before = list(agent.messages)
        with pytest.raises(MisuseError, match="call compact\\(\\) again"):
            await task
        assert list(agent.messages) == before
    assert (await agent.compact()).dropped == 4
    assert len(agent.messages) == 1


async def test_waiting_for_a_pause_may_be_cancelled_and_the_pause_stays_asked_for():
    @tool
    async def work() -> str:
        await asyncio.sleep(0.02)
        return "ok"

    agent = Agent("test:m", stream_fn=ScriptedModel([[ToolCall("a", "work")], "end"]), tools=[work])
    running = asyncio.create_task(agent.run("prompt"))
    await asyncio.sleep(0.005)
    pausing = asyncio.create_task(as_coroutine(agent.pause()))
    await asyncio.sleep(0)
    pausing.cancel()
    await asyncio.wait([pausing])
    assert (await running).reason == "paused"
    assert (await agent.run()).text == "end"


async def as_coroutine(awaitable: Any) -> Any:
    return await awaitable
