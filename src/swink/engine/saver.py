"""The saver of a run: what it produces goes to the session, one append at a time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from swink.engine.waiting import retrieve
from swink.messages import Message
from swink.redact import describe_traceback

log = logging.getLogger("swink.run")

ATTEMPTS = 3
"""How often the last save is begun again when it is cancelled."""


class Saver:
    """Appends to a session; a wait that is cancelled does not cancel the append."""

    __slots__ = ("_append", "_appending", "_count")

    def __init__(self, append: Callable[[Sequence[Message]], Awaitable[None]]) -> None:
        self._append = append
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

    async def save_rest(self, produced: Sequence[Message], until: float) -> Exception | None:
        """Append what the end of the run added, before that time; return what went wrong."""
        try:
            for _ in range(ATTEMPTS):
                with suppress(asyncio.CancelledError):
                    async with asyncio.timeout_at(until):
                        await self.save(produced)
            if self._count < len(produced):
                raise TimeoutError
        except Exception as error:
            # A session is somebody else's code.
            log.error("the end of a run was not saved\n%s", describe_traceback(error))
            if self._appending is not None:
                self._appending.cancel()
                self._appending.add_done_callback(retrieve)
            late = TimeoutError("the session did not save in time")
            return late if isinstance(error, TimeoutError) else error
        return None

    async def _append_upto(self, produced: Sequence[Message], count: int) -> None:
        await self._append(produced[self._count : count])
        self._count = count
