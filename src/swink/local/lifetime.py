"""How long things live: a thread for each load and each generation, none in between, and nothing left at exit.

llama.cpp's own threads have to be gone before the interpreter is. A forked child has none of them: there, closing a model
would wait for ever, so it is given up as it is.
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
from swink.local.runtime import LlamaServer

T = TypeVar("T")


class Owner(Protocol):
    """Whoever holds servers of llama.cpp's."""

    def close(self) -> None:
        """Stop everything and let go of the servers."""
        ...

    def servers(self) -> list[LlamaServer]:
        """Those it holds."""
        ...


_running: set[threading.Thread] = set()
_owners: "weakref.WeakSet[Owner]" = weakref.WeakSet()


def own(owner: Owner) -> None:
    """Have it closed at exit."""
    _owners.add(owner)


def start_thread(name: str, target: Callable[[], None]) -> None:
    """Run something in a thread that is waited for at exit, once its owner has been closed."""

    def run() -> None:
        try:
            target()
        finally:
            _running.discard(thread)

    # A daemon, as the interpreter would otherwise wait for a generation before it gets to stop it.
    thread = threading.Thread(target=run, name=name, daemon=True)
    _running.add(thread)
    try:
        thread.start()
    except RuntimeError:  # no more threads
        _running.discard(thread)
        raise


async def in_thread(name: str, function: Callable[[], T]) -> T:
    """Run something blocking in a thread of its own; whoever is cancelled does not wait for its end."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        settle = future.set_exception
        outcome: Any = RuntimeError(f"{name} broke off")
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
