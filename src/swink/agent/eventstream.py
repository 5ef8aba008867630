"""The way out of a run: iterate it for events, or await its result. Nothing inside a run ever iterates."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterator
from operator import length_hint
from types import TracebackType
from typing import Any, Generic

from msgspec import UNSET, Struct
from typing_extensions import TypeVar

from swink.agent.agentresult import AgentResult
from swink.agent.engine.run import Lifetime
from swink.errors import InvalidInput, MisuseError
from swink.events import AgentEvent, MessageUpdate
from swink.messages.checks import check_hook
from swink.messages.redact import describe_traceback
from swink.stream import TextDelta, ToolCallDelta, Update
from swink.system.aio import is_async, raise_soon

T = TypeVar("T", default=Any)
E = TypeVar("E", default=AgentEvent)
log = logging.getLogger("swink.agent")


class Subscription:
    """A subscriber's handle: call it, or leave its `with` block, to unsubscribe."""

    __slots__ = ("_subscribers", "callback")

    def __init__(self, subscribers: "Subscribers", callback: Callable[[Any], None]) -> None:
        self._subscribers = subscribers
        self.callback = callback

    def __call__(self) -> None:
        self._subscribers.remove(self)

    def __enter__(self) -> "Subscription":
        return self

    def __exit__(self, *error: object) -> None:
        self()


class Subscribers(Struct, eq=False):
    """The callbacks that listen, in order. Joining and leaving during a dispatch take effect after it."""

    current: tuple[Subscription, ...] = ()

    def add(self, callback: Callable[[Any], None]) -> Subscription:
        """Call back with every later event."""
        check_hook("a subscriber", callback)
        if is_async(callback):
            raise InvalidInput("a subscriber is a plain function, not async; to await, read agent.stream(…)")
        subscription = Subscription(self, callback)
        self.current = (*self.current, subscription)
        return subscription

    def remove(self, subscription: Subscription) -> None:
        self.current = tuple(item for item in self.current if item is not subscription)

    def notify(self, event: Any) -> None:
        """Tell everyone; a subscriber that fails is dropped, and the run goes on."""
        for subscription in self.current:
            try:
                subscription.callback(event)
            except (KeyboardInterrupt, SystemExit) as error:
                self.remove(subscription)
                raise_soon(error)
            except BaseException as error:
                # A subscriber watches; its failure is not the run's.
                log.error("a subscriber failed and was removed\n%s", describe_traceback(error))
                self.remove(subscription)


class Buffer(Struct, eq=False):
    """Events on their way from a run to its reader, and to subscribers.

    It grows while nobody reads, and never blocks the run.
    """

    _subscribers: Subscribers
    closed: bool = False
    events: list[Any] = []
    waiter: "asyncio.Future[None] | None" = None

    def push(self, event: Any) -> None:
        """Add an event, wake the reader, tell the subscribers."""
        if not self.closed:
            self.events.append(event)
            if self.waiter is not None:
                self.wake()
        if self._subscribers.current:
            self._subscribers.notify(event)

    def wake(self) -> None:
        waiter, self.waiter = self.waiter, None
        if waiter is not None:
            try:  # noqa: SIM105 (`suppress` would cost more than the rest)
                waiter.set_result(None)
            except (asyncio.InvalidStateError, RuntimeError):
                pass  # the reader was cancelled, or its event loop is closed


_NOTHING: Iterator[Any] = iter(())
Growing = Callable[[Any, int], Any]
"""The output as far as it has arrived, given the run and the block that grows; UNSET if nothing is new."""


