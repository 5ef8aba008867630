"""Front matter: the fields between two lines of `---` at the beginning of a Markdown file.

    ---
    name: pdf-forms
    description: >
      Fill in forms. Use it when …
    metadata:
      author: ada
    ---
    The body.

What stands there is a subset of YAML that every reader of YAML understands alike: mappings, lists, plain,
quoted and block texts. Every value is a text, a list or a mapping; `yes` and `1.0` are texts. Anchors, tags
and a key that is there twice are refused, with their line. Where YAML would refuse a value, a lenient reader
takes the rest of its line, and what is indented below it, for a text, as other programs do.
"""

import re
from collections.abc import Sequence
from typing import Union

from msgspec import Struct

from swink.system.yamlscalars import UnreadableYaml, block_text, fold_plain, quoted_text

Value = Union[str, list["Value"], dict[str, "Value"]]  # noqa: UP007  a name in quotes takes no |

_KEY = re.compile(r"""(?:(\w[\w ./$-]*?)|"([^"\\]*)"|'([^']*)')[ ]*:(?:[ ]+|$)""")
_COMMENT = re.compile(r"(?:^| )#.*")
_STRANGE = re.compile("[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_DEEPEST = 20
_NO_START = {
    "&": "an anchor (&)",
    "*": "an alias (*)",
    "!": "a tag (!)",
    **dict.fromkeys("%@`,]}", "a sign that YAML keeps for itself"),
}
_SPLIT = re.compile(r",(?![^(]*\))")
_FLOW = re.compile(
    r"""\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^']|'')*)'|([^\s,\[\]{}"'#&*!|>%@`:-][^,\[\]{}:#]*))\s*"""
)


class BadFrontMatter(ValueError):
    """Front matter that cannot be read; `line` is where in the file, counted from 1."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line
        self.problem = problem


class FrontMatter(Struct, frozen=True):
    """The fields of a file, the line of each, and the text after them.

    `oddities` are lines that stricter readers refuse: lists and mappings in brackets and, if it was read
    leniently, what was taken as a text though it is none in YAML.
    """

    fields: dict[str, Value]
    lines: dict[str, int]
    body: str = ""
    body_line: int = 1
    oddities: tuple[tuple[int, str], ...] = ()
    last_line: int = 1
    """Where the front matter ends."""

    def __contains__(self, key: str) -> bool:
        return key in self.fields

    def line(self, key: str) -> int:
        """Where a key stands; where it is missing, the first line."""
        return self.lines.get(key, 1)

    def text(self, key: str) -> str | None:
        """A value as text, a list with commas; None if there is no such key, or it is a mapping."""
        match self.fields.get(key):
            case str() as text:
                return text.strip()
            case list() as items:
                return ", ".join(str(item) for item in items)
            case _:
                return None

    def words(self, key: str) -> Sequence[str] | None:
        """A value as a list of words, written as a list or with commas; None if it is none."""
        match self.fields.get(key):
            case list() as items:
                words = [item for item in items if isinstance(item, str)]
                return words if len(words) == len(items) else None
            case str() as text:
                text = text.strip()
                text = text[1:-1] if text[:1] == "[" and text[-1:] == "]" else text
                return [word.strip().strip("\"'") for word in _SPLIT.split(text) if word.strip()]
            case _:
                return None


def has_front_matter(text: str) -> bool:
    """Whether a text begins with front matter, readable or not."""
    return text.partition("\n")[0].rstrip() == "---"


def read_front_matter(text: str, *, lenient: bool = False) -> FrontMatter:
    """The front matter of a file and its body; raises `BadFrontMatter`."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[0].rstrip() != "---":
        raise BadFrontMatter(1, "the file does not begin with front matter, a line of ---")
    end = next((at for at, line in enumerate(lines) if at and line.rstrip() == "---"), None)
    if end is None:
        raise BadFrontMatter(len(lines), "the front matter is not closed with a line of ---")
    found = parse_fields("\n".join(lines[1:end]), first_line=2, lenient=lenient)
    body = "\n".join(lines[end + 1 :])
    skipped = len(body) - len(body.lstrip())
    at = end + 2 + body.count("\n", 0, skipped)
    return FrontMatter(found.fields, found.lines, body.strip(), at, found.oddities, end + 1)


def parse_fields(text: str, *, first_line: int = 1, lenient: bool = False) -> FrontMatter:
    """The fields in what stands between the lines of `---`; raises `BadFrontMatter`."""
    if lenient:
        text = text.replace("\t", " ")
    elif strange := _STRANGE.search(text):
        line = first_line + text.count("\n", 0, strange.start())
        said = "a tab; use spaces" if strange[0] == "\t" else f"the character {strange[0]!r} is not allowed"
        raise BadFrontMatter(line, said)
    reader = _Reader(text.split("\n"), first_line, lenient)
    try:
        fields = reader.document()
    except UnreadableYaml as error:
        raise BadFrontMatter(error.at + first_line, error.problem) from None
    return FrontMatter(fields, reader.key_lines, oddities=tuple(reader.oddities))


class _Reader:
    """A walk down the lines; every method leaves `at` on the first line that it did not use."""

    def __init__(self, lines: list[str], first_line: int, lenient: bool) -> None:
        self.lines = lines
        self.at = 0
        self.key_lines: dict[str, int] = {}
        self.oddities: list[tuple[int, str]] = []
        self._first = first_line
        self._lenient = lenient
        self._depth = 0

    def document(self) -> dict[str, Value]:
        indent = self._next_indent()
        if indent < 0:
            return {}
        if self._is_item():
            raise UnreadableYaml(self.at, "the front matter is a list; write fields as `key: value`")
        found = self._mapping(indent)
        if self._next_indent() >= 0:
            raise UnreadableYaml(self.at, "this line is indented less than the ones above it")
        return found

    def _next_indent(self) -> int:
        """The indentation of the next line that says something; -1 at the end."""
        while self.at < len(self.lines):
            line = self.lines[self.at]
            stripped = line.lstrip(" ")
            if stripped.strip() and not stripped.startswith("#"):
                return len(line) - len(stripped)
            self.at += 1
        return -1

    def _is_item(self) -> bool:
        text = self.lines[self.at].lstrip(" ")
        return text.startswith("- ") or text.rstrip() == "-"

    def _block(self, indent: int) -> Value:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise UnreadableYaml(self.at, f"nested deeper than {_DEEPEST} levels")
        found = self._sequence(indent) if self._is_item() else self._mapping(indent)
        self._depth -= 1
        return found

    def _mapping(self, indent: int) -> dict[str, Value]:
        found: dict[str, Value] = {}
        while (here := self._next_indent()) >= indent:
            if here > indent:
                raise UnreadableYaml(self.at, "this line is indented further than the one it belongs to")
            at, line = self.at, self.lines[self.at][indent:]
            parsed = None if self._is_item() else _KEY.match(line)
            if parsed is None:
                raise UnreadableYaml(at, "expected `key: value` here")
            key = next(part for part in parsed.groups() if part is not None)
            if key in found:
                raise UnreadableYaml(at, f"the key {key!r} is there twice")
            if indent == 0 and self._depth == 0:
                self.key_lines[key] = at + self._first
            found[key] = self._field(line[parsed.end() :], indent)
        return found

    def _field(self, text: str, indent: int) -> Value:
        """The value of a key; of a lenient reader's a text where there is no other."""
        begun, depth = self.at, self._depth
        try:
            found = self._value(text, indent, in_mapping=True)
            if self._lenient and self._next_indent() > indent:
                raise UnreadableYaml(self.at, "this line is indented further than the one it belongs to")
            return found
        except UnreadableYaml as error:
            text = text.strip()
            is_open = text[:1] in ("'", '"') or (text[:1] in ("[", "{") and text[-1:] not in ("]", "}"))
            if not self._lenient or is_open:
                raise
            self.at, self._depth = begun + 1, depth
            self.oddities.append((error.at + self._first, error.problem))
            while self.at < len(self.lines) and self.lines[self.at][: indent + 1].strip(" ") in ("", "-"):
                text += f" {self.lines[self.at].strip()}"
                self.at += 1
            return text.strip()

    def _sequence(self, indent: int) -> list[Value]:
        found: list[Value] = []
        while self._next_indent() == indent and self._is_item():
            rest = self.lines[self.at][indent + 1 :]
            text = rest.lstrip(" ")
            inner = indent + 1 + len(rest) - len(text)
            if text.startswith("- ") or text == "-" or _KEY.match(text):
                self.lines[self.at] = " " * inner + text
                found.append(self._block(inner))
            else:
                found.append(self._value(text, indent, in_mapping=False))
        if self._next_indent() > indent:
            raise UnreadableYaml(self.at, "this line is indented further than the list it belongs to")
        return found

    def _value(self, text: str, indent: int, *, in_mapping: bool) -> Value:
        text = text.strip()
        if not text or text.startswith("#"):
            self.at += 1
            here = self._next_indent()
            if here > indent or (in_mapping and here == indent and self._is_item()):
                return self._nested(here)
            return ""
        if text[0] in "|>":
            found, self.at = block_text(self.lines, self.at, text, indent)
            return found
        if text[0] in "\"'":
            return self._quoted(text, indent)
        if text[0] in "[{":
            return self._in_brackets(text)
        if text[0] in _NO_START:
            raise UnreadableYaml(self.at, f"{_NO_START[text[0]]} cannot begin a value; put it in quotes")
        if re.match(r"[-?:](?:\s|$)", text):
            raise UnreadableYaml(
                self.at, f"a value cannot begin with {text[0]!r} and a space; put it in quotes"
            )
        return self._plain(text, indent)

    def _nested(self, indent: int) -> Value:
        """What stands in the lines below a key: a block, or a text."""
        line = self.lines[self.at][indent:]
        if self._is_item() or _KEY.match(line):
            return self._block(indent)
        if line[0] in "|>\"'[{":
            raise UnreadableYaml(self.at, "write this value on the line of its key")
        if line[0] in _NO_START or re.match(r"[?:](?:\s|$)", line):
            raise UnreadableYaml(self.at, "this cannot begin a value; put it in quotes")
        return self._plain(line, indent - 1)

    def _quoted(self, text: str, indent: int) -> str:
        found, rest, self.at = quoted_text(self.lines, self.at, text, indent)
        if rest.strip() and not _COMMENT.fullmatch(rest.rstrip()):
            raise UnreadableYaml(self.at - 1, f"{rest.strip()!r} after the closing quote")
        return found

    def _plain(self, text: str, indent: int) -> str:
        parts = [self._plain_line(text)]
        is_open = not _COMMENT.search(text)
        self.at += 1
        while is_open and self.at < len(self.lines):
            line = self.lines[self.at]
            stripped = line.strip(" ")
            if stripped and (len(line) - len(line.lstrip(" ")) <= indent or stripped.startswith("#")):
                break
            parts.append(self._plain_line(stripped) if stripped else "")
            is_open = not _COMMENT.search(stripped)
            self.at += 1
        while not parts[-1]:
            parts.pop()
        return fold_plain(parts)

    def _plain_line(self, text: str) -> str:
        """One line of a text without quotes."""
        text = _COMMENT.sub("", text, count=1).strip()
        if re.search(r":(?:\s|$)", text):
            problem = 'a second ": " here; put the text in quotes'
            if not self._lenient:
                raise UnreadableYaml(self.at, problem)
            self.oddities.append((self.at + self._first, problem))
        return text

    def _in_brackets(self, text: str) -> Value:
        """A list or a mapping of texts in brackets, all on one line."""
        self.oddities.append((self.at + self._first, "brackets; write one item or key a line"))
        opening, close = text[0], {"[": "]", "{": "}"}[text[0]]
        body = _COMMENT.sub("", text).rstrip() if not re.search("[\"']", text) else text
        if not body.endswith(close):
            raise UnreadableYaml(self.at, f"{opening!r} is not closed on its line; put the text in quotes")
        items: list[Value] = []
        fields: dict[str, Value] = {}
        at, end = 1, len(body) - 1
        while body[at:end].strip():
            first, at = self._piece(body, at)
            if opening == "{":
                if body[at : at + 2] != ": " or first in fields:
                    raise UnreadableYaml(self.at, "expected `key: value` in braces, each key once")
                fields[first], at = self._piece(body, at + 2)
            else:
                items.append(first)
            if at < end and body[at] != ",":
                raise UnreadableYaml(
                    self.at, f"expected a comma before {body[at:end]!r}; put texts in quotes"
                )
            at += 1
        self.at += 1
        return fields if opening == "{" else items

    def _piece(self, body: str, at: int) -> tuple[str, int]:
        found = _FLOW.match(body, at, len(body) - 1)
        if found is None:
            raise UnreadableYaml(self.at, f"cannot read {body[at:]!r} in brackets; put texts in quotes")
        double, single, plain = found.groups()
        if double is not None:
            quoted = f'"{double}"'
            return quoted_text([quoted], 0, quoted, 0)[0], found.end()
        return (plain.strip() if single is None else single.replace("''", "'")), found.end()
