"""The answers of a question as rows that can be clicked."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from swink.app.assistant.person import AnswerOption
from swink.app.assistant.reviewing import Review
from swink.app.tui.escaping import chops, visible
from swink.app.tui.look import Look
from swink.app.tui.terminal.failures import EnduringPart

Lines = list[list[tuple[str, Style, str]]]
"""Rows of pieces: a text, its style, and the key that a click on it stands for."""
_SIGNS = 40  # parts of a review whose state is shown


class Answers(EnduringPart, Widget, can_focus=False):
    """The answers, one below the other, or side by side on a low screen."""

    DEFAULT_CSS = "Answers { height: auto; background: $surface; }"

    class Clicked(Message):
        """An answer was clicked; `key` is what it stands for."""

        def __init__(self, key: str) -> None:
            self.key = key
            super().__init__()

    def __init__(self) -> None:
        super().__init__()
        self._lines: Lines = []

    def show_lines(self, lines: Lines) -> None:
        """Show lines of pieces, each with the key that a click on it stands for."""
        self._lines = lines
        self.styles.height = max(1, len(lines))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        pieces = self._lines[y] if y < len(self._lines) else []
        strip = Strip([Segment(text, style) for text, style, _ in pieces])
        return strip.adjust_cell_length(self.size.width).apply_style(self.rich_style)

    def on_click(self, event: events.Click) -> None:
        at = event.get_content_offset(self)
        if at is None or at.y >= len(self._lines):
            return
        x = 0
        for text, _, key in self._lines[at.y]:
            x += cell_len(text)
            if at.x < x:
                if key:
                    self.post_message(self.Clicked(key))
                return


def answer_lines(offered: Sequence[AnswerOption], marked: str, width: int, look: Look, *, low: bool) -> Lines:
    """The answers one below the other; on a low screen side by side, with the marked one in full."""
    if not low:
        return [_answer_line(choice, marked, width, look) for choice in offered]
    lines: Lines = [[]]
    used = 0
    for choice in offered:
        size = len(choice.word) + 4
        if used + size > width and lines[-1]:
            lines.append([])
            used = 0
        used += size
        style = look.selected if choice.key == marked else look.text
        lines[-1] += [(f"{choice.key} ", look.accent, choice.key), (choice.word, style, choice.key)]
        lines[-1].append(("  ", look.text, ""))
    chosen = [_answer_line(choice, marked, width, look) for choice in offered if choice.key == marked]
    return [*lines, *chosen]


def review_lines(review: Review, at: int, look: Look) -> Lines:
    """Where a review is, and what can be said of a part."""
    signs = {True: ("✓", look.ok), False: ("✗", look.failed), None: ("·", look.dim)}
    total = len(review.verdicts)
    row = [(f"part {at + 1} of {total}  ", look.strong, "")]
    for number, verdict in enumerate(review.verdicts[:_SIGNS]):
        sign, style = ("✎", look.accent) if isinstance(verdict, str) else signs[verdict]
        row.append((sign, style + look.selected if number == at else style, ""))
    keys = [("y", "take it"), ("n", "leave it out"), ("r", "and say why"), ("e", "write it yourself")]
    keys += [("enter", "done")] if review.is_complete else []
    answers: list[tuple[str, Style, str]] = []
    for key, text in keys:
        answers += [(f"{key.replace('enter', 'Enter')} ", look.accent, key), (f"{text}   ", look.text, key)]
    return [row, answers]


def trouble_lines(text: str, width: int, look: Look) -> Lines:
    """What is wrong with what was written."""
    rows = [(line, span) for line in visible(text).split("\n") for span in chops(line, width)]
    return [[(line[start:end], look.failed, "")] for line, (start, end) in rows]


def _answer_line(choice: AnswerOption, marked: str, width: int, look: Look) -> list[tuple[str, Style, str]]:
    is_marked = choice.key == marked
    text = visible(choice.text)
    start, end = chops(text, max(8, width - 5))[0]
    clipped = text if end == len(text) else f"{text[start : end - 1]}…"
    return [
        ("▸ " if is_marked else "  ", look.accent, choice.key),
        (f"{choice.key} ", look.accent, choice.key),
        (clipped, look.strong if is_marked else look.text, choice.key),
    ]
