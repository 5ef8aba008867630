"""Daemon threads, which nobody waits for: neither the end of an event loop nor the exit of the program.

Blocking work may get stuck for ever: a disk that hangs, a pipe that nobody writes to, a tool. Executors of
the standard library join their threads at exit, so one that is stuck keeps the program from ending.
"""

import asyncio
import atexit
import os
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import wraps
from queue import Empty, SimpleQueue
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")

AT_ONCE = 32
"""How many calls of `in_thread` run concurrently, as long as they end."""
PATIENCE = 1.0
"""Seconds in which none of them ends, and then another one may run: those that run are stuck."""
ENDING = 1.0
"""Seconds that tasks which are cancelled at the end of `run_to_end` get to stop."""
LAST_CALLS = 2.0
"""Seconds that calls in a `Serial` get when the program exits."""
_ANY = "swink"
"""The name of a thread that is idle, or whose job has no name of its own."""
_IDLE, _IDLE_FOR = 16, 5.0
"""How many threads wait for more work, and for how many seconds."""

Job = Callable[[], object]
Outcome = tuple[T | None, BaseException | None]
"""What a function returned, or what it raised."""


def start_thread(job: Job, name: str = _ANY) -> None:
    """Run a job, which must not raise, in a daemon thread of its own; a thread that is idle is used again."""
    try:
        _idle.pop().put((job, name))
    except IndexError:
        mine: SimpleQueue[tuple[Job, str]] = SimpleQueue()
        mine.put((job, name))  # what a thread is given as an argument it holds as long as it lives
        threading.Thread(target=_work, args=(mine,), name=name, daemon=True).start()


async def in_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """`asyncio.to_thread`, but nobody waits for a thread that is stuck: cancelled, it goes on unheard."""
    return outcome_of(await begin(_crew.start, function, *args, **kwargs))


