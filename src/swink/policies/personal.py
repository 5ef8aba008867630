"""What personal data looks like: one search per kind, exact enough to spare code, versions and times.

Every pattern is bounded and every search goes forward: the time is linear in the text.
"""

import ipaddress
import re
from collections.abc import Callable, Iterator
from typing import Literal, get_args

from swink.policies.labelled import find_birth_dates, find_passports, find_phones, find_social_numbers
from swink.policies.typography import readings

_NETWORKS = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|3(?:0[0-5]|[689]\d)\d{11}"
    r"|35\d{14}|6(?:011|4[4-9]\d|5\d\d)\d{12,15}|62\d{14,17}|(?:5018|5020|5038|6304|6759|676[1-3])\d{8,15}"
)
_COUNTRIES = """
AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 EE20 EG29 ES24
FI18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32
LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MR27 MT31 MU30 NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22
SA24 SC31 SE24 SI19 SK24 SM27 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20
"""
_IBAN_LENGTHS = {item[:2]: int(item[2:]) for item in _COUNTRIES.split()}
_CALLING_CODES = re.compile(
    r"1[2-9]|7[3-9]|2(?:0|1[12368]|[234]\d|5[0-8]|6\d|7|9[01789])|3(?:[0-469]|5\d|7\d|8[0-9])|4(?:[013-9]"
    r"|2[013])|5(?:0\d|[1-8]|9\d)"
    r"|6(?:[0-6]|7[02-9]|8\d|9[0-2])|8(?:[1246]|5[0235-9]|8[0-68])|9(?:[0-58]|6[0-8]|7[0-79]|9[2-68])"
)


