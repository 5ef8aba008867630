"""Shell syntax: the simple commands of a line and their words, exactly as bash will pass them.

tree-sitter parses the line with the bash grammar that editors use, which repairs what it does not understand.
So only known kinds of nodes are accepted, every byte of the line must belong to one of them or be a blank,
and quotes are removed here. Anything else gives None: variables and substitutions, assignments, braces,
comments, here-documents, background jobs, compound commands, and whatever bash could read differently.
"""

import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_CHARACTERS = 4_000
"""Longer commands are not parsed and need approval."""

Link = Literal["", ";", "&&", "||", "|"]


class Word(Struct, frozen=True):
    """A word after quote removal, with the places of unquoted `*` and `?`; `varies` if it contains `$?`."""

    text: str
    wild: tuple[int, ...] = ()
    varies: bool = False


class SimpleCommand(Struct, frozen=True):
    """One simple command: how it follows the one before, its words, and the files that `<` opens for it."""

    link: Link
    words: tuple[Word, ...]
    inputs: tuple[Word, ...] = ()


def read_commands(line: str) -> list[SimpleCommand] | None:
    """The simple commands of a line; None if there is anything in it that is not understood completely."""
    if len(line) > MAX_CHARACTERS or "<<" in line or not all(map(_is_plain, line)):
        return None
    try:
        source = line.encode()
    except UnicodeEncodeError:
        return None
    leaves = _collect_leaves(_parser().parse(source).root_node, source)
    return None if leaves is None else _Reader(source).read(leaves)


class _Leaf(Struct, frozen=True):
    """A piece of the line that has no parts of interest."""

    kind: str
    start: int
    end: int


_INNER = frozenset({
    "program", "list", "pipeline", "command", "command_name", "concatenation", "redirected_statement",
    "file_redirect", "test_command", "unary_expression", "binary_expression",
})  # fmt: skip
_BARE = frozenset({"word", "number", "test_operator", "[", "]", "=", "==", "!=", "!"})
_QUOTED = frozenset({"raw_string", "string"})
_STATUS = "simple_expansion"
_WORDS = _BARE | _QUOTED | {_STATUS}
_LINKS = frozenset({";", "&&", "||", "|"})
_REDIRECTIONS = frozenset({"<", ">", ">>", "&>", "&>>", ">&"})
_LEAVES = _WORDS | _LINKS | _REDIRECTIONS | {"file_descriptor", "\n"}
_IN_STRING = frozenset({'"', "string_content", "$", _STATUS})
_LETTER = re.compile(r"[A-Za-z0-9_./,:+@%^=-]")
_REFLOG = re.compile(r"[A-Za-z0-9_./-]*@\{[A-Za-z0-9_-]+\}(?:\.\.[A-Za-z0-9_./-]*)?")
_LITERAL_DOLLAR = re.compile(r"\$(?=\Z|[|)/])")


@functools.cache
def _parser() -> "Parser":
    # Here and not at the top: `import swink` does not need it.
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def _is_plain(char: str) -> bool:
    """Whether a character is printable, a tab or a newline, and no other control or format character."""
    return char in "\t\n" or char.isprintable()


def _collect_leaves(root: "Node", source: bytes) -> list[_Leaf] | None:
    """The leaves of the tree in order, with newlines; None if one is unknown or a byte belongs to none."""
    found: list[_Leaf] = []
    waiting = [root]
    position = 0
    while waiting:  # no recursion: a line can nest deeper than Python's stack
        node = waiting.pop()
        if node.is_error or node.is_missing:
            return None
        if node.type in _INNER:
            waiting.extend(reversed(node.children))
            continue
        if node.type not in _LEAVES or not _is_whole(node):
            return None
        gap = source[position : node.start_byte]
        if gap.strip(b" \t\n"):
            return None
        if b"\n" in gap:
            found.append(_Leaf("\n", position, node.start_byte))
        found.append(_Leaf(node.type, node.start_byte, node.end_byte))
        position = node.end_byte
    return None if source[position:].strip(b" \t\n") else found


def _is_whole(node: "Node") -> bool:
    """Whether nothing but text is inside a string, and nothing but `$?` is expanded."""
    if node.type == _STATUS:
        return node.text == b"$?"
    if node.type != "string":
        return True
    return all(part.type in _IN_STRING and not part.is_missing and _is_whole(part) for part in node.children)


class _NotUnderstood(Exception):
    pass


