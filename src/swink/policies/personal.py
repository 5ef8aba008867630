"""What personal data looks like: one search per kind, exact enough to leave code, versions, times and dates alone."""

import ipaddress
import re
from collections.abc import Callable, Iterator
from typing import Literal, get_args

Kind = Literal["key", "email", "card", "ssn", "phone", "ipv6", "ipv4"]
KINDS: tuple[Kind, ...] = get_args(Kind)


def find(kind: Kind, text: str) -> Iterator[tuple[int, int]]:
    """Where some text holds data of a kind (keys aside, which `swink.redact` knows), in order."""
    match kind:
        case "email":
            return _emails(text)
        case "phone":
            return iter(sorted(span for pattern in _PHONES for span in _matches(pattern, _is_any, text)))
        case "ipv6":
            return _ipv6(text)
        case _:
            return _matches(*_NUMBERS[kind], text)


def _matches(pattern: re.Pattern[str], is_one: Callable[[str], bool], text: str) -> Iterator[tuple[int, int]]:
    position = 0
    while (match := pattern.search(text, position)) is not None:
        if is_one(match.group()):
            yield match.span()
            position = match.end()
        else:
            # A number before a card number must not hide it: look again from the next character.
            position = match.start() + 1


def _emails(text: str) -> Iterator[tuple[int, int]]:
    """From each `@` outwards, since it is rare."""
    end = 0
    for match in _DOMAIN.finditer(text):
        start = match.start()
        while start > end and _LOCAL.match(text[start - 1]):
            start -= 1
        # `git@host:path` is the address of a repository, not of a person.
        if start < match.start() and text[start : match.start()] != "git":
            yield start, match.end()
            end = match.end()


def _ipv6(text: str) -> Iterator[tuple[int, int]]:
    end = 0
    for run in _HEX_RUN.finditer(text):
        if run.group().count(":") >= 2:
            position = max(run.start(), end)
            while (match := _IPV6.search(text, position)) is not None and match.start() < run.end():
                position = match.start() + 1
                if _is_ipv6(match.group()):
                    yield match.span()
                    position = end = match.end()


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

# Each pattern begins with what it must consume, and looks behind only then: that is what the regex engine is quick at.
_DOMAIN = re.compile(r"@(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![\w-])")
_LOCAL = re.compile(r"[\w.%+-]")
_HEX_RUN = re.compile(r"[0-9A-Fa-f:.]{2,}")
_IPV6 = re.compile(
    r"(?:(?<![\w:.])|(?<=[A-Za-z]:))(?:[0-9A-Fa-f]{0,4}:){1,7}(?:(?:\d{1,3}\.){3}\d{1,3}|[0-9A-Fa-f]{1,4}|:)(?!\w)(?!:[\w:])(?!\.\d)",
    re.ASCII,
)
_PHONES = tuple(
    re.compile(pattern + r"(?![\w-]|\.\d)", re.ASCII)
    for pattern in (
        r"\+(?<![\w.+-]\+)\d{1,3}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d(?:[ .-]?\d){5,12}",  # +44 20 7946 0958
        r"\((?<![\w.+-]\()\d{3}\) ?\d{3}[ .-]\d{4}",  # (212) 555-0123
        r"[1-9](?<![\w.+-]\d)(?:(?<=1)[ .-]\(\d{3}\) ?|(?:(?<=1)[ .-][2-9])?\d{2}[ .-])\d{3}[ .-]\d{4}",  # 212-555-0123, 1-800-555-0199
    )
)
_NUMBERS: dict[str, tuple[re.Pattern[str], Callable[[str], bool]]] = {
    "card": (
        re.compile(
            r"\d(?<!\d\d)(?<!\d\.\d)(?:\d{12,18}|\d{3}([ -])\d{4}\1\d{4}\1\d{4}(?:\1\d{3})?|\d{3}([ -])\d{6}\2\d{4,5})(?!\d)(?!\.\d)",
            re.ASCII,
        ),
        _is_card,
    ),
    "ssn": (re.compile(r"\d(?<![\w-]\d)(?<!9)\d{2}(?<!000)(?<!666)([- ])(?!00)\d{2}\1(?!0000)\d{4}(?![\w-])", re.ASCII), _is_any),
    "ipv4": (re.compile(r"\d(?<![\w.]\d)\d{0,2}(?:\.\d{1,3}){3}(?!\w)(?!\.\d)", re.ASCII), _is_ipv4),
}
