"""Bearer tokens that run out: fetched once for all callers, and renewed before they expire."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any
from weakref import WeakKeyDictionary

from msgspec import Struct

from swink.errors import NetworkError
from swink.messages.redact import hold

EARLY_SECONDS = 300.0
"""How long before its end a token is renewed, unless it lives for less than twice that."""


class Token(Struct, frozen=True):
    """A token and the seconds for which it is valid; None if it does not run out."""

    value: str
    seconds: float | None = 3600.0

    def __repr__(self) -> str:
        return "Token(…)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []


class TokenCache:
    """The token in force; concurrent callers share one fetch, and one that is cancelled leaves it to them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._token = ""
        self._renew_at = self._ends_at = 0.0
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return "TokenCache(…)"

    async def token(self, fetch: Callable[[], Awaitable[Token]]) -> str:
        """The token, fetched if there is none that stays valid."""
        if not self._is_valid():
            async with self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
                if not self._is_valid():
                    await self._renew(fetch)
        return self._token

    def _is_valid(self) -> bool:
        return bool(self._token) and self._clock() < self._renew_at

    async def _renew(self, fetch: Callable[[], Awaitable[Token]]) -> None:
        try:
            token = await fetch()
        except NetworkError:
            if self._token and self._clock() < self._ends_at:
                return  # it was early: the token still serves, and the next caller tries again
            raise
        hold(token.value)
        seconds = float("inf") if token.seconds is None else token.seconds
        self._ends_at = self._clock() + seconds
        self._renew_at = self._clock() + max(seconds - EARLY_SECONDS, seconds / 2)
        self._token = token.value
