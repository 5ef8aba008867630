"""The search by words, BM25, that finds tools and skills."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_FREQUENCY, _LENGTH = 1.2, 0.75
"""The usual constants of BM25."""
_ENDINGS = re.compile(r"(?:ing|ed|es|s|e)$")
_COMMON = """a an and any are as at be been but by can could did do does for from had has have how i if in
into is it its let me my of on one or our out please should so some that the their them then there these they
this those to up us use used using was we what when where which who will with would you your"""
"""Words that say nothing about what is looked for."""


class WordIndex:
    """Documents, each given as its words; a word that is given twice counts for more."""

    def __init__(self, documents: Iterable[Sequence[str]]) -> None:
        self._counts = [Counter(words) for words in documents]
        self._lengths = [max(count.total(), 1) for count in self._counts]
        self._usual = sum(self._lengths) / max(len(self._lengths), 1)
        self._places: dict[str, list[int]] = {}
        for place, count in enumerate(self._counts):
            for word in count:
                self._places.setdefault(word, []).append(place)

    def search(self, query: str, most: int = 5) -> list[int]:
        """The places of the documents that fit a query best, the best first; only those that fit at all."""
        scores: dict[int, float] = {}
        for word in dict.fromkeys(words_of(query)):
            having = self._places.get(word, ())
            weight = math.log(1 + (len(self._counts) - len(having) + 0.5) / (len(having) + 0.5))
            for place in having:
                count, length = self._counts[place][word], self._lengths[place] / self._usual
                part = count * (_FREQUENCY + 1) / (count + _FREQUENCY * (1 - _LENGTH + _LENGTH * length))
                scores[place] = scores.get(place, 0.0) + weight * part
        return sorted(scores, key=lambda place: (-scores[place], place))[:most]


def words_of(text: str) -> list[str]:
    """The words of a text, those of a name in it apart, without the endings of their forms in English."""
    words = [word.casefold() for part in _WORD.findall(text) for word in _CAMEL.split(part)]
    return [_stem(word) for word in words if word not in _ignored()]


@lru_cache(1)
def _ignored() -> frozenset[str]:
    return frozenset(_COMMON.split())


@lru_cache(4096)
def _stem(word: str) -> str:
    if len(word) > 4 and word.endswith(("ies", "ied")):
        return f"{word[:-3]}y"
    stem = _ENDINGS.sub("", word) if len(word) > 3 else word
    # "running", "committed": the doubled letter belongs to the ending.
    is_doubled = len(stem) > 3 and stem != word and stem[-1] == stem[-2] and stem[-1] not in "lsz"
    return stem[:-1] if is_doubled else stem
