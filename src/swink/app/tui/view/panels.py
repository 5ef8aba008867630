"""Panels between the conversation and the editor: the calls that run, and the agent's list of tasks."""

from collections.abc import Callable, Sequence

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from swink.app.assistant.forms import ASK_USER
from swink.app.tui.escaping import visible
from swink.app.tui.look import LOOKS, Look
from swink.app.tui.terminal.failures import EnduringPart
from swink.app.tui.view.callpainter import FRAME, Moment, last_line, one_line, seconds_of
from swink.app.tui.view.painted import Words
from swink.events.transcript import Changes, ToolBlock

_MOST_CALLS = 4
_MOST_TASKS = 8
_PATIENCE = 0.7
"""Seconds that a call runs before it is worth a line: most end sooner, and a panel that flashes is worse."""


class LinesPanel(EnduringPart, Widget):
    """Lines of words; it is as high as it has lines, and with none it is not there."""

    DEFAULT_CSS = "LinesPanel { height: auto; display: none; padding: 0 0 0 0; background: $surface; }"

    def __init__(self) -> None:
        super().__init__()
        self._look: Look = LOOKS["dark"]
        self._words: list[list[Words]] = []

    @property
    def look(self) -> Look:
        return self._look

    @look.setter
    def look(self, look: Look) -> None:
        self._look = look
        self.show_lines()

    @property
    def is_shown(self) -> bool:
        return bool(self._words)

    def lines(self) -> list[list[Words]]:
        return []

    def show_lines(self) -> None:
        was, self._words = self._words, self.lines()
        if len(self._words) != len(was):
            self.styles.height = len(self._words)
            self.display = bool(self._words)
        elif self._words != was:
            self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        used = 0
        segments: list[Segment] = []
        for text, style in self._words[y] if y < len(self._words) else []:
            if used + cell_len(text) > width:
                text = set_cell_size(text, max(0, width - used - 1)) + "…"
            segments.append(Segment(text, style))
            used += cell_len(text)
            if used >= width:
                break
        return Strip(segments).adjust_cell_length(width).apply_style(self.rich_style)


class ActiveTools(LinesPanel):
    """The calls that run out of sight: what, for how long, and the last thing that each printed."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock
        self._blocks: Sequence[ToolBlock] = ()
        self._is_seen: Callable[[ToolBlock], bool] = lambda block: False
        self._timer: Timer | None = None

    def take_running(self, running: Sequence[ToolBlock], is_seen: Callable[[ToolBlock], bool]) -> None:
        """Show those that run and are not seen anyway: in their blocks, or in the form that they ask with."""
        self._blocks, self._is_seen = running, is_seen
        if running and self._timer is None:
            self._timer = self.set_interval(FRAME, self.show_lines)
        elif not running and self._timer is not None:
            self._timer.stop()
            self._timer = None
        self.show_lines()

    def lines(self) -> list[list[Words]]:
        moment, look = Moment(self._clock()), self._look
        lines: list[list[Words]] = []
        calls = [
            (block, moment.now - block.started)
            for block in self._blocks
            if block.started is not None and moment.now - block.started >= _PATIENCE
            if block.name != ASK_USER and not self._is_seen(block)
        ]
        for block, seconds in calls[:_MOST_CALLS]:
            output, about = last_line(block), one_line(block)
            words = [(f"{moment.spinner} ", look.running), (visible(block.name), look.strong)]
            words.append((f"  {seconds_of(seconds)}", look.running))
            words.append((f"  {set_cell_size(about, 40).rstrip()}" if about else "", look.text))
            lines.append([*words, (f"  {output}" if output else "", look.dim)])
        if len(calls) > _MOST_CALLS:
            lines.append([(f"  … {len(calls) - _MOST_CALLS} more", look.dim)])
        return lines


class TodoPanel(LinesPanel):
    """The agent's list of tasks, as its last `todo` call left it."""

    def __init__(self) -> None:
        super().__init__()
        self._tasks: list[tuple[str, str]] = []
        self._is_wanted = True

    @property
    def is_wanted(self) -> bool:
        """Whether it is shown if there are tasks left."""
        return self._is_wanted

    @is_wanted.setter
    def is_wanted(self, is_wanted: bool) -> None:
        self._is_wanted = is_wanted
        self.show_lines()

    def begin_conversation(self) -> None:
        self._tasks = []
        self.show_lines()

    def take_changes(self, changes: Changes) -> None:
        """Read the list off the last call that told it."""
        for block in changes.blocks.values():
            if isinstance(block, ToolBlock) and block.name == "todo" and block.state == "done":
                pairs = [line.strip().partition("] ") for line in block.text.split("\n")]
                self._tasks = [(mark + "]", text) for mark, found, text in pairs if found and len(mark) == 2]
                self.show_lines()

    def lines(self) -> list[list[Words]]:
        look = self._look
        left = [mark for mark, _ in self._tasks if mark != "[x]"]
        if not self._is_wanted or not left:
            return []
        done = len(self._tasks) - len(left)
        marks = {"[x]": ("✓", look.ok, look.dim), "[>]": ("▸", look.accent, look.strong)}
        first = max(0, min(done - 2, len(self._tasks) - _MOST_TASKS))
        title = (f"  Tasks {done}/{len(self._tasks)}", look.accent)
        lines: list[list[Words]] = [[title, ("  Ctrl+T hides them", look.dim)]]
        for mark, text in self._tasks[first : first + _MOST_TASKS]:
            sign, sign_style, style = marks.get(mark, ("·", look.dim, look.text))
            lines.append([(f"  {sign} ", sign_style), (" ".join(visible(text).split()), style)])
        if (hidden := len(self._tasks) - first - _MOST_TASKS) > 0:
            lines.append([(f"    … {hidden} more", look.dim)])
        return lines
