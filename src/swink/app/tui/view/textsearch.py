"""TextSearch: where a text is in a conversation, and how it is marked there."""

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from swink.app.tui.view.copying import source_of
from swink.app.tui.view.linewindow import LineWindow


class TextSearch:
    """The blocks that have a text, without regard to case; the last one comes first."""

    def __init__(self, roll: LineWindow, text: str) -> None:
        self.wanted = text.casefold()
        self._lines = roll
        self.places = [
            place
            for place, block in enumerate(roll.blocks)
            if self.wanted and not roll.is_hidden_at(place) and self.wanted in source_of(block).casefold()
        ]
        self._at = len(self.places) - 1

    def move(self, step: int, *, margin: int) -> int:
        """Go to the next one and scroll to the line that has it; its number, 0 if there is none."""
        if not self.places:
            return 0
        self._at = (self._at + step) % len(self.places)
        place = self.places[self._at]
        strips = self._lines.painted(place).strips
        lines = (line for line, strip in enumerate(strips) if self.wanted in strip.text.casefold())
        self._lines.reveal(place, next(lines, 0), margin=margin)
        return self._at + 1


def marked(strip: Strip, wanted: str, style: Style) -> Strip:
    """The line with a text marked in it; where folding the case changes lengths, nothing is."""
    text, shown = strip.text, strip.text.casefold()
    at = shown.find(wanted) if len(shown) == len(text) else -1
    while at >= 0:
        end = at + len(wanted)
        strip = styled(strip, strip.index_to_cell_position(at), strip.index_to_cell_position(end), style)
        at = shown.find(wanted, end)
    return strip


def styled(strip: Strip, start: int, end: int, style: Style) -> Strip:
    """The line with some of its cells in another style."""
    chosen = [Segment(text, (own or Style()) + style) for text, own, _ in strip.crop(start, end)]
    return Strip.join([strip.crop(0, start), Strip(chosen, end - start), strip.crop(end)])
