"""Messages that others put into a run, and calls that policies change: the history keeps its order."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from tests.scripted import echo, make

from swink import (
    AgentContext,
    AgentLoopConfig,
    AssistantMessage,
    Inject,
    ModelSpec,
    Policy,
    Replace,
    ToolCall,
    UserMessage,
    agent_loop,
    tool,
)
from swink.agent.engine.ledger import Ledger
from swink.agent.queues import MessageQueue
from swink.errors import BrokenHistory
from swink.events import (
    AgentEnd,
    MessageStart,
    ToolExecutionStart,
)
from swink.messages import ToolResultMessage
from swink.messages.history import History
from swink.testing import ScriptedModel, history_problems


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


async def test_what_was_appended_is_kept_if_announcing_the_end_fails():
    def fail(event: Any) -> None:
        if isinstance(event, MessageStart):
            raise KeyboardInterrupt

    ledger = Ledger(AgentLoopConfig(model="test:m", stream_fn=ScriptedModel([])), History(), fail, ())
    ledger.append([UserMessage("kept"), UserMessage("and this")])
    with pytest.raises(KeyboardInterrupt):
        ledger.close("stop", None, None)
    assert [message.text for message in ledger.history.items] == ["kept", "and this"]


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


@pytest.mark.parametrize("given", ["hello", ["hello"], [{"role": "user"}]])
async def test_a_poll_that_gives_no_messages_is_understood_or_refused(given: Any):
    polls = [given]
    config = AgentLoopConfig(
        model=ModelSpec("test", "m"),
        stream_fn=ScriptedModel(["one", "two"]),
        get_follow_up=lambda: polls.pop() if polls else [],
    )
    stream = agent_loop("go", AgentContext(), config)
    async with asyncio.timeout(60):
        if isinstance(given, list) and isinstance(given[0], dict):
            with pytest.raises(TypeError, match="not dict"):
                await stream.result()
        else:
            assert (await stream.result()).text == "two"


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


async def test_pre_dispatch_may_inject():
    class Remark(Policy):
        def pre_dispatch(self, ctx: Any, call: ToolCall) -> Any:
            return Inject("be careful")

    agent, seen = make([[ToolCall("1", "echo", {"text": "x"})], "ok"], tools=[echo], policies=[Remark()])
    await agent.run("go")
    assert [message.text for message in agent.messages] == ["go", "", "x", "be careful", "ok"]
    assert history_problems(agent.messages) == []


async def test_a_policy_cannot_change_a_call_in_place():
    class Sly(Policy):
        def pre_dispatch(self, ctx: Any, call: ToolCall) -> None:
            call.arguments["text"] = "changed"

    agent, _ = make([[ToolCall("1", "echo", {"text": "x"})], "ok"], tools=[echo], policies=[Sly()])
    await agent.run("go")
    assert agent.messages[2].text == "x"


async def test_a_replacement_in_pre_commit_keeps_its_message_type():
    class Wrong(Policy):
        def pre_commit(self, message: Any) -> Any:
            return Replace(UserMessage("x")) if message.role == "assistant" else None

    agent, seen = make(["ok"], policies=[Wrong()])
    await agent.run("go")
    assert agent.messages[-1].role == "assistant"
    seen.check()


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


@pytest.mark.parametrize("partition", [lambda calls: None, lambda calls: [["a"], [1]], lambda calls: 3])
async def test_a_partition_of_garbage_runs_nothing(partition: Any):
    agent, seen = make(
        [[ToolCall("1", "echo", {"text": "x"}), ToolCall("2", "echo", {"text": "y"})], "ok"],
        tools=[echo],
        tool_execution=partition,
    )
    assert (await agent.run("go")).text == "ok"
    assert not seen.of(ToolExecutionStart)
