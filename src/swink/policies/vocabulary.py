"""The words that injections are made of, one word per meaning: `disregard` and `olvida` are both `ignore`.

Long words are recognised with one slip too: a letter missing, added, changed or swapped.
"""

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from swink.policies.disguises import undisguise

_TYPICAL = "ignore disregard forget override bypass previous instruction prompt system reveal rules"
STEMS = tuple(_TYPICAL.split())
"""Parts of words that are typical of injections; a disguised text spells them once it is read right."""
_LONG_ENOUGH = 6  # words of so many letters are recognised with one slip
_REPEATED = re.compile(r"(.)\1{2,}")


@cache
def table() -> dict[str, Any]:
    """Words and signals, as the file beside this module lists them."""
    return tomllib.loads(Path(__file__).with_name("injection.toml").read_text("utf-8"))


@cache
def _words() -> dict[str, str]:
    words = {word: word for word in table()["kept"].split()}
    for meant, listed in table()["meanings"].items():
        for word in listed.split():
            words.setdefault(undisguise(word).lower(), meant)
    return words


@cache
def _others() -> frozenset[str]:
    return frozenset(table()["others"].split())


@cache
def _slips() -> dict[str, str]:
    """Every word that is long enough, under all its forms with one letter less."""
    slips: dict[str, str] = {}
    kept = frozenset(table()["kept"].split())
    for word in _words():
        if word not in kept and len(word) >= _LONG_ENOUGH and word.isascii():
            for position in range(len(word)):
                slips.setdefault(word[:position] + word[position + 1 :], word)
            slips.setdefault(word, word)
    return slips


def meaning(word: str) -> str | None:
    """What a word in lower case means here, if anything."""
    if (known := _words().get(word)) is not None:
        return known
    if not 5 <= len(word) <= 18 or word in _others() or not word.isascii():
        return None
    word = _REPEATED.sub(r"\1", word)
    return _words().get(word) or _slipped(word)


def _slipped(word: str) -> str | None:
    slips = _slips()
    candidates = [word, *(word[:position] + word[position + 1 :] for position in range(len(word)))]
    for candidate in candidates:
        meant = slips.get(candidate)
        # A slip at the first letter makes another word more often than a mistake.
        if meant is not None and meant[0] == word[0] and _is_one_slip(word, meant):
            return _words()[meant]
    return None


def _is_one_slip(word: str, meant: str) -> bool:
    if len(word) == len(meant):
        wrong = [position for position in range(len(word)) if word[position] != meant[position]]
        if len(wrong) == 2:
            first, second = wrong
            is_swapped = (word[first], word[second]) == (meant[second], meant[first])
            return second == first + 1 and is_swapped
        return len(wrong) == 1 and wrong[0] < len(word) - 1
    longer, shorter = (word, meant) if len(word) > len(meant) else (meant, word)
    if longer.startswith(shorter):
        return longer[-1] not in "sdrn"  # at the end that is grammar
    places = range(len(longer) if len(longer) == len(shorter) + 1 else 0)
    return any(longer[:place] + longer[place + 1 :] == shorter for place in places)