def off_loop(
    method: Callable[Concatenate[Any, P], T],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """The async twin of a method of `self.sync`: it runs `in_thread`."""

    @wraps(method)
    async def twin(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await in_thread(method, self.sync, *args, **kwargs)

    return twin


def begin(
    start: Callable[[Job], object], function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> "asyncio.Future[Outcome[T]]":
    """Call a function in the thread that `start` finds for a job, with the caller's context variables."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Outcome[T]] = loop.create_future()
    context = copy_context()

    def job() -> None:
        try:
            outcome = context.run(function, *args, **kwargs), None
        except BaseException as error:
            outcome = None, error  # raised for the caller that waits
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, ended, outcome)

    start(job)
    return ended


def outcome_of(outcome: Outcome[T]) -> T:
    """What the function returned; or what it raised is raised."""
    value, failure = outcome
    del outcome
    try:
        if failure is not None:
            raise failure
        return cast(T, value)
    finally:
        failure = None  # its traceback holds this frame, and must not hold itself


class Serial:
    """Runs the calls of one owner in the order in which they came, each off the event loop."""

    def __init__(self) -> None:
        self._jobs: deque[Job] = deque()
        self._busy = threading.Lock()

    def start(self, job: Job) -> None:
        """Run a job when all before it have ended."""
        _unfinished.add(self)  # before another thread may run the job, and discard it
        self._jobs.append(job)
        start_thread(self._drain)

    def forget(self) -> None:
        """In a child process: what runs or waits is its parent's."""
        self._busy = threading.Lock()
        self._jobs.clear()

    async def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """What the function returns once its turn has come; cancelled, it is called all the same."""
        return outcome_of(await begin(self.start, function, *args, **kwargs))

    def _drain(self) -> None:
        jobs, busy = self._jobs, self._busy
        while jobs and busy.acquire(blocking=False):
            _unfinished.add(self)
            try:
                while jobs:
                    jobs.popleft()()
            finally:
                _unfinished.discard(self)
                busy.release()


def run_to_end(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, but what does not stop when it is cancelled, and threads that are stuck, are left."""
    with runner_to_end() as runner:
        return runner.run(main)


@contextmanager
def runner_to_end() -> Generator[asyncio.Runner, None, None]:
    """An event loop for several calls; what is stuck at its end is left."""
    runner = asyncio.Runner()
    loop = runner.get_loop()
    loop.set_default_executor(_Executor())
    try:
        with _woken_by_signals(loop):
            yield runner
    finally:
        try:
            _end(loop)
        finally:
            asyncio.set_event_loop(None)
            loop.close()


@contextmanager
def _woken_by_signals(loop: asyncio.AbstractEventLoop) -> Generator[None, None, None]:
    """Without it, Python may not hear a signal that comes just before the loop begins to wait."""
    if os.name != "posix" or threading.current_thread() is not threading.main_thread():
        yield  # Windows' loop does it by itself
        return
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        loop.add_reader(ours, ours.recv, 4096)
        before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            loop.remove_reader(ours)


def _end(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what is left; whatever goes on after that is abandoned with its event loop."""
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left, timeout=ENDING))
    for task in left:
        if not task.done():
            loop.set_exception_handler(_ignore)  # its streams cannot be closed while it reads them
            setattr(task, "_log_destroy_pending", False)  # noqa: B010 - asyncio's own way to say so
        elif not task.cancelled() and (error := task.exception()) is not None:
            text = "unhandled exception at the end of run_to_end()"
            loop.call_exception_handler({"message": text, "exception": error, "task": task})
    closing = loop.create_task(loop.shutdown_asyncgens())
    loop.run_until_complete(asyncio.wait([closing], timeout=ENDING))


class _Crew:
    """At most `AT_ONCE` jobs concurrently, unless those that run are stuck."""

    def __init__(self) -> None:
        self._jobs: deque[Job] = deque()
        self._free = AT_ONCE
        self._ended = 0
        self._watched = False
        self._lock = threading.RLock()  # garbage collection may run inside it

    def start(self, job: Job) -> None:
        with self._lock:
            self._jobs.append(job)
            if self._free > 0:
                self._free -= 1
                work = self._take_jobs
            elif not self._watched:
                self._watched = True
                work = self._watch
            else:
                return
        start_thread(work)

    def _take_jobs(self) -> None:
        while True:
            with self._lock:
                if not self._jobs:
                    self._free += 1
                    return
                job = self._jobs.popleft()
            job()
            del job  # it may hold much, and the thread lives on
            self._ended += 1

    def _watch(self) -> None:
        """While jobs wait: if none has ended for some time, let another one run from now on."""
        while True:
            ended = self._ended
            time.sleep(PATIENCE)
            with self._lock:
                if not self._jobs:
                    self._watched = False
                    return
            if self._ended == ended:
                start_thread(self._take_jobs)


class _Executor(ThreadPoolExecutor):
    """The executor of an event loop whose end waits for no thread: `asyncio.to_thread` and name look-ups."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except StopIteration as error:
                future.set_exception(RuntimeError(f"StopIteration: {error}"))  # no future may hold one
            except BaseException as error:
                future.set_exception(error)

        _crew.start(job)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """There is nothing to wait for."""


def _work(mine: "SimpleQueue[tuple[Job, str]]") -> None:
    """The life of a thread: one job after the other, until it has been idle for some time."""
    thread = threading.current_thread()
    job, name = mine.get()
    while True:
        if name != _ANY:
            thread.name = name
        _stdin = sys.stdin  # one that a stuck job reads must outlive the exit: Python aborts if it closes it
        job()
        del job, _stdin
        if name != _ANY:
            thread.name = _ANY
        if len(_idle) >= _IDLE:
            return
        _idle.append(mine)
        try:
            job, name = mine.get(timeout=_IDLE_FOR)
        except Empty:
            try:
                _idle.remove(mine)
                return
            except ValueError:  # another thread has just taken it, and brings a job
                job, name = mine.get()


def _ignore(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    pass


def _settle(outcome: "asyncio.Future[Any]", value: Any) -> None:
    if not outcome.done():
        outcome.set_result(value)


def _after_fork() -> None:
    """A child process has none of its parent's threads."""
    global _crew
    _idle.clear()
    for serial in list(_unfinished):
        serial.forget()
    _unfinished.clear()
    _crew = _Crew()


@atexit.register
def _finish_calls() -> None:
    """Let the owners' last calls end, such as records on their way to a log; one that is stuck is left."""
    until = time.monotonic() + LAST_CALLS
    while _unfinished and time.monotonic() < until:
        time.sleep(0.005)


_idle: list[SimpleQueue[tuple[Job, str]]] = []
"""Threads without work. Only single operations, which are atomic: no lock that a fork could copy taken."""
_unfinished: set[Serial] = set()
_crew = _Crew()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
