"""The machine: one process of `pydantic-monty` that runs one program, driven from a thread.

It has no files, no network, no clock but the one it is given and no chance but a seed: what a program does
depends on its text and on the answers that it gets, so that it can be run again to where it was.
"""

import os
import signal
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import datetime
from typing import Any, ParamSpec, TypeVar

import pydantic_monty as monty

from swink.errors import MisuseError
from swink.system.aio import wait_through_cancel
from swink.system.programs import packaged_program
from swink.system.threads import Serial, begin, outcome_of
from swink.tools.codemode.codelimits import CodeLimits

P = ParamSpec("P")
T = TypeVar("T")

Pause = monty.FunctionSnapshot | monty.NameLookupSnapshot | monty.FutureSnapshot | monty.MontyComplete
"""Where a program waits for an answer, or its end."""
Answer = dict[str, Any]
"""`return_value`, `exc_type` with `message`, or `future`."""

_GRACE = 1.0
"""Seconds after its time at which a process that does not stop is killed."""
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)


class Machine:
    """Runs one program; `close` it in every outcome."""

    def __init__(self, limits: CodeLimits, now: datetime, seed: str) -> None:
        self._limits = limits
        self._now = now
        self._seed = seed
        self._serial = Serial()
        self._opened = ExitStack()
        self._printed = monty.CollectString(limits.printed)
        self._lock = threading.Lock()
        self._worker: int | None = None
        self._pid: int | None = None
        """Of the process while it computes."""

    @property
    def printed(self) -> str:
        """What the program has printed."""
        return self._printed.output

    async def start(self, code: str) -> Pause:
        """Run the program to where it waits for the first time."""
        return await self._call(self._start, code)

    async def resume(self, pause: Pause, answer: Any) -> Pause:
        """Go on with the answer to what it waits for."""
        assert not isinstance(pause, monty.MontyComplete)
        if isinstance(pause, monty.NameLookupSnapshot):
            return await self._call(self._compute, lambda: pause.resume(value=answer))
        return await self._call(self._compute, lambda: pause.resume(answer))

    async def refuse(self, pause: monty.FunctionSnapshot | monty.NameLookupSnapshot) -> Pause:
        """Go on without what it asks for: a file, a module, a name that nobody knows."""
        if isinstance(pause, monty.NameLookupSnapshot):
            return await self._call(self._compute, lambda: pause.resume())
        return await self._call(self._compute, lambda: pause.resume_not_handled())

    async def close(self) -> None:
        """End the process, and wait until it has ended."""
        await self._call(self._opened.close)

    def kill(self) -> None:
        """End the process if it computes: whoever waits for it gets an error."""
        with self._lock:
            if self._pid is not None:
                with suppress(OSError):  # it has just ended
                    os.kill(self._pid, _KILL)

    async def _call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call it in the thread; cancelled, the process is killed, so that the thread comes back at once."""
        ended = begin(self._serial.start, function, *args, **kwargs)
        try:
            await wait_through_cancel(ended, timeout=None, cancelled=self.kill)
        except GeneratorExit:
            self.kill()  # the event loop is gone
            raise
        return outcome_of(ended.result())

    def _start(self, code: str) -> Pause:
        limits = self._limits
        bounds: monty.ResourceLimits = {
            "max_feed_duration_secs": limits.seconds,
            "max_memory": limits.memory,
            "max_suspensions": 4 * limits.calls + 1_000,
        }
        pool = self._opened.enter_context(
            monty.Monty(
                binary_path=_program(),
                max_processes=1,
                request_timeout=limits.seconds + 2 * _GRACE,
                feed_duration_limit_grace=_GRACE,
            )
        )
        session = self._opened.enter_context(
            pool.checkout(
                limits=bounds,
                os_policy={
                    "datetime": self._now,
                    "timezone": "utc",
                    "sleep": "zero",
                    "random_start": {"seed": self._seed},
                },
            )
        )
        self._worker = session.worker_pid
        return self._compute(lambda: session.feed_start(code, print_callback=self._printed))

    def _compute(self, step: Callable[[], Pause]) -> Pause:
        with self._lock:
            self._pid = self._worker
        try:
            return step()
        finally:
            with self._lock:
                self._pid = None


def _program() -> str:
    """The worker that came with the package: neither the PATH nor the environment decides."""
    found = packaged_program("pydantic-monty-runtime", "monty")
    if found is None:
        raise MisuseError("the program of pydantic-monty is missing, or lies where a model can write")
    return found
