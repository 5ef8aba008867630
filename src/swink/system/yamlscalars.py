"""Texts in YAML that take more than a line: quoted, plain and block texts, folded as YAML says."""

import re
from collections.abc import Sequence

_HEADER = re.compile(r"[|>](?:([+-])?([1-9])?|([1-9])([+-]))(?:[ ]+#.*)?")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b",
    " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
_END = {'"': re.compile(r'(?:[^"\\]|\\.)*"', re.DOTALL), "'": re.compile(r"(?:[^']|'')*'(?!')", re.DOTALL)}


class UnreadableYaml(Exception):
    """A text that is not YAML; `at` is the index of its line."""

    def __init__(self, at: int, problem: str) -> None:
        super().__init__(problem)
        self.at = at
        self.problem = problem


def fold_plain(lines: Sequence[str]) -> str:
    """Lines without their indentation as one text: a line break is a space, an empty line a line break."""
    text, empty = lines[0], 0
    for line in lines[1:]:
        if not line:
            empty += 1
            continue
        text += ("\n" * empty or " ") + line
        empty = 0
    return text + "\n" * empty


def quoted_text(lines: Sequence[str], at: int, text: str, indent: int) -> tuple[str, str, int]:
    """A text in quotes that begins on a line, what stands after it, and the index of the line below it."""
    quote, begun = text[0], at
    whole = text[1:]
    while not (closed := _END[quote].match(whole)):
        at += 1
        if at >= len(lines):
            raise UnreadableYaml(begun, f"the quote {quote} is not closed")
        line = lines[at]
        if line.strip() and len(line) - len(line.lstrip(" ")) <= indent:
            raise UnreadableYaml(
                at, f"the quote {quote} of line {begun + 1} of the front matter is not closed"
            )
        whole += f"\n{line}"
    inner, rest = whole[: closed.end() - 1], whole[closed.end() :]
    if quote == "'":
        return _fold_quoted(inner.replace("''", "'")), rest, at + 1
    return _unescape(_fold_quoted(re.sub(r"(?<!\\)((?:\\\\)*)\\\n[ ]*", r"\1", inner)), begun), rest, at + 1


def block_text(lines: Sequence[str], at: int, header: str, indent: int) -> tuple[str, int]:
    """The text below `|` or `>`, and the index of the line after it."""
    parsed = _HEADER.fullmatch(header)
    if parsed is None:
        raise UnreadableYaml(at, f"only a line break may follow {header[0]!r}; put the text in quotes")
    chomp = parsed[1] or parsed[4] or ""
    given = parsed[2] or parsed[3]
    inner = indent + int(given) if given else 0
    found: list[str] = []
    at += 1
    while at < len(lines):
        line = lines[at]
        here = len(line) - len(line.lstrip(" "))
        if line.strip(" "):
            if here <= indent:
                break
            inner = inner or here
            if here < inner:
                raise UnreadableYaml(at, "this line is indented less than the text it belongs to")
        elif not inner and len(line) > _first_indent(lines, at):
            raise UnreadableYaml(at, "an empty line that is indented further than the text below it")
        found.append(line[inner:] if inner else "")
        at += 1
    return _chomp(found, chomp, folded=header[0] == ">"), at


def _first_indent(lines: Sequence[str], at: int) -> int:
    return next((len(line) - len(line.lstrip(" ")) for line in lines[at:] if line.strip(" ")), 1 << 30)


def _chomp(lines: list[str], chomp: str, *, folded: bool) -> str:
    empty = 0
    while lines and not lines[-1]:
        lines.pop()
        empty += 1
    if not lines:
        return "\n" * empty if chomp == "+" else ""
    text = _fold_block(lines) if folded else "\n".join(lines)
    return text + {"-": "", "": "\n", "+": "\n" * (empty + 1)}[chomp]


def _fold_block(lines: list[str]) -> str:
    """Lines as one text; those that are indented further keep their line breaks."""
    text, empty, was_further = "", 0, False
    for at, line in enumerate(lines):
        if not line:
            empty += 1
            continue
        further = line[0] == " "
        if not text and at == empty:
            text = "\n" * empty + line
        elif further or was_further:
            text += "\n" * (empty + 1) + line
        else:
            text += ("\n" * empty or " ") + line
        empty, was_further = 0, further
    return text


def _fold_quoted(text: str) -> str:
    lines = text.split("\n")
    if len(lines) == 1:
        return text
    middle = [line.strip(" ") for line in lines[1:-1]]
    return _fold_ends([lines[0].rstrip(" "), *middle, lines[-1].lstrip(" ")])


def _fold_ends(lines: list[str]) -> str:
    """As `fold_plain`, where the last line may be empty: then the break before it is a space."""
    text, empty = lines[0], 0
    for at, line in enumerate(lines[1:], 1):
        if not line and at < len(lines) - 1:
            empty += 1
            continue
        text += ("\n" * empty or " ") + line
        empty = 0
    return text


def _unescape(text: str, at: int) -> str:
    def replace(escape: re.Match[str]) -> str:
        sign = escape[1]
        if sign[0] in "xuU" and len(sign) > 1:
            number = int(sign[1:], 16)
            if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
                raise UnreadableYaml(at, f"\\{sign} is no character")
            return chr(number)
        if sign not in _ESCAPES:
            raise UnreadableYaml(at, f"\\{sign} is no escape of YAML; write \\\\ for a backslash")
        return _ESCAPES[sign]

    return _ESCAPE.sub(replace, text)
