"""How a workspace was when no command ran in it: what one that starts while another runs takes for its own beginning.

Otherwise it would take for given what the other has just planted, and put that back after the other's end.
"""

import threading
import weakref
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from msgspec import Struct

from swink.tools.supervisor import snapshot
from swink.tools.survey import Finds


class Calm(Struct, frozen=True):
    """What was there: repositories, and what is kept as it is (path and tree, see `supervisor/snapshot.py`)."""

    finds: Finds
    before: Mapping[str, Any]


class Commands:
    """The commands that run in one workspace, all sandboxes of this program together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._started = 0
        self._calm: Calm | None = None

    @property
    def started(self) -> int:
        """How many there have been."""
        return self._started

    def settle(self, now: Calm, since: int) -> Calm:
        """What was just seen, if none has run since so many had been started; else what was seen before."""
        with self._lock:
            if self._calm is None or (not self._running and self._started == since):
                self._calm = now
            return self._calm

    @contextmanager
    def running(self) -> Generator[None, None, None]:
        """One more, for as long as it runs."""
        with self._lock:
            self._running += 1
            self._started += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1


def look_around(finds: Finds, kept: Sequence[str], root: str) -> Calm:
    """How it is now; a path that cannot be read is for the supervisor to complain about."""
    room = snapshot.Room()
    before: dict[str, Any] = {}
    for path in kept:
        with suppress(OSError):
            before[path] = snapshot.read_at(root, path, room)
    return Calm(finds, before)


_commands: "weakref.WeakValueDictionary[str, Commands]" = weakref.WeakValueDictionary()
_guard = threading.Lock()


def commands_of(root: str) -> Commands:
    """The commands of a workspace."""
    with _guard:
        found = _commands.get(root)
        if found is None:
            found = _commands[root] = Commands()
        return found
