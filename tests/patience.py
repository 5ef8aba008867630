"""Waiting for what will be so: as long as a busy machine needs, and no longer than a hang may take."""

import asyncio
import time
from collections.abc import Callable

SECONDS = 90.0
"""Only bounds a hang; a machine may be busy."""


def wait_until(
    is_so: Callable[[], object], what: Callable[[], object] = lambda: "it", *, seconds: float = SECONDS
) -> None:
    """Wait in this thread until something is so; `what` says what there is instead, if it never is."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise AssertionError(f"not so after {seconds:g} s: {what()}")
        time.sleep(0.01)


async def until(is_so: Callable[[], object], what: Callable[[], object] = lambda: "it") -> None:
    """Wait on the event loop until something is so."""
    deadline = time.monotonic() + SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise AssertionError(f"not so after {SECONDS:g} s: {what()}")
        await asyncio.sleep(0.01)
