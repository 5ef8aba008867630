"""The question which protocol a stdio server speaks, for servers that do not answer what they do not know.

    server/discover ─→ answered                      the newer protocol
                    ─→ refused                       initialize, the older one
                    ─→ nothing for a moment          taken as refused: initialize
                         ─→ the answer comes late, and initialize is refused: a newer server that was slow
                            to start, which is asked once more

The SDK alone would wait ten seconds for the answer.
"""

import asyncio
from typing import Any

from swink.mcp.sdk import Sdk
from swink.system.aio import call_later, wait_through_cancel, wake

PATIENCE = 0.8
"""Seconds in which a server that has started answers."""


class ProtocolProbe:
    """What was asked on a connection about its protocol; it stands between the SDK and the server."""

    def __init__(self, sdk: Sdk) -> None:
        self._sdk = sdk
        self._asked: int | str | None = None
        self._shaking_hands: int | str | None = None
        self._versions: list[str] = []
        """What the server says that it speaks, if it said so too late."""
        self._is_settled = False
        self._is_overdue = False
        self._reading: asyncio.Future[_Read] | None = None
        self._overdue: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._timer: asyncio.TimerHandle | None = None

    def saw_sent(self, item: Any) -> None:
        """Look at a message that goes to the server."""
        message = getattr(item, "message", None)
        method, number = getattr(message, "method", None), getattr(message, "id", None)
        if method == "server/discover" and self._asked is None:
            self._asked = number
            self._timer = call_later(asyncio.get_running_loop(), PATIENCE, wake, self._overdue)
        elif method == "initialize":
            self._shaking_hands = number

    async def read(self, stream: Any) -> Any:
        """The next message of the server, or a refusal in its place if the probe was not answered in time.

        A read that was overtaken goes on, and the next call waits for it: nothing that arrives is lost.
        """
        if self._is_settled and self._reading is None:
            return await anext(stream)
        if self._reading is None:
            self._reading = asyncio.ensure_future(_next_of(stream))
        waiting = [self._reading] if self._is_overdue else [self._reading, self._overdue]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if self._reading.done():
            reading, self._reading = self._reading, None
            return self._judged(reading.result().taken())
        self._is_overdue = True
        return self._sdk.error_reply(self._asked or 0, "it does not say which protocol it speaks")

    async def close(self) -> None:
        """Give up what is still being read."""
        self._settle()
        if self._reading is not None:
            self._reading.cancel()
            await wait_through_cancel(asyncio.ensure_future(asyncio.wait([self._reading])))

    def _judged(self, item: Any) -> Any:
        message = getattr(item, "message", None)
        number, result = getattr(message, "id", None), getattr(message, "result", None)
        if number is None or getattr(message, "method", None) is not None:
            return item
        if number == self._asked and not self._is_overdue:
            self._settle()
        elif number == self._asked:
            self._versions = _versions_of(result)
        elif number == self._shaking_hands:
            self._settle()
            if result is None and self._versions:
                return self._sdk.wrong_version(number, self._versions)
        return item

    def _settle(self) -> None:
        self._is_settled = True
        if self._timer is not None:
            self._timer.cancel()


def _versions_of(result: Any) -> list[str]:
    match result:
        case {"supportedVersions": [*given]}:
            return [version for version in given if isinstance(version, str)]
        case _:
            return []


class _Read:
    """What a stream gave: a message, or its end, which a task cannot raise."""

    def __init__(self, item: Any, *, is_end: bool = False) -> None:
        self._item = item
        self._is_end = is_end

    def taken(self) -> Any:
        if self._is_end:
            raise StopAsyncIteration
        return self._item


async def _next_of(stream: Any) -> _Read:
    try:
        return _Read(await anext(stream))
    except StopAsyncIteration:
        return _Read(None, is_end=True)
