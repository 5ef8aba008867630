"""The question whether a folder is trusted."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from swink.app.assistant.trust import Trust
from swink.app.tui.approval import KeyGuard
from swink.app.tui.escaping import visible
from swink.app.tui.screens import AnswerScreen


class TrustQuestion(AnswerScreen[str | None]):
    """Left with one of the keys of the question's answers, or with None for what Esc does."""

    DEFAULT_CSS = """
    TrustQuestion { align: center middle; background: $background 60%; }
    TrustQuestion > Vertical { width: 90%; max-width: 84; height: auto; max-height: 100%;
        border: round $warning; background: $surface; padding: 0 1; }
    TrustQuestion OptionList { height: auto; border: none; background: $surface; padding: 0; margin: 1 0; }
    TrustQuestion OptionList:focus { border: none; }
    TrustQuestion OptionList:focus > .option-list--option-highlighted { color: $text;
        background: $primary 30%; text-style: bold; }
    TrustQuestion OptionList:ansi > .option-list--option-highlighted { text-style: reverse; }
    TrustQuestion .project { text-style: bold; margin: 0 0 1 0; }
    TrustQuestion .found, TrustQuestion .changes { margin: 1 0 0 0; }
    TrustQuestion .changes { height: auto; max-height: 33vh; }
    TrustQuestion .found, TrustQuestion .hints { color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, f"answer('{key}')", show=False) for key in "yan"),
        Binding("escape", "answer('')", "no answer", priority=True),
        Binding("pageup", "turn('up')", "earlier changes", priority=True),
        Binding("pagedown", "turn('down')", "later changes", priority=True),
    ]

    def __init__(
        self, trust: Trust, found: Sequence[str], guard: KeyGuard, escape: str = "decides later"
    ) -> None:
        super().__init__()
        self._trust = trust
        self._found = found
        self._guard = guard
        self._escape = escape

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = "trust"
            yield Static(visible(str(self._trust.project)), classes="project", markup=False)
            yield Static(self._trust.question, markup=False)
            if self._trust.changes:
                with VerticalScroll(classes="changes", can_focus=False):
                    yield Static(visible("\n".join(self._trust.changes)), markup=False)
            elif self._found:
                yield Static(f"Here: {', '.join(self._found)}", classes="found", markup=False)
            answers = [Option(Text(f"{key}  {text}"), key) for key, text in self._trust.answers.items()]
            yield OptionList(*answers, markup=False)
            paging = "PgUp and PgDn show all changes · " if self._trust.changes else ""
            yield Static(f"{paging}Enter takes · Esc {self._escape}", classes="hints", markup=False)

    def on_mount(self) -> None:
        for options in self.query(OptionList):  # there is none if the program is left meanwhile
            options.highlighted = 0
            options.focus()
        self._guard.mark_shown()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.action_answer(event.option.id or "")

    def action_answer(self, key: str) -> None:
        """Take an answer, unless the question has only just appeared."""
        if self._guard.counts and key in ("", *self._trust.answers):
            self.dismiss(key or None)

    def action_turn(self, where: Literal["up", "down"]) -> None:
        for pane in self.query(VerticalScroll):
            pane.scroll_page_up() if where == "up" else pane.scroll_page_down()
