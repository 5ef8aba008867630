"""The watchdog of a run: a stream that brings no content is given up, whatever else it sends."""

import asyncio
from typing import Any

from swink.stream import Assembly, Timeout


class Watch:
    """Cancels the run's task when a reply brings no content for too long.

    What counts is events, so a provider's pings cannot hold a stream open. The watch looks now and then instead of
    being told of every delta, and one timer serves all replies of a run. A stream function that does not end after its
    terminal event is ended at the next look, too.
    """

    __slots__ = ("_assembly", "_due", "_fired", "_idle_since", "_limits", "_loop", "_seen", "_task", "_timer")

    def __init__(self, task: "asyncio.Task[Any]", loop: asyncio.AbstractEventLoop) -> None:
        self._task = task
        self._loop = loop
        self._assembly: Assembly | None = None
        self._limits = Timeout()
        self._seen = 0
        self._idle_since = 0.0
        self._fired = False
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0

    def begin(self, assembly: Assembly, limits: Timeout) -> None:
        """Watch this reply."""
        now = self._loop.time()
        self._assembly, self._limits = assembly, limits
        self._seen, self._idle_since, self._fired = 0, now, False
        due = now + min(limits.first, limits.idle) / 8
        if self._timer is None or self._due > due:
            self._look_at(due)

    def end(self) -> None:
        """The reply is read; a cancellation of ours that the stream function swallowed is taken back."""
        self._assembly = None
        if self._fired:
            self._fired = False
            self._task.uncancel()

    def stop(self) -> None:
        """The run is over."""
        self._assembly = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def claims_cancellation(self) -> bool:
        """Whether the cancellation was this watch's own and nobody else's."""
        if not self._fired:
            return False
        self._fired = False
        return self._task.uncancel() == 0

    def _look(self) -> None:
        self._timer = None
        assembly, now = self._assembly, self._loop.time()
        if assembly is None:
            return
        size = assembly.size
        if size != self._seen:
            self._seen, self._idle_since = size, now
        limit = self._limits.idle if size else self._limits.first
        if assembly.terminal is not None or now - self._idle_since >= limit:
            self._fired = True
            self._task.cancel()
        else:
            self._look_at(now + limit / 8)

    def _look_at(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        self._timer = self._loop.call_at(due, self._look)
