"""A list to choose from, narrowed by typing."""

from collections.abc import Mapping
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option


class Picker(ModalScreen[str | None]):
    """Shows names with a few words about each; left with the name that was taken, or with None."""

    CSS = """
    Picker { align: center middle; background: $background 60%; }
    Picker > Vertical { width: 90%; max-width: 90; height: auto; max-height: 80%; border: round $primary;
        background: $surface; padding: 0 1; }
    Picker OptionList { height: auto; max-height: 20; border: none; background: $surface; padding: 0; }
    Picker Input { border: none; height: 1; padding: 0; background: $surface; margin: 0 0 1 0; }
    Picker .about { color: $text-muted; height: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "leave"),
        Binding("down", "move(1)", "next", priority=True),
        Binding("up", "move(-1)", "before", priority=True),
    ]

    def __init__(self, title: str, choices: Mapping[str, str], current: str = "") -> None:
        super().__init__()
        self._title = title
        self._choices = choices
        self._current = current

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = self._title
            yield Input(placeholder="type to narrow, Enter takes, Esc leaves")
            yield OptionList(markup=False)
            yield Static("", classes="about", markup=False)

    def on_mount(self) -> None:
        self._narrow("")
        self.query_one(Input).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._narrow(event.value)

    def on_input_submitted(self) -> None:
        options = self.query_one(OptionList)
        if options.highlighted is not None:
            self.dismiss(options.get_option_at_index(options.highlighted).id)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option.id)

    def action_move(self, step: int) -> None:
        options = self.query_one(OptionList)
        if step > 0:
            options.action_cursor_down()
        else:
            options.action_cursor_up()

    def _narrow(self, typed: str) -> None:
        options = self.query_one(OptionList)
        words = typed.lower().split()
        fitting = [
            (value, about)
            for value, about in self._choices.items()
            if all(word in f"{value} {about}".lower() for word in words)
        ]
        values = [value for value, _ in fitting]
        options.clear_options()
        width = max(map(len, values), default=0)
        options.add_options(
            [Option(_line(value, about, width, value == self._current), value) for value, about in fitting]
        )
        options.highlighted = (
            values.index(self._current) if self._current in values else 0 if values else None
        )
        count = f"{len(fitting)} of {len(self._choices)}" if words else f"{len(self._choices)}"
        self.query_one(Static).update(count if fitting else "nothing fits what is typed")


def _line(value: str, about: str, width: int, is_current: bool) -> Text:
    text = Text(f"{'● ' if is_current else '  '}{value:{width}}", no_wrap=True, overflow="ellipsis")
    return text.append(f"  {about}", style="dim") if about else text
