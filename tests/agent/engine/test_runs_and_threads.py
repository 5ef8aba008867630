"""What other threads see when a run, or its event loop, ends between two of their steps."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from swink import Agent
from swink.agent.engine.run import Run
from swink.agent.engine.runlifetime import Lifetime
from swink.agent.running import Running
from swink.messages import UserMessage
from swink.system.aio import Turnstile
from swink.testing import ScriptedModel
from swink.tools import ToolContext


class Ending(Running):
    """The runs of an agent: the active one ends, in another thread, right after it was looked at."""

    last: Run | None = None

    @property
    def active(self) -> Run | None:
        run, self.last = self.last, None
        return run

    @active.setter
    def active(self, run: Run | None) -> None:
        self.last = run


@pytest.mark.parametrize(
    "look",
    [
        lambda agent: agent.messages,
        lambda agent: agent.pending_tool_calls,
        lambda agent: agent.streaming_message,
        lambda agent: agent.checkpoint(),
        lambda agent: agent.steer("more"),
        lambda agent: agent.append_messages("more"),
        lambda agent: agent.clear_messages(),
        lambda agent: agent.abort(),
        lambda agent: agent.copy(),
    ],
)
async def test_a_run_that_ends_while_somebody_looks_at_it_breaks_nobody(look: Callable[[Agent], Any]) -> None:
    agent = Agent("test:model", stream_fn=ScriptedModel(["one"]), messages=[UserMessage("before")])
    runs = agent._running = Ending(agent._state)
    seen: list[Run] = []
    agent.subscribe(lambda event: seen.append(runs.last) if runs.last is not None else None)
    stream = agent.stream("go")
    await stream.__aenter__()
    runs.last = runs.last or seen[0]
    look(agent)
    await stream.aclose()


class Closing(asyncio.SelectorEventLoop):
    """An event loop that is closed right after it said that it is not."""

    is_honest = False

    def is_closed(self) -> bool:
        return self.is_honest and super().is_closed()


def test_an_event_loop_that_closes_meanwhile_is_nobody_to_tell() -> None:
    loop = Closing()

    async def make() -> tuple[Turnstile, asyncio.Task[None], Lifetime, ToolContext]:
        turnstile = Turnstile()
        turnstile.enter()
        waiting = asyncio.ensure_future(turnstile.wait())
        await asyncio.sleep(0)
        return turnstile, waiting, Lifetime(lambda: None), ToolContext("1", "look")

    turnstile, waiting, life, context = loop.run_until_complete(make())
    waiting.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    turnstile.leave()
    assert not turnstile.is_taken
    thread_of_the_run = -1
    life.thread = thread_of_the_run
    life.abort()
    assert life.aborted is None
    context.update("nobody hears it")
    loop.is_honest = True
