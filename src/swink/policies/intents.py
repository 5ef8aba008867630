"""What injections want, as short sequences of meanings: signals with weights, which add up if they are close.

A text is reduced to the meanings of its words (`vocabulary`), with `_` for every other word and `|` between
sentences; the signals are patterns over that. `#url`, `#mail` and `#path` stand for what they name.
"""

import re
from collections.abc import Iterator
from functools import cache

from msgspec import Struct

from swink.policies.vocabulary import meaning, table

ALARM = 1.0
"""A text with this sum of weights, or more, is suspicious."""
SHORT = 600
"""A text of at most so many characters is so short that one weak signal is its whole message."""
_NEAR = 60  # signals within so many words add up
_REACH = 24  # how many words around what a signal needs are searched
_TOKEN = re.compile(
    r"https?://[^\s<>\")\]]{1,300}|www\.[^\s<>\")\]]{3,300}|\b[\w-]{2,40}\.example\b"
    r"|[\w.+-]{1,64}@[\w-]{1,60}\.[\w.]{2,60}"
    r"|~/[\w./-]{1,200}|\.env\b|\bid_rsa\b|/etc/\w{1,40}|[^\W_]+(?:'[^\W_]+)*|(?<!\.)\.(?=\s|$)|[!?;|]+(?=\s"
    r"|$)|\n\s*\n|:"
)
_IDENTIFIER = re.compile(r"(?<!\w)[^\W_]*_\w*")
_WORD = re.compile(r"[^\W_]+")


class Signal(Struct, frozen=True):
    """A pattern over the meanings of words, and how much it weighs."""

    name: str
    weight: float
    pattern: re.Pattern[str]
    needs: tuple[frozenset[str], ...]
    """One meaning of each set must be in the text for the pattern to match at all."""


def weigh(text: str) -> float:
    """How strongly a text (without disguise) speaks for an injection; `ALARM` or more is suspicious."""
    lowered = text.lower().replace("’", "'").replace("n't", "nt")
    if len(text) > SHORT:
        lowered = _IDENTIFIER.sub("x", lowered)  # names in code are no sentences
    meanings = {word: known for word in set(_WORD.findall(lowered)) if (known := meaning(word)) is not None}
    present = set(meanings.values())
    active = [signal for signal in _signals() if all(map(present.intersection, signal.needs))]
    if not active:
        return 0.0
    known = _Table(meanings)
    tokens = ["|", *[known[token] for token in _TOKEN.findall(lowered)], "|"]
    total = _nearest(sorted(_found(tokens, active)))
    return total + 0.5 if total and len(text) <= SHORT else total


def _found(tokens: list[str], active: list[Signal]) -> Iterator[tuple[int, float, str]]:
    """Place, weight and name of every signal; each is searched only around the rarest word it needs."""
    places: dict[str, list[int]] = {}
    for place, token in enumerate(tokens):
        if token != "_":
            places.setdefault(token, []).append(place)
    for signal in active:
        needed = [[place for word in words for place in places.get(word, ())] for words in signal.needs]
        for start, end in _windows(sorted(min(needed, key=len)), len(tokens)):
            reduced = f" {' '.join(tokens[start:end])} "
            for match in signal.pattern.finditer(reduced):
                yield start + reduced.count(" ", 0, match.start()), signal.weight, signal.name


def _windows(places: list[int], end: int) -> Iterator[tuple[int, int]]:
    """Stretches of tokens around some places; those that touch are one."""
    start = stop = 0
    for place in places:
        if place - _REACH > stop:
            if stop:
                yield start, stop
            start = max(0, place - _REACH)
        stop = min(end, place + _REACH)
    if stop:
        yield start, stop


def _nearest(found: list[tuple[int, float, str]]) -> float:
    """The largest sum of different signals that stand near each other."""
    best = 0.0
    for index, (position, _, _) in enumerate(found):
        seen: dict[str, float] = {}
        for other, weight, name in found[index : index + 12]:
            if other - position > _NEAR:
                break
            seen[name] = max(weight, seen.get(name, 0.0))
        best = max(best, sum(seen.values()))
        if best >= ALARM:
            break
    return best


class _Table(dict[str, str]):
    """The meaning of each token, worked out once for each."""

    def __missing__(self, token: str) -> str:
        if token[0].isalnum() and ("'" in token or token.isalnum()):
            kind = self.get(token.partition("'")[0], "_")
        elif token == ":":
            kind = ":"
        elif token[0] in ".!?;|\n" and token != ".env":
            kind = "|"
        else:
            kind = "#mail" if "@" in token else "#path" if token[0] in "~/." or token == "id_rsa" else "#url"
        self[token] = kind
        return kind


@cache
def _signals() -> list[Signal]:
    signals: list[Signal] = []
    for item in table()["signal"]:
        spelled = re.sub(r"~(\d+) ", r"(?:[^ |]+ ){0,\1}", item["pattern"])
        compiled = re.compile(rf"(?<= )(?<! attempt to )(?:{spelled})(?= )")
        needs = tuple(frozenset(group.split("|")) for group in item["needs"])
        signals.append(Signal(item["name"], item["weight"], compiled, needs))
    return signals
