"""When a key counts as an answer: only if the user could have seen the question.

Not in the first moment after it appeared, and never while the editor has the focus.
"""

import time
from collections.abc import Callable

GRACE = 0.3
"""Seconds after a question appears in which no key is an answer."""
IDLE = 1.0
"""Seconds without a key in the editor after which a question may take the focus."""


class KeyGuard:
    """When a key counts as an answer, and when a question may take the focus."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._shown = float("-inf")
        self._typed = float("-inf")

    def mark_hidden(self) -> None:
        """A question is about to appear: nobody can have seen it yet."""
        self._shown = float("inf")

    def mark_shown(self) -> None:
        """A question is on the screen, or has been given the focus."""
        self._shown = self._clock()

    @property
    def is_shown(self) -> bool:
        return self._shown != float("inf")

    def mark_typed(self) -> None:
        """The user has typed in the editor."""
        self._typed = self._clock()

    def mark_sent(self) -> None:
        """What was typed has been sent: nobody is in the middle of it."""
        self._typed = float("-inf")

    @property
    def counts(self) -> bool:
        """Whether a key pressed now is an answer."""
        return self._clock() - self._shown >= GRACE

    @property
    def is_idle(self) -> bool:
        """Whether nobody is typing in the editor."""
        return self._clock() - self._typed >= IDLE
