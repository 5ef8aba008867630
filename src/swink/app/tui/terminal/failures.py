"""Unexpected errors that end nothing: whose they are, what is said of them, and how often.

an error in …                      costs
a screen above the conversation    that screen
a part of the conversation         what the part was doing; it is told, and goes on (`EnduringPart`)
"""

import time
from collections.abc import Callable, Iterator
from os.path import basename
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, cast

from textual.dom import DOMNode
from textual.message import Message
from textual.screen import Screen
from textual.strip import Strip

from swink.messages.redact import redact_text
from swink.system.oneline import strip_controls

if TYPE_CHECKING:
    from textual.geometry import Region
    from textual.widget import Widget as _Widget
else:
    _Widget = object  # a widget's first base is where Textual looks for its styles and keys

_LONGEST_PAUSE = 3600.0  # seconds between two notices of the same error


class FailureLog:
    """Says which errors are to be told: the same one ever more seldom, however often it happens."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._told: dict[tuple[str, str], tuple[float, float]] = {}

    def is_news(self, error: Exception) -> bool:
        """Whether to tell of it now."""
        now, what = self._clock(), (type(error).__name__, _place(error))
        next_time, pause = self._told.get(what, (now, 1.0))
        if now < next_time:
            return False
        self._told[what] = (now + pause, min(_LONGEST_PAUSE, pause * 2))
        return True


def describe_failure(error: Exception) -> str:
    """An error in one line, with the place in the code, for whoever mends it."""
    place = _place(error)
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return strip_controls(redact_text(f"{text} ({place})" if place else text))


def failed_nodes(error: Exception) -> Iterator[DOMNode]:
    """The screens and widgets in whose methods it was raised, the innermost first."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    for frame in reversed(frames):
        if isinstance(node := frame.f_locals.get("self"), DOMNode):
            yield node


class EnduringPart(_Widget):
    """Makes a widget a part of the conversation's screen in which nothing ends: what fails is told.

    Textual takes no more messages for a widget in which one failed, and paints none if one cannot be.
    """

    def give_up(self) -> None:
        """Something failed here or in a part of this: leave nobody waiting for it."""

    async def _dispatch_message(self, message: Message) -> None:
        try:
            await super()._dispatch_message(message)
        except Exception as error:  # whatever a mistake of ours or of a library's raises
            _report(self, error)

    def render_lines(self, crop: "Region") -> list[Strip]:
        try:
            return super().render_lines(crop)
        except Exception as error:  # the others are painted all the same
            _report(self, error)
            return [Strip.blank(crop.width, self.rich_style) for _ in range(crop.height)]


class EnduringScreen(EnduringPart, Screen[None]):
    """The screen of the conversation."""


def _report(part: EnduringPart, error: Exception) -> None:
    cast("Any", part).app._handle_exception(error)


def _place(error: Exception) -> str:
    places = [f"{basename(frame.f_code.co_filename)}:{line}" for frame, line in walk_tb(error.__traceback__)]
    return places[-1] if places else ""
