"""The outermost object: iterate it for a run's events, or await its result. Nothing inside a run ever iterates."""

import asyncio
from collections import deque
from collections.abc import Callable
from types import TracebackType

from swink.config import AgentResult
from swink.engine.run import Run
from swink.errors import MisuseError
from swink.events import AgentEvent
from swink.subscribers import Subscribers


class Buffer:
    """Events on their way from a run to whoever iterates, and to subscribers.

    It grows while nobody reads, and never blocks the run.
    """

    __slots__ = ("_subscribers", "closed", "events", "waiter")

    def __init__(self, subscribers: Subscribers, closed: bool = False) -> None:
        self.events: deque[AgentEvent] = deque()
        self.waiter: asyncio.Future[None] | None = None
        self.closed = closed
        self._subscribers = subscribers

    def push(self, event: AgentEvent) -> None:
        """Add an event, wake the reader, tell the subscribers."""
        if not self.closed:
            self.events.append(event)
            if self.waiter is not None:
                self.wake()
        if self._subscribers.current:
            self._subscribers.notify(event)

    def wake(self) -> None:
        """Wake the reader."""
        waiter, self.waiter = self.waiter, None
        if waiter is not None and not waiter.done() and not waiter.get_loop().is_closed():
            waiter.set_result(None)


class EventStream:
    """A run as a stream of events; it begins when it is entered or first read.

    Three ways out: `agent.abort()` ends the run and the stream with it; leaving the `async with` block (or dropping
    the stream) early cancels the run; `detach()` lets it finish in the background.
    """

    __slots__ = ("_begin", "_buffer", "_detached", "_events", "_outcome_of", "_raised", "_run")

    def __init__(
        self, begin: Callable[[Buffer], Run], subscribers: Subscribers, outcome: Callable[[Run], AgentResult]
    ) -> None:
        self._buffer = Buffer(subscribers)
        self._events = self._buffer.events
        self._begin: Callable[[Buffer], Run] | None = begin
        self._outcome_of = outcome
        self._run: Run | None = None
        self._detached = False
        self._raised = False

    async def __aenter__(self) -> "EventStream":
        self._start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> "EventStream":
        return self

    async def __anext__(self) -> AgentEvent:
        while not self._events:
            waiter = self._waiter()
            try:
                await waiter
            except asyncio.CancelledError:
                await self._cancelled()
                raise
            finally:
                if self._buffer.waiter is waiter:
                    self._buffer.waiter = None
        return self._events.popleft()

    async def result(self) -> AgentResult:
        """Wait for the end and return what the run came to; a hook's exception is raised here."""
        run = self._start()
        await run.wait()
        return self._outcome(run)

    def detach(self) -> None:
        """Let the run finish in the background; its further events reach subscribers only."""
        self._start()
        self._detached = self._buffer.closed = True
        self._buffer.events.clear()

    async def aclose(self) -> None:
        """Cancel the run if it still goes on, and wait until it has ended."""
        run = self._run
        if run is None or self._detached:
            return
        if not run.closed:
            run.abort("the stream was closed")
        await run.wait()
        self._buffer.events.clear()

    def __del__(self) -> None:
        # Dropped without a close (a bare `async for` that was left early): the run must not go on unwatched.
        run = getattr(self, "_run", None)
        if run is not None and not run.closed and not self._detached:
            run.abort("the stream was dropped")

    def _start(self) -> Run:
        if self._run is None:
            assert self._begin is not None
            self._run, self._begin = self._begin(self._buffer), None
        return self._run

    def _waiter(self) -> "asyncio.Future[None]":
        """What to wait for until there is an event to read; the end of the run ends the iteration."""
        run = self._start()
        if run.is_over or self._detached:
            if run.failure is not None and not self._raised:
                self._outcome(run)
            raise StopAsyncIteration
        if self._buffer.waiter is not None:
            raise MisuseError("two readers of one stream; subscribe() to let several listen")
        waiter = self._buffer.waiter = run.loop.create_future()
        return waiter

    async def _cancelled(self) -> None:
        """The reader was cancelled: so is the run, like any coroutine it awaits."""
        run = self._start()
        run.abort("the reader was cancelled")
        while not run.is_over:
            try:
                await run.wait()
            except asyncio.CancelledError:
                continue

    def _outcome(self, run: Run) -> AgentResult:
        if run.failure is not None:
            self._raised = True
            raise run.failure
        return self._outcome_of(run)
