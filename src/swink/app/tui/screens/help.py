"""The help: keys and commands, made from the tables that the program works with."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from swink.app.tui.commands import listed
from swink.app.tui.keys import EDITOR_KEYS, GROUPS
from swink.app.tui.screens import AnswerScreen

_WIDEST = 34
"""Columns of a key or a command: what it does needs the others."""


class Help(AnswerScreen[None]):
    """Keys and commands, with the user's own keys; any of its keys leaves."""

    CSS = """
    Help { align: center middle; background: $background 60%; }
    Help > VerticalScroll { width: 90%; max-width: 100; height: 90%; border: round $primary;
        background: $surface; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,f1,question_mark", "dismiss(None)", "leave", priority=True)
    ]

    def __init__(self, chosen: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._chosen = chosen or {}

    def compose(self) -> ComposeResult:
        with VerticalScroll() as box:
            box.border_title = "help (Esc leaves)"
            yield Static(help_text(self._chosen))

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()


def help_text(chosen: Mapping[str, str]) -> Table:
    """Keys by what they are for, then commands."""
    table = Table.grid(padding=(0, 2))
    table.add_column(max_width=_WIDEST)
    table.add_column()
    for title, rows in sections(chosen):
        table.add_row(Text(title, "bold underline"))
        for name, help in rows:
            table.add_row(Text(f"  {name}", "bold"), Text(help))
        table.add_row()
    return table


def sections(chosen: Mapping[str, str]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Titles, and rows of a key or command and what it does; `chosen` are other keys, by name."""
    for group, keys in GROUPS.items():
        rows = [(key_name(chosen.get(key.name, key.keys)), key.help) for key in keys]
        yield f"Keys: {group}", [*EDITOR_KEYS, *rows] if group == "the editor" else rows
    yield "Commands", [(f"{each.name} {each.usage}".strip(), each.help) for each in listed()]


def key_name(keys: str) -> str:
    """How people write keys: "ctrl+c" is Ctrl+C."""
    names = {"question_mark": "?", "pageup": "PgUp", "pagedown": "PgDn", "left": "←", "right": "→"}
    return ", ".join(
        "+".join(
            names.get(part, part.capitalize() if len(part) > 1 else part.upper()) for part in key.split("+")
        )
        for key in keys.split(",")
    )
