"""A list to choose from, narrowed by typing."""

from collections.abc import Mapping
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, OptionList, Static

from swink.app.tui.screens import AnswerScreen
from swink.app.tui.screens.listscreen import ListRow, key_of


class Picker(AnswerScreen[str | None]):
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
        Binding("escape", "dismiss(None)", "leave", priority=True),
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
            self.dismiss(key_of(options.get_option_at_index(options.highlighted)))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(key_of(event.option))

    def action_move(self, step: int) -> None:
        options = self.query_one(OptionList)
        options.action_cursor_down() if step > 0 else options.action_cursor_up()

    def _narrow(self, typed: str) -> None:
        options = self.query_one(OptionList)
        words = typed.lower().split()
        texts = {value: f"{value} {about}".lower() for value, about in self._choices.items()}
        values = [value for value, text in texts.items() if all(word in text for word in words)]
        width = max(map(len, values), default=0)
        options.clear_options()
        options.add_options([ListRow(value, self._line(value, width)) for value in values])
        if values:
            options.highlighted = values.index(self._current) if self._current in values else 0
        count = f"{len(values)} of {len(self._choices)}" if words else f"{len(self._choices)}"
        self.query_one(Static).update(count if values else "nothing fits what is typed")

    def _line(self, value: str, width: int) -> Text:
        mark, about = "● " if value == self._current else "  ", self._choices[value]
        text = Text(f"{mark}{value:{width}}", no_wrap=True, overflow="ellipsis")
        return text.append(f"  {about}", style="dim") if about else text
