"""The whole conversation, nothing folded, with search."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Input, Static

from swink.app.tui.look import Look
from swink.app.tui.view import TranscriptView
from swink.events.transcript import Transcript

_KEYS = "/ search   n N next, previous   Space ↑ ↓ Home End scroll   Esc leaves"
_INTERVAL = 0.25  # seconds between two looks at a conversation that goes on


class Whole(Screen[None]):
    """Shows everything that a conversation has; what comes while it is open is added."""

    CSS = """
    Whole { background: $background; }
    Whole > Static { height: 1; color: $text-muted; background: $surface; padding: 0 1; }
    Whole > Input { height: 1; border: none; padding: 0 1; background: $surface; display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave", priority=True),
        Binding("q,ctrl+o", "leave", "leave"),
        Binding("slash,ctrl+f", "search", "search"),
        Binding("n", "next(-1)", "the next one, further up"),
        Binding("N", "next(1)", "the one before"),
        Binding("space", "scroll_page(1)", "a page down"),
        Binding("b", "scroll_page(-1)", "a page up"),
    ]

    def __init__(self, transcript: Transcript, look: Look) -> None:
        super().__init__()
        self._transcript = transcript
        self._look = look
        self._version = 0
        self._count = 0

    def compose(self) -> ComposeResult:
        yield TranscriptView(look=self._look, thinking="shown", usual="all")
        yield Input(placeholder="search", compact=True)
        yield Static(_KEYS, markup=False)

    def on_mount(self) -> None:
        self._view.begin_conversation(self._transcript.inside)
        self._update()
        self._view.focus()
        self.set_interval(_INTERVAL, self._update)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._count = self._view.find(event.value)
        event.input.display = False
        self._view.focus()
        self._say(self._count)

    def action_search(self) -> None:
        box = self.query_one(Input)
        box.display = True
        box.value = ""
        box.focus()

    def action_next(self, step: int) -> None:
        if self._count:
            self._say(self._view.find_next(step))

    def action_scroll_page(self, step: int) -> None:
        self._view.scroll_page(step)

    def action_leave(self) -> None:
        box = self.query_one(Input)
        if box.display:
            box.display = False
            self._view.focus()
        else:
            self.dismiss(None)

    @property
    def _view(self) -> TranscriptView:
        return self.query_one(TranscriptView)

    def _say(self, number: int) -> None:
        found = f"{number} of {self._count}" if self._count else "nothing found"
        self.query_one(Static).update(f"{found}   {_KEYS}")

    def _update(self) -> None:
        if self._version != self._transcript.version:
            changes = self._transcript.since(self._version)
            self._version = changes.version
            self._view.take_changes(changes)
