"""What keys do to the conversation, for the app that binds them."""

from typing import Protocol

from textual.actions import SkipAction

from swink.app.tui.editor import Editor
from swink.app.tui.view.panels import TodoPanel
from swink.app.tui.view.transcriptview import TranscriptView


class _Stage(Protocol):
    @property
    def view(self) -> TranscriptView: ...

    @property
    def todo(self) -> TodoPanel: ...

    @property
    def editor(self) -> Editor: ...


class ConversationActions:
    """Actions of an app with a conversation (`view`) and a list of tasks (`todo`)."""

    def action_toggle_fold(self: _Stage) -> None:
        self.view.toggle_fold()

    def action_select_block(self: _Stage, step: int) -> None:
        """Select the call before or after; while there is text in the editor the keys select in that."""
        if self.editor.has_focus and not self.editor.is_blank:
            raise SkipAction
        self.view.select_block(step)

    def action_toggle_thoughts(self: _Stage) -> None:
        self.view.cycle_thoughts()

    def action_scroll_page(self: _Stage, step: int) -> None:
        self.view.scroll_page(step)

    def action_scroll_to_end(self: _Stage) -> None:
        self.view.scroll_to_end()

    def action_toggle_todo(self: _Stage) -> None:
        self.todo.is_wanted = not self.todo.is_wanted
