"""The last steps of a run that has ended: its last save, then its post-run policies.

They share one time limit, which an abort or a deadline makes shorter; what does not stop then is left behind.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

from swink.agent.engine.ledger import Recorder
from swink.agent.engine.runlifetime import Lifetime
from swink.agent.policy import Policy
from swink.errors import NotSaved, SessionConflict
from swink.messages.redact import describe_traceback
from swink.system.aio import mark_exception_seen, start_task, started, wait_through_cancel, wake

log = logging.getLogger("swink")
saving = logging.getLogger("swink.run")

SAVE_WITHIN, SAVE_ABORTED = 60.0, 5.0
"""Seconds that all steps may take together, in general and after an abort."""
SAVE_LATE, SAVE_LEAST = 2.0, 1.0
"""Seconds after its deadline at which they are left behind; and the least they get if all else was late."""
SAVE_AGAIN = 3
"""How often the last save is begun when it is cancelled."""

Tell = Callable[[Policy], Coroutine[Any, Any, Any]]
"""Consults one post-run policy."""


class LastSteps:
    """What follows the end of a run, in a task of its own; then `finish` is called."""

    def __init__(
        self,
        life: Lifetime,
        recorder: Recorder | None,
        policies: Sequence[Policy],
        tell: Tell,
        finish: Callable[[], None],
    ) -> None:
        self._life = life
        self._recorder = recorder
        self._policies = policies
        self._tell, self._finish = tell, finish
        self._limit: asyncio.TimerHandle | None = None
        self._step: asyncio.Future[None] | None = None
        self.task = start_task(life.loop, self._take())
        self.task.add_done_callback(mark_exception_seen)

    def hurry(self) -> None:
        """An abort after the end: the last steps get no more time than after any abort."""
        loop, limit = self._life.loop, self._limit
        if limit is not None and not loop.is_closed() and limit.when() > loop.time() + SAVE_ABORTED:
            self._stop_limit()
            self._limit = loop.call_later(SAVE_ABORTED, self._too_late)

    async def _take(self) -> None:
        life = self._life
        now = life.loop.time()
        limit = now + (SAVE_ABORTED if life.aborted is not None else SAVE_WITHIN)
        limit = max(min(limit, life.deadline + SAVE_LATE), now + SAVE_LEAST)
        self._limit = life.loop.call_at(limit, self._too_late)
        try:
            with suppress(asyncio.CancelledError):
                await started()
            if self._recorder is not None:
                await self._save(self._recorder)
            for policy in self._policies:
                await self._consult(policy)
        except BaseException as error:
            life.fail(error)
            raise
        finally:
            self._stop_limit()
            self._finish()

    async def _save(self, recorder: Recorder) -> None:
        """Save what the end of the run added; asyncio.run() may cancel the save meanwhile."""
        late = error = NotSaved(
            "the session did not save in time; the agent has all messages, and saves them with its next run"
        )
        for _ in range(SAVE_AGAIN):
            error = await self._do(recorder.save(), late)
            if not isinstance(error, asyncio.CancelledError):
                break
        if error is not None:
            error = late if isinstance(error, asyncio.CancelledError) else error
            is_raised = isinstance(error, SessionConflict) and isinstance(
                self._life.failure, SessionConflict | None
            )
            if not is_raised:
                saving.error("the end of a run was not saved\n%s", describe_traceback(error))
            self._life.fail(error)
            recorder.close(is_late=True)

    async def _consult(self, policy: Policy) -> None:
        late = TimeoutError()
        error = await self._do(self._tell(policy), late)
        if error is late:
            log.error("policy %s did not take the end of a run in time", type(policy).__name__)
        elif error is not None and not isinstance(error, asyncio.CancelledError):
            self._life.fail(error)  # it ends the program, and is raised there already

    async def _do(self, work: Coroutine[Any, Any, Any], late: TimeoutError) -> BaseException | None:
        """Take one step, cancelled or not; what it raised, or `late` if it takes too long."""
        loop = self._life.loop
        step = self._step = loop.create_future()
        task = loop.create_task(work)
        task.add_done_callback(lambda _: wake(step))
        if self._limit is None:
            loop.call_soon(wake, step)  # after its first step: what it begins at once is begun
        with suppress(asyncio.CancelledError):
            await wait_through_cancel(step, cancelled=self.hurry)
        if not task.done():
            task.cancel()
            task.add_done_callback(mark_exception_seen)
            return late
        return asyncio.CancelledError() if task.cancelled() else task.exception()

    def _stop_limit(self) -> None:
        if self._limit is not None:
            self._limit.cancel()

    def _too_late(self) -> None:
        self._limit = None
        if self._step is not None:
            wake(self._step)
