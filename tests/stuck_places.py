"""A program that gets stuck in many places, each ended in one way: `python stuck_places.py WAY [PLACE…]`.

It prints the place as soon as whoever waited for it goes on, and exits like any program. Its files go to the
working directory.
"""

import asyncio
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import swink.agent.engine.laststeps as engine
from swink import Agent, Policy, tool
from swink.agent.retry import ExponentialBackoff
from swink.messages import ToolCall
from swink.policies import AuditLogger, Checkpoint
from swink.stream import Start, TextDelta, TextStart
from swink.stream.wrappers import rate_limited, recorded
from swink.system.filelock import take_lock
from swink.system.threads import in_thread, run_to_end
from swink.teams import agent_tool
from swink.testing import ScriptedModel
from swink.tools import ToolContext

PLACES: dict[str, Callable[["Scene"], Agent]] = {}


class Scene:
    """One place: `stuck` things set `reached`, so that they are ended there."""

    def __init__(self) -> None:
        self.reached = threading.Event()

    async def waits(self, *_: Any) -> Any:
        self.reached.set()
        await asyncio.sleep(1e6)

    async def swallows(self, *_: Any) -> Any:
        self.reached.set()
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(1e6)

    async def in_executor(self, *_: Any) -> Any:
        await asyncio.to_thread(self.blocks)

    def blocks(self, *_: Any) -> Any:
        self.reached.set()
        time.sleep(1e6)

    def pipe(self) -> Path:
        """A file whose reader waits for a writer."""
        path = Path(f"pipe{id(self)}")
        os.mkfifo(path)
        return path

    def locked(self) -> Path:
        """A file that somebody else has locked."""
        path = Path(f"locked{id(self)}")
        self.file = path.open("a")
        take_lock(self.file.fileno())
        return path


def place(make: Callable[[Scene], Agent]) -> Callable[[Scene], Agent]:
    PLACES[make.__name__] = make
    return make


def agent(replies: Any = ("done",), **options: Any) -> Agent:
    return Agent("test:model", **{"stream_fn": ScriptedModel(list(replies)), **options})


def calling(body: Any, **options: Any) -> Agent:
    """An agent whose model calls a tool that does this."""
    if asyncio.iscoroutinefunction(body):

        async def work() -> str:
            return await body()
    else:

        def work() -> str:  # type: ignore[misc]
            return body()

    return agent([[ToolCall("1", "work", {})], "done"], tools=[tool(work)], **options)


for style in ("waits", "swallows", "in_executor", "blocks"):
    PLACES[f"tool_{style}"] = lambda scene, style=style: calling(getattr(scene, style))
for style in ("waits", "swallows", "blocks"):
    PLACES[f"approval_{style}"] = lambda scene, style=style: calling(
        lambda: "", approve=getattr(scene, style), approval_mode="on"
    )
    PLACES[f"session_{style}"] = lambda scene, style=style: agent(session=Session(getattr(scene, style)))
    PLACES[f"checkpoint_{style}"] = lambda scene, style=style: agent(
        policies=[Checkpoint(getattr(scene, style))]
    )
for style in ("waits", "swallows", "in_executor"):
    for slot in ("pre_turn", "pre_dispatch", "pre_retry", "post_turn", "post_loop", "post_run"):
        PLACES[f"{slot}_{style}"] = lambda scene, slot=slot, style=style: agent(
            [ConnectionError(), "done"] if slot == "pre_retry" else [[ToolCall("1", "work", {})], "done"],
            tools=[tool(lambda: "", name="work", description="Work.")],
            policies=[type("Stuck", (Policy,), {slot: lambda *_: getattr(scene, style)()})()],
        )
    for hook in ("system_prompt", "transform_context", "get_api_key"):
        PLACES[f"{hook}_{style}"] = lambda scene, hook=hook, style=style: agent(
            **{hook: getattr(scene, style)}
        )


class Session:
    """One whose append does this."""

    def __init__(self, append: Any) -> None:
        self.messages: list[Any] = []
        self.state: dict[str, Any] = {}
        self.append = append


@place
def tool_reads_a_pipe(scene: Scene) -> Agent:
    path = scene.pipe()
    return calling(lambda: scene.reached.set() or path.read_text())


@place
def tool_of_a_sub_agent(scene: Scene) -> Agent:
    helper = agent_tool(calling(scene.blocks), "helper", "Helps.")
    return agent([[ToolCall("1", "helper", {"task": "go"})], "done"], tools=[helper])


@place
def tool_in_a_process(scene: Scene) -> Agent:
    @tool
    async def work(ctx: ToolContext) -> str:
        return await sleeping.body(ctx.call_id, {}, ctx)

    scene.reached.set()
    return agent([[ToolCall("1", "work", {})], "done"], tools=[work])


@tool(isolation="process")
def sleeping() -> None:
    time.sleep(1e6)


def streaming(stuck: Any, *events: Any) -> Agent:
    async def stream(*_: Any) -> AsyncIterator[Any]:
        for event in events:
            yield event
        await stuck()

    return agent(stream_fn=stream)


