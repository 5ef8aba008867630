"""Whatever a tool, a subscriber, a hook or a policy raises: the history stays sound and the agent is idle."""

import asyncio
import gc
from typing import Any

import pytest
from tests.scripted import Odd, Unspeakable, echo, make

from swink import (
    Agent,
    ExponentialBackoff,
    Policy,
    PolicyContext,
    Stop,
    ToolCall,
    ToolError,
    tool,
)
from swink.errors import AgentError, NetworkError
from swink.events import (
    AgentEnd,
    AgentStart,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnEnd,
    TurnStart,
)
from swink.testing import ScriptedModel, history_problems, nesting_problems


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
    result = await asyncio.wait_for(agent.run("go"), 60)
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
    assert (await asyncio.wait_for(agent.run("go"), 60)).text == "ok"
    seen.check()


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


class Coded(ToolError):
    def __init__(self, code: int) -> None:
        self.code = code


class CodedNetworkError(NetworkError):
    def __init__(self, code: int) -> None:
        self.code = code


class UnspeakableError(ToolError):
    def __str__(self) -> str:
        raise ZeroDivisionError


@pytest.mark.parametrize("error", [Coded(3), UnspeakableError("x"), ToolError(10**5000)])  # pyright: ignore
async def test_a_tool_error_of_whatever_make_is_a_result(error: ToolError):
    @tool
    async def breaks() -> str:
        raise error

    agent, seen = make([ToolCall("1", "breaks"), "ok"], tools=[breaks])
    result = await agent.run("go")
    assert result.text == "ok"
    assert "tool abandoned" not in agent.messages[2].text
    seen.check()


@pytest.mark.parametrize("error", [CodedNetworkError(3), UnspeakableError("x")])
async def test_a_policy_may_stop_with_an_error_of_whatever_make(error: AgentError):
    class Stops(Policy):
        def pre_turn(self, ctx: PolicyContext) -> Stop:
            return Stop("enough", error=error)

    agent, seen = make(["ok"], policies=[Stops()])
    async with asyncio.timeout(60):
        result = await agent.run("go")
    assert result.stop_reason == "error"
    assert result.error
    seen.check()


@pytest.mark.parametrize("error", [CodedNetworkError(3), UnspeakableError("x")])
async def test_a_stream_function_may_raise_an_error_of_whatever_make(error: AgentError):
    def breaks(model: Any, context: Any, options: Any) -> Any:
        raise error

    agent = Agent("test:breaks", stream_fn=breaks, retry=ExponentialBackoff(max_attempts=1))
    result = await agent.run("go")
    assert result.stop_reason == "error"
    assert result.error
    assert history_problems(agent.messages) == []


async def test_a_time_limit_of_a_stream_function_is_told_as_its_own():
    def breaks(model: Any, context: Any, options: Any) -> Any:
        raise TimeoutError("no answer from the broker")

    agent = Agent("test:breaks", stream_fn=breaks, retry=ExponentialBackoff(max_attempts=1))
    result = await agent.run("go")
    assert "no answer from the broker" in (result.error or "")
    assert result.error_kind == "network"
    with pytest.raises(NetworkError) as raised:
        result.raise_for_error()
    assert isinstance(raised.value.__cause__, TimeoutError)


@pytest.mark.parametrize("later", [False, True])
async def test_a_tool_that_raises_what_closes_coroutines_gives_an_error_result(later: bool):
    @tool
    async def leave() -> str:
        """Leave."""
        if later:
            await asyncio.sleep(0)
        raise GeneratorExit("left")

    agent, seen = make(
        [[ToolCall("1", "leave", {}), ToolCall("2", "echo", {"text": "x"})], "done"], tools=[leave, echo]
    )
    result = await agent.run("go")
    assert result.text == "done"
    left, said = agent.messages[2:4]
    assert (left.text, said.text) == ("error: GeneratorExit: left", "x")
    assert nesting_problems(seen.events) == []
