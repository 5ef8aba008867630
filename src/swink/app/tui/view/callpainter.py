"""Calls: a tool call as a line of the conversation, and opened with its result, a program in colour."""

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, cast

from msgspec.structs import replace
from rich.cells import cell_len, set_cell_size
from rich.style import Style
from textual.strip import Strip

from swink.app.assistant.callwords import WORDED, call_lines, call_summary, result_lines, result_summary
from swink.app.assistant.reviewing import note_summary, reason_of
from swink.app.tui.diffpainter import WIDE, paint_diff
from swink.app.tui.escaping import printed, visible
from swink.app.tui.sourcecode import highlight
from swink.app.tui.strips import chop_pieces, strip
from swink.app.tui.view.folds import Fold
from swink.app.tui.view.painted import Canvas, Words
from swink.events.transcript import ToolBlock
from swink.events.transcript.blockkinds import counted, json_of
from swink.messages.message import USER_NOTE
from swink.tools import FINAL_OUTPUT

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FRAME = 0.1
"""Seconds that the spinner shows one of them."""
_SOME = 8  # lines of what a call printed that are shown while it runs
_FEW = 5  # lines of its result, until it folds
_ALL, _WHOLE = 400, 20_000  # lines of an opened call, and on the screen of the whole transcript
_SAYS_MOST = ("command", "pattern", "query", "url", "path", "file_path", "task", "prompt", "question", "name")
"""Arguments that tell what a call is about, the best first."""
_LONGEST = 20_000
_MOST_ITEMS = 200
_REMEMBERED = 200
_NUMBERED = re.compile(r"(\d+)\t(.*)", re.S)
_MOST_COLOURED = 400
"""Lines up to which programs are shown in colour: more would hold up the screen."""


class Moment(NamedTuple):
    """What changes as time goes by: the clock and, of a countdown, when it ends."""

    now: float
    until: float | None = None

    @property
    def spinner(self) -> str:
        return SPINNER[int(self.now / FRAME) % len(SPINNER)]


def paint_call(
    canvas: Canvas, block: ToolBlock, fold: Fold, moment: Moment, *, is_selected: bool, is_whole: bool
) -> None:
    """A call: its line, and below it what was asked, printed, answered and changed."""
    look = canvas.look
    fill = look.selected if is_selected else None
    mark = "›" if is_selected else " "  # not by colour alone
    copied = f"{block.name} {one_line(block)}".strip()
    canvas.line(_heading(canvas, block, fold, moment, mark), copied=copied, fill=fill)
    if fold == "line":
        return
    gutter = ("  │ ", look.border)
    limit = _FEW if block.is_settled else _SOME
    if fold == "all":
        limit = _WHOLE if is_whole else _ALL
    if fold == "all":
        _paint_arguments(canvas, block, gutter)
    if (diff := block.diff) is not None:
        room = canvas.width - cell_len(gutter[0])
        is_wide = canvas.width >= WIDE - 2 and diff.kind == "changed"  # of the terminal, not of what is left
        strips = paint_diff(diff, room, look, side_by_side=is_wide)
        if cell_len(diff.path) < room // 2:
            strips = strips[1:]  # its title, which the heading says already
        shown = strips if fold == "all" else strips[: 2 * _SOME]
        canvas.place(shown, diff.unified, gutter=gutter)
        _say_more(canvas, gutter, len(strips) - len(shown))
    elif block.is_settled:
        style = look.failed if block.state == "failed" else look.dim
        _paint_result(canvas, block, gutter, style, limit)
    elif block.output:
        lines = printed(block.output[-200 * limit :]).rstrip("\n").split("\n")
        canvas.text("\n".join(lines[-limit:]), look.dim, gutter=gutter, is_exact=True)
    elif said := progress_of(block):
        canvas.text(said, look.dim, gutter=gutter, most=2)
    if block.note:  # what was refused, or written otherwise, is as much of it as what was done
        canvas.text(visible(block.note), look.warning, gutter=gutter, most=max(limit, 2 * _SOME))
    paint_images(canvas, len(block.images), gutter)


def one_line(block: ToolBlock) -> str:
    """What a call is about: the argument that says most, on one line."""
    if block.partial is not None:
        return "" if _is_half(block) else _first_line(block.partial)
    shown = shown_arguments(block)
    if (words := call_summary(block.name, shown)) is not None:
        return _first_line(words)
    for value in (*map(shown.get, _SAYS_MOST), *shown.values()):
        if isinstance(value, str) and value.strip():
            return _first_line(value)
    return _first_line(", ".join(f"{name}={value}" for name, value in shown.items()))


