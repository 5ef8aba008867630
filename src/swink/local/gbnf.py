"""Grammars as values, and their text in llama.cpp's notation (GBNF).

A node stands for a finite set of texts: every repetition has an upper bound, so a model under a grammar comes
to an end. `NEVER` matches nothing at all; `seq`, `alt` and `repeat` drop the branches that contain it.
"""

from msgspec import Struct


class Lit(Struct, frozen=True):
    """Exactly this text."""

    text: str


class Chars(Struct, frozen=True):
    """One character within the ranges, or outside all of them."""

    ranges: tuple[tuple[int, int], ...]
    negated: bool = False


class Seq(Struct, frozen=True):
    """One after the other."""

    parts: "tuple[Node, ...]"


class Alt(Struct, frozen=True):
    """One of several."""

    options: "tuple[Node, ...]"


class Repeat(Struct, frozen=True):
    """From `low` to `high` times."""

    node: "Node"
    low: int
    high: int


Node = Lit | Chars | Seq | Alt | Repeat

NEVER = Alt(())
EMPTY = Lit("")
_MOST_REPETITIONS = 1500
DIGIT = Chars(((48, 57),))
DIGIT_1_TO_9 = Chars(((49, 57),))


def lit(text: str) -> Node:
    """Exactly this text."""
    return Lit(text)


def chars(*members: str) -> Node:
    """One of the characters; two characters in one string are a range."""
    return Chars(tuple((ord(member[0]), ord(member[-1])) for member in members))


def seq(*parts: Node) -> Node:
    """One after the other."""
    flat: list[Node] = []
    for part in parts:
        if part == NEVER:
            return NEVER
        if isinstance(part, Lit) and flat and isinstance(flat[-1], Lit):
            flat[-1] = Lit(flat[-1].text + part.text)
        elif part != EMPTY:
            flat.extend(part.parts if isinstance(part, Seq) else (part,))
    return flat[0] if len(flat) == 1 else Seq(tuple(flat)) if flat else EMPTY


def alt(*options: Node) -> Node:
    """One of several; impossible ones and repetitions are left out."""
    flat: list[Node] = []
    for option in options:
        for node in option.options if isinstance(option, Alt) else (option,):
            if node not in flat:
                flat.append(node)
    return flat[0] if len(flat) == 1 else Alt(tuple(flat))


def repeat(node: Node, low: int, high: int) -> Node:
    """From `low` to `high` times."""
    if high < low or (node == NEVER and low > 0):
        return NEVER
    if node in (NEVER, EMPTY) or high == 0:
        return EMPTY
    return node if low == high == 1 else Repeat(node, low, high)


def maybe(*parts: Node) -> Node:
    """All of it or nothing."""
    return repeat(seq(*parts), 0, 1)


def grammar_text(root: Node) -> str:
    """The grammar in llama.cpp's notation."""
    rules = _Rules()
    body = rules.text(root)
    return "".join(f"{name} ::= {text}\n" for name, text in [("root", body), *rules.named])


class _Rules:
    """Named rules for repeated groups: llama.cpp multiplies nested repetitions, and gives up."""

    def __init__(self) -> None:
        self._names: dict[Node, str] = {}
        self.named: list[tuple[str, str]] = []

    def text(self, node: Node) -> str:
        match node:
            case Lit(text):
                return '"' + "".join(map(_escaped, text)) + '"'
            case Chars(ranges, negated):
                members = "".join(
                    _escaped(chr(low)) + (f"-{_escaped(chr(high))}" if high > low else "")
                    for low, high in ranges
                )
                return f"[{'^' if negated else ''}{members}]"
            case Seq(parts):
                return " ".join(
                    self._name(part) if isinstance(part, Seq | Alt) else self.text(part) for part in parts
                )
            case Alt(options):
                return " | ".join(self.text(option) for option in options)
            case Repeat(inner, low, high):
                symbol = self.text(inner) if isinstance(inner, Chars) else self._name(inner)
                return " ".join(f"{symbol}{{{least},{most}}}" for least, most in _portions(low, high))

    def _name(self, node: Node) -> str:
        if node not in self._names:
            self._names[node] = f"r{len(self._names)}"
            self.named.append((self._names[node], self.text(node)))
        return self._names[node]


def _portions(low: int, high: int) -> list[tuple[int, int]]:
    """A repetition as several, each below the count at which llama.cpp refuses one."""
    portions: list[tuple[int, int]] = []
    while high > 0:
        most = min(high, _MOST_REPETITIONS)
        least = min(low, most)
        portions.append((least, most))
        low, high = low - least, high - most
    return portions


def _escaped(char: str) -> str:
    code = ord(char)
    if char.isalnum() and code < 128:
        return char
    return f"\\x{code:02X}" if code < 256 else f"\\u{code:04X}" if code < 65536 else f"\\U{code:08X}"
