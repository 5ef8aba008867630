"""What personal data looks like: one search per kind, exact enough to leave code, versions, times and dates alone."""

import ipaddress
import re
from collections.abc import Callable, Iterator
from typing import Literal, get_args

Kind = Literal["key", "email", "card", "ssn", "phone", "ipv6", "ipv4"]
KINDS: tuple[Kind, ...] = get_args(Kind)


def find(kind: Kind, text: str) -> Iterator[tuple[int, int]]:
    """Where some text holds data of a kind (keys aside, which `swink.redact` knows)."""
    pattern, is_one = _SEARCHES[kind]
    position = 0
    while (match := pattern.search(text, position)) is not None:
        if is_one(match.group()):
            yield match.span()
            position = match.end()
        else:
            # A number before a card number must not hide it: look again from the next character.
            position = match.start() + 1


def _is_card(text: str) -> bool:
    """A length and a beginning that card networks use, and a right check digit (Luhn)."""
    digits = re.sub(r"\D", "", text)
    if not _NETWORKS.fullmatch(digits):
        return False
    total = 0
    for position, char in enumerate(reversed(digits)):
        value = int(char) * (1 + position % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def _is_ipv4(text: str) -> bool:
    """An address somebody may be behind: not loopback, and not 0.0.0.0."""
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)


def _is_ipv6(text: str) -> bool:
    """An address, as opposed to a time, a slice (`[1::2]`) or a path of names (`a::b`)."""
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return False
    groups = [group for group in text.split(":") if group]
    telling = len(groups) >= 4 or (len(groups) >= 2 and any(len(group) >= 3 for group in groups) and re.search(r"\d", text))
    return bool(telling) and not (address.is_loopback or address.is_unspecified)


def _is_any(text: str) -> bool:
    return True


_NETWORKS = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11}"
    r"|35\d{14}|6(?:011|4[4-9]\d|5\d\d)\d{12,15}|62\d{14,17}"
)

_SEARCHES: dict[str, tuple[re.Pattern[str], Callable[[str], bool]]] = {
    # `git@host:path` is the address of a repository, not of a person.
    "email": (re.compile(r"(?<![\w.+-])(?!git@)[\w.%+-]{1,255}@(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![\w-])"), _is_any),
    "card": (
        re.compile(
            r"(?<!\d)(?<!\d\.)(?:\d{13,19}|\d{4}([ -])\d{4}\1\d{4}\1\d{4}(?:\1\d{3})?|\d{4}([ -])\d{6}\2\d{4,5})(?!\d)(?!\.\d)", re.ASCII
        ),
        _is_card,
    ),
    "ssn": (re.compile(r"(?<![\w-])(?!000|666|9\d\d)\d{3}([- ])(?!00)\d{2}\1(?!0000)\d{4}(?![\w-])", re.ASCII), _is_any),
    "phone": (
        re.compile(
            r"(?<![\w.+-])(?:"
            r"\+\d{1,3}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d(?:[ .-]?\d){5,12}"  # +44 20 7946 0958
            r"|(?:1[ .-])?\(\d{3}\) ?\d{3}[ .-]\d{4}"  # (212) 555-0123
            r"|(?:1[ .-])?[2-9]\d{2}([ .-])\d{3}\1\d{4}"  # 212-555-0123
            r")(?![\w-]|\.\d)",
            re.ASCII,
        ),
        _is_any,
    ),
    "ipv6": (
        re.compile(
            r"(?:(?<![\w:.])|(?<=[A-Za-z]:))(?:[0-9A-Fa-f]{0,4}:){1,7}(?:(?:\d{1,3}\.){3}\d{1,3}|[0-9A-Fa-f]{1,4}|:)(?!\w)(?!:[\w:])(?!\.\d)",
            re.ASCII,
        ),
        _is_ipv6,
    ),
    "ipv4": (re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\w)(?!\.\d)", re.ASCII), _is_ipv4),
}
