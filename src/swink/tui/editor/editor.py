"""The editor: Enter sends what is in it."""

from typing import Literal

from textual import events
from textual.message import Message
from textual.widgets import TextArea

from swink.messages import Input

How = Literal["send", "queue"]


class Submitted(Message):
    """The user said something: `text` as it was typed, `input` for the model."""

    def __init__(self, text: str, input: Input, how: How) -> None:
        self.text = text
        self.input = input
        self.how = how
        super().__init__()


class Editor(TextArea):
    """A prompt of one or more lines."""

    DEFAULT_CSS = """
    Editor { height: auto; max-height: 33%; min-height: 3; border: round $primary; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__(soft_wrap=True, tab_behavior="focus", show_line_numbers=False, compact=False)

    @property
    def is_blank(self) -> bool:
        """Whether nothing is written."""
        return not self.text.strip()

    def put_back(self, text: str) -> None:
        """Put a text before what is written."""
        self.text = f"{text}\n{self.text}" if self.text else text

    def clear_to_history(self) -> None:
        """Clear it; the history gives it back."""
        self.clear()

    async def _on_key(self, event: events.Key) -> None:
        match event.key:
            case "enter":
                self._submit("send")
            case "alt+enter":
                self._submit("queue")
            case "shift+enter" | "ctrl+j":
                self.insert("\n")
            case _:
                await super()._on_key(event)
                return
        event.stop()
        event.prevent_default()

    def _submit(self, how: How) -> None:
        if text := self.text.strip():
            self.clear()
            self.post_message(Submitted(text, text, how))
