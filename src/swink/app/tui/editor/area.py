"""A text area in which placeholders stand for long pastes and images, each as one piece."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace as change
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text as RichText
from textual.widgets import TextArea

from swink.app.tui.editor.typed import LONGEST_OPEN, Typed, folds, image_name, join, paste_name, placeholders
from swink.app.tui.terminal.failures import EnduringPart

if TYPE_CHECKING:
    from textual.document._document import EditResult, Location, Selection
    from textual.document._edit import Edit


class FoldedArea(EnduringPart, TextArea):
    """Text with placeholders; what a key cuts can be inserted again."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"area--folded"}
    DEFAULT_CSS = """
    FoldedArea .area--folded { color: $accent; }
    FoldedArea .text-area--placeholder { color: $text-muted; }
    FoldedArea:ansi .text-area--placeholder { color: ansi_default; text-style: dim; }
    """

    def __init__(self, *, placeholder: str = "") -> None:
        self._pastes: dict[str, str] = {}  # before Textual sets the cursor, which looks at them
        self._images: dict[str, str] = {}
        super().__init__(
            soft_wrap=True, tab_behavior="focus", highlight_cursor_line=False, placeholder=placeholder
        )
        self._is_cutting = False
        self._cut = ""

    @property
    def typed(self) -> Typed:
        """What stands in it, with what its placeholders stand for."""
        return Typed(self.text, self._pastes, self._images)

    @property
    def is_blank(self) -> bool:
        return not self.text.strip()

    def put(self, typed: Typed) -> None:
        """Replace what stands in it; undo brings it back."""
        self._pastes = {**self._pastes, **typed.pastes}
        self._images = {**self._images, **typed.images}
        self.replace(typed.text, (0, 0), self.document.end, maintain_selection_offset=False)

    def put_before(self, typed: Typed) -> None:
        """Put something before what is written, which stays."""
        self.put(join([typed.trimmed(), self.typed.trimmed()]))

    def put_text(self, text: str) -> None:
        """Put text in place of the selection, or where the cursor is."""
        start, end = self.selection
        self.replace(text, start, end, maintain_selection_offset=False)

    def put_paste(self, text: str) -> None:
        """Put a paste where the cursor is; a long one folds."""
        if folds(text, self._names):
            name = paste_name(text, self.text, self._pastes)
            self._pastes = {**self._pastes, name: text}
            text = name
        self.put_text(text)

    def put_image(self, path: str) -> None:
        """Put a placeholder for an image where the cursor is."""
        name = image_name(path, self.text, self._images)
        self._images = {**self._images, name: path}
        self.put_text(name + " ")

    def empty(self) -> None:
        """Forget everything, what could be undone too."""
        self._pastes, self._images = {}, {}
        self.load_text("")

    @property
    def paste_here(self) -> str | None:
        """The placeholder of a paste that the cursor touches."""
        row, column = self.cursor_location
        line = self.document.get_line(row)
        ends = (ends for ends in placeholders(line, self._pastes) if ends[0] <= column <= ends[1])
        return next((line[start:end] for start, end in ends), None)

    def open_paste(self, name: str) -> bool:
        """Put a paste in place of its placeholder, which the cursor touches; False if it is too long."""
        text = self._pastes[name]
        if len(text) > LONGEST_OPEN:
            return False
        row, column = self.cursor_location
        line = self.document.get_line(row)
        start = line.find(name, max(0, column - len(name)))
        self.replace(text, (row, start), (row, start + len(name)), maintain_selection_offset=False)
        return True

    # A placeholder is one piece

    @property
    def _names(self) -> dict[str, str]:
        return {**self._pastes, **self._images} if self._images else self._pastes

    def validate_selection(self, selection: "Selection") -> "Selection":
        """The cursor passes over a placeholder in one step."""
        if not self._names:
            return selection
        start, end = (self._beside_placeholder(place) for place in selection)
        return type(selection)(end if selection.start == selection.end else start, end)

    def _beside_placeholder(self, place: "Location") -> "Location":
        row, column = place
        if row >= self.document.line_count or (ends := self._around(place)) is None:
            return place
        before = self.selection.end
        if before in ((row, ends[0]), (row, ends[1])):
            return (row, ends[1] if before[1] == ends[0] else ends[0])
        return (row, min(ends, key=lambda end: abs(end - column)))

    def edit(self, edit: "Edit") -> "EditResult":
        """A placeholder is deleted whole, whichever key cuts into it."""
        if self._names and edit.top != edit.bottom:
            top, bottom = self._end_of(edit.top, 0), self._end_of(edit.bottom, 1)
            edit = change(edit, from_location=top, to_location=bottom)
        result = super().edit(edit)
        if self.is_mounted:
            self.scroll_cursor_visible()  # Textual scrolls before it knows of a new line
        if self._is_cutting and result.replaced_text:
            self._cut = result.replaced_text
        return result

    def _end_of(self, place: "Location", which: int) -> "Location":
        ends = self._around(place)
        return place if ends is None else (place[0], ends[which])

    def _around(self, place: "Location") -> tuple[int, int] | None:
        """The placeholder that a place is strictly inside of, as its two ends."""
        found = placeholders(self.document.get_line(place[0]), self._names)
        return next((ends for ends in found if ends[0] < place[1] < ends[1]), None)

    def get_line(self, line_index: int) -> RichText:
        """The line with its placeholders standing out."""
        line = super().get_line(line_index)
        for start, end in placeholders(line.plain, self._names):
            line.stylize(self.get_component_rich_style("area--folded", partial=True), start, end)
        return line

    # Cutting

    @contextmanager
    def _cutting(self) -> Generator[None]:
        self._is_cutting = True
        try:
            yield
        finally:
            self._is_cutting = False

    def action_delete_word_left(self) -> None:
        with self._cutting():
            super().action_delete_word_left()

    def action_delete_word_right(self) -> None:
        with self._cutting():
            super().action_delete_word_right()

    def action_delete_to_start_of_line(self) -> None:
        with self._cutting():
            super().action_delete_to_start_of_line()

    async def action_delete_to_end_of_line_or_delete_line(self) -> None:
        with self._cutting():
            await super().action_delete_to_end_of_line_or_delete_line()

    def action_yank(self) -> None:
        if self._cut:
            self.put_text(self._cut)
