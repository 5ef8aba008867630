"""The permissions: what is allowed here, why calls ran, and one key that removes a rule."""

import time
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from swink.app.assistant.allowances import Allowance, entries, remove
from swink.app.assistant.permissions import Permissions
from swink.app.tui.escaping import visible
from swink.app.tui.look import Look
from swink.app.tui.screens import AnswerScreen
from swink.errors import AgentError
from swink.system.threads import in_thread

_TITLES = {
    "problem": "what is wrong with the file of rules",
    "mode": "asked about",
    "shell": "what commands may do (/permissions sandbox, network or writable changes it)",
    "trust": "always allowed in this session",
    "rule": "saved rules",
    "decision": "decided last",
}


class PermissionsScreen(AnswerScreen[None]):
    """Entries by kind; d removes the one that is marked."""

    CSS = """
    PermissionsScreen { align: center middle; background: $background 60%; }
    PermissionsScreen > Vertical { width: 95%; max-width: 120; height: auto; max-height: 90%;
        border: round $primary; background: $surface; padding: 0 1; }
    PermissionsScreen OptionList { height: auto; max-height: 30; border: none; padding: 0; text-wrap: nowrap;
        background: $surface; }
    PermissionsScreen OptionList:focus > .option-list--option-highlighted { background: $primary 30%; }
    PermissionsScreen Static { margin: 1 0 0 0; height: auto; max-height: 6; color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", "leave", priority=True),
        Binding("d,delete,backspace", "remove", "remove"),
    ]

    def __init__(self, permissions: Permissions, look: Look) -> None:
        super().__init__()
        self._permissions = permissions
        self._look = look
        self._entries: list[Allowance] = []

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = "permissions (d removes, Esc leaves)"
            yield OptionList(markup=False)
            yield Static("", markup=False)

    async def on_mount(self) -> None:
        await self._read()
        self.query_one(OptionList).focus()

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Show the whole of what is marked: the line may be cut."""
        if (entry := self._marked()) is not None:
            self.query_one(Static).update(visible(f"{entry.text}\n{entry.about}".strip()))

    async def action_remove(self) -> None:
        entry = self._marked()
        try:
            if entry is not None and await in_thread(remove, self._permissions, entry):
                await self._read()
        except AgentError as error:
            self.query_one(Static).update(visible(str(error)))

    def _marked(self) -> Allowance | None:
        options = self.query_one(OptionList)
        if options.highlighted is None:
            return None
        id = options.get_option_at_index(options.highlighted).id
        return None if id is None else self._entries[int(id)]

    async def _read(self) -> None:
        self._entries = await in_thread(entries, self._permissions, time.time())
        options = self.query_one(OptionList)
        at = options.highlighted
        options.clear_options()
        kind = ""
        for number, entry in enumerate(self._entries):
            if entry.kind != kind:
                kind = entry.kind
                options.add_option(Option(Text(_TITLES[kind], self._look.subheading), disabled=True))
            options.add_option(Option(self._line(entry), str(number)))
        if not any(entry.kind in ("trust", "rule") for entry in self._entries):
            text = "no rules yet: p at a question saves one, as does /permissions allow bash(git status *)"
            options.add_option(Option(Text(text, self._look.dim), disabled=True))
        first = next((at for at, entry in enumerate(self._entries) if entry.target is not None), 0)
        options.highlighted = (
            min(at, options.option_count - 1) if at is not None else options.get_option_index(str(first))
        )

    def _line(self, entry: Allowance) -> Text:
        look = self._look
        style = look.failed if entry.kind == "problem" or entry.text.startswith("✗") else look.text
        text = Text(f"  {_one_line(entry.text)}", style, no_wrap=True, overflow="ellipsis")
        return text.append(f"  {_one_line(entry.about)}", look.dim) if entry.about else text


def _one_line(text: str) -> str:
    return visible(text).replace("\n", " ")
