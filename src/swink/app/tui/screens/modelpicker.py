"""The models to choose from: one line each, with window and price in columns, narrowed by typing."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from swink.app.assistant.modellist import (
    ModelMemory,
    ModelRow,
    model_rows,
    narrowed,
    recall,
    remember,
    shown_price,
    shown_window,
)
from swink.app.tui.escaping import visible
from swink.app.tui.screens import AnswerScreen
from swink.app.tui.screens.listscreen import ListRow, key_of
from swink.events.transcript.blockkinds import counted
from swink.system.threads import in_thread

_MARKS, _WINDOW, _PRICE = 4, 7, 9  # columns
_NARROW = 56  # columns below which the price of output is left out
_HINTS = "Enter takes · Ctrl+F favourite · Esc leaves"


class ModelPicker(AnswerScreen[str | None]):
    """Left with the name of the model that was taken, or with None."""

    CSS = """
    ModelPicker { align: center middle; background: $background 60%; }
    ModelPicker > Vertical { width: 96%; max-width: 110; height: 90%; border: round $primary;
        background: $surface; padding: 0 1; }
    ModelPicker OptionList { height: 1fr; border: none; background: $surface; padding: 0;
        text-wrap: nowrap; text-overflow: ellipsis; }
    ModelPicker OptionList:focus { border: none; }
    ModelPicker OptionList > .option-list--option-highlighted { background: $primary 30%; }
    ModelPicker OptionList:ansi > .option-list--option-highlighted { text-style: reverse; }
    ModelPicker Input { border: none; height: 1; padding: 0; background: $surface; }
    ModelPicker .about { color: $text-muted; height: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "leave", priority=True),
        Binding("down", "move('down')", "next", priority=True),
        Binding("up", "move('up')", "before", priority=True),
        Binding("pagedown", "move('page_down')", "a page down", priority=True),
        Binding("pageup", "move('page_up')", "a page up", priority=True),
        Binding("ctrl+f", "toggle_favourite", "mark as a favourite, or no more", priority=True),
    ]

    def __init__(self, current: str, *, provider: str | None = None, title: str = "model") -> None:
        super().__init__()
        self._current = current
        self._provider = provider
        self._title = title
        self._memory = ModelMemory()
        self._rows: Sequence[ModelRow] = ()
        self._field = Input(placeholder="type to narrow")
        self._list = _Models(lambda: self.call_after_refresh(self._show))
        self._head = Static("", classes="about", markup=False)
        self._foot = Static(_HINTS, classes="about", markup=False)

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = self._title
            yield self._field
            yield self._head
            yield self._list
            yield self._foot

    async def on_mount(self) -> None:
        self._field.focus()
        self._memory = await in_thread(recall)
        await self._read()

    async def _read(self) -> None:
        self._rows = await in_thread(model_rows, self._current, self._memory, self._provider)
        self._show()

    def on_input_changed(self) -> None:
        self._show(is_new=True)

    def on_input_submitted(self) -> None:
        if (marked := self._marked) is not None:
            self.dismiss(marked)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(key_of(event.option))

    def action_move(self, how: str) -> None:
        actions: dict[str, Callable[[], None]] = {
            "down": self._list.action_cursor_down,
            "up": self._list.action_cursor_up,
            "page_down": self._list.action_page_down,
            "page_up": self._list.action_page_up,
        }
        actions[how]()

    async def action_toggle_favourite(self) -> None:
        if (marked := self._marked) is None:
            return
        self._memory = self._memory.toggled(marked)
        await in_thread(remember, self._memory)
        await self._read()

    @property
    def _marked(self) -> str | None:
        at = self._list.highlighted
        option = None if at is None else self._list.get_option_at_index(at)
        return option.key if isinstance(option, ListRow) else None

    def _show(self, *, is_new: bool = False) -> None:
        """Show the rows that fit what is typed; the same one stays marked unless something else was typed."""
        if not self._list.is_attached:
            return  # the screen is being closed: what was read for it comes too late
        typed = self._field.value
        marked = self._current if is_new or self._marked is None else self._marked
        rows = narrowed(self._rows, typed)
        width = max(24, (self._list.size.width or 80) - 2)
        options: list[Option] = []
        group = ""
        for row in rows:
            if row.group != group and not typed.strip():
                group = row.group
                options.append(Option(Text(visible(group), "bold"), disabled=True))
            options.append(ListRow(row.name, _line(row, width, is_current=row.name == self._current)))
        self._list.clear_options()
        self._list.add_options(options)
        keys = [option.key if isinstance(option, ListRow) else None for option in options]
        first = next((number for number, key in enumerate(keys) if key is not None), None)
        self._list.highlighted = keys.index(marked) if marked in keys else first
        if self._list.highlighted == first:
            self._list.scroll_home(animate=False)  # the name of its group is seen too
        self._head.update(_columns(" " * _MARKS + "model", ("window", "in $/M", "out $/M"), width))
        count = f"{len(rows)} of {len(self._rows)}" if typed.strip() else counted(len(self._rows), "model")
        self._foot.update(f"{count} · {_HINTS}" if rows else "nothing fits what is typed · Esc leaves")


class _Models(OptionList):
    """The list, which may get its width later than its screen: the columns follow its own."""

    def __init__(self, show_again: Callable[[], object]) -> None:
        super().__init__(markup=False)
        self._show_again = show_again

    def on_resize(self) -> None:
        self._show_again()


def _line(row: ModelRow, width: int, *, is_current: bool) -> Text:
    marks = f"{'●' if is_current else ' '} {'★' if row.is_favourite else ' '} "
    texts = (shown_window(row.window), *shown_price(row.price))
    return Text(_columns(marks + visible(row.name), texts, width), no_wrap=True)


def _columns(name: str, texts: tuple[str, str, str], width: int) -> str:
    """A name with what is known of it at the right; a long name ends in an ellipsis."""
    window, *prices = texts
    right = f"{window:>{_WINDOW}}"
    for price in prices if width >= _NARROW else prices[:1]:
        right += f"{price:>{_PRICE}}"
    room = width - len(right)
    fitted = name if cell_len(name) <= room else set_cell_size(name, room - 1) + "…"
    return set_cell_size(fitted, room) + right
