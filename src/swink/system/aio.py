"""The delicate idioms of asyncio, each written once.

Awaiting what may be awaitable, waiting through cancellation, closing a stream, starting a task that cannot
be cancelled too early, one at a time across threads, timers that keep nothing alive, and ending the program
between two steps of the event loop.
"""

import asyncio
import inspect
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, suppress
from contextvars import Context, copy_context
from math import inf
from types import coroutine
from typing import Any, ParamSpec, TypeVar, cast
from weakref import WeakKeyDictionary

from msgspec import Struct

from swink.system.threads import Serial, begin

P = ParamSpec("P")
T = TypeVar("T")

STUCK = 5.0
"""Seconds after a cancellation at which a call in a thread is no longer waited for."""


async def resolve(value: T | Awaitable[T]) -> T:
    """The value itself, or what awaiting it gives: hooks may be sync or async."""
    return cast(T, await value if inspect.isawaitable(value) else value)


def is_async(function: Any) -> bool:
    """Whether calling it gives a coroutine: an async function, or an object whose `__call__` is one."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop that this thread runs, if it runs one."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


async def wait_through_cancel(
    future: "asyncio.Future[Any]",
    *,
    timeout: float | None = None,
    cancelled: Callable[[], object] | None = None,
) -> None:
    """Return when the future is done or the timeout has passed, however often the waiter is cancelled.

    Each cancellation calls `cancelled`; the last is raised at the end. The future is never cancelled.
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
    try:
        if interrupted is not None:
            raise interrupted
    finally:
        interrupted = None  # its traceback holds this frame, and must not hold itself


async def call_to_end(serial: Serial, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """`Serial.call`, but cancelled it waits until the function has ended, unless that is stuck."""
    try:
        return await serial.call(function, *args, **kwargs)
    except asyncio.CancelledError:
        await wait_through_cancel(begin(serial.start, int), timeout=STUCK)  # which comes after it
        raise


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
    loop: asyncio.AbstractEventLoop,
    body: Coroutine[Any, Any, None],
    name: str | None = None,
    context: Context | None = None,
) -> "asyncio.Task[None]":
    """A task whose body has already run up to its `await started()`.

    A task that is cancelled before its first step never runs at all; this one is inside its `try` by then.
    """
    body.send(None)
    return loop.create_task(body, name=name, context=context)


@coroutine
def started() -> Generator[None, None, None]:
    """The first suspension point of a task made by `start_task`."""
    yield


class Turnstile(Struct, eq=False):
    """Lets one in at a time, from any thread; those who wait, on any event loop, go on when it is free."""

    is_taken: bool = False
    _waiters: "tuple[asyncio.Future[None], ...]" = ()

    def enter(self) -> bool:
        """Take it; False if it is taken."""
        with _lock:
            entered, self.is_taken = not self.is_taken, True
        return entered

    def leave(self) -> None:
        """Free it, and let everybody who waits go on."""
        with _lock:
            self.is_taken = False
            waiters, self._waiters = self._waiters, ()
        for waiter in waiters:
            with suppress(RuntimeError):  # its event loop is closed
                waiter.get_loop().call_soon_threadsafe(wake, waiter)

    async def wait(self) -> None:
        """Return when it is free, or was freed since."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with _lock:
            if not self.is_taken:
                return
            self._waiters = (*self._waiters, waiter)
        await waiter


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


def wake(waiter: "asyncio.Future[None]") -> None:
    """Let the waiter of the future go on, unless something else did already."""
    if not waiter.done():
        waiter.set_result(None)


def mark_exception_seen(task: "asyncio.Future[Any]") -> None:
    """A callback of a task: asyncio need not warn that nobody asked it for its exception."""
    if not task.cancelled():
        task.exception()


def _raise(error: BaseException) -> None:
    raise error


_ended: WeakKeyDictionary[asyncio.AbstractEventLoop, float] = WeakKeyDictionary()
_lock = threading.RLock()
"""Of all turnstiles; reentrant, since garbage collection may run inside it and end another run."""
