"""Line pairs: which added line a removed one became.

removed             added
a = load(x)         # a comment        the most alike are paired, in their order;
b = save(y)         a = load(x, 1)     what is left between them is paired as it comes
                    b = save(y, 2)
"""

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

MOST_COMPARED = 5_000
"""Pairs up to which every removed line is compared with every added one; of more, with its neighbours."""
_LEAST = 2  # neighbours on either side that are compared in any case
_ALIKE = 0.4
"""From which share of their letters on, in words that both have, two lines are alike."""
_LONGEST = 400
_WORD = re.compile(r"\w+")

Pair = tuple[int | None, int | None]


def pair_lines(removed: Sequence[str], added: Sequence[str]) -> Iterator[Pair]:
    """The numbers of removed and added lines, side by side; every one of them once, in order."""
    old = new = 0
    for place, other in (*_nearest(removed, added), (len(removed), len(added))):
        yield from zip_longest(range(old, place), range(new, other))
        if place < len(removed):
            yield place, other
        old, new = place + 1, other + 1


class _Chain(NamedTuple):
    """Pairs in order: how alike they are in all, the last of them, and the chain before it."""

    score: float = 0.0
    pair: tuple[int, int] = (-1, -1)
    before: "_Chain | None" = None


def _nearest(removed: Sequence[str], added: Sequence[str]) -> list[tuple[int, int]]:
    """The pairs of alike lines, in order, that are the most alike in all."""
    if not removed or not added:
        return []
    before, after = map(_words, removed), [*map(_words, added)]
    reach = max(_LEAST, MOST_COMPARED // (2 * len(removed)))
    best = [_Chain()] * (len(added) + 1)  # a tree: the best chains that end before an added line
    for place, words in enumerate(before):
        middle = place * len(added) // len(removed)
        for other in range(min(len(added), middle + reach + 1) - 1, max(0, middle - reach) - 1, -1):
            alike = _likeness(words, after[other])
            if alike >= _ALIKE:
                chain = _best_before(best, other)
                _keep(best, other, _Chain(chain.score + alike * alike, (place, other), chain))
    found: list[tuple[int, int]] = []
    chain = _best_before(best, len(added))
    while chain.before is not None:
        found.append(chain.pair)
        chain = chain.before
    return found[::-1]


_Words = tuple[frozenset[str], int]
"""The words of a line, and how many letters they have."""


def _words(line: str) -> _Words:
    words = frozenset(_WORD.findall(line[:_LONGEST]))
    return words, sum(map(len, words))


def _likeness(one: _Words, other: _Words) -> float:
    """How much of two lines is the same, from 0 to 1."""
    common = sum(map(len, one[0] & other[0]))
    return 2 * common / (one[1] + other[1]) if common else 0.0


def _best_before(best: list[_Chain], end: int) -> _Chain:
    found = best[0]
    while end > 0:
        found = max(found, best[end], key=lambda chain: chain.score)
        end -= end & -end
    return found


def _keep(best: list[_Chain], place: int, chain: _Chain) -> None:
    place += 1
    while place < len(best):
        if chain.score > best[place].score:
            best[place] = chain
        place += place & -place