_redacted: OrderedDict[int, tuple[Mapping[str, Any], Mapping[str, Any]]] = OrderedDict()
"""The arguments of some calls with their secrets redacted, by the identity of what was redacted."""


def shown_arguments(block: ToolBlock) -> Mapping[str, Any]:
    """The arguments for people, long ones cut.

    Finding secrets takes half a microsecond a character, and a call that runs is painted many times.
    """
    arguments = block.arguments if block.ran_with is None else block.ran_with
    known = _redacted.get(id(arguments))
    if known is None or known[0] is not arguments:
        known = (arguments, replace(block, arguments=_cut(arguments), ran_with=None).shown)
        _redacted[id(arguments)] = known
        if len(_redacted) > _REMEMBERED:
            _redacted.popitem(last=False)
    return known[1]


def _cut(value: Any) -> Any:
    """A value without what no screen shows: beyond this no character of it is painted."""
    match value:
        case str():
            return value[:_LONGEST]
        case Mapping():
            items = cast("Mapping[Any, Any]", value).items()
            return {name: _cut(each) for name, each in islice(items, _MOST_ITEMS)}
        case list() | tuple():
            return [_cut(each) for each in islice(cast("Sequence[Any]", value), _MOST_ITEMS)]
        case _:
            return value


def seconds_of(seconds: float) -> str:
    """A length of time for people."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} m {rest:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} m"


def last_line(block: ToolBlock) -> str:
    """The last thing that a running call printed, or how far it says it is."""
    if not block.output and (said := progress_of(block)):
        return _first_line(said)
    return _first_line(printed(block.output[-2_000:]).rstrip().rpartition("\n")[2])


def progress_of(block: ToolBlock) -> str:
    """How far a call says it is: `3 of 10, reading`; empty if it says nothing that people read."""
    match block.progress:
        case {"progress": int() | float() as done, "total": total, "message": message}:
            share = f"{done:g} of {total:g}" if isinstance(total, int | float) and total > 0 else ""
            told = printed(message) if isinstance(message, str) else ""
            return ", ".join(filter(None, [share, told])) or f"{done:g}"
        case _:
            return ""


def paint_images(canvas: Canvas, count: int, gutter: Words, fill: Style | None = None) -> None:
    """A line for each image."""
    for number in range(1, count + 1):
        canvas.line([gutter, (f"[image {number}]", canvas.look.accent)], fill=fill)


def _heading(canvas: Canvas, block: ToolBlock, fold: Fold, moment: Moment, chosen: str) -> list[Words]:
    look = canvas.look
    mark, mark_style, word = _status(canvas, block, moment)
    name = _first_line(block.name) or "…"
    parts: list[Words] = [(f"{mark}{chosen}", mark_style), (name, look.strong)]
    about = one_line(block)
    tail: list[Words] = [(f"  {word}", mark_style)] if word else []
    if block.duration is not None:
        tail.append((f"  {seconds_of(block.duration)}", look.dim))
    elif block.state == "running" and block.started is not None:
        tail.append((f"  {seconds_of(max(0.0, moment.now - block.started))}", look.running))
    if block.diff is not None:
        tail += [(f"  +{block.diff.added}", look.ok), (f" −{block.diff.removed}", look.failed)]
    room = canvas.width - sum(cell_len(text) for text, _ in [*parts, *tail]) - 2
    if about and room > 3:
        parts.append((f"  {_fitted(about, room)}", look.text))
    parts += tail
    answer = _answer(block) if fold == "line" else ""
    room = canvas.width - sum(cell_len(text) for text, _ in parts) - 3
    if answer and room > 8:
        style = look.warning if block.note or block.state == "rejected" else look.dim
        parts.append((f"  {_fitted(answer, room)}", look.failed if block.state == "failed" else style))
    return parts


def _status(canvas: Canvas, block: ToolBlock, moment: Moment) -> tuple[str, Style, str]:
    look = canvas.look
    if block.state == "running" and block.started is None:  # by a process that was killed
        return "?", look.warning, "outcome unknown"
    return {
        "done": ("✓", look.ok, ""),
        "failed": ("✗", look.failed, ""),
        "rejected": ("✗", look.warning, "rejected"),
        "cancelled": ("✗", look.warning, "cancelled"),
        "approval": ("?", look.warning, "waits for your answer"),
        "running": (moment.spinner, look.running, ""),
        "waiting": ("·", look.dim, ""),
    }[block.state]


def _answer(block: ToolBlock) -> str:
    """What the user refused of it and why, else the first line of the result that says something."""
    if not block.is_settled:
        return last_line(block)
    if block.note:
        return _first_line(note_summary(block.note))
    if block.state == "rejected":
        return _first_line(reason_of(block.text))
    if block.diff is not None or block.state == "cancelled" or block.name == FINAL_OUTPUT:
        return ""
    if block.name in WORDED and block.state == "done":
        told = _first_line(result_summary(block.name, block.text))
        return "" if one_line(block).startswith(told) else told
    first = next(filter(str.strip, block.text[:2_000].split("\n")), None)
    return "no output" if first is None else _first_line(first)


def _paint_arguments(canvas: Canvas, block: ToolBlock, gutter: Words) -> None:
    look = canvas.look
    if block.partial is not None:
        if not _is_half(block):
            canvas.text(visible(block.partial[:4_000]), look.dim, gutter=gutter, most=20)
        return
    arguments = shown_arguments(block)
    about = one_line(block)
    is_told = list(arguments.values()) == [about] and cell_len(about) < canvas.width // 2
    if block.diff is not None or (is_told and (block.is_settled or block.output)):  # told already
        return
    if (lines := call_lines(block.name, arguments)) is not None:
        if block.state != "done" or not {*lines} <= {*result_lines(block.name, block.text)}:
            canvas.text(visible("\n".join(lines)), look.text, gutter=gutter, most=40)
            _paint_rule(canvas, block, gutter)
        return
    for name, value in arguments.items():
        text = visible(value if isinstance(value, str) else json_of(value))
        if not value and value is not False and value != 0:
            continue
        label = f"{visible(name)}: "
        if "\n" in text or cell_len(label) + cell_len(text[:500]) > canvas.width - 6:
            canvas.line([gutter, (label.rstrip(), look.accent)], copied=label.rstrip())
            canvas.text(text[:8_000], look.text, gutter=(f"{gutter[0]}  ", gutter[1]), most=40)
        else:
            canvas.line([gutter, (label, look.accent), (text, look.text)], copied=label + text)
    if arguments:
        _paint_rule(canvas, block, gutter)


def _paint_rule(canvas: Canvas, block: ToolBlock, gutter: Words) -> None:
    """A line between what was asked and what came of it."""
    if block.text or block.output:
        canvas.line([(gutter[0].rstrip() + "╌" * 12, gutter[1])])


def _paint_result(canvas: Canvas, block: ToolBlock, gutter: Words, style: Style, limit: int) -> None:
    """The first lines of a result, and how many more there are."""
    text = block.text.removesuffix(f"{USER_NOTE}{block.note}").rstrip()
    if block.name in WORDED:
        text = "\n".join(result_lines(block.name, text))
    if not text:
        canvas.line([gutter, ("no output", canvas.look.dim)])
        return
    count = text.count("\n") + 1
    if count > limit:
        text = "\n".join(text.split("\n", limit)[:limit])
    text = text[: 2 * limit * canvas.width]
    path = block.arguments.get("path") if block.name == "read_file" and block.state == "done" else None
    if path and isinstance(path, str) and min(count, limit) <= _MOST_COLOURED:
        _paint_program(canvas, text.split("\n"), path, gutter)
    else:
        canvas.text(printed(text), style, gutter=gutter, most=2 * limit, is_exact=True)
    _say_more(canvas, gutter, count - limit)


def _say_more(canvas: Canvas, gutter: Words, count: int) -> None:
    """How many lines are left out, if any."""
    if count > 0:
        canvas.line([gutter, (f"… {counted(count, 'more line')}", canvas.look.dim)])


def _paint_program(canvas: Canvas, lines: list[str], path: str, gutter: Words) -> None:
    look = canvas.look
    found = [_NUMBERED.fullmatch(line) for line in lines]
    numbers = ["" if each is None else each[1] for each in found]
    code = [visible(line if each is None else each[2]) for each, line in zip(found, lines, strict=True)]
    digits = max(map(len, numbers))
    room = max(10, canvas.width - len(gutter[0]) - (digits + 2 if digits else 0))
    strips: list[Strip] = []
    for number, pieces in zip(numbers, highlight(code, look, look.text, path=path), strict=True):
        for row, part in enumerate(chop_pieces(pieces, room) if pieces else [[]]):
            mark = f"{number if not row else '':>{digits}}  " if digits else ""
            strips.append(strip((mark, look.dim), *part))
    canvas.place(strips, "\n".join(code), gutter=gutter)


def _is_half(block: ToolBlock) -> bool:
    """Whether it is a call in words of which only a part is there, which is no words yet."""
    return block.name in WORDED and not block.is_settled


def _fitted(text: str, room: int) -> str:
    return text if cell_len(text) <= room else set_cell_size(text, room - 1).rstrip() + "…"


def _first_line(text: str) -> str:
    """What fits on a line of it, harmless; a line feed is a blank."""
    return " ".join(printed(text[:1_000]).split())
