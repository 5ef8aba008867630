"""The delicate idioms of asyncio, each written once.

Awaiting what may be awaitable, waiting through cancellation, closing a stream, starting a task that cannot be
cancelled too early, timers that keep nothing alive, and ending the program between two steps of the event loop.
"""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
from contextvars import Context, copy_context
from math import inf
from types import coroutine
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


async def resolve(value: T | Awaitable[T]) -> T:
    """The value itself, or what awaiting it gives: hooks may be sync or async."""
    return await value if inspect.isawaitable(value) else value


async def outlast(
    future: "asyncio.Future[Any]",
    *,
    timeout: float | None = None,
    cancelled: Callable[[], object] | None = None,
) -> None:
    """Return when the future is done, or the timeout has passed, however often the waiter is cancelled meanwhile.

    Each cancellation calls `cancelled`; the last one is raised at the end. The future itself is never cancelled.
    """
    loop = asyncio.get_running_loop()
    deadline = inf if timeout is None else loop.time() + timeout
    interrupted: asyncio.CancelledError | None = None
    while not future.done() and (left := deadline - loop.time()) > 0:
        try:
            await asyncio.wait([future], timeout=None if left == inf else left)
        except asyncio.CancelledError as error:
            interrupted = error
            if cancelled is not None:
                cancelled()
    if interrupted is not None:
        raise interrupted


@asynccontextmanager
async def closing(stream: T) -> AsyncGenerator[T]:
    """The stream, closed at the end if it can be closed."""
    try:
        yield stream
    finally:
        await close(stream)


async def close(stream: object) -> None:
    """Close a stream, if it can be closed: a generator can, a plain iterator need not."""
    if (aclose := getattr(stream, "aclose", None)) is not None:
        await aclose()


def start_task(
    loop: asyncio.AbstractEventLoop, body: Coroutine[Any, Any, None], name: str | None = None
) -> "asyncio.Task[None]":
    """A task whose body has already run up to its `await started()`.

    A task that is cancelled before its first step never runs at all; this one is inside its `try` by then.
    """
    body.send(None)
    return loop.create_task(body, name=name)


@coroutine
def started() -> Generator[None, None, None]:
    """The first suspension point of a task made by `start_task`."""
    yield


def call_later(
    loop: asyncio.AbstractEventLoop, delay: float, function: Callable[..., object], *values: Any
) -> asyncio.TimerHandle:
    """`loop.call_later` whose handle, once cancelled, no longer holds the caller's context variables."""
    run: Any = copy_context().run
    return loop.call_later(delay, run, function, *values, context=Context())


def raise_soon(error: BaseException) -> None:
    """Let what ends the program end it at the next step of the event loop, not in the middle of ours.

    A loop that was just ended is shutting down: what else would end it within a second is not raised again.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        raise error from None
    now = loop.time()
    if now - _ended.get(loop, -inf) > 1.0:
        _ended[loop] = now
        loop.call_soon(_raise, error)


def _raise(error: BaseException) -> None:
    raise error


_ended: WeakKeyDictionary[asyncio.AbstractEventLoop, float] = WeakKeyDictionary()
