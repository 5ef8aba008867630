"""The lifetime of a run: what may abort it, from any thread, and who waits for its end."""

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from math import inf

from msgspec import Struct, field

from swink.messages import clean
from swink.messages.redact import describe_error
from swink.system.aio import call_later, wait_through_cancel

log = logging.getLogger("swink")

LATE = "give the run a longer deadline=, or choose a faster model; agent.run() goes on from here"


class Lifetime(Struct, eq=False):
    """From start to finish. `interrupt` makes the run end itself soon; it is called once, in its thread."""

    _interrupt: Callable[[], None] | None
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    aborted: str | None = None
    advice: str = ""
    """What to do about the abort."""
    failure: BaseException | None = None
    is_over: bool = False
    deadline: float = inf
    detached: bool = False
    thread: int = field(default_factory=threading.get_ident)
    _timer: asyncio.TimerHandle | None = None
    _finished: "asyncio.Future[None] | None" = None

    def limit(self, deadline: float | None) -> None:
        """Abort after so many seconds."""
        if deadline is None or self.aborted is not None:
            return
        reason, self.deadline = f"deadline of {deadline:g} s passed", self.loop.time() + deadline
        if deadline <= 0:
            self.abort(reason, LATE)
        else:
            self._timer = call_later(self.loop, deadline, self.abort, reason, LATE)

    def abort(self, reason: str = "the run was aborted", advice: str = "") -> None:
        """End the run soon, keeping what arrived; safe from any thread, and nothing once it is over."""
        if threading.get_ident() != self.thread:
            with suppress(RuntimeError):  # the event loop is closed
                self.loop.call_soon_threadsafe(self.abort, reason, advice)
        elif self.aborted is None and self._interrupt is not None:
            self.aborted, self.advice = reason, advice
            self._interrupt()

    async def wait(self) -> None:
        """Return when the run is over; cancelling the waiter aborts the run, and still waits for its end."""
        if not self.is_over:
            if self._finished is None:
                self._finished = self.loop.create_future()
            cancelled = "the caller was cancelled"
            await wait_through_cancel(self._finished, cancelled=lambda: self.abort(cancelled))

    def stop_timer(self) -> None:
        """The deadline no longer matters."""
        if self._timer is not None:
            self._timer.cancel()

    def fail(self, error: BaseException) -> None:
        """Let this be raised to the caller of the run, unless something else has failed before."""
        self.failure = self.failure or error

    def finish(self) -> None:
        """The run is over: who waits for it goes on."""
        self.is_over = True
        self._interrupt = None
        if self.detached:
            self.log_failure()
        if self._finished is not None and not self._finished.done() and not self.loop.is_closed():
            self._finished.set_result(None)

    def log_failure(self) -> None:
        """Log the exception of a run that nobody awaits."""
        if self.failure is not None:
            log.warning("a detached run failed: %s", clean(describe_error(self.failure)))