def is_card(digits: str) -> bool:
    """A length and a beginning that card networks use, and a right check digit (Luhn)."""
    if not _NETWORKS.fullmatch(digits) or len(set(digits)) == 1:
        return False
    total = 0
    for position, char in enumerate(reversed(digits)):
        value = int(char) * (1 + position % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def is_iban(account: str) -> bool:
    """An account number of its country's length with right check digits."""
    if _IBAN_LENGTHS.get(account[:2]) != len(account) or not account.isascii():
        return False
    return int("".join(str(int(char, 36)) for char in account[4:] + account[:4])) % 97 == 1


def is_calling_code(digits: str) -> bool:
    """Whether an international number begins as one of some country does."""
    return _CALLING_CODES.match(digits) is not None


Kind = Literal["key", "email", "iban", "card", "ssn", "passport", "birthdate", "phone", "ipv6", "ipv4"]
KINDS: tuple[Kind, ...] = get_args(Kind)

Span = tuple[int, int]


def find(kind: Kind, text: str) -> Iterator[Span]:
    """The places of data of one kind in a text, in order, without overlaps; `messages.redact` finds keys."""
    found: list[Span] = []
    for read, places in readings(text):
        spans = _FINDERS[kind](read)
        found += spans if places is None else [(places[one], places[end - 1] + 1) for one, end in spans]
    end = 0
    for start, stop in sorted(found):
        if start >= end:
            yield start, stop
            end = stop


def _numbers(
    pattern: re.Pattern[str], blocking: str, is_one: Callable[[str, re.Match[str]], bool]
) -> Callable[[str], Iterator[Span]]:
    """A search for numbers before which none of the `blocking` characters stands, and no other number."""

    def search(text: str) -> Iterator[Span]:
        position = end = 0
        while (match := pattern.search(text, position)) is not None:
            start = match.start()
            before = text[start - 1 : start] if start > end else ""
            if not (before.isalnum() or (before and before in blocking)) and is_one(text, match):
                yield match.span()
                position = end = match.end()
            else:
                # A number before a card number must not hide it: look again from the next character.
                position = start + 1

    return search


def _emails(text: str) -> Iterator[Span]:
    """From each `@` outwards, since it is rare."""
    end = 0
    for match in _DOMAIN.finditer(text):
        start = at = match.start()
        while start > max(end, at - 64) and (text[start - 1].isalnum() or text[start - 1] in "._%+'-"):
            start -= 1
        while start < at and text[start] in ".'-":
            start += 1
        # `git@host:path` is the address of a repository, `icon@2x.png` a file.
        if start < at and text[start:at] != "git" and match["last"].lower() not in _FILES:
            yield start, match.end()
            end = match.end()


def _ipv6(text: str) -> Iterator[Span]:
    if text.count(":") < 2:
        return
    for run in _HEX_RUN.finditer(text):
        if run.group().count(":") >= 2 and run.end() - run.start() <= 128:
            position = run.start()
            end = min(len(text), run.end() + 2)
            while (match := _IPV6.search(text, position, end)) is not None and match.start() < run.end():
                position = match.start() + 1
                if _is_ipv6(match.group()):
                    yield match.span()
                    position = match.end()


def _is_ipv6(text: str) -> bool:
    """An address, as opposed to a time, a slice (`[1::2]`) or a path of names (`a::b`)."""
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return False
    groups = [group for group in text.split(":") if group]
    if text.endswith("::") and not re.search(r"[a-fA-F]", text):
        return False  # user and group in a list of accounts
    is_telling = len(groups) >= 4
    if not is_telling and len(groups) >= 2 and re.search(r"\d", text):
        is_telling = any(len(group) >= 3 for group in groups)
    return is_telling and not (address.is_loopback or address.is_unspecified)


def _is_ipv4(text: str, match: re.Match[str]) -> bool:
    """An address that may be a person's: not loopback or 0.0.0.0, no version, no number of a section."""
    try:
        address = ipaddress.IPv4Address(match.group())
    except ValueError:
        return False
    if address.is_loopback or address.is_unspecified or address.is_multicast or not _is_apart(text, match):
        return False
    first, *rest = map(int, match.group().split("."))
    # Numbers of sections and versions are small; so is hardly any address that nothing announces.
    if first <= 3 or max(first, *rest) < 64:
        if first == 10 or match.group() in _RESOLVERS or _AFTER_AN_ADDRESS.match(text, match.end()):
            return True
        return _BEFORE_AN_ADDRESS.search(text, max(0, match.start() - 24), match.start()) is not None
    return not _BEFORE_A_VERSION.search(text, max(0, match.start() - 24), match.start())


def _is_phone(text: str, match: re.Match[str]) -> bool:
    digits = re.sub(r"\D", "", match.group())
    if _PLACE.fullmatch(match.group()):
        return False
    return 8 <= len(digits) <= 15 and is_calling_code(digits.removeprefix("00"))


def _is_apart(text: str, match: re.Match[str]) -> bool:
    """Whether a number is no part of a row of numbers."""
    before = _ROW_BEFORE.search(text, max(0, match.start() - 24), match.start())
    after = _ROW_AFTER.match(text, match.end())
    return sum(len(side.group().split()) for side in (before, after) if side is not None) < 3


def _both(*finders: Callable[[str], Iterator[Span]]) -> Callable[[str], Iterator[Span]]:
    return lambda text: (span for finder in finders for span in finder(text))


def _ibans(text: str) -> Iterator[Span]:
    for start in map(re.Match[str].start, _IBAN_START.finditer(text)):
        match = None if text[start - 1 : start].isalnum() else _IBAN.match(text, start)
        # The longest that is right: what follows an account number with spaces may look like a part of it.
        for end in () if match is None else _ends(match):
            if is_iban(re.sub(r"[ -]", "", text[start:end]).upper()):
                yield start, end
                break


def _ends(match: re.Match[str]) -> Iterator[int]:
    """Where a number in groups may end, the farthest first."""
    yield match.end()
    for position in range(match.end() - 1, match.start() + 14, -1):
        if match.string[position] in " -":
            yield position


_EXTENSIONS = "png jpg jpeg gif svg webp css js ts json html py md txt tgz so dll exe"
_FILES = frozenset(_EXTENSIONS.split())
_DOMAIN = re.compile(r"@(?:[\w-]{1,63}\.){1,8}(?P<last>[^\W\d_]{2,24}|xn--[\w-]{2,50})(?![\w-])")
_HEX_RUN = re.compile(r"[0-9A-Fa-f:.]{2,}")
_IPV6 = re.compile(
    r"(?:(?<![\w:.])|(?<=[A-Za-z]:))(?:[0-9A-Fa-f]{0,4}:){1,7}(?:(?:\d{1,3}\.){3}\d{1,3}|[0-9A-Fa-f]{1,4}"
    r"|:)(?!\w)(?!:[\w:])(?!\.\d)",
    re.ASCII,
)
_BEFORE_A_VERSION = re.compile(
    r"(?:version|release|section|oid|build|[=~<>]=|[a-z]/|[a-z]-|(?<![\w.])v)[ :\"'=]{0,2}\Z", re.I
)
_BEFORE_AN_ADDRESS = re.compile(
    r"(?:\bip|addr|address|host|server|client|from|proxy|peer|remote|dns|gateway|bind|listen|ping|inet"
    r"|connect\w*|route\w*|://|@)[\W_]{0,6}(?:to|on|at)?\W?\Z",
    re.I,
)
_AFTER_AN_ADDRESS = re.compile(r":\d{2,5}\b|/\d{1,2}\b(?!\.)")
_RESOLVERS = frozenset(["1.1.1.1", "1.0.0.1", "8.8.8.8", "8.8.4.4", "9.9.9.9", "4.2.2.2"])
_ROW_BEFORE = re.compile(r"(?:(?<![\w.+-])[\d.,+-]+[ \t]+)+\Z")
_ROW_AFTER = re.compile(r"(?:[ \t]+[\d.,+-]+(?!\w)){1,3}")
_PLACE = re.compile(r"\+\d{4}-\d{5}|\+\d{6}-\d{7}|(?:00\d\d ?)+")
"""Latitude and longitude; codes of characters."""
_END = r"(?![\w-]|\.\d)"
_IBAN_START = re.compile(r"[A-Za-z]{2}\d{2}(?=[ -]?[A-Za-z0-9]{4})")
_IBAN = re.compile(
    r"[A-Za-z]{2}\d{2}(?:[ -]?[A-Za-z0-9]{4}){2,7}(?:[ -]?[A-Za-z0-9]{1,3})?(?![A-Za-z0-9])", re.ASCII
)
_CARD = re.compile(
    r"\d(?:\d{11,18}|\d{3}([ -])\d{4}\1\d{4}\1\d{4}(?:\1\d{3})?|\d{3}([ -])\d{6}\2\d{4,5})(?!\d)(?!\.\d)",
    re.ASCII,
)
_SSN = re.compile(r"(?!9|000|666)\d{3}([- ])(?!00)\d{2}\1(?!0000)\d{4}(?![\w-])", re.ASCII)
_IPV4 = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}(?!\w)(?!\.\d)", re.ASCII)
_INTERNATIONAL = re.compile(
    r"\+[1-9]\d{0,2}[ .-]{0,2}(?:\(\d{1,4}\)[ .-]?)?\d(?:[ ./-]?\d){5,12}" + _END, re.ASCII
)
_DIALLED = re.compile(r"00 ?[1-9]\d{0,2}[ -]\d(?:[ /-]?\d){6,11}" + _END, re.ASCII)
_AMERICAN = re.compile(
    rf"(?:1[ .-])?\([2-9]\d{{2}}\) ?\d{{3}}[ .-]\d{{4}}{_END}"
    rf"|(?:1[ .-])?[2-9]\d{{2}}([.-])\d{{3}}\1\d{{4}}{_END}"
    rf"|[2-9]\d{{2}} [2-9]\d{{2}} \d{{4}}{_END}",
    re.ASCII,
)
_TRUNK = re.compile(
    r"\(0\d{1,4}\)[ -]?\d{3,4}[ -]?\d{3,5}" + _END + r"|8 ?\(\d{3}\) ?\d{3}-\d{2}-\d{2}" + _END, re.ASCII
)

_FINDERS: dict[str, Callable[[str], Iterator[Span]]] = {
    "email": _emails,
    "iban": _ibans,
    "card": _numbers(_CARD, ".", lambda _, match: is_card(re.sub(r"\D", "", match.group()))),
    "ssn": _both(_numbers(_SSN, "_-", _is_apart), find_social_numbers),
    "passport": find_passports,
    "birthdate": find_birth_dates,
    "phone": _both(
        _numbers(_INTERNATIONAL, "_.+-", _is_phone),
        _numbers(_DIALLED, "_.+-", _is_phone),
        _numbers(_AMERICAN, "_.+-", _is_apart),
        _numbers(_TRUNK, "_.+-", _is_apart),
        find_phones,
    ),
    "ipv6": _ipv6,
    "ipv4": _numbers(_IPV4, "_.", _is_ipv4),
}
