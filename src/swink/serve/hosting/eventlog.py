"""The numbered events of one run: written once, read by any number of readers, each from where it likes.

    push(event)  →  1 2 3 …  →  batches(after=2)  →  [3, 4] [5] …  until the log is closed

A reader that is slow holds nobody up, and one that leaves is forgotten. Old events leave the memory once
there are too many; who asks for those gets them from the session's records, or is told that they are gone.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

from msgspec import Struct

from swink.events import AgentEvent
from swink.serve.wire import Refused
from swink.system.aio import wake


class Numbered(Struct):
    """An event of a run and its number, counted from 1."""

    id: int
    event: AgentEvent
    frame: bytes = b""
    """The event as a server-sent event, once a reader has needed it."""


Older = Callable[[int], Awaitable[Sequence[Numbered]]]
"""The recorded events after a number, as far as they go without a hole."""


class EventLog:
    """The events of a run, from its first to its last."""

    __slots__ = ("_dropped", "_keep", "_numbered", "_waiters", "closed", "last", "older", "recorded")

    def __init__(self, keep: int, older: Older | None = None) -> None:
        self._keep = keep
        self._numbered: list[Numbered] = []
        self._dropped = 0
        self._waiters: list[asyncio.Future[None]] = []
        self.last = 0
        """The number of the newest event."""
        self.closed = False
        """Whether no event follows any more."""
        self.older = older
        self.recorded = 0
        """Up to which event `older` has them; none after it leaves the memory."""

    def push(self, event: AgentEvent) -> Numbered:
        """Add the next event and wake who waits for it."""
        self.last += 1
        numbered = Numbered(self.last, event)
        self.put(numbered)
        return numbered

    def put(self, numbered: Numbered) -> None:
        """Add an event that has its number already: that of a log before this one."""
        self.last = numbered.id
        kept = self._numbered
        kept.append(numbered)
        is_safe = self.older is None or kept[-min(self._keep, len(kept))].id <= self.recorded
        if len(kept) > self._keep + (self._keep >> 2) and is_safe:
            self._dropped = kept[-self._keep - 1].id
            del kept[: -self._keep]
        if self._waiters:
            self._wake()

    def close(self) -> None:
        """Let every reader end after the last event."""
        self.closed = True
        self._wake()

    def after(self, number: int) -> list[Numbered]:
        """The events in memory after a number; `number` must not be before what memory holds."""
        kept = self._numbered
        if not kept or number >= kept[-1].id:
            return []
        low, high = 0, len(kept)
        while low < high:
            middle = (low + high) // 2
            if kept[middle].id <= number:
                low = middle + 1
            else:
                high = middle
        return kept[low:]

    async def batches(
        self, after: int = 0, silence: float | None = None
    ) -> AsyncGenerator[list[Numbered], None]:
        """The events after a number, those that are there together as one list; ends with the log.

        After so many seconds of silence the list is empty.
        """
        while True:
            if after < self._dropped:
                found = [] if self.older is None else list(await self.older(after))
                if not found:
                    text = f"the events up to {self._dropped} are gone; read the messages instead"
                    raise Refused(410, text)
            else:
                found = self.after(after)
            if found:
                after = found[-1].id
                yield found
            elif self.closed:
                return
            else:
                await self._more(silence)
                if not self.closed and after == self.last:
                    yield []

    async def _more(self, silence: float | None) -> None:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiters.append(waiter)
        timer = None if silence is None else loop.call_later(silence, wake, waiter)
        try:
            await waiter
        finally:
            if timer is not None:
                timer.cancel()
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
