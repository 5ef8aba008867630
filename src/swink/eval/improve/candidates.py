"""Texts: candidates for a target, what each came to on the training cases, and what the search came to."""

import difflib
from collections.abc import Iterator, Sequence
from random import Random

from msgspec import Struct, field

from swink.eval.result import CaseResult
from swink.eval.statistics import mean
from swink.eval.summary import pass_rate_of


class TextCandidate(Struct, frozen=True, kw_only=True):
    """A text, and the score that each training case got with it."""

    number: int
    """0 is the text as it was."""
    text: str
    parent: int = 0
    scores: dict[str, float] = field(default_factory=dict[str, float])
    failed: tuple[str, ...] = ()
    """Training cases that did not pass in every attempt."""

    @property
    def score(self) -> float:
        """The mean over the training cases."""
        return mean([*self.scores.values()])

    @property
    def passed(self) -> int:
        """How many training cases passed."""
        return len(self.scores) - len(self.failed)


class SearchRound(Struct, frozen=True, kw_only=True):
    """What a model proposed: a line of rounds.jsonl."""

    number: int
    parent: int
    cases: tuple[str, ...]
    """The failed cases that it was shown."""
    text: str | None = None
    why: str = ""
    problem: str = ""
    """Why its answer is no candidate."""
    cost: float | None = 0.0


class Improvement(Struct, frozen=True, kw_only=True):
    """What the search came to: improvement.json."""

    target: str
    accepted: bool
    """Whether the hold-out cases pass more often with the new text."""
    text: str
    """The best text on the training cases; the original one if no other is better."""
    diff: str
    why: str = ""
    """What the model said of it that wrote it."""
    candidate: int = 0
    rounds: int = 0
    training: int = 0
    holdout: int = 0
    training_before: float = 0.0
    """Pass rates."""
    training_after: float = 0.0
    holdout_before: float | None = None
    """None: the hold-out cases were not asked, since nothing was better on the others."""
    holdout_after: float | None = None
    p: float | None = None
    """How likely such a difference on the hold-out cases is by chance."""
    cost: float = 0.0
    """Dollars, as far as they are known."""
    stopped: str = ""
    """Why it ended before its time."""
    notes: tuple[str, ...] = ()


def score_of_attempts(attempts: Sequence[CaseResult]) -> float:
    """The score of a case in [0, 1]: half is whether it passes, half what its metrics say."""
    values = [mean([metric.value for metric in one.metrics]) if one.metrics else 0.0 for one in attempts]
    return (pass_rate_of(attempts) + mean(values)) / 2


def front(candidates: Sequence[TextCandidate]) -> dict[int, int]:
    """The candidates that are best in some case, and in how many (a Pareto set).

    One that is nowhere better than another one of them is left out.
    """
    best: dict[int, set[str]] = {}
    for case in candidates[0].scores:
        most = max(candidate.scores[case] for candidate in candidates)
        for candidate in candidates:
            if candidate.scores[case] == most:
                best.setdefault(candidate.number, set()).add(case)
    by_number = {candidate.number: candidate for candidate in candidates}
    for number in sorted(best, key=lambda number: (by_number[number].score, -number)):
        others = [cases for other, cases in best.items() if other != number]
        if any(best[number] <= cases for cases in others):
            del best[number]
    return {number: len(cases) for number, cases in sorted(best.items())}


def choose_parent(candidates: Sequence[TextCandidate], luck: Random) -> TextCandidate:
    """One of the front that still fails somewhere; the more cases it is best in, the likelier."""
    chances = front(candidates)
    by_number = {candidate.number: candidate for candidate in candidates}
    open_ones = [number for number in chances if by_number[number].failed]
    weights = [chances[number] for number in open_ones]
    return by_number[luck.choices(open_ones, weights)[0]] if open_ones else by_number[next(iter(chances))]


def best_of(candidates: Sequence[TextCandidate]) -> TextCandidate:
    """The one with the most passed training cases; of equals the better score, then the earlier one."""
    return max(candidates, key=lambda one: (one.passed, one.score, -one.number))


def difference(before: str, after: str, name: str) -> str:
    """A unified diff of two texts; empty if they are equal."""
    texts = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return "".join(_whole_lines(difflib.unified_diff(*texts, name, f"{name} (improved)")))


def same_text(one: str, other: str) -> bool:
    """Whether two texts differ in blanks only."""
    return one.split() == other.split()


def _whole_lines(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield line if line.endswith("\n") else f"{line}\n"
