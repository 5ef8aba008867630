"""Threads and models at exit and after a fork: a thread per load and per generation, and none left at exit.

llama.cpp's own threads must have ended before the interpreter does. A forked child does not have them, and
closing a model there would wait for ever, so it is never closed.
"""

import asyncio
import atexit
import ctypes
import os
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from swink.errors import AgentError
from swink.local.llamacpp import LlamaServer
from swink.local.states import LocalModelError

T = TypeVar("T")


class Owner(Protocol):
    """An object that holds llama.cpp servers: `servers` are in memory, `close` stops and drops them."""

    def close(self) -> None: ...
    def servers(self) -> list[LlamaServer]: ...


_running: set[threading.Thread] = set()
_owners: "weakref.WeakSet[Owner]" = weakref.WeakSet()


def close_at_exit(owner: Owner) -> None:
    """Close the object when the interpreter exits, if it still exists then."""
    _owners.add(owner)


def start_thread(name: str, target: Callable[[], None]) -> None:
    """Run a function in a thread; the exit waits for it after its owner has been closed."""

    def run() -> None:
        try:
            target()
        finally:
            _running.discard(thread)

    # A daemon: otherwise the interpreter would wait for a generation to end before it could stop it.
    thread = threading.Thread(target=run, name=name, daemon=True)
    _running.add(thread)
    try:
        thread.start()
    except RuntimeError as error:
        _running.discard(thread)
        raise LocalModelError(f"no thread could be started: {error}") from error


async def call_in_thread(name: str, function: Callable[[], T]) -> T:
    """Call a blocking function in a thread; a caller that is cancelled does not wait for it."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        settle = future.set_exception
        outcome: Any = LocalModelError(f"{name} broke off; the traceback is on stderr")
        try:
            outcome, settle = function(), future.set_result
        except (AgentError, OSError, ValueError, RuntimeError) as error:
            outcome = error
        finally:
            with suppress(RuntimeError):  # the event loop is closed
                loop.call_soon_threadsafe(lambda: None if future.done() else settle(outcome))

    start_thread(name, run)
    return await future


def _leave() -> None:
    for owner in list(_owners):
        owner.close()
    for thread in list(_running):
        thread.join(30)


def _after_fork() -> None:
    for owner in list(_owners):
        for server in owner.servers():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(server))  # never freed, so never closed
    _owners.clear()
    _running.clear()


atexit.register(_leave)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
