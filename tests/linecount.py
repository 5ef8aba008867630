"""How much work something is, in lines of Python that are run: a count that no busy machine changes."""

import sys
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Any


class Lines:
    """Counts the lines that this thread runs inside the block, those of coroutines that it awaits too."""

    def __enter__(self) -> "Lines":
        self.count = 0
        self._before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *failure: object) -> None:
        sys.settrace(self._before)

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        self.count += event == "line"
        return self._trace


def lines_of(work: Callable[[], Any]) -> int:
    """How many lines it takes."""
    with Lines() as lines:
        work()
    return lines.count


async def lines_of_async(work: Callable[[], Awaitable[Any]]) -> int:
    """How many lines it takes, with everything that happens on the event loop meanwhile."""
    with Lines() as lines:
        await work()
    return lines.count