class _Reader:
    """Joins leaves into words: adjacent leaves are one word, leaves with a blank between them are two."""

    def __init__(self, source: bytes) -> None:
        self._source = source

    def read(self, leaves: list[_Leaf]) -> list[SimpleCommand] | None:
        commands: list[SimpleCommand] = []
        link: Link = ""
        words: list[Word] = []
        inputs: list[Word] = []
        pieces = self._pieces(leaves)
        try:
            for kind, piece in pieces:
                if kind == "word":
                    words.append(self._word(piece))
                elif kind == "redirection":
                    target = next(pieces, None)
                    inputs += self._redirection(piece, target[1] if target else [])
                elif words:
                    commands.append(SimpleCommand(link, tuple(words), tuple(inputs)))
                    words, inputs, link = [], [], kind if kind in ("&&", "||", "|") else ";"
                elif kind != "\n" or inputs:
                    return None
        except _NotUnderstood:
            return None
        if words:
            return [*commands, SimpleCommand(link, tuple(words), tuple(inputs))]
        return commands if link == ";" and not inputs else None

    def _pieces(self, leaves: list[_Leaf]) -> Iterator[tuple[str, list[_Leaf]]]:
        """Words, redirections (with their file descriptor) and links."""
        current: list[_Leaf] = []
        descriptor: list[_Leaf] = []
        for leaf in leaves:
            touches = bool(current) and current[-1].end == leaf.start
            if current and not (touches and leaf.kind in _WORDS):
                yield "word", current
                current = []
            if descriptor and not (leaf.kind in _REDIRECTIONS and descriptor[0].end == leaf.start):
                raise _NotUnderstood
            if leaf.kind in _WORDS:
                current.append(leaf)
            elif leaf.kind == "file_descriptor":
                if touches:
                    raise _NotUnderstood
                descriptor = [leaf]
            elif leaf.kind in _REDIRECTIONS:
                if touches:  # digits would be a file descriptor
                    raise _NotUnderstood
                yield "redirection", [*descriptor, leaf]
                descriptor = []
            else:
                yield leaf.kind, [leaf]
        if descriptor:
            raise _NotUnderstood
        if current:
            yield "word", current

    def _redirection(self, leaves: list[_Leaf], target: list[_Leaf]) -> list[Word]:
        """The file that is read; nothing for output that is thrown away or joined with the other."""
        if not target or target[0].kind not in _WORDS:
            raise _NotUnderstood
        *descriptor, operator = [self._text(leaf) for leaf in leaves]
        word = self._word(target)
        match operator, "".join(descriptor):
            case "<", "" | "0" if not word.wild and not word.varies:
                return [word]
            case ">" | ">>", "" | "1" | "2" if word == Word("/dev/null"):
                return []
            case "&>" | "&>>", "" if word == Word("/dev/null"):
                return []
            case ">&", "" | "1" | "2" if word in (Word("1"), Word("2")):
                return []
            case _:
                raise _NotUnderstood

    def _word(self, leaves: list[_Leaf]) -> Word:
        raw = self._source[leaves[0].start : leaves[-1].end].decode()
        if raw in ("[", "]", "!") or _REFLOG.fullmatch(raw):
            return Word(raw)
        text = ""
        wild: list[int] = []
        varies = False
        for leaf in leaves:
            piece = self._text(leaf)
            if leaf.kind == "raw_string":
                text += piece[1:-1]
            elif leaf.kind == "string":
                varies = varies or "$?" in piece
                text += _without_double_quotes(piece[1:-1])
            elif leaf.kind == _STATUS:
                varies = True
                text += "0"
            else:
                for char, is_wild in _without_backslashes(piece, text):
                    if is_wild:
                        wild.append(len(text))
                    text += char
        return Word(text, tuple(wild), varies)

    def _text(self, leaf: _Leaf) -> str:
        return self._source[leaf.start : leaf.end].decode()


def _without_double_quotes(inside: str) -> str:
    """What is left of the text between double quotes."""
    text = ""
    position = 0
    while position < len(inside):
        char = inside[position]
        following = inside[position + 1 : position + 2]
        if char == "`" or (char == "\\" and following in ("", "\n")):
            raise _NotUnderstood
        if char == "\\" and following in '$`"\\':
            text += following
            position += 2
        elif inside.startswith("$?", position):
            text += "0"
            position += 2
        elif char == "$" and not _LITERAL_DOLLAR.match(inside, position):
            raise _NotUnderstood
        else:
            text += char
            position += 1
    return text


def _without_backslashes(bare: str, before: str) -> Iterator[tuple[str, bool]]:
    """The characters of an unquoted piece, and whether each is a wildcard."""
    previous = before[-1:]
    characters = iter(bare)
    for char in characters:
        if char == "\\":
            char = next(characters, "")
            if not ("!" <= char <= "~" or char == " "):
                raise _NotUnderstood
            yield char, False
        elif char in "*?":
            yield char, True
        elif _LETTER.match(char) or _is_letter_everywhere(char) or (char == "~" and _keeps_tilde(previous)):
            yield char, False
        else:
            raise _NotUnderstood
        previous = char


def _keeps_tilde(previous: str) -> bool:
    """Whether a tilde after this character is one, as in HEAD~1, and not a home."""
    return previous.isalnum() or previous in ("^", "~")


def _is_letter_everywhere(char: str) -> bool:
    """Whether a non-ASCII character is a letter in any locale: some take the bytes 85 and A0 for blanks."""
    return ord(char) > 127 and char.isalnum() and not {0x85, 0xA0} & set(char.encode())
