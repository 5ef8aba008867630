"""LineWindow: all lines of a conversation, of which a window is on the screen.

Blocks outside of the window have a height, measured or estimated, and nothing else. What the window shows is
measured before it is shown, and what stands at its top stays there, whatever is learned about what is above.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple, TypeGuard

from textual.strip import Strip

from swink.app.tui.view.callpainter import Moment
from swink.app.tui.view.folds import Folds
from swink.app.tui.view.heights import Heights
from swink.app.tui.view.painted import Painted
from swink.app.tui.view.painters import (
    BlockState,
    Inside,
    Painter,
    Setting,
    estimate,
    gap_between,
    is_hidden,
    nothing_inside,
)
from swink.events.transcript import Block, Changes, NoticeBlock, ReplyBlock, ToolBlock
from swink.events.transcript.blockkinds import AgentStopped, Ended, Retrying

_KEPT_LINES = 1_000  # painted lines that are kept besides those on the screen


class Shown(NamedTuple):
    """One line of the window: which block it is of, and which of its lines."""

    strip: Strip
    place: int
    line: int


class LineWindow:
    """Blocks in order, a window on their lines, and whether it follows the end."""

    def __init__(self, setting: Setting, folds: Folds, clock: Callable[[], float]) -> None:
        self.folds = folds
        self.blocks: list[Block] = []
        self.height = 0  # lines of the window
        self.is_following = True
        self.unseen = 0  # lines that came below the window since the user left the end
        self.is_planning = False  # whether the replies that come are plans
        self._plans: set[str] = set()
        self.selected: int | None = None  # the place of the call that keys act on
        self._clock = clock
        self._heights = Heights()
        self._painted: OrderedDict[int, tuple[Block, BlockState, float, Painted]] = OrderedDict()
        self.kept_lines = 0  # how many lines are painted
        self._painter = Painter(setting)
        self._top = (0, 0)
        """The block at the top of the window and the line in it; counted only while not following."""
        self._due: dict[str, float] = {}  # when countdowns end, by the ids of their blocks
        self._running: dict[int, ToolBlock] = {}

    @property
    def setting(self) -> Setting:
        return self._painter.setting

    @setting.setter
    def setting(self, setting: Setting) -> None:
        if setting != self._painter.setting:
            self._painter = Painter(setting, self._painter.inside)
            self._painted.clear()
            self.kept_lines = 0

    @property
    def total(self) -> int:
        """All lines, as far as they are known."""
        return self._heights.total

    @property
    def top(self) -> int:
        """The line of all lines that is at the top of the window."""
        if self.is_following:
            return max(0, self.total - self.height)
        place, line = self._top
        return max(0, min(self._heights.before(place) + line, self.total - self.height))

    def begin_conversation(self, inside: Inside = nothing_inside) -> None:
        self.cut(0)
        self.folds.clear()
        self._plans.clear()
        self._due.clear()
        self.selected = None
        self._painter = Painter(self.setting, inside)
        self.follow()

    def take_changes(self, changes: Changes) -> None:
        before, is_first = self.total, not self.blocks
        if changes.length < len(self.blocks):
            self.cut(changes.length)
        for place, block in changes.blocks.items():
            self.folds.watch(block, is_new=not is_first)
            self._put(place, block)
            if self.is_planning and not is_first and isinstance(block, ReplyBlock):
                self._plans.add(block.id)
        if not self.is_following:
            self.unseen = max(0, self.unseen + self.total - before)

    def cut(self, length: int) -> None:
        for place in range(length, len(self.blocks)):
            self._forget(place)
            self._painter.forget(self.blocks[place].id)
            self.folds.forget(self.blocks[place].id)
            self._running.pop(place, None)
            self._plans.discard(self.blocks[place].id)
        del self.blocks[length:]
        self._heights.cut(length)
        if self._top[0] > length:
            self._top = (length, 0)
        if self.selected is not None and self.selected >= length:
            self.selected = None

    def follow(self) -> None:
        """Go to the end and stay there."""
        self.is_following = True
        self.unseen = 0

    def move_to(self, line: int) -> None:
        """The user scrolled: what is at this line is at the top now, and at the end one follows."""
        before, line = self.top, max(0, line)
        if line >= self.total - self.height:
            self.follow()
            return
        place, inner = self._heights.at(line)
        was = self._heights[place]
        self.measure(place)
        if line < before:  # coming from below one sees its last lines first
            inner += self._heights[place] - was
        self.is_following = False
        self._top = (place, max(0, min(inner, self._heights[place])))

    def window(self) -> list[Shown]:
        """The lines on the screen, measured; the rest is only as exact as it was."""
        if self.is_following:
            self._measure_on(len(self.blocks) - 1, -1, 0)
        else:
            self._measure_from_top()
        place, line = self._heights.at(self.top)
        shown: list[Shown] = []
        while place < len(self.blocks) and len(shown) < self.height:
            strips = self.painted(place).strips if self._heights[place] else []
            for number in range(line, min(len(strips), line + self.height - len(shown))):
                shown.append(Shown(strips[number], place, number))
            place, line = place + 1, 0
        self._drop_far({each.place for each in shown})
        return shown

    def painted(self, place: int) -> Painted:
        block = self.blocks[place]
        case = self._case(place)
        # What distinguishes two moments of a block: frames of the spinner, tenths of a countdown.
        moving = int(self._clock() * 10) if _runs(block) or case.until is not None else 0
        known = self._painted.get(place)
        if known is not None and known[0] is block and known[1] == case and known[2] == moving:
            self._painted.move_to_end(place)
            return known[3]
        painted = self._painter.paint(block, case, Moment(self._clock()))
        self._forget(place)
        self._painted[place] = (block, case, moving, painted)
        self.kept_lines += len(painted.strips)
        return painted

    def measure(self, place: int) -> None:
        """Learn how many lines a block takes."""
        self._heights[place] = 0 if self.is_hidden_at(place) else len(self.painted(place).strips)

    def is_hidden_at(self, place: int) -> bool:
        before = self.blocks[place - 1] if place else None
        return is_hidden(self.blocks[place], before, self.setting.thinking)

    def reveal(self, place: int, line: int = 0, *, margin: int = 1) -> None:
        """Scroll as little as needed to see a line of a block."""
        self.measure(place)
        at = self._heights.before(place) + line
        top = self.top
        if at < top + margin:
            self.move_to(max(0, at - margin))
        elif at >= top + self.height - margin:
            self.move_to(at - self.height + 1 + margin)

    def toggle(self, place: int) -> None:
        """Open or fold a block; its first line stays where it is, or at least on the screen."""
        self.measure(place)
        row = max(0, self._heights.before(place) - self.top)
        self.folds.toggle(self.blocks[place])
        self.measure(place)
        start = self._heights.before(place)
        if not self.is_following or start < self.top:
            self.move_to(start - row)

    def next_call(self, place: int, step: int) -> int | None:
        """The place of the next tool call before or after a place."""
        place += step
        while 0 <= place < len(self.blocks):
            if isinstance(self.blocks[place], ToolBlock):
                return place
            place += step
        return None

    @property
    def running(self) -> list[ToolBlock]:
        return [self._running[place] for place in sorted(self._running)]

    def fold_due(self) -> None:
        """Fold what ended long enough ago."""
        due = set(self.folds.due())
        place = len(self.blocks)
        while due and place:
            place -= 1
            if self.blocks[place].id in due:
                due.discard(self.blocks[place].id)
                self.measure(place)

    @property
    def is_moving(self) -> bool:
        """Whether time alone changes what is shown: something runs, counts down or is about to fold."""
        now = self._clock()
        self._due = {id: until for id, until in self._due.items() if until > now}
        return bool(self.folds.waits or self._due or self._running)

    def _put(self, place: int, block: Block) -> None:
        if _runs(block):
            self._running[place] = block
        else:
            self._running.pop(place, None)
        if isinstance(block, ReplyBlock) and block.is_complete:
            self._painter.forget(block.id)
        match block:
            case NoticeBlock(notice=Retrying(delay=delay)):
                self._due[block.id] = self._clock() + delay
            case NoticeBlock(notice=Ended() | AgentStopped()):
                self._due.clear()  # nothing follows any more
            case _:
                pass
        if place == len(self.blocks):
            self.blocks.append(block)
            self._heights.append(0 if self.is_hidden_at(place) else estimate(block, self.setting.width))
        else:
            self.blocks[place] = block
            if not self.is_following and not self.is_hidden_at(place):
                self._heights[place] = max(self._heights[place], estimate(block, self.setting.width))

    def _case(self, place: int) -> BlockState:
        block = self.blocks[place]
        before = place - 1
        while before >= 0 and self.is_hidden_at(before):
            before -= 1
        above = self.blocks[before] if before >= 0 else None
        gap = gap_between(above, block, "line" if above is None else self.folds.of(above))
        fold, until = self.folds.of(block), self._due.get(block.id)
        return BlockState(fold, place == self.selected, block.id in self._plans, gap, until)

    def _measure_on(self, place: int, step: int, lines: int) -> int:
        """Measure one block after the other until they fill the window; how many lines there are then."""
        while 0 <= place < len(self.blocks) and lines < self.height:
            self.measure(place)
            lines += self._heights[place]
            place += step
        return lines

    def _measure_from_top(self) -> None:
        """Measure what is shown below the top; if that is less than the window, what is above, too."""
        place, line = self._top
        if place < len(self.blocks):
            self.measure(place)
            line = min(line, max(0, self._heights[place] - 1))
            self._top = (place, line)
        lines = self._measure_on(place, 1, -line)
        self._measure_on(min(place, len(self.blocks)) - 1, -1, lines + line)

    def _drop_far(self, near: set[int]) -> None:
        while self.kept_lines > _KEPT_LINES + self.height and len(self._painted) > len(near):
            self._forget(next(place for place in self._painted if place not in near))

    def _forget(self, place: int) -> None:
        known = self._painted.pop(place, None)
        if known is not None:
            self.kept_lines -= len(known[3].strips)


def _runs(block: Block) -> TypeGuard[ToolBlock]:
    """Whether it runs now; what a killed process began has no beginning here."""
    return isinstance(block, ToolBlock) and block.state == "running" and block.started is not None
