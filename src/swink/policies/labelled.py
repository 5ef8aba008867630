"""Personal data known by its label: passport numbers, dates of birth, numbers after `phone` or `SSN`."""

import re
from collections.abc import Iterator

Span = tuple[int, int]

_PASSPORT = re.compile(
    r"(?:passport|(?<=reise)pass|pass-?nr|passeport|pasaporte|passaport[oe]|paspoort|paszport|паспорт|护照"
    r"|パスポート|여권)"
    r"[^\W\d]{0,12}[^\dA-Z\n]{0,30}?(?:[^\d\n]{0,30}?[:：#=№°.](?:[^\w\n]{0,4})|[^\d\n]{0,12}?\s)"
    r"(?P<value>(?-i:[A-Z]{1,3}[A-Z0-9]{5,9}|\d{2}[A-Z]{2}\d{5}|\d{7,9}|\d{2} ?\d{2} ?№? ?\d{6}"
    r"|\d{2} ?№? ?\d{7}))(?!\w)",
    re.I,
)
_MACHINE_READABLE = re.compile(
    r"(?<![A-Z0-9<])(?:[PIACV][A-Z<][A-Z]{3}[A-Z0-9<]{25,39}"
    r"|[A-Z0-9<]{9}\d[A-Z<]{3}\d{6}[\d<][MFX<]\d{6}[\d<][A-Z0-9<]{8,16})(?![A-Z0-9<])"
)
_MONTH = (
    r"(?:jan|feb|fév|fev|febb|mar|mär|mrt|apr|avr|abr|may|mai|maj|mag|mei|jun|juin|giu|jul|juil|lug|aug|aoû"
    r"|ago|sep|set|oct|okt|ott|out|nov|dec"
    r"|dez|dic|déc|gen|ene|янв|фев|мар|апр|ма[йя]|июн|июл|авг|сен|окт|ноя|дек)[^\W\d]{0,8}\.?"
)
_DATE = (
    r"(?:\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}[-./]\d{1,2}[-./](?:\d{4}|\d{2})"
    r"|\d{4}\s?年\s?\d{1,2}\s?月\s?\d{1,2}\s?日?"
    rf"|\d{{1,2}}(?:st|nd|rd|th|er|\.|º)?(?: (?:de|of))? {_MONTH},?(?: de)? \d{{4}}"
    rf"|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?)(?!\d)"
)
_BIRTH = re.compile(
    r"(?:\bdob\b|\bd\.o\.b\b\.?|birth[-_ ]?(?:date|day)|(?:(?<=of)|(?<=of[-_ ]))birth\b|\bborn\b"
    r"|geburts(?:datum|tag)|geboren|\bgeb\."
    r"|naissance|née? le|nacimiento|nacid[oa]\b|nascita|nat[oa] il|nascimento|nascid[oa]\b|рождения"
    r"|родил(?:ся|ась)|народження"
    r"|出生(?:日期|年月日)?|生年月日|생년월일|geboortedatum|urodzenia|födelsedatum|fødselsdato|doğum tarihi)"
    rf"[^\d\n]{{0,40}}?(?P<value>{_DATE})",
    re.I,
)
_PHONE = re.compile(
    r"(?<![^\W_])(?:tel|telephone|(?:cell|tele)?phone|mobile|cell|fax|whatsapp|sms|telefon|handy|mobil"
    r"|mobiltelefon|téléphone|portable|teléfono|móvil"
    r"|telefono|cellulare|telefone|celular|telefoon|тел|телефон|手机|電話|电话|전화)(?:[ _-]?(?:number|no|nr"
    r"|nummer))?(?![^\W_])"
    r"\W{0,4}(?P<value>(?:\+|\(?\d)\d{0,4}(?:[ ()./-]{0,2}\d){6,14})(?![\w-]|\.\d)",
    re.I,
)
_CALL = re.compile(
    r"\b(?:call|dial|ring|reach)(?: (?:me|us|him|her|them))?(?: (?:at"
    r"|on))? (?P<value>\(?\d{2,5}\)?(?:[ -]\d{2,5}){1,4})(?![\w-]|\.\d)",
    re.I,
)
_SSN = re.compile(
    r"\b(?:ssn|ss#|social(?: security)?(?: (?:number|no\.?|num|nr\.?"
    r"|#))?)\W{0,3}(?:is )?(?P<value>\d{3}[- ]?\d{2}[- ]?\d{4})(?![\w-])",
    re.I,
)
_DAY = re.compile(r"\(?\d{4}-\d{2}-\d{2}|\d{1,2}-\d{1,2}-\d{4}\Z")

# What each pattern can begin with: searching for these is fast. The second text is for texts beyond ASCII.
_STEMS: dict[re.Pattern[str], tuple[str, str]] = {
    _PASSPORT: ("pass pasaporte paspoort paszport", "паспорт 护照 パスポート 여권"),
    _BIRTH: (
        "dob d.o.b birth born geburts geboren geb. naissance nacimiento nacid nascita nato nata nascimento "
        "nascid geboortedatum urodzenia",
        "né рождения родил народження 出生 生年月日 생년월일 födelse fødsels doğum",
    ),
    _PHONE: (
        "tel phone cell mobil fax whatsapp sms handy portable celular",
        "téléphone teléfono móvil тел 手机 電話 电话 전화",
    ),
    _CALL: ("call dial ring reach", ""),
    _SSN: ("ssn ss# social", ""),
}


def find_passports(text: str) -> Iterator[Span]:
    """Numbers after the word, and the lines that machines read."""
    for start, stop in _values(_PASSPORT, text):
        if sum(map(str.isdigit, text[start:stop])) >= 3:
            yield start, stop
    if "<" in text:
        yield from (match.span() for match in _MACHINE_READABLE.finditer(text) if "<" in match.group())


def find_birth_dates(text: str) -> Iterator[Span]:
    """Dates after a word for birth."""
    return _values(_BIRTH, text)


def find_phones(text: str) -> Iterator[Span]:
    """Numbers in any national format after a word for phone."""
    for start, stop in (*_values(_PHONE, text), *_values(_CALL, text)):
        if 7 <= sum(map(str.isdigit, text[start:stop])) <= 15 and not _DAY.match(text, start, stop):
            yield start, stop


def find_social_numbers(text: str) -> Iterator[Span]:
    """Social security numbers after their name, with or without separators."""
    return _values(_SSN, text)


def _values(pattern: re.Pattern[str], text: str) -> Iterator[Span]:
    lowered = text.replace("\u0130", "I").lower()  # the one letter that grows in lower case
    ascii_stems, others = _STEMS[pattern]
    for stem in (ascii_stems if text.isascii() else f"{ascii_stems} {others}").split():
        position = lowered.find(stem)
        while position >= 0:
            if (match := pattern.match(text, position)) is not None:
                yield match.span("value")
            position = lowered.find(stem, position + len(stem))
