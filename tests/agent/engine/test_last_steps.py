"""The last steps of a run, its save and its post-run policies, when they are ended from inside."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any
from weakref import ref

import pytest

from swink import Agent, ExponentialBackoff, Policy
from swink.agent.engine import laststeps as run_module
from swink.errors import NetworkError
from swink.events import TurnStart
from swink.messages import Message, ToolCall
from swink.stream import Start
from swink.system.threads import in_thread
from swink.testing import Pause, ScriptedModel, history_problems
from swink.tools import Transfer


class Ending(BaseException):
    """Neither an Exception nor one that ends the event loop."""


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, Ending])
def test_what_a_post_run_policy_raises_to_end_the_program_is_raised_once(
    error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    class Leave(Policy):
        left = False

        def post_run(self, ctx: Any, ending: Any) -> None:
            if not self.left:
                self.left = True
                raise error

    agent = Agent("test:model", stream_fn=ScriptedModel(["one", "two"]), policies=[Leave()])
    with pytest.raises(error):
        agent.run_sync("go")
    gc.collect()
    assert "never retrieved" not in caplog.text
    assert history_problems(agent.messages) == []
    assert agent.run_sync("again").text == "two"


class Stuck:
    """A session that saves nothing, and raises when it is cancelled."""

    messages: Sequence[Message] = ()
    state: dict[str, Any] = {}

    async def append(self, messages: Sequence[Message]) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ValueError("interrupted") from None


def test_a_save_that_fails_when_it_is_given_up_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(run_module, "SAVE_WITHIN", 0.05)
    caplog.set_level(logging.ERROR)
    agent = Agent("test:model", stream_fn=ScriptedModel(["one"]), session=Stuck())
    agent.subscribe(lambda event: agent.abort() if isinstance(event, TurnStart) else None)
    monkeypatch.setattr(run_module, "SAVE_ABORTED", 0.05)
    with pytest.raises(TimeoutError):
        agent.run_sync("go")
    gc.collect()
    assert "never retrieved" not in caplog.text
    assert caplog.text.count("the end of a run was not saved") == 1


class Kept:
    """Something that a run holds."""


async def is_freed(stream_fn: Any, work: Callable[[Agent], Awaitable[object]]) -> bool:
    """Whether a finished run and its agent are gone without the garbage collector."""
    gc.collect()
    gc.disable()
    try:
        kept = Kept()
        watched = ref(kept)
        retry = ExponentialBackoff(max_attempts=1)
        agent = Agent("test:model", stream_fn=stream_fn, retry=retry, deps=kept)
        await work(agent)
        del agent, kept
        await asyncio.sleep(0)
        return watched() is None
    finally:
        gc.enable()


async def test_a_run_whose_caller_was_cancelled_is_freed_at_once() -> None:
    async def cancel(agent: Agent) -> None:
        task = asyncio.create_task(agent.run("go"))
        asyncio.get_running_loop().call_later(0.01, task.cancel)
        with suppress(asyncio.CancelledError):
            await task

    assert await is_freed(ScriptedModel([["one", Pause(5)]]), cancel)


@pytest.mark.parametrize("end", [lambda text: text, lambda text: Transfer("billing")])
async def test_a_run_with_tools_is_freed_at_once_and_so_are_its_calls(end: Callable[[str], Any]) -> None:
    async def look(text: str) -> Any:
        """Look."""
        return end(text)

    async def work(agent: Agent) -> None:
        agent.tools = [look]
        await agent.run("go")

    def called(id: str) -> ToolCall:
        return ToolCall(id, "look", {"text": id})

    script = [[called("1"), called("2")], [called("3")], "done"]
    assert await is_freed(ScriptedModel(script), work)


async def broken(model: Any, context: Any, options: Any) -> AsyncIterator[Start]:
    """A stream function that fails."""
    yield Start()
    raise model if isinstance(model, Exception) else ConnectionError


def holds_callers() -> bool:
    """Whether the frame of a generator that has failed holds that of its caller, as since Python 3.12."""

    async def read() -> ConnectionError | None:
        try:
            async for _ in broken(None, None, None):
                pass
        except ConnectionError as error:
            return error
        return None

    error = asyncio.run(read())
    trace = None if error is None else error.__traceback__
    assert trace is not None
    assert trace.tb_next is not None
    return trace.tb_next.tb_frame.f_back is not None


@pytest.mark.parametrize("kind", [ConnectionError, lambda: NetworkError("lost", model="test:model")])
async def test_a_failed_run_is_freed_at_once_and_its_error_does_not_hold_it(
    kind: Callable[[], Exception],
) -> None:
    errors: list[Exception | None] = []

    async def fail(agent: Agent) -> None:
        errors.append((await agent.run("go")).exception)

    is_gone = await is_freed(lambda *_: broken(kind(), None, None), fail)
    assert is_gone or await in_thread(holds_callers)
    assert isinstance(errors[0], NetworkError)
    raised = errors[0].__cause__ or errors[0]
    assert raised.__traceback__ is not None
    assert raised.__traceback__.tb_frame.f_code.co_name == "broken"


@pytest.mark.parametrize("kind", [ConnectionError, lambda: NetworkError("lost", model="test:model")])
async def test_nothing_but_its_error_holds_a_failed_run(kind: Callable[[], Exception]) -> None:
    kept: list[ref[Any]] = []

    async def fail(agent: Agent) -> None:
        kept.append(ref(agent))
        await agent.run("go")

    await is_freed(lambda *_: broken(kind(), None, None), fail)
    gc.collect()
    assert kept[0]() is None
