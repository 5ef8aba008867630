"""Fuzzy matching: what was meant by a few letters, best first."""

import heapq
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")

Rank = tuple[int, int, int]
"""Lower is better: how it matches, where, and how long it is."""


def rank(query: str, text: str) -> Rank | None:
    """How well a text matches, None if not at all: a prefix, a word's start, anywhere, letters in order."""
    if not query:
        return 0, 0, len(text)
    query, text = query.casefold(), text.casefold()
    at = text.find(query)
    if at == 0:
        return (0 if len(query) == len(text) else 1), 0, 0
    if at > 0:
        begins = re.search(rf"(?<![^\W_]){re.escape(query)}", text)
        return (2, begins.start(), len(text)) if begins else (3, at, len(text))
    spots = positions(query, text)
    return None if spots is None else (4, spots[-1] - spots[0], len(text))


def positions(query: str, text: str) -> list[int] | None:
    """Where the letters of a query stand in a text, one after another; None if they do not."""
    query, folded = query.casefold(), text.casefold()
    if len(folded) != len(text):
        folded = text.lower()
    if (at := folded.find(query)) >= 0:
        return list(range(at, at + len(query)))
    spots: list[int] = []
    at = -1
    for letter in query:
        at = folded.find(letter, at + 1)
        if at < 0:
            return None
        spots.append(at)
    return spots


def best(query: str, items: Iterable[T], text: Callable[[T], str], limit: int) -> list[T]:
    """The items that match best; those that match equally well in the order in which they came."""
    ranked = (
        (found, number, item) for number, item in enumerate(items) if (found := rank(query, text(item)))
    )
    return [item for _, _, item in heapq.nsmallest(limit, ranked, key=lambda each: each[:2])]


def subsequence(query: str) -> "re.Pattern[str]":
    """A pattern for lines that contain the letters of a query in order; it takes linear time."""
    letters = [re.escape(letter) for letter in query]
    return re.compile("^" + "".join(f"[^{letter}\n]*{letter}" for letter in letters) + ".*$", re.M)


def all_words(query: str, texts: Sequence[str]) -> list[int]:
    """The numbers of the texts that contain every word of a query, or else its letters in order."""
    words = query.casefold().split()
    folded = [text.casefold() for text in texts]
    whole = [number for number, text in enumerate(folded) if all(word in text for word in words)]
    return whole or [number for number, text in enumerate(folded) if positions("".join(words), text)]
