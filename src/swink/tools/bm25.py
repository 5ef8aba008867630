"""The search by words that finds tools and skills: BM25, with words of like meaning and with names.

A word of a name counts for more than one of a description, whose first sentence counts twice. Of two names
that a query fits equally the one with fewer other words comes first. A word of like meaning counts for less.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SENTENCE = re.compile(r"(?<=[.!?])\s|\n")
_ENDINGS = re.compile(r"(?:ing|ed|es|s|e)$")
_FREQUENCY, _LENGTH = 1.2, 0.75
"""The usual constants of BM25."""
_NAME_WEIGHT = 3
_LIKE = 0.6
"""What a word of like meaning counts for."""
_COVERED = 3.0
"""What a name counts for all of whose words are in the query."""
_COMMON = """a about an and any are as at be been but by can could did do does every for from had has have how
i if in into is it its let me my not of on or our out please should so some that the their them then there
these they this those to up us use used using was we what when where which who will with would you your"""
"""Words that say nothing about what is looked for."""
_ALIKE = """
add append insert attach put
create make new open write start begin
delete remove forget erase drop clear
update change edit modify patch rename alter
get read retrieve show fetch load see view download
list all everybody everything
search find look query lookup
directory folder
disk filesystem
picture image photo screenshot media
issue bug ticket problem
message comment answer
reply answer respond
user person people account member
page website site web url internet
repository project repo
diff compare difference
navigate go visit
press hit push
type enter
run execute evaluate
observation fact
last recent latest lately
log history commit
reset unstage undo
send post tell say
several multiple many
key keyboard
""".strip()
"""Words of like meaning, a line each."""


class Described(Struct, frozen=True):
    """What is searched: the words of a name, and those of what is said about it."""

    name: Sequence[str]
    text: Sequence[str]


class WordIndex:
    """Named things with descriptions, to be searched by words."""

    def __init__(self, documents: Iterable[Described]) -> None:
        self._names: list[frozenset[str]] = []
        self._counts: list[Mapping[str, int]] = []
        self._lengths: list[int] = []
        self._places: dict[str, list[int]] = {}
        for place, document in enumerate(documents):
            count = Counter(document.text)
            for word in dict.fromkeys(document.name):
                count[word] += _NAME_WEIGHT
            self._names.append(frozenset(document.name))
            self._counts.append(count)
            self._lengths.append(max(count.total(), 1))
            for word in count:
                self._places.setdefault(word, []).append(place)
        self._usual = sum(self._lengths) / max(len(self._lengths), 1)

    def search(self, query: str, most: int = 5) -> list[int]:
        """The places of what fits a query best, the best first; only those that fit at all."""
        asked = _with_alike(words_of(query))
        scores: dict[int, float] = {}
        for group in asked:
            for place, score in self._scores(group).items():
                scores[place] = scores.get(place, 0.0) + score
        words = {word: share for group in asked for word, share in group.items()}
        ranked = {place: score + self._covered(place, words) for place, score in scores.items()}
        return sorted(ranked, key=lambda place: (-ranked[place], place))[:most]

    def _scores(self, group: Mapping[str, float]) -> dict[int, float]:
        """What a word of a query counts for in each place, by itself or by the best of its like."""
        scores: dict[int, float] = {}
        for word, share in group.items():
            for place in self._places.get(word, ()):
                count, length = self._counts[place][word], self._lengths[place] / self._usual
                part = count * (_FREQUENCY + 1) / (count + _FREQUENCY * (1 - _LENGTH + _LENGTH * length))
                scores[place] = max(scores.get(place, 0.0), share * self._weight(word) * part)
        return scores

    def _covered(self, place: int, words: Mapping[str, float]) -> float:
        """What a name counts for by how much of it is in the query; rare words are more of it."""
        name = self._names[place]
        whole = sum(map(self._weight, name))
        return (
            _COVERED * sum(words.get(word, 0.0) * self._weight(word) for word in name) / whole if whole else 0
        )

    def _weight(self, word: str) -> float:
        """A rare word counts for more."""
        having = len(self._places.get(word, ()))
        return math.log(1 + (len(self._counts) - having + 0.5) / (having + 0.5))


def described(name: str, description: str, more: Iterable[str] = ()) -> Described:
    """What a thing is found by; `more` are further words, such as the names of parameters."""
    first = _SENTENCE.split(description, maxsplit=1)[0]
    return Described(words_of(name), words_of(f"{first} {description} {' '.join(more)}"))


def words_of(text: str) -> list[str]:
    """The words of a text, those of a name in it apart, without the endings of their forms in English."""
    words = [word.casefold() for part in _WORD.findall(text) for word in _CAMEL.split(part)]
    return [_stem(word) for word in words if word not in _ignored()]


def _with_alike(words: Sequence[str]) -> list[dict[str, float]]:
    """Each word, with those of like meaning that are not in the query themselves."""
    alike = _alike()
    given = dict.fromkeys(words)
    return [
        {word: 1.0} | {other: _LIKE for other in alike.get(word, ()) if other not in given} for word in given
    ]


@lru_cache(1)
def _alike() -> dict[str, frozenset[str]]:
    groups = [frozenset(words_of(line)) for line in _ALIKE.splitlines()]
    return {
        word: frozenset().union(*[g for g in groups if word in g]) - {word}
        for group in groups
        for word in group
    }


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
