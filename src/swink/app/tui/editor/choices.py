"""Choices: a short list above the editor, of which one is marked."""

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from swink.app.tui.editor.fuzzy import positions
from swink.app.tui.editor.offers import Completion
from swink.app.tui.editor.typed import make_harmless
from swink.app.tui.terminal.failures import EnduringPart

ROWS = 8
WIDEST = 32
"""Cells of a choice that is explained."""


class ChoiceClicked(Message):
    """A choice was clicked, which is the marked one now."""


class Choices(EnduringPart, Widget):
    """The completions that fit best; keys reach it through the editor, which keeps the focus."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"choices--{of}" for of in ("label", "help", "found", "marked")}
    DEFAULT_CSS = """
    Choices {
        display: none; height: auto; padding: 0 1; background: $surface; color: $foreground;
        & .choices--label { color: $foreground; }
        & .choices--help { color: $text-muted; }
        & .choices--found { color: $accent; text-style: bold; }
        & .choices--marked { background: $panel; text-style: bold; }
    }
    Choices:ansi { .choices--marked { text-style: reverse; } .choices--help { text-style: dim; } }
    """

    def __init__(self) -> None:
        super().__init__()
        self._items: Sequence[Completion] = ()
        self._query = ""
        self._marked = 0
        self._top = 0

    @property
    def is_open(self) -> bool:
        return bool(self._items)

    @property
    def marked(self) -> Completion | None:
        return self._items[self._marked] if self._items else None

    def offer(self, items: Sequence[Completion], query: str) -> None:
        """Show other choices, the first one marked."""
        changed = self._rows(items) != self._rows(self._items)
        self._items, self._query, self._marked, self._top = items, query, 0, 0
        self.display = bool(items)
        self.refresh(layout=changed)

    def close(self) -> None:
        if self._items:
            self.offer((), "")

    def mark(self, step: int) -> None:
        """Mark another choice; after the last comes the first."""
        if self._items:
            self._marked = (self._marked + step) % len(self._items)
            self._top = min(max(self._top, self._marked - self._rows(self._items) + 1), self._marked)
            self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self._rows(self._items)

    def render_line(self, y: int) -> Strip:
        """A choice: what it is, letters that match standing out, and what it does."""
        number = self._top + y
        width = self.size.width
        if not 0 <= number < len(self._items):
            return Strip.blank(width)
        item = self._items[number]
        base = self.rich_style
        if number == self._marked:
            base += self.get_component_rich_style("choices--marked", partial=True)
        labels = [cell_len(shown.label) for shown in self._items[self._top : self._top + ROWS]]
        room = max(12, min(max(labels), WIDEST, width - 4))
        helped = make_harmless(item.help).replace("\n", " ")
        segments = [Segment("› " if number == self._marked else "  ", base)]
        segments += self._label(item.label, room if item.help else width - 2, base)
        if item.help and width - 2 - room > 8:
            style = base + self.get_component_rich_style("choices--help", partial=True)
            segments.append(Segment(set_cell_size("  " + helped, width - 2 - room), style))
        return Strip(segments).adjust_cell_length(width, base)

    def _label(self, label: str, room: int, base: Style) -> list[Segment]:
        label = make_harmless(label).replace("\n", " ")
        style = base + self.get_component_rich_style("choices--label", partial=True)
        found = base if base.reverse else base + self.get_component_rich_style("choices--found", partial=True)
        spots = set(positions(self._query, label) or ()) if self._query else set[int]()
        if cell_len(label) > room:
            label = set_cell_size(label, room - 1) + "…"
        pad = " " * (room - cell_len(label))
        letters = (Segment(char, found if at in spots else style) for at, char in enumerate(label))
        return [*letters, Segment(pad, style)]

    def _rows(self, items: Sequence[Completion]) -> int:
        most = min(ROWS, max(3, self.screen.size.height // 3))
        return min(len(items), most)

    def on_click(self, event: events.Click) -> None:
        number = self._top + event.y
        if 0 <= number < len(self._items):
            self._marked = number
            self.post_message(ChoiceClicked())
        event.stop()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.mark(1)
        event.stop()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.mark(-1)
        event.stop()
