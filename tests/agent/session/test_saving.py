"""What a session is given to keep, and when: however slow it is and however the run ends."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from tests.scripted import Kept, echo, make

from swink import (
    Agent,
    Policy,
    ToolCall,
)
from swink.errors import AuthError
from swink.events import (
    AgentEnd,
    MessageUpdate,
)
from swink.testing import Pause, ScriptedModel, history_problems


async def test_a_session_that_hangs_cannot_hold_the_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr("swink.agent.engine.laststeps.SAVE_ABORTED", 0.05)

    class Hanging:
        messages: tuple[Any, ...] = ()
        state: dict[str, Any] = {}

        async def append(self, messages: Any) -> None:
            agent.abort()
            await asyncio.sleep(1000)

    agent, _ = make(["ok"], session=Hanging())
    with pytest.raises(TimeoutError, match="did not save"):
        await asyncio.wait_for(agent.run("go"), 60)
    assert not agent.is_running
    assert [message.text for message in agent.messages] == ["go", "ok"]


async def test_a_run_cancelled_before_its_first_step_is_saved_too():
    session = Kept()
    agent, _ = make(["a"], session=session)
    async with agent.stream("first"):
        agent.abort()
    await agent.run("second")
    assert session.messages == agent.messages
    assert [message.text for message in agent.messages if message.role == "user"] == ["first", "second"]


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


@pytest.mark.parametrize("waits", [0, 0.02])
def test_a_detached_run_is_saved_by_a_slow_session_before_its_loop_ends(waits: float):
    class Slow(Kept):
        async def append(self, messages: Any) -> None:
            await asyncio.sleep(waits)
            self.messages.extend(messages)

    session = Slow()
    agent = Agent("test:m", stream_fn=ScriptedModel([["x", Pause(600)], "later"]), session=session)

    async def leave() -> None:
        spoke = asyncio.Event()
        agent.subscribe(lambda event: spoke.set() if isinstance(event, MessageUpdate) else None)
        agent.stream("hi").detach()
        await spoke.wait()

    asyncio.run(leave())
    assert session.messages == list(agent.messages)
    assert [message.role for message in session.messages] == ["user", "assistant"]


async def test_a_session_whose_append_cancels_itself_is_given_up():
    class Cancels(Kept):
        async def append(self, messages: Any) -> None:
            raise asyncio.CancelledError

    agent = Agent("test:m", stream_fn=ScriptedModel([AuthError("no")]), session=Cancels())
    async with asyncio.timeout(60):
        with pytest.raises(TimeoutError, match="did not save"):
            await agent.run("hi")
    assert not agent.is_running


async def test_an_append_that_fails_after_it_was_stored_is_not_repeated():
    class Unheard(Kept):
        meta = SimpleNamespace(sequence=0)

        async def append(self, messages: Any) -> None:
            await super().append(messages)
            self.meta.sequence += 1
            if self.meta.sequence == 1:
                raise OSError("the answer was lost")

    session = Unheard()
    agent, _ = make(["a", "b"], session=session)
    with pytest.raises(OSError, match="the answer was lost"):
        await agent.run("first")
    await agent.run("second")
    assert [message.text for message in session.messages] == ["first", "a", "second", "b"]


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
