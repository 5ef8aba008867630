"""Typography: one form of spaces, hyphens, digits and invisible characters, for the search of personal data,
and where each character stands in the original."""

import re
import unicodedata
from collections.abc import Sequence

_INVISIBLE = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff"
_SPACES = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_HYPHENS = "\u2010-\u2015\u2043\u2212\ufe58\ufe63"
_DOTS = "\u2024\uff61"
_ODD = re.compile(rf"(?P<invisible>[{_INVISIBLE}])|[{_SPACES}{_HYPHENS}{_DOTS}\uff01-\uff5e]|[^\D0-9]")
_SPACE, _HYPHEN = re.compile(f"[{_SPACES}]"), re.compile(f"[{_HYPHENS}]")
_SOFT_HYPHEN = "\u00ad"

Written = tuple[str, Sequence[int] | None]
"""A text as it is searched, and the place in the original of each character; None: the same."""


def readings(text: str) -> list[Written]:
    """The text in one form; a soft hyphen is read as nothing, and as a hyphen."""
    if text.isascii() or _ODD.search(text) is None:
        return [(text, None)]
    read = [_plain(text)]
    if _SOFT_HYPHEN in text:
        read.append(_plain(text.replace(_SOFT_HYPHEN, "-")))
    return read


def _plain(text: str) -> Written:
    plain = _ODD.sub(lambda odd: "" if odd["invisible"] else _keyed(odd.group()), text)
    if len(plain) == len(text):
        return plain, None
    dropped = {odd.start() for odd in _ODD.finditer(text) if odd["invisible"]}
    return plain, [place for place in range(len(text)) if place not in dropped]


def _keyed(char: str) -> str:
    """The character that a keyboard has for it."""
    if _SPACE.match(char):
        return " "
    if _HYPHEN.match(char):
        return "-"
    if "\uff01" <= char <= "\uff5e":
        return chr(ord(char) - 0xFEE0)
    digit = unicodedata.decimal(char, None)
    return "." if digit is None else str(digit)
