"""Retry: whether a failed model call is tried again, and when."""

import random
from math import inf
from typing import Protocol

from msgspec import Struct

from swink.errors import AgentError, InvalidInput


class RetryStrategy(Protocol):
    """Decides after each failed attempt; `attempt` counts the attempts made, from 1."""

    def should_retry(self, error: AgentError, attempt: int) -> bool:
        """Whether the request is sent again."""
        ...

    def delay(self, attempt: int) -> float:
        """Seconds to wait before it is sent again."""
        ...


class ExponentialBackoff(Struct, frozen=True):
    """1 s, 2 s, 4 s, …, each times a random factor in [0.5, 1.5), never above `max_delay`.

    Args:
        max_attempts: how often a request is sent in all
        base_delay: seconds before the second attempt
        max_delay: the longest pause
        jitter: whether pauses are random, so that many programs do not come back at once
    """

    max_attempts: int = 3
    base_delay: float = 1.0
    max_delay: float = 60.0
    jitter: bool = True

    def __post_init__(self) -> None:
        if type(self.max_attempts) is not int or self.max_attempts < 1:
            raise InvalidInput(
                f"max_attempts is {self.max_attempts!r}; pass a whole number, 1 for no retries"
            )
        for name, delay in (("base_delay", self.base_delay), ("max_delay", self.max_delay)):
            if type(delay) not in (int, float) or not 0 <= delay < inf:
                raise InvalidInput(f"{name} is {delay!r}; pass a number of seconds, 0 or more")
        if not isinstance(self.jitter, bool):
            raise InvalidInput(f"jitter is {self.jitter!r}; pass True or False")

    def should_retry(self, error: AgentError, attempt: int) -> bool:
        """Whether a retryable `error` of the attempt of this number, from 1, has another one left: `attempt`
        < most.
        """
        return error.retryable and attempt < self.max_attempts

    def delay(self, attempt: int) -> float:
        """The back-off before the attempt after this one."""
        delay = self.base_delay * 2.0 ** min(attempt - 1, 64)
        if self.jitter:
            delay *= random.uniform(0.5, 1.5)
        return min(delay, self.max_delay)


def wait_before(strategy: RetryStrategy, error: AgentError, attempt: int) -> float:
    """The strategy's delay, or the provider's Retry-After if that is longer (up to the strategy's cap)."""
    delay = strategy.delay(attempt)
    asked: float | None = getattr(error, "retry_after", None)
    if asked is None:
        return delay
    return max(delay, min(asked, getattr(strategy, "max_delay", 60.0)))
