"""Where tool functions run when not on the event loop: a thread per call, or a process that can be killed."""

import asyncio
import importlib
import json
import logging
import os
import sys
import types
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import replace

from swink.errors import AgentError, MisuseError
from swink.system.aio import wait_through_cancel
from swink.system.programs import Command, python_script
from swink.system.threads import begin, start_thread

GRACE = 0.05
"""Seconds a cancelled tool gets to stop by itself."""

PATIENCE = 6.0
"""Seconds the process that ends an isolated tool gets to do so."""

DESCRIPTIONS = "swink.tool.description"
"""The log of tools that no model can know; silent in the process of an isolated tool."""

_KEEP = str(Path(__file__).with_name("coding") / "supervisor" / "keep.py")
"""The keeper: a program that also adopts, and ends, what a tool starts in a session of its own."""
_CHILD = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); "
    "from swink.tools.workers import serve_one_call; serve_one_call()"
)
_MAIN = "__swink_main__"
_UNGUARDED = (
    "an isolated tool imports the script that defines it, and this script runs its agent when imported; "
    'put that part under `if __name__ == "__main__":`'
)
_loading_main = False


class Abandoned(AgentError):
    """The tool did not stop when asked; it may still be running and its effect is unknown."""


class WorkerDied(AgentError):
    """The tool ended without a result."""


async def run_in_thread(
    function: Callable[..., Any], arguments: Mapping[str, Any], name: str, cancel: Callable[[], None]
) -> Any:
    """Call a blocking function in a daemon thread, with the caller's context variables.

    On cancellation `cancel` is called and the function gets a short grace period; after that the thread is
    `Abandoned`, since nothing can stop it. As many threads as calls: an abandoned one must not hold up other
    calls, or the exit of the program.
    """
    ended = begin(partial(start_thread, name=f"swink-tool-{name}"), function, **arguments)
    try:
        await asyncio.wait([ended])
    except asyncio.CancelledError:
        cancel()
        await asyncio.wait([ended], timeout=GRACE)
        if not ended.done():
            raise Abandoned(Abandoned.__doc__) from None
    value, failure = ended.result()
    if failure is not None:
        raise _as_exception(failure)
    return value


async def run_in_process(module: str, qualname: str, arguments: Mapping[str, Any]) -> Any:
    """Call a module-level tool in a new interpreter; cancellation kills it and every process it started."""
    import pickle

    if _loading_main:
        raise MisuseError(_UNGUARDED)
    main = _main_script() if module == "__main__" else None
    payload = pickle.dumps((main, module, qualname, dict(arguments)))
    # -P: the child imports what this process would import, not what lies in the working directory.
    command = Command((sys.executable, "-P", "-c", _CHILD, json.dumps(sys.path)), None, os.environ)
    code, answer = await (_run(command, payload) if sys.platform == "win32" else _run_kept(command, payload))
    try:
        value, failure = pickle.loads(answer)
    except (EOFError, pickle.UnpicklingError):
        raise WorkerDied(f"the tool's process ended with code {code} and no result") from None
    if failure is not None:
        raise _as_exception(failure)
    return value


def _main_script() -> tuple[Literal["module", "path"], str]:
    """How the child finds what this process runs as `__main__`; its types come back in a module `_MAIN`."""
    main = sys.modules["__main__"]
    sys.modules.setdefault(_MAIN, main)
    spec, path = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if spec is not None:
        return "module", spec.name
    if path is None:
        raise MisuseError(
            "isolation='process' needs the tool in a file that the child can import; "
            "a prompt or a notebook has none"
        )
    return "path", path


def _as_exception(failure: BaseException) -> Exception:
    """What would end the program (a tool that calls `sys.exit`) ends only the tool."""
    return failure if isinstance(failure, Exception) else WorkerDied(f"{type(failure).__name__}: {failure}")


