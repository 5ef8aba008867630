"""The lower part of the screen: what is queued, what may be meant, and the editor."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from swink.app.assistant.attachedfiles import said_text
from swink.app.tui.editor.choices import ChoiceClicked, Choices
from swink.app.tui.editor.completer import Commands
from swink.app.tui.editor.editor import Editor
from swink.app.tui.editor.typed import make_harmless, more_lines
from swink.app.tui.terminal.failures import EnduringPart
from swink.messages import Message

ROWS = 4


class QueueList(EnduringPart, Widget):
    """One line for each queued message, the oldest first."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"queue--mark", "queue--text", "queue--hint"}
    DEFAULT_CSS = """
    QueueList {
        display: none; height: auto; padding: 0 1;
        & .queue--mark { color: $warning; }
        & .queue--text { color: $foreground; }
        & .queue--hint { color: $text-muted; }
    }
    QueueList:ansi .queue--hint { text-style: dim; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._lines: tuple[tuple[str, str], ...] = ()

    def show_queued(self, steering: Sequence[Message], follow_ups: Sequence[Message] = ()) -> None:
        """Show what waits for the next turn, and what waits until the agent would stop."""
        lines = (
            *(("queued", shown_text(message)) for message in steering),
            *(("queued, after", shown_text(message)) for message in follow_ups),
        )
        if lines != self._lines:
            changed = self._height(lines) != self._height(self._lines)
            self._lines = lines
            self.display = bool(lines)
            self.refresh(layout=changed)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self._height(self._lines)

    def render_line(self, y: int) -> Strip:
        """A message: its mark and its first line."""
        width = self.size.width
        hint = self.rich_style + self.get_component_rich_style("queue--hint", partial=True)
        last = self._height(self._lines) - 1
        if y == last and len(self._lines) > ROWS:
            more = Strip([Segment(f"  … {len(self._lines) - ROWS + 1} more", hint)])
            return more.adjust_cell_length(width, self.rich_style)
        if not 0 <= y < len(self._lines):
            return Strip.blank(width, self.rich_style)
        kind, text = self._lines[y]
        mark = self.rich_style + self.get_component_rich_style("queue--mark", partial=True)
        style = self.rich_style + self.get_component_rich_style("queue--text", partial=True)
        said = "  ↑ edits it, Esc takes all back"
        room = width - cell_len(kind) - 5
        if cell_len(text) > room:
            text = set_cell_size(text, max(0, room - 1)) + "…"
        segments = [Segment(f"◦ {kind}  ", mark), Segment(text, style)]
        if y == last and cell_len(text) + cell_len(said) <= room:
            segments.append(Segment(said, hint))
        return Strip(segments).adjust_cell_length(width, self.rich_style)

    @staticmethod
    def _height(lines: Sequence[object]) -> int:
        return min(len(lines), ROWS)


def shown_text(message: Message) -> str:
    """The first line of a message, without the files that go along."""
    lines = make_harmless(said_text(message)).strip().split("\n")
    return lines[0] + (f" … {more_lines(len(lines) - 1)}" if len(lines) > 1 else "")


class EditorPane(EnduringPart, Vertical):
    """An editor with its lists above it."""

    DEFAULT_CSS = "EditorPane { height: auto; }"

    def __init__(self, directory: Path | None, *, state: Path | None, commands: Commands) -> None:
        super().__init__()
        self.queue = QueueList()
        self.choices = Choices()
        self.editor = Editor(directory, state=state, commands=commands, choices=self.choices)

    def compose(self) -> ComposeResult:
        yield self.queue
        yield self.choices
        yield self.editor

    @on(ChoiceClicked)
    def _take_clicked(self, event: ChoiceClicked) -> None:
        event.stop()
        self.editor.take_choice()
        self.editor.focus()
