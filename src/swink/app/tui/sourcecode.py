"""Source code in colour: lines as pieces in the styles of a look, and as a block within a reply."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.style import Style

from swink.app.tui.escaping import visible
from swink.app.tui.look import Look
from swink.app.tui.strips import Piece, chop_pieces
from swink.memory.exports.highlighting import highlight_lines

# By the classes that an exported page has for them.
_PARTS = {"k": "keyword", "m": "number", "f": "defined", "b": "builtin", "s": "string", "c": "comment"}


def highlight(
    lines: Sequence[str], look: Look, base: Style, *, language: str = "", path: str = ""
) -> list[list[Piece]]:
    """The pieces of each visible line, in `base` where nothing else is known."""
    if not lines or not (language or path):
        return [[(line, base)] for line in lines]
    styles: dict[str, Style] = {name: getattr(look.syntax, part) for name, part in _PARTS.items()}
    styles |= {"gi": look.ok, "gd": look.failed}
    return [
        [(text, base + styles[name] if name in styles else base) for name, text in pieces if text]
        for pieces in highlight_lines("\n".join(lines), path, language)
    ]


def paint_code(lines: Sequence[str], info: str, width: int, look: Look) -> list[list[Piece]]:
    """The lines of a program; `info` is what stands behind its fence, the language first."""
    language = info.split()[0].strip("{}.").split(",")[0] if info.split() else ""
    ground = look.code_block
    margin: Piece = ("  ", ground) if ground.bgcolor else ("│ ", look.border)
    shown = [visible(line) for line in lines]
    if language == "diff":
        styles = {"+": look.added, "-": look.removed, "@": ground + look.dim}
        coloured = [[(line, styles.get(line[:1], ground))] for line in shown]
    else:
        coloured = highlight(shown, look, ground, language=language)
    rows: list[list[Piece]] = []
    for pieces in coloured:
        style = pieces[0][1] if language == "diff" and pieces else ground
        for row in chop_pieces(pieces, max(2, width - 3)) if pieces else [[]]:
            rows.append([margin if style is ground else (margin[0], style), *row])
            if style.bgcolor:
                room = width - 2 - sum(cell_len(text) for text, _ in row)
                rows[-1].append((" " * room, Style(bgcolor=style.bgcolor)))
    return rows
