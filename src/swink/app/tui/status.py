"""The status bar: what the agent is doing, how full the context is, what it cost."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from swink.app.tui.activity import Activity
from swink.app.tui.escaping import visible
from swink.app.tui.look import LOOKS, Look
from swink.app.tui.terminal.failures import EnduringPart
from swink.app.tui.view.callpainter import SPINNER
from swink.events.transcript import Totals
from swink.messages.modelspec import format_dollars
from swink.system.oneline import shorten

_GAUGE = 8


class Status(Struct, frozen=True):
    """What the status bar tells about the conversation."""

    activity: Activity
    now: float
    model: str
    thinking: str = "off"
    mode: Literal["Plan", "Execute"] = "Execute"
    approval: str = "smart"
    totals: Totals = Totals()
    window: int | None = None
    """The model's context window, in tokens."""
    estimated: int | None = None
    """Tokens of the context where the provider does not count them."""
    rate: float | None = None
    """Tokens a second of the reply that streams, or of the last one."""
    queued: int = 0
    background: int = 0
    """Commands that go on in the background."""
    hint: str = ""
    """What to do next; it comes first."""
    line: str | None = None
    """What the user wants to be told instead; the hint stands before it."""


NEEDS = {
    "state": 100, "hint": 99, "mode": 95, "approval": 93, "retry": 90, "queued": 88, "loading": 86,
    "reading": 85, "background": 84, "model": 80, "context": 75, "cost": 70, "elapsed": 60, "tokens": 50,
    "rate": 30, "turn": 20,
}  # fmt: skip
"""How much each thing on the bar is needed; those of the lowest need go first when room is short."""


class StatusItem(Struct, frozen=True):
    """One thing on the bar, by its name in `NEEDS`."""

    name: str
    text: str
    style: str = ""


def items_of(status: Status) -> list[StatusItem]:
    """What the bar tells, from left to right."""
    activity, totals = status.activity, status.totals
    running = activity.state == "running"
    spinner = f"{SPINNER[int(status.now * 10) % len(SPINNER)]} " if running else ""
    items = [StatusItem("state", f"{spinner}{activity.state}", _STATE_STYLES[activity.state])]
    if status.hint:
        items.append(StatusItem("hint", status.hint, "warning"))
    if running and activity.since is not None:
        items.append(StatusItem("elapsed", _elapsed(status.now - activity.since)))
    if activity.retry_at is not None:
        left = activity.retry_at - status.now
        told = f"retry in {left:.0f} s, Esc stops" if left > 0 else "trying again"
        items.append(StatusItem("retry", told, "warning"))
    if activity.reading is not None:
        done, total = activity.reading
        items.append(StatusItem("reading", f"reading {100 * done // max(1, total)} %", "accent"))
    if activity.loading:
        items.append(StatusItem("loading", activity.loading, "accent"))
    if status.queued:
        items.append(StatusItem("queued", f"{status.queued} queued", "accent"))
    if status.background:
        items.append(StatusItem("background", f"{status.background} in background", "accent"))
    if status.rate is not None:
        items.append(StatusItem("rate", f"{status.rate:.0f} tok/s"))
    items.append(StatusItem("mode", status.mode, "plan" if status.mode == "Plan" else ""))
    items.append(StatusItem("approval", status.approval, "failed" if status.approval == "off" else ""))
    level = "" if status.thinking == "off" else f" ({status.thinking})"
    items.append(StatusItem("model", f"{status.model}{level}"))
    if activity.turn:
        items.append(StatusItem("turn", f"turn {activity.turn}"))
    if totals.usage.total:
        usage = totals.usage
        read = usage.input + usage.cache_read + usage.cache_write
        items.append(StatusItem("tokens", f"↑{_short(read)} ↓{_short(usage.output)}"))
        cost = format_dollars(totals.cost.total, 4) if totals.is_priced else "cost unknown"
        items.append(StatusItem("cost", cost))
    if status.window and status.estimated is not None:
        items.append(_gauge(min(1.0, status.estimated / status.window), "~"))
    elif status.window and totals.context:
        items.append(_gauge(totals.context / status.window))
    return items


def fit(items: Sequence[StatusItem], width: int) -> list[StatusItem]:
    """The items for which there is room, those of the least need dropped."""
    kept = list(items)
    while kept and sum(cell_len(item.text) + 3 for item in kept) - 1 > width:
        kept.remove(min(kept, key=lambda item: NEEDS[item.name]))
    return kept


_STATE_STYLES = {"idle": "ok", "running": "accent", "error": "failed", "aborted": "warning"}


def _gauge(part: float, about: str = "") -> StatusItem:
    filled = min(_GAUGE, round(part * _GAUGE))
    style = "ok" if part < 0.6 else "warning" if part <= 0.85 else "failed"
    return StatusItem("context", f"{'█' * filled}{'░' * (_GAUGE - filled)} {about}{100 * part:.0f} %", style)


def _elapsed(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes}:{seconds:02}" if minutes else f"{seconds} s"


def _short(count: int) -> str:
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if count >= size:
            return f"{count / size:.1f}{letter}"
    return str(count)


class StatusBar(EnduringPart, Widget):
    """One line at the bottom of the screen."""

    DEFAULT_CSS = "StatusBar { height: 1; dock: bottom; }"

    def __init__(self) -> None:
        super().__init__()
        self.status: Status | None = None
        self.look: Look = LOOKS["dark"]

    def show_status(self, status: Status) -> None:
        if status != self.status:
            self.status = status
            self.refresh()

    def render_line(self, y: int) -> Strip:
        if self.status is None:
            return Strip.blank(self.size.width, self.rich_style)
        segments: list[Segment] = []
        for item in self._items(self.status):
            style: Style = getattr(self.look, item.style or "dim")
            segments += [Segment(f" {item.text} ", style), Segment("·", self.look.border)]
        line = Strip(segments[:-1]).adjust_cell_length(self.size.width)
        return line.apply_style(self.rich_style)  # Textual leaves that to us

    def _items(self, status: Status) -> list[StatusItem]:
        width = self.size.width - 1
        if status.line is None:
            return fit(items_of(status), width)
        hint = [StatusItem("hint", status.hint, "warning")] if status.hint else []
        room = width - sum(cell_len(item.text) + 3 for item in hint) - 2
        return [*hint, StatusItem("line", shorten(visible(status.line), max(1, room)))]
