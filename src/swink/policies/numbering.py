"""How numbers are built: card networks and check digits, account numbers by country, calling codes."""

import re

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
