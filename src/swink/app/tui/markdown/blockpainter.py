"""Blocks: paragraphs, headings, lists, quotes, tables and programs as lines of pieces."""

from collections.abc import Sequence

from markdown_it.token import Token
from msgspec import Struct
from rich.style import Style

from swink.app.tui.escaping import visible, wrap
from swink.app.tui.look import Look
from swink.app.tui.markdown.inline import PARSER, Definitions, paint_inline
from swink.app.tui.markdown.tables import Align, Cell, MarkdownTable, fit, paint_table
from swink.app.tui.sourcecode import paint_code
from swink.app.tui.strips import Piece, wrap_pieces

Row = list[Piece]

_DEEPEST = 24  # levels of nesting; what is deeper is shown as it was written
_LEAST = 8  # columns that a block keeps, however deep it is
_WIDEST = 120
"""Columns of prose: the eye does not find back over longer lines. Code and tables take what they need."""
_BULLETS = "•◦▪"
_BOXES = {"[ ] ": "☐", "[x] ": "☑", "[X] ": "☑"}
_ALIGNS: dict[object, Align] = {"text-align:right": "right", "text-align:center": "center"}
_APART = ("fence", "code_block", "table_open", "hr")


class Carry(Struct, frozen=True):
    """What a part of a list or a table hands on to the next."""

    number: int = 0
    """Of the next item of an ordered list."""
    marker: str = ""
    widths: tuple[int, ...] = ()
    """Of the columns of a table."""


class _Node(Struct):
    token: Token
    children: list["_Node"]


def paint_literal(source: str, width: int, look: Look) -> list[Row]:
    """Text as it was written, wrapped."""
    return [[(line, look.text)] for line in wrap(visible(source.removesuffix("\n")), width)]


class Blocks:
    """Paints one part of a text; `leaves` is what it hands on."""

    def __init__(self, source: str, look: Look, known: Definitions, carry: Carry) -> None:
        self._source = source
        self._lines = source.split("\n")
        self._look = look
        self._known = known
        self._carry = carry
        self.leaves = Carry()

    def paint(self, width: int, *, has_head: bool = True) -> list[Row]:
        """All of it; without the head of the table that it starts with."""
        tokens: list[Token] = []
        PARSER.block.parse(self._source, PARSER, {}, tokens)
        if any(token.level >= _DEEPEST for token in tokens):
            return paint_literal(self._source, width, self._look)
        nodes, rows = _nest(tokens), list[Row]()
        if not has_head and nodes and nodes[0].token.type == "table_open":
            table, *nodes = nodes
            rows = self._table(table, width, 0, self._carry.widths)
        return rows + self._paint_all(nodes, width, self._look.text, 0)

    def _paint_all(self, nodes: Sequence[_Node], width: int, style: Style, depth: int) -> list[Row]:
        rows: list[Row] = []
        for number, node in enumerate(nodes):
            if number and (self._is_apart(node.token) or (depth == 0 and _is_apart(nodes[number - 1], node))):
                rows.append([])
            if depth == 0:
                self.leaves = Carry()
            rows += self._paint(node, width, style, depth)
            self._carry = Carry()  # it is for the first block
        return rows

    def _is_apart(self, token: Token) -> bool:
        """Whether there is a blank line before it in the source."""
        line = token.map[0] if token.map else 0
        return line > 0 and not self._lines[line - 1].strip(" \t\r>")

    def _paint(self, node: _Node, width: int, style: Style, depth: int) -> list[Row]:
        token, look = node.token, self._look
        match token.type:
            case "heading_open":
                is_main = token.tag in ("h1", "h2")
                return self._text(node, width, look.heading if is_main else look.subheading)
            case "fence" | "code_block":
                return paint_code(token.content.removesuffix("\n").split("\n"), token.info, width, look)
            case "hr":
                return [[("─" * width, look.border)]]
            case "blockquote_open":
                inner = width - 2 if width - 2 >= _LEAST else width
                rows = self._paint_all(node.children, inner, look.quote, depth + 1)
                bar: Piece = ("│ " if inner < width else "", look.border)
                return [[bar, *row] for row in rows or [[]]]
            case "bullet_list_open":
                return self._list(node, width, style, depth)
            case "ordered_list_open":
                carry = self._carry
                follows = depth == 0 and carry.number and carry.marker == token.markup
                start = carry.number if follows else int(token.attrGet("start") or 1)
                rows = self._list(node, width, style, depth, start)
                if depth == 0:
                    self.leaves = Carry(start + len(node.children), token.markup)
                return rows
            case "table_open":
                return self._table(node, width, depth)
            case _:
                return self._text(node, width, style)

    def _text(self, node: _Node, width: int, style: Style) -> list[Row]:
        lines = paint_inline(_content(node), self._look, style, self._known)
        return [row for line in lines for row in wrap_pieces(line, min(width, _WIDEST))]

    def _list(self, node: _Node, width: int, style: Style, depth: int, start: int | None = None) -> list[Row]:
        rows: list[Row] = []
        self._carry = Carry()
        for number, item in enumerate(node.children):
            if number and self._is_apart(item.token):
                rows.append([])
            mark = _BULLETS[min(depth, 2)] if start is None else f"{start + number}{item.token.markup}"
            mark = f"{_task(item) or mark} "
            inner = width - len(mark) if width - len(mark) >= _LEAST else width
            first, *rest = self._paint_all(item.children, inner, style, depth + 1) or [[]]
            if inner == width:  # no room to indent
                rows += [[(mark.rstrip(), self._look.accent)], first, *rest]
            else:
                rows.append([(mark, self._look.accent), *first])
                rows += [[(" " * len(mark), style), *row] if row else [] for row in rest]
        return rows

    def _table(self, node: _Node, width: int, depth: int, widths: Sequence[int] | None = None) -> list[Row]:
        """With the columns of the part before it, it has no head of its own."""
        look = self._look
        rows: list[list[Cell]] = []
        aligns: list[Align] = []
        for group in node.children:
            style = look.strong if group.token.type == "thead_open" else look.text
            for row in group.children:
                rows.append([paint_inline(_content(cell), look, style, self._known) for cell in row.children])
                aligns = aligns or [_ALIGNS.get(cell.token.attrGet("style"), "left") for cell in row.children]
        table = MarkdownTable(rows, aligns)
        fitted = tuple(widths or fit(table, width))
        if depth == 0:
            self.leaves = Carry(widths=fitted)
        return paint_table(table, width, look, fitted, has_head=widths is None)


def _nest(tokens: Sequence[Token]) -> list[_Node]:
    """The tokens as a tree."""
    top: list[_Node] = []
    stack = [top]
    for token in tokens:
        if token.nesting < 0:
            stack.pop()
            continue
        node = _Node(token, [])
        stack[-1].append(node)
        if token.nesting > 0:
            stack.append(node.children)
    return top


def _content(node: _Node) -> str:
    return "".join(child.token.content for child in node.children)


def _is_apart(before: _Node, node: _Node) -> bool:
    """Whether two blocks look better with a line between them, whatever the source has."""
    kinds = before.token.type, node.token.type
    return kinds[1] == "heading_open" or any(kind in _APART for kind in kinds)


def _task(item: _Node) -> str:
    """The box of a task, taken from the text of its item."""
    if not item.children or item.children[0].token.type != "paragraph_open":
        return ""
    inline = item.children[0].children[0].token
    box = _BOXES.get(inline.content[:4], "")
    if box:
        inline.content = inline.content[4:]
    return box
