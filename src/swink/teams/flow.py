"""Flow: a course of several agents with the face of one: `run`, `run_sync`, `stream`, `abort`.

A run of it is a task that goes through its members. Aborting it aborts whoever works, so that every agent ends its own
run in its own way; nobody starts after that.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

from msgspec.structs import replace

from swink.config import AgentResult
from swink.errors import AlreadyRunning, MisuseError, SyncInAsyncContext
from swink.messages import Cost, Input
from swink.teams.member import Member, fresh, perform
from swink.teams.nested import Emit, NestedEvent, inside
from swink.teams.results import failed

Body = Callable[["Flow", Input, Emit], Awaitable[AgentResult]]


class Flow:
    """Members, and the order they work in. Made by `sequential`, `parallel` and `loop`; may be a member itself."""

    def __init__(self, members: Mapping[str, Member], body: Body) -> None:
        if not members:
            raise MisuseError("a pipeline needs at least one member")
        self.members = dict(members)
        self._body = body
        self._active: FlowRun | None = None

    async def run(self, input: Input, *, deadline: float | None = None) -> AgentResult:
        """Run to the end and return the result: everybody's messages, usage and cost."""
        return await self._begin(input, _ignore, deadline).outcome()

    def run_sync(self, input: Input, *, deadline: float | None = None) -> AgentResult:
        """`run` for code without an event loop."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.run(input, deadline=deadline))
        raise SyncInAsyncContext

    def stream(self, input: Input, *, deadline: float | None = None) -> "NestedStream":
        """A run as a stream of events, each with the path of the agent it comes from."""
        return NestedStream(lambda push: self._begin(input, push, deadline))

    async def perform(self, input: Input, emit: Emit) -> AgentResult:
        """Run to the end, reporting events."""
        return await self._begin(input, emit, None).outcome()

    def abort(self) -> None:
        """End the current run, keeping what arrived; does nothing when idle. Safe from any thread."""
        if (active := self._active) is not None:
            active.abort()

    @property
    def is_running(self) -> bool:
        """Whether a run is active."""
        return self._active is not None

    def fresh(self) -> "Flow":
        """The same pipeline, of members as they were made."""
        return Flow({name: fresh(member) for name, member in self.members.items()}, self._body)

    async def step(self, name: str, input: Input | None, emit: Emit) -> AgentResult:
        """Let one member work, unless the run was aborted."""
        active = self._active
        assert active is not None
        if active.aborted is not None:
            return AgentResult(
                (), "aborted", cost=Cost(), error=active.aborted, error_kind="aborted", reason=active.aborted
            )
        member = self.members[name]
        active.working.append(member)
        try:
            return await perform(member, input, lambda event: emit(inside(name, event)))
        finally:
            active.working.remove(member)

    def _begin(self, input: Input, emit: Emit, deadline: float | None) -> "FlowRun":
        if self._active is not None:
            raise AlreadyRunning
        self._active = run = FlowRun(deadline)
        run.start(lambda: self._body(self, input, emit), self._over)
        return run

    def _over(self) -> None:
        self._active = None


class FlowRun:
    """One run of a flow, in a task of its own."""

    def __init__(self, deadline: float | None) -> None:
        self.aborted: str | None = None
        self.working: list[Member] = []
        self._thread = threading.get_ident()
        self._loop = asyncio.get_running_loop()
        self._timer = (
            None
            if deadline is None
            else self._loop.call_later(deadline, self.abort, f"deadline of {deadline:g} s passed")
        )
        self.task: asyncio.Task[AgentResult]

    def start(self, body: Callable[[], Awaitable[AgentResult]], over: Callable[[], None]) -> None:
        """Begin; `over` is called at the end, whatever it is."""
        self.task = self._loop.create_task(self._drive(body))
        self.task.add_done_callback(lambda task: self._ended(task, over))

    def abort(self, reason: str = "the run was aborted") -> None:
        """Abort whoever works, and let nobody start; safe from any thread."""
        if threading.get_ident() != self._thread:
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self.abort, reason)
        elif self.aborted is None:
            self.aborted = reason
            for member in self.working:
                member.abort()

    async def outcome(self) -> AgentResult:
        """The result; cancelling the waiter aborts the run, and still waits for its end."""
        interrupted: asyncio.CancelledError | None = None
        while not self.task.done():
            try:
                await asyncio.wait([self.task])
            except asyncio.CancelledError as error:
                interrupted = error
                self.abort("the caller was cancelled")
        if interrupted is not None:
            raise interrupted
        return self.task.result()

    async def _drive(self, body: Callable[[], Awaitable[AgentResult]]) -> AgentResult:
        result = await body()
        if self.aborted is None or result.stop_reason not in ("aborted", "error"):
            return result
        return replace(
            failed([result], self.aborted, stop_reason="aborted", kind="aborted"), reason=self.aborted
        )

    def _ended(self, task: "asyncio.Task[AgentResult]", over: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        over()
        if not task.cancelled():
            task.exception()


class NestedStream:
    """A flow's run as a stream of `NestedEvent`s; leaving its `async with` block early ends the run."""

    def __init__(self, begin: Callable[[Emit], FlowRun]) -> None:
        self._begin = begin
        self._events: asyncio.Queue[NestedEvent | None] = asyncio.Queue()
        self._run: FlowRun | None = None

    async def __aenter__(self) -> "NestedStream":
        self._start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> "NestedStream":
        return self

    async def __anext__(self) -> NestedEvent:
        run = self._start()
        try:
            event = await self._events.get()
        except asyncio.CancelledError:
            run.abort("the reader was cancelled")
            await _settled(run)
            raise
        if event is not None:
            return event
        self._events.put_nowait(None)
        run.task.result()
        raise StopAsyncIteration

    async def result(self) -> AgentResult:
        """Wait for the end and return what the run came to."""
        return await self._start().outcome()

    async def aclose(self) -> None:
        """End the run if it still goes on, and wait until it has ended."""
        if self._run is not None and not self._run.task.done():
            self._run.abort("the stream was closed")
            await _settled(self._run)

    def __del__(self) -> None:
        run = getattr(self, "_run", None)
        if run is not None and not run.task.done():
            run.abort("the stream was dropped")

    def _start(self) -> FlowRun:
        if self._run is None:
            push = (
                self._events.put_nowait
            )  # the queue's, not the stream's: a stream that is dropped must be free to go
            self._run = self._begin(push)
            self._run.task.add_done_callback(lambda task: push(None))
        return self._run


async def _settled(run: FlowRun) -> None:
    """Wait for the end, however often the waiter is cancelled."""
    interrupted: asyncio.CancelledError | None = None
    while not run.task.done():
        try:
            await asyncio.wait([run.task])
        except asyncio.CancelledError as error:
            interrupted = error
    if interrupted is not None:
        raise interrupted


def named(members: Sequence[Member | Mapping[str, Member]]) -> dict[str, Member]:
    """Members by name: the names of a mapping, the position of what stands alone."""
    by_name: dict[str, Member] = {}
    for item in members:
        for name, member in item.items() if isinstance(item, Mapping) else [(str(len(by_name) + 1), item)]:
            if name in by_name:
                raise MisuseError(f"two members are named {name!r}")
            by_name[name] = member
    return by_name


def _ignore(event: Any) -> None:
    """Where events go when nobody listens."""
