"""The watchdog: a stream that brings no content is given up, whatever else it sends."""

import asyncio
from contextvars import Context
from math import inf
from typing import Any
from weakref import WeakKeyDictionary

from swink.stream import Assembly, Timeout


class Watch:
    """Cancels a run's task when a reply brings no content for too long.

    What counts is events, so a provider's pings cannot hold a stream open. The watch looks now and then instead of
    being told of every delta. A stream function that does not end after its terminal event is ended at the next
    look, too.
    """

    __slots__ = ("_assembly", "_fired", "_idle_since", "_limits", "_loop", "_patrol", "_seen", "_task")

    def __init__(self, task: "asyncio.Task[Any]", loop: asyncio.AbstractEventLoop) -> None:
        self._task = task
        self._loop = loop
        patrol = _patrols.get(loop)
        if patrol is None:
            patrol = _patrols[loop] = _Patrol()
        self._patrol = patrol
        self._fired = False
        self._seen = 0
        self._idle_since = 0.0
        self._assembly: Assembly
        self._limits: Timeout

    def begin(self, assembly: Assembly, limits: Timeout) -> None:
        """Watch this reply."""
        now = self._loop.time()
        self._assembly, self._limits = assembly, limits
        self._seen, self._idle_since, self._fired = 0, now, False
        self._patrol.watches.add(self)
        self._patrol.look_at(now + min(limits.first, limits.idle) / 8, self._loop)

    def end(self) -> bool:
        """The reply is read. Whether the task was cancelled by this watch and by nobody else; then that is taken back."""
        self._patrol.watches.discard(self)
        if not self._fired:
            return False
        self._fired = False
        return self._task.uncancel() == 0

    def look(self, now: float) -> float:
        """Give the reply up if it is stuck; when to look again."""
        if self._fired:
            return inf
        size = self._assembly.size
        if size != self._seen:
            self._seen, self._idle_since = size, now
        limit = self._limits.idle if size else self._limits.first
        if self._assembly.terminal is not None or now - self._idle_since >= limit:
            self._fired = True
            self._task.cancel()
        return now + limit / 8


class _Patrol:
    """One timer for all replies being read on an event loop. It keeps no hold of the loop, which it must not outlive."""

    __slots__ = ("_due", "watches")

    def __init__(self) -> None:
        self.watches: set[Watch] = set()
        self._due = inf

    def look_at(self, due: float, loop: asyncio.AbstractEventLoop) -> None:
        """Look at all of them then, if not sooner."""
        if due < self._due:
            self._due = due
            loop.call_at(due, self._look, due, context=Context())  # nobody's: a run's own would live as long as the timer

    def _look(self, due: float) -> None:
        if due != self._due:
            return  # a sooner look was asked for after this one
        self._due = inf
        if self.watches:
            loop = asyncio.get_running_loop()
            now = loop.time()
            self.look_at(min([watch.look(now) for watch in self.watches]), loop)


_patrols: WeakKeyDictionary[asyncio.AbstractEventLoop, _Patrol] = WeakKeyDictionary()