for style in ("waits", "swallows", "in_executor"):
    PLACES[f"stream_{style}"] = lambda scene, style=style: streaming(getattr(scene, style))
PLACES["stream_after_content"] = lambda scene: streaming(
    scene.waits, Start(), TextStart(0), TextDelta(0, "x")
)


@place
def stream_that_does_not_close(scene: Scene) -> Agent:
    async def stream(*_: Any) -> AsyncIterator[Any]:
        try:
            yield Start()
            await scene.waits()
        finally:
            await scene.swallows()

    return agent(stream_fn=stream)


@place
def file_that_is_a_pipe(scene: Scene) -> Agent:
    path = scene.pipe()

    async def read() -> None:
        scene.reached.set()
        await in_thread(path.read_bytes)

    return streaming(read)


@place
def back_off(scene: Scene) -> Agent:
    made = agent([ConnectionError(), "done"], retry=ExponentialBackoff(base_delay=1e5, max_delay=1e5))
    scene.reached.set()
    return made


def waiting_in_line(scene: Scene, **limits: Any) -> Agent:
    stream_fn = rate_limited(ScriptedModel([ToolCall("1", "work", {}), "done"]), **limits)

    @tool
    async def work() -> str:
        scene.reached.set()
        await asyncio.gather(agent(stream_fn=stream_fn).run("one"), agent(stream_fn=stream_fn).run("two"))
        return ""

    return agent(stream_fn=stream_fn, tools=[work])


PLACES["rate_limited_a_minute"] = lambda scene: waiting_in_line(scene, per_minute=0.001)


@place
def rate_limited_at_once(scene: Scene) -> Agent:
    stream_fn = rate_limited(streaming(scene.waits)._config.stream_fn, concurrent=1)

    @tool
    async def work() -> str:
        await asyncio.gather(agent(stream_fn=stream_fn).run("one"), agent(stream_fn=stream_fn).run("two"))
        return ""

    return agent([[ToolCall("1", "work", {})], "done"], tools=[work])


@place
def cassette_locked(scene: Scene) -> Agent:
    scene.reached.set()
    return agent(stream_fn=recorded(ScriptedModel(["done"]), scene.locked()))


@place
def audit_locked(scene: Scene) -> Agent:
    scene.reached.set()
    return agent(policies=[AuditLogger(scene.locked())])


@place
def audit_anchor(scene: Scene) -> Agent:
    return agent(policies=[AuditLogger(f"log{id(scene)}", anchor=scene.blocks)])


async def aborted(made: Agent, scene: Scene) -> None:
    running = asyncio.create_task(made.run("go"))
    await _reach(scene)
    made.abort()
    await running


async def waited_for(made: Agent, scene: Scene) -> None:
    running = asyncio.create_task(made.run("go"))
    await _reach(scene)
    await asyncio.wait_for(running, 0.01)


async def left(made: Agent, scene: Scene) -> None:
    async with made.stream("go") as run:
        reading = asyncio.create_task(_read(run))
        await _reach(scene)
        reading.cancel()


async def closed(made: Agent, scene: Scene) -> None:
    """Ctrl-C in a program with `asyncio.run`: its tasks are cancelled."""
    running = asyncio.create_task(made.run("go"))
    await _reach(scene)
    running.cancel()
    await running


async def _read(run: Any) -> None:
    async for _ in run:
        pass


async def _reach(scene: Scene) -> None:
    while not scene.reached.is_set():
        await asyncio.sleep(0.005)
    await asyncio.sleep(0.02)


def interrupt(scene: Scene, times: int) -> None:
    """Press Ctrl-C once it is stuck."""
    scene.reached.wait(60)
    for _ in range(times):
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)


WAYS = {way.__name__: way for way in (aborted, waited_for, left, closed)}


def end(way: str, name: str) -> None:
    """Get stuck there, and be ended this way."""
    scene = Scene()
    made = PLACES[name](scene)
    # asyncio.run() waits for ever for a coroutine that swallows cancellation, and for its own executor.
    hard = "swallows" in name or "in_executor" in name or "not_close" in name
    with contextlib.suppress(TimeoutError, asyncio.CancelledError, KeyboardInterrupt):
        if way == "deadline":
            made.run_sync("go", deadline=0.2)
        elif way in WAYS:
            (run_to_end if hard else asyncio.run)(WAYS[way](made, scene))
        else:
            times = 2 if way == "interrupted_twice" else 1
            pressing = threading.Thread(target=interrupt, args=(scene, times), daemon=True)
            pressing.start()
            try:
                made.run_sync("go")
            finally:
                pressing.join()
                time.sleep(0.05)  # a Ctrl-C that comes late is for this place, too
    os.write(1, f"ended {name}\n".encode())


def main(way: str, *names: str) -> None:
    engine.SAVE_ABORTED = engine.SAVE_LATE = engine.SAVE_LEAST = 0.3
    chosen = names or tuple(PLACES)
    if way.startswith("interrupted"):
        for name in chosen:  # signals reach the main thread alone
            end(way, name)
        return
    threads = [threading.Thread(target=end, args=(way, name), daemon=True) for name in chosen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


if __name__ == "__main__":
    main(*sys.argv[1:])
