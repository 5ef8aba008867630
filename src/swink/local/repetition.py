"""A text that goes round in circles, recognised while it arrives, in linear time.

    Fix the tests.\\nFix the tests.\\nFix the tests.\\n…     one unit of text, over and over
    ╰── shown ───╯ ╰── held back until it differs, or until it is certainly a loop

Rows of a table, items of a list and lines of code resemble each other, but they differ somewhere or come to
an end. Only what recurs exactly, and more often than people would write it, is a loop. The numbers of a list
(1. 2. 3.) make no difference.
"""

import re
from collections import deque

_GRAM = 16  # characters that have to recur before the text after them is compared

_BOUNDARIES = 8  # how many sentences or lines back a repetition is noticed from its first character on

_LEAST, _WORDY, _WORDLESS = 120, 300, 1500
"""Characters of repeated text: fewer than the first number are never a loop; sentences have to reach the
second, numbers and marks the third unless each is a line."""

_WORD = re.compile(r"[^\W\d_]{2,}")


class Repetition:
    """One text as it arrives: `feed` returns what may be shown of it, until it is `looping`."""

    def __init__(self) -> None:
        self.looping = False
        self._text: list[str] = []  # what is compared: the text without the numbers of lists
        self._gram = ""
        self._seen: dict[str, int] = {}  # where each run of characters ended last
        self._period = 0
        self._matched = 0  # how many characters in a row are the same as those one period before
        self._boundaries: deque[int] = deque([0], _BOUNDARIES)
        self._distances: list[int] = []
        """How far back the sentences begin that the current one repeats so far."""
        self._fresh = False
        self._line = "start"
        self._held: list[str] = []

    def feed(self, piece: str) -> str:
        """What of the text so far may be shown now."""
        shown: list[str] = []
        for char in piece:
            if self.looping:
                break
            self._held.append(char)
            if self._is_list_number(char):
                continue  # shown together with what follows it
            self._compare(char)
            repeated = self._matched >= max(2 * _GRAM, self._period)
            if not repeated and (self._fresh or not self._distances):
                shown += self._held
                self._held.clear()
        return "".join(shown)

    def finish(self) -> str:
        """What was held back, if the text came to an end by itself."""
        held = "" if self.looping else "".join(self._held)
        self._held.clear()
        return held

    def _is_list_number(self, char: str) -> bool:
        """Whether the character belongs to a number at the beginning of a line."""
        match self._line:
            case "start" if char.isdecimal():
                self._line = "number"
            case "number" if char in ".)":
                self._line = "text"
            case "number" if char.isdecimal():
                pass
            case _:
                self._line = "start" if char == "\n" else "text"
                return False
        return True

    def _compare(self, char: str) -> None:
        text = self._text
        text.append(char)
        at = len(text) - 1
        if self._distances:
            self._distances = [back for back in self._distances if text[at - back] == char]
        self._fresh = False
        if char == "\n" or (char == " " and at and text[at - 1] in ".!?"):
            if not self._distances:
                self._distances = [at + 1 - boundary for boundary in self._boundaries]
                self._fresh = True
            self._boundaries.append(at + 1)
        if self._period and text[at - self._period] == char:
            self._matched += 1
            self.looping = self._is_loop()
        else:
            self._period = self._matched = 0
        gram = self._gram = (self._gram + char)[-_GRAM:]
        if not self._period and gram in self._seen:
            self._period, self._matched = at - self._seen[gram], _GRAM
        if len(gram) == _GRAM:
            self._seen[gram] = at

    def _is_loop(self) -> bool:
        """Whether this much repetition can be no coincidence; looked at once per period."""
        if self._matched < _LEAST or self._matched % self._period:
            return False
        unit = "".join(self._text[-self._period :])
        repeats = self._matched // self._period
        if len(_WORD.findall(unit)) < 3:
            is_line = "\n" in unit and not any(map(str.isdecimal, unit))
            return self._matched >= _WORDLESS or (is_line and repeats >= 40)
        least = 9 if self._period < 80 else 5 if self._period < 200 else 3
        return self._matched >= _WORDY and repeats >= least
