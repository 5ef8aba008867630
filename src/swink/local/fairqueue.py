"""A fair queue in front of a model, shared by agents in any thread and event loop.

    waiting   a: ▢ ▢ ▢      b: ▢      c: ▢ ▢        served   a b c a c a

An agent with many requests waits behind its own, and does not hold up the others.
"""

import asyncio
import threading
from collections import OrderedDict, deque
from collections.abc import Hashable

from swink.system.aio import wake


class _Ticket:
    """One request in line; `granted` is set under the queue's lock."""

    __slots__ = ("future", "granted")

    def __init__(self) -> None:
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.granted = False


class FairQueue:
    """At most `places` requests at a time; those that wait are served round-robin by key."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._lock = threading.Lock()
        self._waiting: OrderedDict[Hashable, deque[_Ticket]] = OrderedDict()

    async def take_place(self, key: Hashable) -> None:
        """Wait for a place; the caller must return it with `give_back`, from any thread."""
        with self._lock:
            if self._free:
                self._free -= 1
                return
            ticket = _Ticket()
            self._waiting.setdefault(key, deque()).append(ticket)
        try:
            await ticket.future
        except asyncio.CancelledError:
            with self._lock:
                if not ticket.granted:
                    self._forget(key, ticket)
            if ticket.granted:  # the place came together with the cancellation
                self.give_back()
            raise

    def give_back(self) -> None:
        """Pass the place on to the next request."""
        with self._lock:
            while self._waiting:
                ticket = self._next()
                ticket.granted = True
                try:
                    ticket.future.get_loop().call_soon_threadsafe(wake, ticket.future)
                except RuntimeError:  # its event loop is closed, nobody waits there any more
                    continue
                return
            self._free += 1

    def _next(self) -> _Ticket:
        key, tickets = next(iter(self._waiting.items()))
        ticket = tickets.popleft()
        if tickets:
            self._waiting.move_to_end(key)
        else:
            del self._waiting[key]
        return ticket

    def _forget(self, key: Hashable, ticket: _Ticket) -> None:
        tickets = self._waiting[key]
        tickets.remove(ticket)
        if not tickets:
            del self._waiting[key]
