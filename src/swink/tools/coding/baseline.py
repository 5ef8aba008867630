"""The baseline of a workspace: its protected files as they were when no command ran in it.

A command that starts while another runs is compared with it. Otherwise it would take files that the other
has just planted for original, and put them back when they have been removed.
"""

import threading
import weakref
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from msgspec import Struct

from swink.tools.coding.supervisor import snapshot
from swink.tools.coding.survey import Findings


class Baseline(Struct, frozen=True):
    """Repositories, and the kept paths with their trees (see `supervisor/snapshot.py`)."""

    findings: Findings
    before: Mapping[str, Any]


class RunningCommands:
    """The running commands of one workspace, of all sandboxes in this program."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self.started = 0
        """How many commands have been started so far."""
        self._baseline: Baseline | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a command runs now."""
        return self._running > 0

    def settle(self, now: Baseline, since: int) -> Baseline:
        """`now`, if no command has run since `started` was read; otherwise the last baseline."""
        with self._lock:
            if self._baseline is None or (not self._running and self.started == since):
                self._baseline = now
            return self._baseline

    @contextmanager
    def running(self) -> Generator[None, None, None]:
        """Count one command as running inside the block."""
        with self._lock:
            self._running += 1
            self.started += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1


def record_baseline(findings: Findings, kept: Sequence[str], root: str) -> Baseline:
    """The workspace as it is now; the supervisor reports paths that cannot be read."""
    budget = snapshot.ByteBudget()
    before: dict[str, Any] = {}
    for path in kept:
        with suppress(OSError):
            before[path] = snapshot.read_at(root, path, budget)
    return Baseline(findings, before)


_commands: "weakref.WeakValueDictionary[str, RunningCommands]" = weakref.WeakValueDictionary()
_guard = threading.Lock()


def find_running(root: str) -> RunningCommands:
    """The running commands of a workspace."""
    with _guard:
        found = _commands.get(root)
        if found is None:
            found = _commands[root] = RunningCommands()
        return found
