"""The watchdog: a stream that brings no content is cancelled, whatever else it sends."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from math import inf
from typing import Any
from weakref import WeakKeyDictionary, ref

from msgspec import Struct

from swink.errors import NetworkError
from swink.messages import ModelSpec
from swink.stream import Assembly, LlmContext, StreamFn, StreamOptions, Timeout
from swink.system.aio import closing

_LIMITS = Timeout()
PATIENCE, AGAIN = 3, 1.0
"""How often a stream that goes on is cancelled before it is abandoned, and the least seconds between."""


class Watch:
    """Cancels a run's task when a reply brings no content for too long.

    What counts is content, and before it that more of the prompt was read; a provider's pings cannot hold a
    stream open. The watch looks now and then instead of being called for every delta. A stream function that
    does not end after its terminal event is cancelled too; one that goes on when it is cancelled is cancelled
    again, and in the end `abandon` is called.
    """

    __slots__ = (
        "_abandon", "_assembly", "_every", "_fired", "_idle_since", "_limits", "_line", "_loop", "_patrol",
        "_seen", "task", "variables",
    )  # fmt: skip

    def __init__(self, loop: asyncio.AbstractEventLoop, abandon: Callable[[], None] | None = None) -> None:
        self.task: asyncio.Task[Any]
        self.variables: Context
        """Those of the task, in which it is abandoned."""
        self._loop = loop
        self._abandon = abandon
        self._patrol = _patrol_of(loop)
        self._fired = 0
        self._seen = 0
        self._idle_since = 0.0
        self._every = 0.0
        self._assembly: Assembly
        self._limits: Timeout
        self._line = _Line()

    def begin(self, assembly: Assembly, limits: Timeout) -> None:
        """Watch this reply, which the run's task reads."""
        now = self._loop.time()
        self._every = (limits.first if limits.first < limits.idle else limits.idle) / 8
        self._assembly, self._limits = assembly, limits
        if self._line.waiting:
            self._line = _Line()  # a request that was given up still waits in the old one
        if _current.get() is not self._line:
            _current.set(self._line)
        self._seen, self._idle_since, self._fired = self._line.passed, now, 0
        patrol = self._patrol
        if now + self._every < patrol.due:
            patrol.look_at(now + self._every, self._loop)
        patrol.watches.add(self)

    def end(self) -> bool:
        """The reply is read. Whether this watch alone cancelled the task; then that is taken back."""
        self._patrol.watches.discard(self)
        fired, self._fired = self._fired, 0
        left = -1
        for _ in range(fired):
            left = self.task.uncancel()
        return left == 0

    def error(self, model: ModelSpec) -> NetworkError:
        """What is wrong with a reply that this watch cancelled."""
        seconds = self._limits.idle if self._assembly.size else self._limits.first
        return NetworkError(f"no content for {seconds:g} s", model=str(model))

    def stop(self) -> None:
        """The run has ended: the watch lets go of it."""
        self._patrol.watches.discard(self)
        self._abandon = None

    def look(self, now: float) -> float:
        """Cancel the reply if it is stuck; when to look again."""
        size, line = self._assembly.size, self._line
        seen = size + line.passed + self._assembly.prompt_read
        if seen != self._seen or line.waiting:
            self._seen, self._idle_since = seen, now
        limit = self._limits.idle if size else self._limits.first
        if not self._fired and self._assembly.terminal is None and now - self._idle_since < limit:
            return now + self._every
        if self._fired == PATIENCE:
            if self._abandon is not None:
                self.variables.run(self._abandon)
            return inf
        self._fired += 1
        self.task.cancel()
        return now + max(self._every, AGAIN)


def limits_for(stream_fn: StreamFn, options: StreamOptions) -> Timeout:
    """How long a reply may bring no content: by the options, else by the stream function, else by default."""
    given = options.timeout if options.timeout is not None else getattr(stream_fn, "timeout", None)
    if given is None:
        return _LIMITS
    return given if isinstance(given, Timeout) else Timeout(idle=given, first=given)


async def read_reply(
    stream_fn: StreamFn, model: ModelSpec, context: LlmContext, options: StreamOptions, assembly: Assembly
) -> None:
    """Read a reply to its end, for what asks a model beside the turns of a run; under the same watchdog."""
    watch = Watch(asyncio.get_running_loop())
    task = asyncio.current_task()
    assert task is not None
    watch.task = task
    try:
        watch.begin(assembly, limits_for(stream_fn, options))
        async with closing(stream_fn(model, context, options)) as stream:
            async for event in stream:
                assembly.feed(event)
    except asyncio.CancelledError:
        if not watch.end():
            raise
        if assembly.terminal is None:
            raise watch.error(model) from None
    finally:
        watch.end()
        watch.stop()


@contextmanager
def in_line() -> Generator[None]:
    """Wait one's turn inside this: until then the reply that is read here is not stuck."""
    line = _current.get() or _Line()
    line.waiting += 1
    try:
        yield
    finally:
        line.waiting -= 1
        line.passed += 1


class _Line(Struct, eq=False):
    """How many wait their turn for a reply, and how many have had it; it holds nothing of the run."""

    waiting: int = 0
    passed: int = 0


class _Patrol:
    """One timer for all replies that an event loop reads; it holds no reference to the loop."""

    __slots__ = ("__weakref__", "due", "watches")

    def __init__(self) -> None:
        self.watches: set[Watch] = set()
        self.due = inf

    def look_at(self, due: float, loop: asyncio.AbstractEventLoop) -> None:
        """Look at all of them then, if not sooner."""
        if due < self.due:
            self.due = due
            # Nobody's context: a run's own would live as long as the timer.
            loop.call_at(due, self._look, due, context=Context())

    def _look(self, due: float) -> None:
        if due != self.due:
            return  # a sooner look was asked for after this one
        self.due = inf
        loop = asyncio.get_running_loop()
        now = loop.time()
        for watch in list(self.watches):
            self.look_at(watch.look(now), loop)


def _patrol_of(loop: asyncio.AbstractEventLoop) -> _Patrol:
    known = _patrols.get(loop)
    patrol = known() if known is not None else None
    if patrol is None:
        patrol = _Patrol()
        _patrols[loop] = ref(patrol)
    return patrol


_current: ContextVar[_Line | None] = ContextVar("swink_line", default=None)
_patrols: WeakKeyDictionary[asyncio.AbstractEventLoop, ref[_Patrol]] = WeakKeyDictionary()
"""Weak at both ends: a patrol lives by its timer in the loop and by the runs that use it."""
