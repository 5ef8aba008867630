"""The view of a transcript: one scroll view that paints only what is on the screen and changed."""

import time
from collections.abc import Callable
from typing import ClassVar

from msgspec.structs import replace
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.reactive import Reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.timer import Timer

from swink.app.tui.look import LOOKS, Look
from swink.app.tui.terminal.failures import EnduringPart
from swink.app.tui.view.callpainter import FRAME
from swink.app.tui.view.copying import copied
from swink.app.tui.view.folds import Fold, Folds
from swink.app.tui.view.linewindow import LineWindow, Shown
from swink.app.tui.view.painters import Inside, Setting, Thinking, nothing_inside
from swink.app.tui.view.textsearch import TextSearch, marked, styled
from swink.events.transcript import Changes, PromptBlock, ThinkingBlock, ToolBlock
from swink.events.transcript.blockkinds import Block, counted

_LINES = 1 << 32
"""More lines than a block has: with it the place of a block and a line of it are one growing number."""


class TranscriptView(EnduringPart, ScrollView, can_focus=True):
    """Shows the changes it is given; only the user's scrolling decides whether it follows the end."""

    DEFAULT_CSS = """
    TranscriptView { height: 1fr; overflow-x: hidden; overflow-y: scroll; scrollbar-size-vertical: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "scroll_up", "a line up", show=False),
        Binding("down", "scroll_down", "a line down", show=False),
        Binding("home", "scroll_home", "to the beginning", show=False),
        Binding("end", "scroll_end", "to the end, and follow it", show=False),
        Binding("pageup", "scroll_page(-1)", "a page up", show=False),
        Binding("pagedown", "scroll_page(1)", "a page down", show=False),
    ]

    virtual_size = Reactive(Size(0, 0), repaint=False)  # Textual's own lays the whole screen out again

    def __init__(
        self,
        *,
        look: Look = LOOKS["dark"],
        thinking: Thinking = "collapsed",
        clock: Callable[[], float] = time.monotonic,
        usual: Fold = "line",
    ) -> None:
        super().__init__()
        setting = Setting(80, look, thinking, is_whole=usual == "all")
        self._lines = LineWindow(setting, Folds(clock, usual=usual), clock)
        self._window = Size(0, 0)  # what is left of the view beside its scrollbar
        self._shown: list[Shown] = []
        self._hint = ""
        self._is_placing = False
        self._timer: Timer | None = None
        self._search = TextSearch(self._lines, "")

    # What is shown

    @property
    def blocks(self) -> list[Block]:
        return self._lines.blocks

    @property
    def is_following(self) -> bool:
        return self._lines.is_following

    @property
    def running(self) -> list[ToolBlock]:
        return self._lines.running

    def is_seen(self, block: ToolBlock) -> bool:
        """Whether a line of a block is on the screen."""
        return any(self.blocks[place].id == block.id for place in {each.place for each in self._shown})

    @property
    def look(self) -> Look:
        return self._lines.setting.look

    @look.setter
    def look(self, look: Look) -> None:
        self._set(replace(self._lines.setting, look=look))

    @property
    def thinking(self) -> Thinking:
        """Whether thoughts are hidden, one line each, or shown."""
        return self._lines.setting.thinking

    @thinking.setter
    def thinking(self, thinking: Thinking) -> None:
        self._set(replace(self._lines.setting, thinking=thinking))

    def set_planning(self, is_planning: bool) -> None:
        """Say whether the replies that come are plans."""
        self._lines.is_planning = is_planning

    def set_list_elsewhere(self, is_elsewhere: bool) -> None:
        """Say whether the newest list of tasks is on the screen without its block."""
        self._lines.folds.show_list_elsewhere(is_elsewhere)

    def begin_conversation(self, inside: Inside = nothing_inside) -> None:
        """Another conversation; `inside` gives the agents that a call runs (`Transcript.inside`)."""
        self._lines.begin_conversation(inside)
        self.update_lines()

    def take_changes(self, changes: Changes) -> None:
        self._lines.take_changes(changes)
        self.update_lines()

    def update_lines(self) -> None:
        """Put the lines of the window on the screen, as far as they changed."""
        if not self.is_attached or not self._window.height:
            return
        self._watch_time()
        was, hint = self._shown, self._hint
        self._shown = self._lines.window()
        unseen = self._lines.unseen
        self._hint = f" ↓ {counted(unseen, 'new line')} · End " if unseen else ""
        self._place()
        self._refresh_changed(was, hint)

    # Searching

    def find(self, text: str) -> int:
        """Mark a text wherever it is shown, and go to the last block that has it; how many there are."""
        self._search = TextSearch(self._lines, text)
        return self.find_next(0) and len(self._search.places)

    def find_next(self, step: int) -> int:
        """Go to the next block that has what is looked for, or the one before; its number, 0 for none."""
        number = self._search.move(step, margin=self._window.height // 3)
        self._shown = []  # what is marked has changed everywhere
        self.update_lines()
        return number

    # Scrolling

    def on_resize(self, event: events.Resize) -> None:
        self._window = self.scrollable_content_region.size
        self._lines.height = self._window.height
        self._set(replace(self._lines.setting, width=max(20, self._window.width)))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """The user scrolled, unless it was this view itself that put its lines."""
        if self._is_placing:
            return
        self._lines.move_to(round(new_value))
        self.update_lines()

    def scroll_to(self, x: float | None = None, y: float | None = None, **options: object) -> None:
        """Scroll at once: what moves by itself costs and blurs."""
        super().scroll_to(x, y, animate=False)

    def scroll_to_end(self) -> None:
        self._lines.follow()
        self.update_lines()

    def scroll_page(self, step: int) -> None:
        """Scroll by a page, of which two lines stay."""
        self._lines.move_to(self._lines.top + step * max(1, self._window.height - 2))
        self.update_lines()

    def action_scroll_page(self, step: int) -> None:
        self.scroll_page(step)

    def action_scroll_end(self) -> None:
        self.scroll_to_end()

    def action_scroll_home(self) -> None:
        self._lines.move_to(0)
        self.update_lines()

    def focus_on_click(self) -> bool:
        """A click opens a call or selects text; the editor stays where one types."""
        return False

    def _size_updated(
        self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True
    ) -> bool:
        self._is_placing = True
        try:
            return super()._size_updated(size, virtual_size, container_size, layout)
        finally:
            self._is_placing = False

    def _place(self) -> None:
        """Tell Textual how long everything is and where we are, without a layout of the screen."""
        self._is_placing = True
        try:
            size = Size(self._window.width, self._lines.total)
            if size != self.virtual_size:
                self.virtual_size = size
                self._scroll_update(size)
            self.scroll_target_y = self.scroll_y = self.vertical_scrollbar.position = self._lines.top
        finally:
            self._is_placing = False

    def _refresh_changed(self, was: list[Shown], hint: str) -> None:
        lines = self._window.height
        start: int | None = None
        for y in range(lines + 1):
            is_same = y == lines or _same(was, self._shown, y)
            if y == lines - 1 and hint != self._hint:
                is_same = False
            if is_same and start is not None:
                self.refresh(Region(0, start, self._window.width, y - start))
                start = None
            elif not is_same and start is None:
                start = y

    # Lines

    def render_line(self, y: int) -> Strip:
        width = self._window.width
        if y >= len(self._shown):
            return Strip.blank(width, self.rich_style)
        strip, place, line = self._shown[y]
        strip = strip.adjust_cell_length(width).apply_style(self.rich_style)
        if self._search.wanted:
            strip = marked(strip, self._search.wanted, self.look.found)
        if (selection := self.text_selection) is not None:
            strip = self._with_selection(strip, selection, place * _LINES + line)
        if self._hint and y == self._window.height - 1:
            strip = self._with_hint(strip, width)
        return strip.apply_offsets(0, place * _LINES + line)

    def _with_selection(self, strip: Strip, selection: Selection, y: int) -> Strip:
        span = selection.get_span(y)
        if span is None:
            return strip
        text = strip.text.rstrip()
        start = strip.index_to_cell_position(min(span[0], len(text)))
        end = strip.index_to_cell_position(len(text) if span[1] == -1 else min(span[1], len(text)))
        if end <= start:
            return strip
        return styled(strip, start, end, self.screen.get_component_rich_style("screen--selection"))

    def _with_hint(self, strip: Strip, width: int) -> Strip:
        hint = self._hint[:width]
        style = self.look.accent + Style(reverse=True)
        left = width - len(hint) - 1
        return Strip.join([strip.crop(0, left), Strip([Segment(hint, style), Segment(" ")])])

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The source of what is selected: no gutters, and no breaks but those of the text."""
        start = None if selection.start is None else (*divmod(selection.start.y, _LINES), selection.start.x)
        end = None if selection.end is None else (*divmod(selection.end.y, _LINES), selection.end.x)
        return copied(self._lines, start, end), "\n"

    # Calls

    def on_click(self, event: events.Click) -> None:
        if self._hint and event.y == self._window.height - 1:
            self.action_scroll_end()
            return
        if not 0 <= event.y < len(self._shown):
            return
        place = self._shown[event.y].place
        can_fold = isinstance(self.blocks[place], ToolBlock | ThinkingBlock | PromptBlock)
        if can_fold and self.text_selection is None:
            self._toggle(place)

    def toggle_fold(self) -> None:
        """F2: open or fold the selected call, or else the last one on the screen."""
        place = self._last_call() if self._lines.selected is None else self._lines.selected
        if place is not None:
            self._toggle(place)

    def select_block(self, step: int) -> None:
        """Shift+← and →: select the call before or after; after the last one none is selected."""
        selected = self._lines.selected
        found = self._last_call() if selected is None else self._lines.next_call(selected, step)
        if found is not None:
            self._lines.selected = found
            self._lines.reveal(found)
        elif step > 0:
            self._lines.selected = None
        self.update_lines()

    def cycle_thoughts(self) -> None:
        """Show all of the thoughts, none, or a line of each."""
        order: tuple[Thinking, ...] = ("collapsed", "shown", "hidden")
        self.thinking = order[(order.index(self.thinking) + 1) % len(order)]

    def _last_call(self) -> int | None:
        """The last call on the screen, or else the one before."""
        return self._lines.next_call(self._shown[-1].place + 1 if self._shown else len(self.blocks), -1)

    def _toggle(self, place: int) -> None:
        self._lines.toggle(place)
        self.update_lines()

    # Time

    def _watch_time(self) -> None:
        """A timer runs only while something on the screen moves."""
        if self._lines.is_moving:
            if self._timer is None:
                self._timer = self.set_interval(FRAME, self._tick)
        elif self._timer is not None:
            self._timer.stop()
            self._timer = None

    def _tick(self) -> None:
        self._lines.fold_due()
        self.update_lines()

    def _set(self, setting: Setting) -> None:
        self._lines.setting = setting
        self.update_lines()


def _same(was: list[Shown], now: list[Shown], y: int) -> bool:
    if y >= len(was) or y >= len(now):
        return y >= len(was) and y >= len(now)
    return was[y].strip is now[y].strip and was[y].place == now[y].place
