"""Programs in colour: lines of code as pieces in the styles of a look."""

from collections.abc import Sequence

from rich.style import Style

from swink.app.tui.look import Look
from swink.app.tui.strips import Piece
from swink.memory.exports.highlighting import highlight_lines


def highlight(
    lines: Sequence[str], look: Look, base: Style, *, language: str = "", path: str = ""
) -> list[list[Piece]]:
    """The pieces of each visible line, in `base` where nothing else is known."""
    if not lines or not (language or path):
        return [[(line, base)] for line in lines]
    styles = _styles(look)
    return [
        [(text, base + styles[name] if name in styles else base) for name, text in pieces if text]
        for pieces in highlight_lines("\n".join(lines), path, language)
    ]


def _styles(look: Look) -> dict[str, Style]:
    """The styles by the classes that an exported page has for them."""
    syntax = look.syntax
    return {
        "k": syntax.keyword,
        "m": syntax.number,
        "f": syntax.defined,
        "b": syntax.builtin,
        "s": syntax.string,
        "c": syntax.comment,
        "gi": look.ok,
        "gd": look.failed,
    }