async def _run_kept(command: Command, payload: bytes) -> tuple[int | None, bytes]:
    """Exit code and output of a command under a keeper.

    When we close the lifeline, or die, the keeper ends the command and every process it started.
    """
    lifeline_read, lifeline = os.pipe()
    keeper = python_script(_KEEP, str(lifeline_read), *command.argv)
    pipe = asyncio.subprocess.PIPE
    starting = asyncio.ensure_future(
        replace(keeper, cwd=command.cwd, env=command.env).start(
            stdin=pipe, stdout=pipe, pass_fds=(lifeline_read,), start_new_session=True
        )
    )
    starting.add_done_callback(lambda _: os.close(lifeline_read))
    try:
        process = await _started(starting)
        answer, _ = await process.communicate(payload)
    finally:
        with suppress(BrokenPipeError):
            os.write(lifeline, b"!")
        os.close(lifeline)
        if _has_started(starting):
            await _end(starting.result())
    return process.returncode, answer


async def _started(starting: "asyncio.Future[asyncio.subprocess.Process]") -> asyncio.subprocess.Process:
    """The process, once it runs: asyncio may hang where the start of one is cancelled midway."""
    await wait_through_cancel(starting)
    return starting.result()


def _has_started(starting: "asyncio.Future[asyncio.subprocess.Process]") -> bool:
    return starting.done() and not starting.cancelled() and starting.exception() is None


async def _end(process: asyncio.subprocess.Process) -> None:
    """Wait for the keeper to end, however often we are cancelled; one that takes too long is killed."""
    end = asyncio.ensure_future(process.wait())
    try:
        await wait_through_cancel(end, timeout=PATIENCE)
    finally:
        if not end.done():
            with suppress(ProcessLookupError):
                process.kill()
            await wait_through_cancel(end)


async def _run(command: Command, payload: bytes) -> tuple[int | None, bytes]:
    """The same on Windows, where no keeper can adopt processes: only the command itself is killed."""
    pipe = asyncio.subprocess.PIPE
    starting = asyncio.ensure_future(command.start(stdin=pipe, stdout=pipe))
    try:
        process = await _started(starting)
        answer, _ = await process.communicate(payload)
    finally:
        if _has_started(starting):
            with suppress(ProcessLookupError):
                starting.result().kill()
            await wait_through_cancel(asyncio.ensure_future(starting.result().wait()))
    return process.returncode, answer


def serve_one_call() -> None:
    """The child's side: read one call from stdin, answer on stdout; what the tool prints goes to stderr."""
    import pickle

    logging.getLogger(DESCRIPTIONS).disabled = True  # the parent has said it
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    value, failure = None, None
    try:
        main, module, qualname, arguments = pickle.load(sys.stdin.buffer)
        if main is not None:
            _load_main(*main)
        value = _find_tool(module, qualname).call_here(arguments)
    except BaseException as error:
        failure = error
    with answer:
        answer.write(_pack(value, failure))


def _load_main(kind: Literal["module", "path"], name: str) -> None:
    global _loading_main
    import runpy

    _loading_main = True
    loaded = types.ModuleType(_MAIN)
    loaded.__dict__.update(
        runpy.run_module(name, run_name=_MAIN) if kind == "module" else runpy.run_path(name, run_name=_MAIN)
    )
    sys.modules[_MAIN] = sys.modules["__main__"] = loaded
    _loading_main = False


def _find_tool(module: str, qualname: str) -> Any:
    target: Any = importlib.import_module(module)
    for part in qualname.split("."):
        target = getattr(target, part)
    if not hasattr(target, "call_here"):
        raise MisuseError(
            f"{module}.{qualname} is not a tool in the child process; "
            "decorate the function: @tool(isolation='process')"
        )
    return target


def _pack(value: Any, failure: BaseException | None) -> bytes:
    import pickle

    try:
        data = pickle.dumps((value, failure))
        if failure is not None:
            pickle.loads(data)
        return data
    except Exception as error:
        # Pickling runs code of the tool's own types, which may raise anything.
        text = (
            f"{type(failure).__name__}: {failure}"
            if failure is not None
            else f"the result is not picklable: {error}"
        )
        return pickle.dumps((None, WorkerDied(text)))
