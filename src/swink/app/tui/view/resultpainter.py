"""Results: what a call answered, as it printed it, or as a program in colour if it read one."""

import re

from rich.style import Style
from textual.strip import Strip

from swink.app.tui.escaping import printed, visible
from swink.app.tui.sourcecode import highlight
from swink.app.tui.strips import chop_pieces, strip
from swink.app.tui.view.painted import Canvas, Words
from swink.events.transcript import ToolBlock

_NUMBERED = re.compile(r"(\d+)\t(.*)", re.S)
_MOST_COLOURED = 400
"""Lines up to which programs are shown in colour: more would hold up the screen."""


def paint_result(canvas: Canvas, block: ToolBlock, gutter: Words, style: Style, limit: int) -> None:
    """The first lines of a result, and how many more there are."""
    text = block.text.rstrip()
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
    say_more(canvas, gutter, count - limit)


def say_more(canvas: Canvas, gutter: Words, count: int) -> None:
    """How many lines are left out, if any."""
    if count > 0:
        canvas.line([gutter, (f"… {count:,} more lines", canvas.look.dim)])


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