class EventStream(Generic[T, E]):
    """A run as a stream of events; it begins when it is entered or first read.

    Three ways out: `agent.abort()` ends the run and the stream with it; leaving the `async with` block (or
    dropping the stream) early cancels the run; `detach()` lets it finish in the background.

    Args:
        begin: starts the run, with the buffer for its events
        subscribers: who is told each event first
        result_of: makes the result of what the run returned
        growing: makes partial values of what is written so far
        delta_of: the piece of a value that an event brings
    """

    __slots__ = (
        "__weakref__", "_batch", "_begin", "_begun", "_buffer", "_delta_of", "_growing", "_life", "_raised",
        "_result_of", "_run",
    )  # fmt: skip

    def __init__(
        self,
        begin: Callable[[Buffer], Any],
        subscribers: Subscribers,
        result_of: Callable[[Any], AgentResult[T]],
        *,
        growing: Growing | None = None,
        delta_of: Callable[[Any], Update | None] | None = None,
    ) -> None:
        self._buffer = Buffer(subscribers)
        self._batch: Iterator[Any] = _NOTHING
        """What is being read of the events that had arrived."""
        self._begin: Callable[[Buffer], Any] | None = begin
        self._result_of = result_of
        self._growing = growing
        self._delta_of = delta_of or _delta_of
        self._run: Any = None
        self._life: Lifetime | None = None
        self._raised = False
        self._begun = False

    async def __aenter__(self) -> "EventStream[T, E]":
        self._start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> "EventStream[T, E]":
        return self

    async def __anext__(self) -> E:
        while True:
            for event in self._batch:  # from where it was left
                return event
            buffer = self._buffer
            if buffer.events:
                self._batch, buffer.events = iter(buffer.events), []
                continue
            waiter = self._waiter()
            try:
                await waiter
            except asyncio.CancelledError:
                await self._abort("the reader was cancelled")
                raise
            finally:
                if buffer.waiter is waiter:
                    buffer.waiter = None

    async def text(self) -> AsyncGenerator[str, None]:
        """The text of the replies alone, as it arrives; a reply that is retried begins again."""
        async for event in self:
            delta = self._delta_of(event)
            if type(delta) is TextDelta:
                yield delta.text

    async def output(self) -> AsyncGenerator[T, None]:
        """The output as it grows, fields that have not arrived being None; at the end the whole.

        A run that fails raises its error here.
        """
        if self._growing is None:
            raise MisuseError("output() needs a type: agent.stream(…, output=City)")
        async for event in self:
            delta = self._delta_of(event)
            is_last = not self._buffer.events and not length_hint(self._batch)
            if is_last and isinstance(delta, ToolCallDelta | TextDelta):
                value = self._growing(self._run, delta.index)
                if value is not UNSET:
                    yield value
        yield (await self.result()).output

    async def result(self) -> AgentResult[T]:
        """Wait for the end and return what the run came to; a hook's exception is raised here."""
        await self._start().wait()
        return self._outcome()

    def detach(self) -> None:
        """Let the run finish in the background; its further events reach subscribers only."""
        self._start().detached = True
        self._buffer.closed = True
        self._forget_events()

    async def aclose(self) -> None:
        """Cancel the run if it still goes on, and wait until it has ended."""
        life = self._life
        if life is not None and not life.detached:
            if not life.is_over:
                await self._abort("the stream was closed")
            self._forget_events()

    def __del__(self) -> None:
        # Dropped without a close (a bare `async for` that was left early): the run must not go on unwatched.
        life = getattr(self, "_life", None)
        if life is not None and not life.detached:
            if not life.is_over:
                life.abort("the stream was dropped")
            self._log_unseen()
        elif life is None and not getattr(self, "_begun", True):
            log.warning(
                "a stream was never read, so nothing was asked; use `async with agent.stream(…) as run:`"
            )

    def _start(self) -> Lifetime:
        if self._life is None:
            assert self._begin is not None
            self._begun = True
            self._run, self._begin = self._begin(self._buffer), None
            self._life = self._run.life
        assert self._life is not None
        return self._life

    def _waiter(self) -> "asyncio.Future[None]":
        """What to wait for until there is an event to read; the end of the run ends the iteration."""
        life = self._life or self._start()
        if life.is_over or life.detached:
            if life.failure is not None and not self._raised:
                self._outcome()
            raise StopAsyncIteration
        if self._buffer.waiter is not None:
            raise MisuseError("two readers of one stream; subscribe() to let several listen")
        waiter = self._buffer.waiter = life.loop.create_future()
        return waiter

    async def _abort(self, reason: str) -> None:
        """End the run, like any coroutine that is cancelled or closed, and wait for that."""
        life = self._start()
        life.abort(reason)
        await life.wait()

    def _forget_events(self) -> None:
        self._buffer.events, self._batch = [], _NOTHING
        self._log_unseen()

    def _log_unseen(self) -> None:
        """Nobody reads this stream any more: a failure that it did not raise must not go unheard."""
        life = self._life
        if life is not None and life.is_over and life.failure is not None and not self._raised:
            self._raised = True
            life.log_failure()

    def _outcome(self) -> AgentResult[T]:
        assert self._life is not None
        if self._life.failure is not None:
            self._raised = True
            raise self._life.failure
        return self._result_of(self._run)


def _delta_of(event: Any) -> Update | None:
    return event.delta if type(event) is MessageUpdate else None
