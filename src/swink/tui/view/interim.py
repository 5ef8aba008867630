"""Markdown as plain text, until its painter is there."""

from rich.segment import Segment
from textual.strip import Strip

from swink.tui.look import Look
from swink.tui.visible import visible, wrap


def paint_markdown(text: str, width: int, look: Look) -> list[Strip]:
    """The text, wrapped."""
    return [Strip([Segment(line, look.text)]) for line in wrap(visible(text.strip("\n")), width)]


class StreamedMarkdown:
    """The same for a text that grows."""

    def __init__(self, look: Look) -> None:
        self._look = look

    def paint(self, text: str, width: int) -> list[Strip]:
        """The text so far, wrapped."""
        return paint_markdown(text, width, self._look)
