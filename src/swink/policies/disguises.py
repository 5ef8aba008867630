"""Disguises removed: one form of each character, nothing invisible, and encoded parts decoded.

`read_as` gives the readings of a text one after another, the plain one first. None is longer than the text,
and what is encoded is decoded once.
"""

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from urllib.parse import unquote

_MARKS = re.compile(r"[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+")
_SINGLE_INVISIBLE = (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0)
_INVISIBLE = dict.fromkeys([*_SINGLE_INVISIBLE, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)])
# Letters in boxes have no compatibility form; tag characters are ASCII that nobody sees.
_LETTERS = {
    **{first + offset: 65 + offset for first in (0x1F150, 0x1F170, 0x1F1E6) for offset in range(26)},
    **{0xE0000 + code: code for code in range(0x20, 0x7F)},
    0xE0001: 0x20,
}
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕԁɡһԛԝӏіѵҽոսցօհոзьгт" + "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαοινρτυκχεη" + "АВЕКМНОРСТУХЅІЈ" + "’‘ʼıƖɩʟʀɴᴀᴇᴏᴜᴛꜱᴄᴅᴘ",
    "aeopcyxijsdghqwlivenugohnebrt" + "ABEZHIKMNOPTYXaoivptukxen" + "ABEKMHOPCTYXSIJ" + "'''illlrnaeoutscdp",
)
_LOOKALIKE = re.compile("[" + "".join(map(chr, _LOOKALIKES)) + "]")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-z]{2,8});")
_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{12,}")
_HEX = re.compile(r"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}[ :]?){6,}")
_LETTER_RUN = re.compile(r"(?<![^\W_])[^\W_](?:([ .\-_*|/~+])[^\W_])(?:\1[^\W_])+(?![^\W_])")
_SPLIT_WORD = re.compile(
    r"(?<![^\W\d_])[^\W\d_]{1,9}(?:[-.*_|~'`\"^+\\]{1,3}[^\W\d_]{1,9}){1,14}(?![^\W\d_])"
)
_SIGNS = re.compile(r"[\W\d_]+")
_LEET_WORD = re.compile(
    r"(?<![\w@$!|])(?=[A-Za-z0-9@$!|]*[013457@$!|])[A-Za-z0-9@$!|]*[A-Za-z][A-Za-z0-9@$!|]*"
)
_LEET = str.maketrans("013457@$!|", "oieastasil")
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,40}>|\*\*|__|~~|(?<=\w)\n(?=\w)")
_STRETCHED = re.compile(r"([^\W\d_])\1{2,}")
_DECODED = 20_000


def undisguise(text: str) -> str:
    """The text with one form of each character, without accents and invisible characters."""
    if text.isascii():
        return text
    composed = unicodedata.normalize("NFKC", text.translate(_LETTERS))
    seen = [char for char in composed if char < "\x7f" or unicodedata.category(char) != "Cf"]
    bare = unicodedata.normalize("NFD", "".join(seen).translate(_INVISIBLE))
    return unicodedata.normalize("NFC", _MARKS.sub("", bare))


def unmask(text: str) -> str:
    """Undisguised text with Latin letters in place of those of other alphabets that look alike."""
    return text if text.isascii() else text.translate(_LOOKALIKES)


def read_as(text: str, stems: Sequence[str]) -> Iterator[str]:
    """The text without disguise, then every other reading that may spell one of the stems."""
    plain = undisguise(text)
    yield plain
    if not plain.isascii() and _LOOKALIKE.search(plain):
        plain = unmask(plain)
        yield plain
    yield from _decode(plain)
    lowered = plain.lower()
    for pattern, respell, table in _RESPELLINGS:
        # A reading is worth the time only if it spells a stem more often.
        respelled = lowered.translate(table)
        if any(respelled.count(stem) > lowered.count(stem) for stem in stems):
            yield pattern.sub(respell, plain)


def respell(text: str) -> Iterator[str]:
    """Every reading of a text in which listed words are searched: without disguise, decoded, and joined."""
    plain = unmask(undisguise(text))
    for view in (plain, *map(unmask, _decode(plain))):
        yield view
        for pattern, change in _JOININGS:
            if (other := pattern.sub(change, view)) != view:
                yield other
                yield from _unstretch(other)
        yield from _unstretch(view)


def _unstretch(text: str) -> Iterator[str]:
    """The text with letters that are repeated three times or more once, and twice."""
    if _STRETCHED.search(text):
        yield _STRETCHED.sub(r"\1", text)
        yield _STRETCHED.sub(r"\1\1", text)


def turn(text: str) -> Iterator[str]:
    """The text in ROT13, and backwards."""
    yield codecs.encode(text, "rot13")
    yield text[::-1]


def _decode(text: str) -> Iterator[str]:
    if "&" in text and _ENTITY.search(text):
        yield undisguise(html.unescape(text))
    if "%" in text and _PERCENT.search(text):
        yield undisguise(unquote(text, errors="ignore"))
    if "\\u" in text or "\\x" in text:
        yield undisguise(_ESCAPE.sub(lambda match: chr(int(match[1] or match[2], 16)), text))
    parts = [*_from_base64(text), *_from_hex(text)]
    if parts:
        yield undisguise("\n".join(parts))


def _from_base64(text: str) -> Iterator[str]:
    room = _DECODED
    for match in _BASE64.finditer(text):
        word = match.group().replace("-", "+").replace("_", "/")
        # The first bytes show whether it is text.
        if room > 0 and _as_text(_base64(word[:12])) and (decoded := _as_text(_base64(word[:room]))):
            room -= len(decoded)
            yield decoded


def _base64(word: str) -> bytes:
    try:
        whole = word[: len(word) // 4 * 4] if len(word) % 4 == 1 else word + "=" * (-len(word) % 4)
        return base64.b64decode(whole)
    except binascii.Error:
        return b""


def _from_hex(text: str) -> Iterator[str]:
    room = _DECODED
    for match in _HEX.finditer(text):
        digits = re.sub(r"[ :]", "", match.group())
        is_text = room > 0 and _as_text(bytes.fromhex(digits[:12]))
        if is_text and (decoded := _as_text(bytes.fromhex(digits[: room * 2]))):
            room -= len(decoded)
            yield decoded


def _as_text(data: bytes) -> str:
    """Decoded bytes if they are text; a few odd bytes at the end are ignored."""
    text = data.decode("utf-8", "ignore")
    odd = sum(not char.isprintable() and char not in "\n\t\r" for char in text)
    return text if text and odd == 0 and len(text) >= len(data) - 3 and text.isascii() else ""


def _join(match: re.Match[str]) -> str:
    return match.group().replace(match[1], "")


def _unsplit(match: re.Match[str]) -> str:
    return _SIGNS.sub("", match.group())


def _unleet(match: re.Match[str]) -> str:
    word = match.group()
    stripped = word.rstrip("!")
    return stripped.translate(_LEET) + word[len(stripped) :]


_JOININGS = ((_TAG, ""), (_LETTER_RUN, _join), (_SPLIT_WORD, _unsplit), (_LEET_WORD, _unleet))
_SPLITTERS = dict.fromkeys(map(ord, "-.*_|~'`\"^+\\/ "))
_RESPELLINGS = (
    (_LETTER_RUN, _join, _SPLITTERS),
    (_SPLIT_WORD, _unsplit, _SPLITTERS),
    (_LEET_WORD, _unleet, _LEET),
)
