"""Agreement: how far raters agree beyond chance, by Cohen's kappa for two and Fleiss' for any number."""

from collections import Counter
from collections.abc import Hashable, Sequence

from msgspec import Struct

from swink.errors import InvalidInput
from swink.eval.result import CaseResult


class Agreement(Struct, frozen=True):
    """How far the judges of a panel agree on which attempts pass."""

    judges: int
    attempts: int
    observed: float
    """The part of all pairs of verdicts on one attempt that are the same."""
    kappa: float
    """Beyond chance: 1 is full agreement, 0 what chance would give."""


def cohen_kappa(one: Sequence[Hashable], other: Sequence[Hashable]) -> float:
    """Agreement of two raters beyond chance; 1 if both said the same one thing throughout."""
    if len(one) != len(other) or not one:
        raise InvalidInput(
            f"{len(one)} and {len(other)} ratings; pass two lists of the same things, not empty"
        )
    total = len(one)
    observed = sum(a == b for a, b in zip(one, other, strict=True)) / total
    first, second = Counter(one), Counter(other)
    expected = sum(first[category] * second[category] for category in first) / total**2
    return _beyond_chance(observed, expected)


def fleiss_kappa(ratings: Sequence[Sequence[Hashable]]) -> float:
    """Agreement of several raters beyond chance: for each thing that was rated, what each of them said."""
    observed, expected = _fleiss(ratings)
    return _beyond_chance(observed, expected)


def panel_agreement(results: Sequence[CaseResult], metric: str) -> Agreement | None:
    """How far the judges of a metric agree over a run; None if no attempt has two verdicts or more.

    Only attempts with the full number of judges count.
    """
    rated = [
        [verdict.value >= found.threshold for verdict in found.verdicts]
        for result in results
        for found in result.metrics
        if found.name == metric and len(found.verdicts) > 1
    ]
    if not rated:
        return None
    judges = max(map(len, rated))
    rated = [row for row in rated if len(row) == judges]
    observed, expected = _fleiss(rated)
    return Agreement(judges, len(rated), observed, _beyond_chance(observed, expected))


def _fleiss(ratings: Sequence[Sequence[Hashable]]) -> tuple[float, float]:
    """The pairs of ratings that agree, and those that chance would have agree."""
    raters = len(ratings[0]) if ratings else 0
    if raters < 2 or any(len(row) != raters for row in ratings):
        raise InvalidInput("pass for each thing the ratings of the same number of raters, at least two")
    total: Counter[Hashable] = Counter()
    agreeing = 0.0
    for row in ratings:
        counts = Counter(row)
        total += counts
        agreeing += sum(count * (count - 1) for count in counts.values()) / (raters * (raters - 1))
    everything = raters * len(ratings)
    return agreeing / len(ratings), sum((count / everything) ** 2 for count in total.values())


def _beyond_chance(observed: float, expected: float) -> float:
    return 1.0 if expected >= 1.0 else (observed - expected) / (1.0 - expected)
