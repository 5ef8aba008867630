"""What is under way on one connection: its time limits, which stand still while a person is asked."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from math import inf
from typing import Any, TypeVar

from swink.system.aio import STUCK, wait_through_cancel

T = TypeVar("T")


class Withdrawn(Exception):
    """What a person was asked for has ended before there was an answer."""


class PausableTimeouts:
    """What is limited in time now, and what a person is asked for it."""

    def __init__(self) -> None:
        self._left: dict[asyncio.Timeout, float] = {}
        self._asking: set[asyncio.Task[Any]] = set()

    @property
    def are_open(self) -> bool:
        """Whether anything is under way."""
        return bool(self._left)

    @asynccontextmanager
    async def of(self, seconds: float | None) -> AsyncGenerator[Callable[[], None]]:
        """At most so many seconds, without those in which a person is asked; then `TimeoutError`.

        The block is given a function that lets the time begin anew.
        """
        async with asyncio.timeout(None) as limit:
            self._left[limit] = inf if seconds is None else seconds
            if not self._asking:
                self._start(limit)

            def renew() -> None:
                self._left[limit] = inf if seconds is None else seconds
                if not self._asking:
                    self._start(limit)

            try:
                yield renew
            finally:
                del self._left[limit]
                if not self._left:
                    for task in self._asking:
                        task.cancel()

    async def ask(self, asking: Coroutine[Any, Any, T]) -> T:
        """What a person says; `Withdrawn` if everything that it was asked for has ended meanwhile."""
        task = asyncio.create_task(asking, name="swink-mcp-ask")
        now = asyncio.get_running_loop().time()
        for limit in self._left:
            if (when := limit.when()) is not None and not limit.expired():
                self._left[limit] = when - now
                limit.reschedule(None)
        self._asking.add(task)
        try:
            await asyncio.wait([task])
        finally:
            if not task.done():
                task.cancel()
                await wait_through_cancel(asyncio.ensure_future(asyncio.wait([task])), timeout=STUCK)
            self._asking.discard(task)
            if not self._asking:
                for limit in self._left:
                    self._start(limit)
        if task.cancelled():
            raise Withdrawn
        return task.result()

    def _start(self, limit: asyncio.Timeout) -> None:
        left = self._left[limit]
        if left != inf and not limit.expired():
            limit.reschedule(asyncio.get_running_loop().time() + left)
