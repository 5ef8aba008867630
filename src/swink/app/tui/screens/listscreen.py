"""A list with a preview of what is marked: beside it where there is room, else below.

┌ title ───────────────────────────────┐
│ what is searched for (where it can)  │
│ a row       │ what the marked row is │
│ another one │                        │
│ what the keys do, or a question      │
└──────────────────────────────────────┘
"""

from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical, VerticalScroll
from textual.events import Resize
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from swink.app.tui.escaping import visible
from swink.app.tui.look import Look
from swink.app.tui.screens import AnswerScreen

T = TypeVar("T")
_WIDE = 100  # columns from which the preview stands beside the list


class ListRow(Option):
    """An option by what it stands for; Textual's own ids must not clash, these may."""

    def __init__(self, key: str, line: Text) -> None:
        super().__init__(line)
        self.key = key


def row(key: str, before: str, text: str, look: Look) -> ListRow:
    """A row: something short in a column of its own, then the text, as much of it as fits."""
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(f"{before:>6}  ", look.dim).append(" ".join(visible(text).split()), look.text)
    return ListRow(key, line)


def key_of(option: Option) -> str:
    """What an option stands for."""
    return option.key if isinstance(option, ListRow) else option.id or ""


class ListScreen(AnswerScreen[T]):
    """Subclasses give the rows and their previews, and say what Enter does."""

    DEFAULT_CSS = """
    ListScreen { align: center middle; background: $background 60%; }
    ListScreen > Vertical { width: 96%; height: 94%; border: round $primary; background: $surface;
        padding: 0 1; }
    ListScreen.-small > Vertical { width: 100%; height: 100%; }
    ListScreen .panes { height: 1fr; layout: horizontal; }
    ListScreen.-narrow .panes { layout: vertical; }
    ListScreen OptionList { width: 2fr; height: 100%; border: none; background: $surface; padding: 0;
        text-wrap: nowrap; text-overflow: ellipsis; }
    ListScreen VerticalScroll { width: 3fr; height: 100%; border-left: solid $primary-darken-2;
        padding: 0 0 0 1; }
    ListScreen OptionList:focus { border: none; background-tint: transparent; }
    ListScreen OptionList:focus > .option-list--option-highlighted { background: $primary 30%; }
    ListScreen.-plain OptionList:focus > .option-list--option-highlighted { background: ansi_default; }
    ListScreen.-narrow OptionList { width: 100%; height: 2fr; }
    ListScreen.-narrow VerticalScroll { width: 100%; height: 3fr; border-left: none;
        border-top: solid $primary-darken-2; padding: 0; }
    ListScreen Input { border: none; height: 1; padding: 0; background: $surface; }
    ListScreen Input:focus { border: none; }
    ListScreen #search { margin: 0 0 1 0; }
    ListScreen.-small #search { margin: 0; }
    ListScreen #line { display: none; }
    ListScreen #hints { color: $text-muted; height: auto; max-height: 3; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "leave", priority=True),
        Binding("pagedown", "page(1)", "down", priority=True),
        Binding("pageup", "page(-1)", "up", priority=True),
    ]
    title_text = ""
    hints = "Enter takes · Esc leaves"
    can_search = False

    def __init__(self, look: Look) -> None:
        super().__init__()
        self.look = look
        self.list = OptionList(markup=False)
        # Held here: what is read off the event loop may arrive when the screen is gone already.
        self._text = Static(markup=False, id="preview")
        self._pane = VerticalScroll(self._text, can_focus=False)
        self._hints = Static(markup=False, id="hints")
        self._shown: str | None = None

    # ── what a subclass says ──

    async def rows(self, typed: str) -> Sequence[ListRow]:
        """What is listed; it may take its time."""
        raise NotImplementedError

    async def preview(self, id: str) -> Text:
        """What is shown of a row."""
        raise NotImplementedError

    def take_row(self, id: str) -> None:
        """Do what Enter does on a row."""

    # ── the screen ──

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = self.title_text
            if self.can_search:
                yield Input(placeholder="/ search", id="search")
            with Container(classes="panes"):
                yield self.list
                yield self._pane
            yield Input(id="line", select_on_focus=False)
            yield self._hints

    def on_mount(self) -> None:
        self._fit(self.size.width, self.size.height)
        self.set_class(self.look.name in ("plain", "ansi"), "-plain")
        self.hint()
        self.list.focus()
        self.refresh_rows()

    def on_resize(self, event: Resize) -> None:
        self._fit(event.size.width, event.size.height)

    def _fit(self, width: int, height: int) -> None:
        self.set_class(width < _WIDE, "-narrow")
        self.set_class(width < _WIDE or height < 24, "-small")

    @property
    def marked(self) -> str | None:
        at = self.list.highlighted
        return None if at is None else key_of(self.list.get_option_at_index(at))

    @property
    def width(self) -> int:
        return max(20, self._pane.size.width - self._pane.scrollbar_size_vertical - 2)

    def hint(self, text: str | None = None) -> None:
        """Say something below the list; nothing: what the keys do."""
        self._hints.update(visible(text or self.hints))

    def refresh_rows(self, typed: str = "", mark: str | None = None) -> None:
        self.run_worker(self._list(typed, mark), group="rows", exclusive=True)

    async def _list(self, typed: str, mark: str | None) -> None:
        mark = mark or self.marked
        rows = await self.rows(typed)
        self.list.clear_options()
        self.list.add_options(rows)
        ids = [row.key for row in rows]
        self._shown = None
        self.list.highlighted = ids.index(mark) if mark in ids else self.first(ids)
        if not ids:
            self._text.update(Text("nothing fits" if typed else "nothing here", "italic"))

    def first(self, ids: Sequence[str]) -> int | None:
        return 0 if ids else None

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        key = key_of(event.option)
        if key != self._shown:
            self._shown = key
            self.run_worker(self._preview(key), group="preview", exclusive=True)

    async def _preview(self, id: str) -> None:
        self._text.update(await self.preview(id))
        self._pane.scroll_home(animate=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.take_row(key_of(event.option))

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.id == "search":
            self.refresh_rows(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.input.id == "search" and self.marked is not None:
            self.take_row(self.marked)

    def on_key(self, event: Any) -> None:
        """In the search: arrows move in the list. In the list: / goes to the search."""
        focused = self.focused
        if isinstance(focused, Input) and focused.id == "search" and event.key in ("down", "up"):
            event.stop()
            self.list.action_cursor_down() if event.key == "down" else self.list.action_cursor_up()
        elif self.can_search and focused is self.list and event.character == "/":
            event.stop()
            self.query_one("#search", Input).focus()

    def action_page(self, step: int) -> None:
        pane = self._pane
        pane.scroll_page_down(animate=False) if step > 0 else pane.scroll_page_up(animate=False)

    def action_back(self) -> None:
        if self.focused is not self.list and self.list.option_count:
            self.list.focus()
        else:
            self.dismiss(None)
