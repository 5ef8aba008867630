"""The call of a question as a scrollable text; only the rows that are seen are painted."""

from collections.abc import Sequence

from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from swink.app.tui.approval.painting import Row, paint
from swink.app.tui.look import LOOKS, Look


class CallView(ScrollView, can_focus=False):
    """Rows, as many of them at a time as there is room for."""

    DEFAULT_CSS = "CallView { height: auto; scrollbar-size-vertical: 1; background: $surface; }"

    def __init__(self) -> None:
        super().__init__()
        self.look: Look = LOOKS["dark"]
        self._rows: Sequence[Row] = ()

    @property
    def rows(self) -> Sequence[Row]:
        """What it shows."""
        return self._rows

    @property
    def is_cut(self) -> bool:
        """Whether there are more rows than there is room for."""
        height = self.styles.height
        return height is not None and len(self._rows) > height.value

    def show(self, rows: Sequence[Row], most: int, *, keep: bool = False) -> None:
        """Show rows, at most so many at a time; from the beginning unless the place is kept."""
        self._rows = rows
        self.styles.height = max(1, min(len(rows), most))
        self.virtual_size = Size(self.size.width, len(rows))
        if not keep:
            self.scroll_to(0, 0, animate=False)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One row."""
        number = self.scroll_offset.y + y
        width = self.size.width
        row = self._rows[number] if number < len(self._rows) else ()
        return paint(row, width, self.look).apply_style(self.rich_style)
