"""Where tool functions run when not on the event loop: a thread of their own, or a process that can be killed."""

import asyncio
import contextvars
import importlib
import os
import pickle
import runpy
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from swink.errors import AgentError

GRACE = 0.05
"""Seconds a cancelled tool gets to stop by itself."""


class Abandoned(AgentError):
    """The tool did not stop when asked; it may still be running and its effect is unknown."""


class WorkerDied(AgentError):
    """The tool's process ended without a result."""


async def run_in_thread(function: Callable[..., Any], arguments: Mapping[str, Any], name: str, cancel: Callable[[], None]) -> Any:
    """Call a blocking function in a daemon thread, with the caller's context variables.

    On cancellation `cancel` is called and the function gets a short grace; past it the thread is `Abandoned`, since
    nothing can stop it. A thread per call, not a pool: an abandoned one must not hold up others, or the exit.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()

    def work() -> None:
        value, failure = None, None
        try:
            value = context.run(lambda: function(**arguments))
        except BaseException as error:
            failure = error
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, outcome, (value, failure))

    threading.Thread(target=work, name=f"swink-tool-{name}", daemon=True).start()
    try:
        await asyncio.wait([outcome])
    except asyncio.CancelledError:
        cancel()
        await asyncio.wait([outcome], timeout=GRACE)
        if not outcome.done():
            raise Abandoned(Abandoned.__doc__) from None
    value, failure = outcome.result()
    if failure is not None:
        raise failure
    return value


async def run_in_process(module: str, qualname: str, arguments: Mapping[str, Any]) -> Any:
    """Call a module-level tool in a fresh interpreter; cancellation kills it and all it started."""
    main = getattr(sys.modules.get("__main__"), "__file__", None) if module == "__main__" else None
    payload = pickle.dumps((sys.path, main, module, qualname, dict(arguments)))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "swink.workers", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    try:
        answer, _ = await process.communicate(payload)
    finally:
        _kill(process)
        await process.wait()
    if not answer:
        raise WorkerDied(f"the tool's process ended with code {process.returncode} and no result")
    value, failure = pickle.loads(answer)
    if failure is not None:
        raise failure
    return value


def _settle(outcome: "asyncio.Future[Any]", value: Any) -> None:
    if not outcome.done():
        outcome.set_result(value)


def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        elif process.returncode is None:
            process.kill()


def _serve_one_call() -> None:
    """The child's side: read one call from stdin, answer on what was stdout; prints of the tool go to stderr."""
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    path, main, module, qualname, arguments = pickle.load(sys.stdin.buffer)
    sys.path[:] = path
    value, failure = None, None
    try:
        if main is not None:
            sys.modules["__main__"].__dict__.update(runpy.run_path(main, run_name="__swink_worker__"))
        target: Any = importlib.import_module(module)
        for part in qualname.split("."):
            target = getattr(target, part)
        value = target.call_here(arguments)
    except BaseException as error:
        failure = error
    try:
        data = pickle.dumps((value, failure))
    except (pickle.PicklingError, TypeError, AttributeError):
        data = pickle.dumps((None, RuntimeError(repr(failure) if failure else f"the result is not picklable: {value!r}"[:500])))
    with answer:
        answer.write(data)


if __name__ == "__main__":
    _serve_one_call()
