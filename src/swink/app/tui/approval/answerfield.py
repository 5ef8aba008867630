"""A field for a few words or lines in a panel: Enter takes what is written, Esc leaves it."""

from collections.abc import Callable

from textual import events
from textual.message import Message
from textual.widgets import TextArea

from swink.app.tui.terminal.failures import EnduringPart


class AnswerField(EnduringPart, TextArea):
    """What a person writes instead of pressing a letter."""

    DEFAULT_CSS = """
    AnswerField { height: auto; max-height: 10; min-height: 1; border: none; padding: 0; display: none;
        background: $background; }
    """

    class Accepted(Message):
        """Enter was pressed: `text` is the answer."""

        def __init__(self, text: str) -> None:
            self.text = text
            super().__init__()

    class Left(Message):
        """Esc was pressed: the answers are wanted again."""

    class Turned(Message):
        """Tab was pressed: the other meaning of what is written."""

    class TooEarly(Message):
        """A key came before anybody could have seen the field; `typed` was meant for the editor."""

        def __init__(self, typed: str) -> None:
            self.typed = typed
            super().__init__()

    def __init__(self, counts: Callable[[], bool]) -> None:
        self._counts = counts  # whether a key that is pressed now is meant for what is asked
        super().__init__(soft_wrap=True, tab_behavior="focus", show_line_numbers=False, compact=True)

    def open(self, text: str, placeholder: str = "") -> None:
        """Show it with a text to edit, and take the focus."""
        self.show_text(text, placeholder)
        self.focus()

    def show_text(self, text: str, placeholder: str = "") -> None:
        """Show it with a text to edit; the focus stays where it is."""
        self.text = text
        self.placeholder = placeholder
        self.display = True
        self.move_cursor(self.document.end)

    def close(self) -> None:
        self.display = False
        self.text = ""

    async def _on_key(self, event: events.Key) -> None:
        match event.key:
            case key if not self._counts():
                if event.is_printable or key in ("enter", "backspace"):
                    self.post_message(self.TooEarly(event.character or "" if event.is_printable else ""))
                elif key != "escape":
                    return
            case "enter":
                self.post_message(self.Accepted(self.text))
            case "escape":
                self.post_message(self.Left())
            case "tab":
                self.post_message(self.Turned())
            case "shift+enter" | "alt+enter" | "ctrl+j":
                self.insert("\n")
            case _:
                await super()._on_key(event)
                return
        event.stop()
        event.prevent_default()
