"""Code in colours: text as pieces with a class each, made by Pygments, and the HTML of them."""

import html
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Any, TypeVar

T = TypeVar("T")
Piece = tuple[str, str]
"""A class, or nothing, and text."""

_LONGEST = 100_000
"""Characters up to which code is coloured; a lexer may be slow."""
_KINDS = {
    "k": "Keyword Name.Tag Comment.Preproc Operator.Word",
    "m": "Keyword.Constant Literal Literal.Number",
    "f": "Name.Function Name.Class Name.Decorator Generic.Heading",
    "b": "Name.Builtin Name.Attribute Name.Exception",
    "s": "Literal.String",
    "c": "Comment Generic.Subheading Generic.Prompt",
    "gd": "Generic.Deleted",
    "gi": "Generic.Inserted",
}
_CLASSES = {kind: name for name, kinds in _KINDS.items() for kind in kinds.split()}
"""Kinds of tokens by their Pygments name; the longest that fits decides."""


def highlight(code: str, language: str = "", path: str = "") -> str:
    """Code as HTML, in colours if the language or the name of the file says which."""
    return "".join(_span(piece) for piece in pieces_of(code, language, path))


def highlight_lines(code: str, path: str, language: str = "") -> list[list[Piece]]:
    """The pieces of each line of a file, or of code in a language."""
    lines: list[list[Piece]] = [[]]
    for name, text in pieces_of(code, language, path):
        first, *rest = text.split("\n")
        lines[-1].append((name, first))
        lines += [[(name, line)] for line in rest]
    return lines


def render_line(pieces: Sequence[Piece], marked: Sequence[tuple[int, int]] = ()) -> str:
    """A line as HTML; the marked characters stand out."""
    if not marked:
        return "".join(map(_span, pieces))
    edges = sorted({edge for span in marked for edge in span})
    parts: list[tuple[bool, str]] = []
    at = 0
    for name, text in pieces:
        cuts = [0, *[edge - at for edge in edges if at < edge < at + len(text)], len(text)]
        for start, end in pairwise(cuts):
            is_marked = any(first <= at + start < last for first, last in marked)
            parts.append((is_marked, _span((name, text[start:end]))))
        at += len(text)
    lines = _joined(parts)
    return "".join(f"<mark>{inner}</mark>" if is_marked and inner else inner for is_marked, inner in lines)


def pieces_of(code: str, language: str = "", path: str = "") -> Iterator[Piece]:
    """Code as pieces; all of it is one where no lexer is known."""
    lexer = _lexer(language.lower(), path.rpartition("/")[2]) if len(code) <= _LONGEST else None
    if lexer is None:
        yield "", code
        return
    try:
        tokens: list[Piece] = [(_class_of(kind), text) for kind, text in lexer.get_tokens(code)]
    except Exception:
        # A lexer is foreign code, and colours are no reason to fail.
        tokens = [("", code)]
    # A lexer drops what it takes for the mark of a byte order, and makes other line ends of some.
    is_whole = "".join(text for _, text in tokens) == code
    yield from _joined(tokens if is_whole else [("", code)])


def _joined(pieces: Iterable[tuple[T, str]]) -> Iterator[tuple[T, str]]:
    for key, group in groupby(pieces, key=lambda piece: piece[0]):
        yield key, "".join(text for _, text in group)


def _span(piece: Piece) -> str:
    name, text = piece
    if not text:
        return ""
    escaped = html.escape(text, quote=False)
    return f'<span class="{name}">{escaped}</span>' if name and text.strip() else escaped


@lru_cache(maxsize=256)
def _lexer(language: str, filename: str) -> Any:
    # Not at the top: importing Pygments takes 30 ms, and most programs never export.
    from pygments import lexers
    from pygments.util import ClassNotFound

    known: Any = lexers
    try:
        if language:
            return known.get_lexer_by_name(language, stripnl=False, ensurenl=False)
        return known.get_lexer_for_filename(filename, stripnl=False, ensurenl=False) if filename else None
    except ClassNotFound:
        return None


@lru_cache(maxsize=1024)
def _class_of(kind: Any) -> str:
    names = list(kind)
    while names:
        if (found := _CLASSES.get(".".join(names))) is not None:
            return found
        names.pop()
    return ""
