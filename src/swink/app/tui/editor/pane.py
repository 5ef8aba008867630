"""The lower part of the screen: what is queued, what may be meant, and the editor."""

from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical

from swink.app.tui.editor.choices import Choices, Taken
from swink.app.tui.editor.completer import Commands
from swink.app.tui.editor.completion import CommandWord
from swink.app.tui.editor.editor import Editor
from swink.app.tui.editor.queuelist import QueueList


class EditorPane(Vertical):
    """An editor with its lists above it."""

    DEFAULT_CSS = "EditorPane { height: auto; }"

    def __init__(
        self,
        directory: Path | None = None,
        *,
        state: Path | None = None,
        commands: Commands = tuple[CommandWord, ...],
    ) -> None:
        super().__init__()
        self.queue = QueueList()
        self.choices = Choices()
        self.editor = Editor(directory, state=state, commands=commands, choices=self.choices)

    def compose(self) -> ComposeResult:
        """The lists show only what is in them."""
        yield self.queue
        yield self.choices
        yield self.editor

    @on(Taken)
    def _take(self, event: Taken) -> None:
        event.stop()
        self.editor.take_choice()
        self.editor.focus()
