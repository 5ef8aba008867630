"""Bursts: keys that come faster than anybody types are a paste that the terminal did not mark as one.

    a b c … ⏎ d    the Enter is a new line: more follows at once
    a b c … ⏎      nothing follows: a single line is sent, several lines never are

A program that drives the terminal types a line and Enter in one go; that must send.
"""

from msgspec import Struct

GAP = 0.010
"""Seconds between two keys of a burst at most."""
HOLD = 0.080
"""Seconds until a burst is over: a slow connection delivers it in pieces."""
START = 4
"""Characters of a burst that are shown one by one; the rest is collected and shown at once."""


class Settled(Struct, frozen=True):
    """What a burst that is over leaves: text to insert, and whether to send."""

    text: str
    sends: bool


class Burst:
    """The keys of a burst, by the times at which they came."""

    def __init__(self) -> None:
        self._last = float("-inf")
        self._rapid = 0
        self._kept: list[str] = []
        self._enters = 0
        self._has_lines = False

    @property
    def is_waiting(self) -> bool:
        """Whether something is kept back that `settle` gives."""
        return bool(self._kept or self._enters)

    def is_over(self, at: float) -> bool:
        """Whether a key that comes now does not belong to the burst any more."""
        return at - self._last > HOLD

    def is_rapid(self, at: float) -> bool:
        """Whether a key that comes now follows another one faster than anybody types."""
        return at - self._last <= (HOLD if self.is_waiting or self._has_lines else GAP)

    def take_character(self, character: str, at: float) -> str:
        """What to insert now; the rest is kept back until the burst is over."""
        self._note(at)
        if self._enters:
            self._kept.append("\n" * self._enters)
            self._enters, self._has_lines = 0, True
        if self._kept or self._rapid >= START:
            self._kept.append(character)
            return ""
        return character

    def take_enter(self, at: float) -> bool:
        """Whether the Enter is kept back; if not, the user pressed it."""
        self._note(at)
        if not self._rapid:
            return False
        self._enters += 1
        return True

    def settle(self) -> Settled:
        sends = self._enters == 1 and not self._has_lines
        text = "".join(self._kept) + ("" if sends else "\n" * self._enters)
        self._rapid = self._enters = 0
        self._kept.clear()
        self._has_lines = False
        return Settled(text, sends)

    def _note(self, at: float) -> None:
        self._rapid = self._rapid + 1 if self.is_rapid(at) else 0
        self._last = at
