"""A search pattern as ripgrep can use it to rule files out.

Python's `re` decides what a pattern means and prints every match; ripgrep only has to name the files worth
reading. So the pattern is translated into one for ripgrep that matches at least as much: assertions are
dropped, classes widened, and what cannot be said becomes "anything". A file that ripgrep does not name has no
match, whatever the pattern says.
"""

import re
from importlib import import_module
from typing import Any

from msgspec import Struct

_RAW = r"(?-u:[\x80-\xff])"  # a byte above ASCII, whatever it means: files need not be in UTF-8
_ANY_CHARACTER = f"(?:.|{_RAW})"
_ANYTHING = f"{_ANY_CHARACTER}*"
_CATEGORIES = {
    "CATEGORY_DIGIT": r"\d\p{N}",
    "CATEGORY_SPACE": r"\s\x{1c}-\x{1f}",
    "CATEGORY_WORD": r"\w\p{L}\p{N}\p{M}",
}
_DOTTED = r"\x{130}\x{131}"  # to Python the i's with and without dot are cases of i, to ripgrep they are not
_CASES_BEYOND_ASCII = "iIkKsS"  # dotted and dotless i, the Kelvin sign, the long s
_MAX_REPEAT = 50


def widen_pattern(pattern: str, *, ignore_case: bool) -> str | None:
    """A pattern for ripgrep that no line of a match can fail; None if nothing useful can be said."""
    nodes, flags = _parse(pattern, ignore_case)
    if flags & (re.VERBOSE | re.LOCALE):
        return None
    wide = _widen(nodes)
    if not wide.replace(_ANYTHING, "").replace(_ANY_CHARACTER, ""):
        return None
    return f"(?i:{wide})" if flags & re.IGNORECASE else wide


class Literal(Struct, frozen=True):
    """Text that every match contains, to rule files out without ripgrep; empty if none is certain."""

    text: bytes = b""
    ignore_case: bool = False

    def may_be_in(self, data: bytes) -> bool:
        """Whether there can be a match in these bytes."""
        return not self.text or self.text in (data.lower() if self.ignore_case else data)


def find_literal(pattern: str, *, ignore_case: bool) -> Literal:
    """The longest text that the pattern requires as it stands."""
    nodes, flags = _parse(pattern, ignore_case)
    folds = bool(flags & re.IGNORECASE)
    best = run = ""
    for name, value in _name_nodes(nodes):
        if name == "LITERAL" and value < 128 and not (folds and chr(value) in _CASES_BEYOND_ASCII):
            run += chr(value)
            best = max(best, run, key=len)
        elif name != "AT":
            run = ""
    return Literal(best.lower().encode() if folds else best.encode(), folds)


def _parse(pattern: str, ignore_case: bool) -> tuple[list[Any], int]:
    """The nodes of a pattern and its flags; no nodes if it cannot be parsed."""
    try:
        # Private to the standard library: if a later Python moves it, every file is read, which is slower.
        tree = import_module("re._parser").parse(pattern, re.IGNORECASE if ignore_case else 0)
    except (ImportError, re.error, RecursionError, OverflowError):
        return [], 0
    return list(tree), tree.state.flags


def _widen(nodes: list[Any]) -> str:
    return "".join([_widen_node(name, value) for name, value in _name_nodes(nodes)])


def _widen_node(name: str, value: Any) -> str:
    match name:
        case "LITERAL":
            return f"[{char}{_DOTTED}]" if (char := _escape(value)) in "iI" else char
        case "ANY" | "NOT_LITERAL":
            return _ANY_CHARACTER
        case "IN":
            return _widen_class(value)
        case "BRANCH":
            return "(?:" + "|".join([_widen(list(branch)) for branch in value[1]]) + ")"
        case "SUBPATTERN":
            _, added, _, body = value
            inner = _widen(list(body))
            return f"(?i:{inner})" if added & re.IGNORECASE else f"(?:{inner})"
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            low, high, body = value
            return _repeat(_widen(list(body)), int(low), int(high))
        case "ATOMIC_GROUP":
            return f"(?:{_widen(list(value))})"
        case "AT" | "ASSERT" | "ASSERT_NOT":
            return ""
        case _:  # references to groups, conditions, and what a later Python may add
            return _ANYTHING


def _widen_class(items: list[Any]) -> str:
    parts: list[str] = []
    raw = ""
    for name, value in _name_nodes(items):
        match name:
            case "LITERAL" if value < 128:
                parts.append(_escape(value))
            case "RANGE" if value[1] < 128:
                parts.append(f"{_escape(value[0])}-{_escape(value[1])}")
            case "CATEGORY" if str(value) in _CATEGORIES:
                parts.append(_CATEGORIES[str(value)])
                raw = f"|{_RAW}"
            case _:  # a negation, or beyond ASCII
                return _ANY_CHARACTER
    return f"(?:[{''.join(parts)}{_DOTTED}]{raw})"


def _repeat(inner: str, low: int, high: int) -> str:
    if not inner:
        return ""
    least = min(low, _MAX_REPEAT)
    most = "" if high > _MAX_REPEAT else str(high)
    return f"(?:{inner}){{{least},{most}}}"


def _escape(code: int) -> str:
    char = chr(code)
    if code > 127:
        return _ANY_CHARACTER
    return char if char.isalnum() else f"\\x{{{code:x}}}"


def _name_nodes(nodes: Any) -> list[tuple[str, Any]]:
    return [(str(name), value) for name, value in nodes]
