"""The saver of a run: what it produces goes to the session, one append at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from swink.engine.waiting import is_async, resolve, retrieve
from swink.messages import Message
from swink.threads import Serial

Append = Callable[[Sequence[Message]], Awaitable[None] | None]


class Saver:
    """Appends to a session; a wait that is cancelled does not cancel the append."""

    __slots__ = ("_append", "_appending", "_count")

    def __init__(self, append: Append) -> None:
        self._append = one_by_one(append)
        self._appending: asyncio.Future[None] | None = None
        self._count = 0

    async def save(self, produced: Sequence[Message]) -> None:
        """Append what is new among all that the run has produced."""
        while self._count < len(produced):
            if self._appending is None:
                self._appending = asyncio.ensure_future(self._append_upto(produced, len(produced)))
            try:
                await asyncio.shield(self._appending)
            finally:
                if self._appending.done():
                    self._appending = None

    def give_up(self) -> None:
        """Cancel an append that nobody waits for any more."""
        if self._appending is not None:
            self._appending.cancel()
            self._appending.add_done_callback(retrieve)

    async def _append_upto(self, produced: Sequence[Message], count: int) -> None:
        await resolve(self._append(produced[self._count : count]))
        self._count = count


def one_by_one(append: Append) -> Append:
    """An async append as it is; a plain function is called off the event loop, one call after the other."""
    if is_async(append):
        return append
    serial = Serial()

    async def call(messages: Sequence[Message]) -> None:
        await resolve(await serial.call(append, messages))

    return call
