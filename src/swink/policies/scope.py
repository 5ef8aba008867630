"""Values per run: `pre_commit` gets no context, so a policy keeps what it knows of a run by its task."""

import asyncio
from collections.abc import Callable
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


class PerRun(Generic[T]):
    """A value per run, forgotten with it: one policy may serve many agents at once."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._values: WeakKeyDictionary[Any, T] = WeakKeyDictionary()

    def get(self) -> T:
        """This run's value."""
        return self._values.setdefault(current_task() or _OUTSIDE, self._make())

    def set(self, value: T) -> None:
        """Replace this run's value."""
        self._values[current_task() or _OUTSIDE] = value


def current_task() -> "asyncio.Task[Any] | None":
    """The task of the run; None outside an event loop."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


class _Outside:
    """Stands for the task where there is none."""


_OUTSIDE = _Outside()
