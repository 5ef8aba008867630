"""Regular expressions of JSON Schema's `pattern` as grammars of JSON string content.

Supported are literals, classes, `.`, groups, alternation, quantifiers, and anchors at both ends. JSON Schema
searches the string for the pattern; the grammar allows only strings that match it from end to end.
"""

from swink.local.gbnf import NEVER, Chars, Lit, Node, alt, repeat, seq

UNBOUNDED = 32
"""How often `*`, `+` and `{n,}` repeat at most."""

_CLASSES: dict[str, tuple[tuple[int, int], ...]] = {
    "d": ((48, 57),),
    "w": ((48, 57), (65, 90), (95, 95), (97, 122)),
    "s": ((32, 32),),
}
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "0": "\0"}
_IN_JSON = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f", "\b": "\\b"}
_PLAIN = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7E))


class _Unsupported(Exception):
    """The pattern uses a feature that has no grammar here."""


def pattern_node(pattern: str) -> Node | None:
    """The grammar of a pattern, or None if it uses an unsupported feature."""
    reader = _Reader(pattern)
    try:
        node = reader.alternation(at_edge=True)
    except _Unsupported:
        return None
    return node if reader.at == len(pattern) else None


class _Reader:
    """A recursive descent over the pattern; `at` is the next character."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0

    def alternation(self, *, at_edge: bool = False) -> Node:
        options = [self._sequence(at_edge=at_edge)]
        while self._take("|"):
            options.append(self._sequence(at_edge=at_edge))
        return alt(*options)

    def _sequence(self, *, at_edge: bool) -> Node:
        parts: list[Node] = []
        if at_edge:
            self._take("^")
        while self.at < len(self.pattern) and self._peek() not in "|)":
            if at_edge and self._peek() == "$" and self.pattern[self.at + 1 : self.at + 2] in ("", "|"):
                self.at += 1
                break
            parts.append(self._quantified(self._atom()))
        return seq(*parts)

    def _atom(self) -> Node:
        match char := self._next():
            case "(":
                if self._take("?") and not self._take(":"):
                    raise _Unsupported
                inner = self.alternation()
                if not self._take(")"):
                    raise _Unsupported
                return inner
            case "[":
                return self._class()
            case ".":
                return Chars(_PLAIN)
            case "\\":
                escaped = self._escape()
                return _one_of(escaped) if isinstance(escaped, tuple) else _char(escaped)
            case "^" | "$" | "*" | "+" | "?" | "{" | ")":
                raise _Unsupported
            case _:
                return _char(char)

    def _class(self) -> Node:
        negated = self._take("^")
        ranges: list[tuple[int, int]] = []
        while not self._take("]"):
            first = self._member()
            if isinstance(first, tuple):
                ranges.extend(first)
            elif self._peek() == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                last = self._member()
                if isinstance(last, tuple) or last < first:
                    raise _Unsupported
                ranges.append((ord(first), ord(last)))
            else:
                ranges.append((ord(first), ord(first)))
        return _one_of(_outside(ranges) if negated else tuple(ranges))

    def _member(self) -> str | tuple[tuple[int, int], ...]:
        char = self._next()
        return self._escape() if char == "\\" else char

    def _escape(self) -> str | tuple[tuple[int, int], ...]:
        char = self._next()
        if char in _CLASSES:
            return _CLASSES[char]
        if char.lower() in _CLASSES:
            return _outside(_CLASSES[char.lower()])
        if char in _ESCAPES:
            return _ESCAPES[char]
        if char.isalnum():  # \b, \u…, back references
            raise _Unsupported
        return char

    def _quantified(self, node: Node) -> Node:
        bounds = {"*": (0, UNBOUNDED), "+": (1, UNBOUNDED), "?": (0, 1)}.get(self._peek())
        if bounds:
            self.at += 1
        elif self._peek() == "{":
            bounds = self._counts()
        if bounds is None:
            return node
        self._take("?")  # lazy or not makes no difference to what matches
        return repeat(node, *bounds)

    def _counts(self) -> tuple[int, int]:
        end = self.pattern.find("}", self.at)
        low, comma, high = self.pattern[self.at + 1 : end].partition(",")
        if end < 0 or not low.isdecimal() or (high and not high.isdecimal()):
            raise _Unsupported
        self.at = end + 1
        return int(low), int(high) if high else int(low) + UNBOUNDED if comma else int(low)

    def _peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def _next(self) -> str:
        if self.at >= len(self.pattern):
            raise _Unsupported
        self.at += 1
        return self.pattern[self.at - 1]

    def _take(self, char: str) -> bool:
        found = self._peek() == char
        self.at += found
        return found


def _char(char: str) -> Node:
    if char < " " and char not in _IN_JSON:
        raise _Unsupported
    return Lit(_IN_JSON.get(char, char))


def _one_of(ranges: tuple[tuple[int, int], ...]) -> Node:
    """One character out of the ranges, escaped where JSON requires it."""
    plain = tuple(
        (max(low, start), min(high, end))
        for low, high in ranges
        for start, end in (*_PLAIN, (0xA0, 0xD7FF))
        if low <= end and high >= start
    )
    escaped = [
        Lit(text) for char, text in _IN_JSON.items() if any(low <= ord(char) <= high for low, high in ranges)
    ]
    node = alt(*([Chars(plain)] if plain else []), *escaped)
    if node == NEVER:
        raise _Unsupported
    return node


def _outside(ranges: "list[tuple[int, int]] | tuple[tuple[int, int], ...]") -> tuple[tuple[int, int], ...]:
    """Printable ASCII without the ranges: the characters of a negated class."""
    left = [code for code in range(32, 127) if not any(low <= code <= high for low, high in ranges)]
    return tuple((code, code) for code in left)
