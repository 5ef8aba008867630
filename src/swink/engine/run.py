"""One run: its ledger, and the task that drives it.

`close` ends a run without a single await, whoever calls it and wherever the run was.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Protocol

from swink.config import AgentContext, AgentLoopConfig
from swink.engine.history import History
from swink.engine.ledger import Ledger
from swink.engine.waiting import call_later, start_task, started
from swink.engine.watch import Watch
from swink.errors import Aborted, AgentError, NetworkError
from swink.events import AgentEvent, AgentStart
from swink.messages import Message, StopReason
from swink.policy import Policy, consult
from swink.redact import describe_error
from swink.tool import Tool

log = logging.getLogger("swink.run")

SAVE_WITHIN, SAVE_ABORTED = 60.0, 5.0
"""Seconds the last save of a run may take, in general and after an abort."""
SAVE_ATTEMPTS = 3
"""How often a save that is cancelled is begun again."""
ABANDON_AFTER = 1.0
"""Seconds after an abort at which a run that swallows cancellation is closed without it."""


class Sink(Protocol):
    """Where a run's events go, and who is woken when it is over."""

    def push(self, event: AgentEvent) -> None:
        """Take an event."""
        ...

    def wake(self) -> None:
        """The run is over."""
        ...


class Run(Ledger):
    """A ledger and the task that writes it, from the first prompt to the last save."""

    __slots__ = (
        "_abandoning",
        "_abort_reason",
        "_deadline",
        "_ended",
        "_finished",
        "_saved",
        "_saver",
        "_saving",
        "_sink",
        "_task",
        "_thread",
        "dropped",
        "failure",
        "is_over",
        "loop",
        "overflow",
        "pausing",
        "tool_choice",
        "watch",
    )

    def __init__(
        self,
        config: AgentLoopConfig,
        context: AgentContext,
        history: History,
        sink: Sink,
        ended: Callable[["Run"], None],
        *,
        tools: Sequence[Tool] = (),
        policies: Sequence[Policy] = (),
        tool_choice: str | None = None,
        overflow: bool = False,
    ) -> None:
        Ledger.__init__(self, config, context, history, sink.push, tools, policies)
        self.tool_choice = tool_choice
        self.overflow = overflow
        self.dropped: dict[int, int] | None = None
        self.failure: BaseException | None = None
        self.pausing = False
        self.is_over = False
        self.loop = asyncio.get_running_loop()
        self.watch = Watch(self.loop, self._leave_behind)
        self._sink = sink
        self._ended = ended
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.get_ident()
        self._abort_reason: str | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._abandoning: asyncio.TimerHandle | None = None
        self._finished: asyncio.Future[None] | None = None
        self._saved = 0
        self._saving: asyncio.Future[None] | None = None
        self._saver: asyncio.Task[None] | None = None

    def start(
        self,
        prompts: Sequence[Message],
        body: Callable[["Run"], Coroutine[Any, Any, None]],
        deadline: float | None = None,
    ) -> None:
        """Announce the run, take the prompts into the history, and begin."""
        self.emit(AgentStart())
        self.pending.extend(prompts)
        self.enter_pending()
        self._task = start_task(self.loop, body(self), "swink-run")
        if self._abort_reason is not None:
            self._task.cancel()
        elif deadline is not None and deadline <= 0:
            self.abort(f"deadline of {deadline:g} s passed")
        elif deadline is not None:
            reason = f"deadline of {deadline:g} s passed"
            self._deadline = call_later(self.loop, deadline, self.abort, reason)

    def abort(self, reason: str = "the run was aborted") -> None:
        """End the run at once, keeping what arrived; safe from any thread."""
        if threading.get_ident() != self._thread:
            if not self.loop.is_closed():
                self.loop.call_soon_threadsafe(self.abort, reason)
        elif not self.aborting:
            self._abort_reason = reason
            if self.loop.is_closed():
                self.close("aborted")
                return
            if self._task is not None:
                self._task.cancel()
            self._abandoning = self.loop.call_later(ABANDON_AFTER, self.close, "aborted")

    async def wait(self) -> None:
        """Return when the run is over; cancelling the waiter aborts the run, and still waits for its end."""
        interrupted: asyncio.CancelledError | None = None
        while not self.is_over:
            if self._finished is None:
                self._finished = self.loop.create_future()
            try:
                await asyncio.wait([self._finished])
            except asyncio.CancelledError as error:
                interrupted = error
                self.abort("the caller was cancelled")
        if interrupted is not None:
            raise interrupted

    @property
    def aborting(self) -> bool:
        """Whether the run was aborted or closed meanwhile."""
        return self.closed or self._abort_reason is not None

    def check(self) -> None:
        """Stop here if the run was aborted or closed meanwhile."""
        if self.closed or self._abort_reason is not None:
            raise asyncio.CancelledError

    def crash(self, error: BaseException) -> None:
        """A hook failed: the run ends in an error, and whoever awaits it gets the exception itself."""
        self.failure = error
        if self.error is None:
            self.error = HookFailed(describe_error(error))
        self.stop_reason = "error"
        self.close("error")
        if self._task is not None and not isinstance(error, Exception):
            # It goes on to end the event loop; asyncio need not warn that nobody asked this task for it.
            self._task.add_done_callback(lambda task: task.exception())

    def close(self, stop_reason: StopReason | None = None) -> None:
        """End whatever is open and the run with it. Synchronous and idempotent: nothing can interrupt it."""
        if self.closed:
            if self.loop.is_closed():
                self._over()
            return
        if stop_reason is not None and self.stop_reason not in ("error", "aborted"):
            self.stop_reason = stop_reason
            self.reason = self._abort_reason or self.reason
            if stop_reason == "aborted" and self.error is None:
                self.error = Aborted(self.reason or "the run was cancelled")
        try:
            self.end()
        except Exception as error:
            # Nothing of ours raises there. Whatever did, the run is over, and whoever awaits it hears of it.
            self.failure = self.failure or error
        self.watch.stop()
        for timer in (self._deadline, self._abandoning):
            if timer is not None:
                timer.cancel()
        if self.loop.is_closed() or (self.config.save is None and not self.slots.post_run):
            self._over()
        else:
            self._saver = start_task(self.loop, self._finish())

    async def save(self) -> None:
        """Hand what is new to the session; one append at a time, and a cancelled wait does not cancel the append."""
        while self._saved < len(self.produced):
            if self._saving is None:
                self._saving = asyncio.ensure_future(self._append(len(self.produced)))
            try:
                await asyncio.shield(self._saving)
            finally:
                if self._saving.done():
                    self._saving = None

    async def saved(self) -> None:
        """Return when the last save is over; awaited by the run's own task, since a loop that ends waits for its tasks."""
        if self._saver is not None:
            await asyncio.wait([self._saver])

    async def _append(self, upto: int) -> None:
        assert self.config.save is not None
        await self.config.save(self.produced[self._saved : upto])
        self._saved = upto

    async def _finish(self) -> None:
        """What is left to do when the run is closed, within bounds: the last save, and the post-run policies."""
        until = self.loop.time() + (SAVE_ABORTED if self._abort_reason is not None else SAVE_WITHIN)
        try:
            with suppress(asyncio.CancelledError):
                await started()
            if self.config.save is not None:
                await self._save_rest(until)
            for policy in self.slots.post_run:
                await self._tell(policy, until)
        finally:
            self._over()

    async def _tell(self, policy: Policy, until: float) -> None:
        try:
            with suppress(asyncio.CancelledError):
                async with asyncio.timeout_at(until):
                    await consult(policy, "post_run", self.policy_context(), self.ending)
        except TimeoutError:
            log.error("policy %s did not take the end of a run in time", type(policy).__name__)

    async def _save_rest(self, until: float) -> None:
        """Save what the end of the run added: a session that hangs or fails is the caller's to hear."""
        try:
            for _ in range(SAVE_ATTEMPTS):
                with suppress(asyncio.CancelledError):
                    async with asyncio.timeout_at(until):
                        await self.save()
            if self._saved < len(self.produced):
                raise TimeoutError
        except Exception as error:
            # A session is somebody else's code; the run is over, so its failure is kept for whoever awaits the result.
            log.exception("the end of a run was not saved")
            if self._saving is not None:
                self._saving.cancel()
            self.failure = self.failure or (
                TimeoutError("the session did not save in time") if isinstance(error, TimeoutError) else error
            )

    def _leave_behind(self) -> None:
        """The reply does not end even when it is cancelled: the run ends without it."""
        self.fail(
            NetworkError(
                "the stream brings no content, and does not stop when it is cancelled", model=str(self.model)
            )
        )
        self.close("error")

    def _over(self) -> None:
        if self.is_over:
            return
        self.is_over = True
        if self._finished is not None and not self.loop.is_closed():
            self._finished.set_result(None)
        self._ended(self)
        self._sink.wake()


class HookFailed(AgentError):
    """A hook of the application raised; the exception itself is raised from the run."""

    kind = "hook"
