"""Folds: which blocks show all of themselves, some, or one line.

one line ──runs──→ some (its output as it comes) ──ends, 3 s──→ one line
   └─────────── a person opens or closes it: it stays so ───────────┘

One that ended before anybody saw it run is open for as long, so that what is shown depends on no race.
Of lists of tasks the newest stays open, unless it is shown elsewhere, and the others are one line each.
"""

from collections.abc import Callable
from typing import Literal

from swink.app.assistant.callwords import TODO
from swink.events.transcript import Block, ToolBlock

Fold = Literal["line", "some", "all"]
OWN = "!"
"""The name of a command that the user ran: they want to see what it wrote."""
LINGER = 3.0
"""Seconds that a call stays open after its end."""


class Folds:
    """What is open, by the ids of blocks; `clock` says when a call that ended is folded."""

    def __init__(self, clock: Callable[[], float], *, usual: Fold = "line") -> None:
        self._clock = clock
        self.usual: Fold = usual  # what a block is that nobody touched and that does not run
        self._touched: dict[str, Fold] = {}
        self._running: set[str] = set()
        self._ended: set[str] = set()
        self._ending: dict[str, float] = {}  # when each call is folded that ended a moment ago
        self._lists: dict[str, None] = {}  # the lists of tasks, the newest last
        self._is_list_elsewhere = False
        self._turned: set[str] = set()  # lists that were folded or opened by another one, or by the panel

    def of(self, block: Block) -> Fold:
        """How much of a block is shown."""
        if (touched := self._touched.get(block.id)) is not None:
            return touched
        if isinstance(block, ToolBlock) and block.name == OWN:
            return "all"
        if self.usual == "line" and block.id in self._lists:
            return "all" if block.id == self._newest_list and not self._is_list_elsewhere else "line"
        if self.usual == "line" and (block.id in self._running or block.id in self._ending):
            return "some"
        return self.usual

    def toggle(self, block: Block) -> None:
        """Open what is folded, fold what is open; from now on only a person changes it."""
        self._touched[block.id] = "all" if self.of(block) == "line" else "line"

    def watch(self, block: Block, *, is_new: bool = True) -> None:
        """Notice that a call runs, or that it ended; one that is not new ended long ago."""
        if not isinstance(block, ToolBlock):
            return
        if block.name == TODO and block.state == "done" and block.id not in self._lists:
            self._turn_list()
            self._lists[block.id] = None
        if block.state == "running":
            self._running.add(block.id)
        elif block.is_settled and block.started is not None and block.id not in self._ended:
            self._running.discard(block.id)
            self._ended.add(block.id)
            if is_new:
                self._ending[block.id] = self._clock() + LINGER

    def show_list_elsewhere(self, is_elsewhere: bool) -> None:
        """Say whether the newest list of tasks is on the screen without its block."""
        if is_elsewhere != self._is_list_elsewhere:
            self._is_list_elsewhere = is_elsewhere
            self._turn_list()

    @property
    def _newest_list(self) -> str | None:
        return next(reversed(self._lists), None)

    def _turn_list(self) -> None:
        if (newest := self._newest_list) is not None:
            self._turned.add(newest)

    def due(self) -> list[str]:
        """The ids of what is folded now because its time is over, or otherwise than it was."""
        now = self._clock()
        over = [id for id, when in self._ending.items() if when <= now]
        for id in over:
            del self._ending[id]
        turned, self._turned = self._turned, set()
        return [*over, *turned]

    @property
    def waits(self) -> bool:
        """Whether something is going to fold."""
        return bool(self._ending or self._turned)

    def forget(self, id: str) -> None:
        """A block is gone: what ran in it does not any more."""
        self._running.discard(id)
        self._ended.discard(id)
        self._ending.pop(id, None)
        if id in self._lists:
            del self._lists[id]
            self._turn_list()  # the one before is the newest now
        self._turned.discard(id)

    def clear(self) -> None:
        """Forget everything: another conversation is shown."""
        self._touched.clear()
        self._running.clear()
        self._ended.clear()
        self._ending.clear()
        self._lists.clear()
        self._turned.clear()
