"""Comparisons: what changed between two runs, and whether it could be chance.

Only cases of both runs are compared, paired by case; each weighs the same however often it was tried. A case
that a provider or the harness failed is in no test, but it is listed, and may be a flip.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import fsum
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from swink.eval import statistics
from swink.eval.evalrun import SavedRun, read_run
from swink.eval.result import CaseResult
from swink.eval.statistics import CONFIDENCE, Interval, mean
from swink.eval.summary import Attempts, State, by_case, pass_rate_of, state_of

ALPHA = 1 - CONFIDENCE
_FEWEST = 6  # cases for a bootstrap; also the fewest with which a permutation test can be significant
_NOT_THE_AGENT = ("provider", "harness")


class Flip(Struct, frozen=True):
    """A case that passed in one of two runs only."""

    case_id: str
    before: State
    after: State
    rate_before: float
    rate_after: float


class Change(Struct, frozen=True, kw_only=True):
    """How one figure changed over the cases that both runs have, each case weighing the same."""

    name: str
    cases: int
    """Those of which it is known in both runs."""
    before: float | None = None
    after: float | None = None
    difference: float | None = None
    interval: Interval | None = None
    """Of the difference, at 95 %; None: too few cases, or no two of them differ."""
    p: float | None = None
    """How likely a difference this large is by chance, among all the figures that are tested."""
    significant: bool = False
    detectable: float | None = None
    """The smallest difference that so many cases show four times out of five, among as many figures; None:
    unknown, or none does."""


class Comparison(Struct, frozen=True, kw_only=True):
    """Two runs, case by case.

    Args:
        before: the name of the earlier run
        after: that of the later one
        improvements: cases that pass now and did not
        pass_rate: how the share of passed cases changed
        metrics: how each metric changed
        only_before: cases of the earlier run alone
        only_after: cases of the later run alone
        notes: what makes the comparison weaker, such as another model
    """

    before: str
    after: str
    cases: int
    """Those of both runs."""
    regressions: tuple[Flip, ...] = ()
    """Passed before, and not now."""
    improvements: tuple[Flip, ...] = ()
    pass_rate: Change
    cost: Change
    """Of the agent alone, per attempt."""
    duration: Change
    """Seconds per attempt."""
    tokens: Change
    """Of the agent alone, per attempt."""
    metrics: dict[str, Change] = field(default_factory=dict[str, Change])
    only_before: tuple[str, ...] = ()
    only_after: tuple[str, ...] = ()
    troubled: tuple[str, ...] = ()
    """Cases that a provider or the harness failed in either run: no test looks at them."""
    notes: tuple[str, ...] = ()


def compare(before: str | Path, after: str | Path) -> Comparison:
    """Compare the runs of two directories: `before` is the earlier one, `after` the later."""
    return compare_runs(read_run(before), read_run(after))


def compare_runs(before: SavedRun, after: SavedRun) -> Comparison:
    """Compare two runs that were read, the earlier one first."""
    comparison = _compare(before.cases, after.cases, before.directory, after.directory)
    return replace(comparison, notes=(*_saved_notes(before, after), *comparison.notes))


def compare_results(
    before: Iterable[CaseResult], after: Iterable[CaseResult], names: tuple[str, str] = ("before", "after")
) -> Comparison:
    """Compare results in memory, the earlier ones first."""
    return _compare(by_case(before), by_case(after), *names)


def _compare(before: Attempts, after: Attempts, name_before: str, name_after: str) -> Comparison:
    common = [case for case in after if case in before]
    pairs = {case: (before[case], after[case]) for case in common}
    troubled = [case for case, both in pairs.items() if any(map(_is_troubled, both))]
    tested = {case: both for case, both in pairs.items() if case not in set(troubled)}
    flips = [
        Flip(case, state_of(old), state_of(new), pass_rate_of(old), pass_rate_of(new))
        for case, (old, new) in pairs.items()
    ]
    pass_rate, cost, duration, tokens, *metrics = _changes(tested)
    return Comparison(
        before=name_before,
        after=name_after,
        cases=len(common),
        regressions=tuple(flip for flip in flips if flip.before == "passed" != flip.after),
        improvements=tuple(flip for flip in flips if flip.after == "passed" != flip.before),
        pass_rate=pass_rate,
        cost=cost,
        duration=duration,
        tokens=tokens,
        metrics={change.name: change for change in metrics},
        only_before=tuple(case for case in before if case not in after),
        only_after=tuple(case for case in after if case not in before),
        troubled=tuple(troubled),
        notes=_notes(pairs),
    )


def _is_troubled(attempts: Sequence[CaseResult]) -> bool:
    return any(attempt.error_source in _NOT_THE_AGENT for attempt in attempts)


Pairs = Mapping[str, tuple[Sequence[CaseResult], Sequence[CaseResult]]]
Figure = Callable[[Sequence[CaseResult]], float | None]


def _changes(pairs: Pairs) -> list[Change]:
    """Every figure with its interval, the pass rate first and the scorers last."""
    changes: list[Change] = []
    for change, differences, tests in _tested(pairs):
        bounded = _bounded if changes else _bounded_rate
        changes.append(bounded(change, differences, 1 - ALPHA / tests))
    return changes


def _tested(pairs: Pairs) -> Iterator[tuple[Change, list[float], int]]:
    """Every figure, tested as one of all of them, its differences, and how many are tested.

    What cannot be significant, however one-sided, is no test; nor are figures that differ alike in every
    case two tests, such as the pass rate and the only scorer.
    """
    found = [
        _paired("pass rate", pairs, pass_rate_of),
        _paired("cost", pairs, _mean_cost),
        _paired("duration", pairs, lambda tried: mean([attempt.duration for attempt in tried])),
        _paired("tokens", pairs, lambda tried: mean([attempt.usage.total for attempt in tried])),
        *_metrics(pairs),
    ]
    kinds = [_kind(differences) for _, differences in found]
    chances = {kind: change.p or 0.0 for kind, (change, _) in zip(kinds, found, strict=True) if kind}
    corrected = dict(zip(chances, statistics.holm([*chances.values()]), strict=True))
    for kind, (change, differences) in zip(kinds, found, strict=True):
        chance = corrected.get(kind, change.p)
        tested = replace(change, p=chance, significant=chance is not None and chance < ALPHA)
        yield tested, differences, len(corrected) + (kind not in corrected)


def _kind(differences: Sequence[float]) -> tuple[float, ...]:
    """The differences in units of the first, the same for figures that are tested alike; empty: no test."""
    moved = [difference for difference in differences if difference]
    if len(moved) < _FEWEST:
        return ()
    return tuple([round(difference / moved[0], 9) for difference in differences])


def _bounded_rate(change: Change, differences: Sequence[float], confidence: float) -> Change:
    """The change of the pass rate with its interval, and with what would be noticed at that confidence."""
    if not differences:
        return change
    square = fsum([difference**2 for difference in differences]) / len(differences)
    least = statistics.detectable(len(differences), square, confidence)
    return replace(change, interval=statistics.difference_interval(differences), detectable=least)


def _bounded(change: Change, differences: Sequence[float], confidence: float) -> Change:
    """The same for any other figure."""
    if len(differences) < _FEWEST or not statistics.deviation(differences):
        return change  # drawn again and again, the same few values say nothing about others
    least = statistics.detectable_mean(differences, confidence)
    return replace(change, interval=statistics.bootstrap(differences), detectable=least)


def pass_rate_change(before: SavedRun, after: SavedRun) -> Change:
    """How the pass rate changed, if nothing else is asked: no correction for other figures."""
    pairs = {case: (before.cases[case], tried) for case, tried in after.cases.items() if case in before.cases}
    tested = {case: both for case, both in pairs.items() if not any(map(_is_troubled, both))}
    change, differences = _paired("pass rate", tested, pass_rate_of)
    return _bounded_rate(change, differences, CONFIDENCE)


def _paired(name: str, pairs: Pairs, figure: Figure) -> tuple[Change, list[float]]:
    """A figure of both runs and the differences between them, where it is known in both."""
    figures = [(figure(old), figure(new)) for old, new in pairs.values()]
    known = [(old, new) for old, new in figures if old is not None and new is not None]
    if not known:
        return Change(name=name, cases=0), []
    differences = [new - old for old, new in known]
    chance = statistics.permutation(differences)
    change = Change(
        name=name,
        cases=len(known),
        before=mean([old for old, _ in known]),
        after=mean([new for _, new in known]),
        difference=mean(differences),
        p=chance,
        significant=chance < ALPHA,
    )
    return change, differences


def _mean_cost(attempts: Sequence[CaseResult]) -> float | None:
    costs = [attempt.cost for attempt in attempts]
    return None if None in costs else mean([cost for cost in costs if cost is not None])


def _metrics(pairs: Pairs) -> list[tuple[Change, list[float]]]:
    """The change in the values of each scorer and its differences; attempts where it failed have none."""
    attempts = [attempt for both in pairs.values() for tried in both for attempt in tried]
    names = dict.fromkeys(metric.name for attempt in attempts for metric in attempt.metrics)

    def value(name: str, attempts: Sequence[CaseResult]) -> float | None:
        metrics = [metric for attempt in attempts for metric in attempt.metrics]
        values = [metric.value for metric in metrics if metric.name == name and metric.error is None]
        return mean(values) if values else None

    found = [_paired(name, pairs, partial(value, name)) for name in names]
    return [(change, differences) for change, differences in found if change.cases]


def _notes(pairs: Pairs) -> tuple[str, ...]:
    """What a reader should know before believing the figures."""
    notes: list[str] = []
    if not pairs:
        notes.append("the runs have no case in common: nothing is compared")
    unequal = sum(len(old) != len(new) for old, new in pairs.values())
    if unequal:
        notes.append(
            f"{unequal} cases were not tried equally often in both runs: a case passes if every attempt does "
            "and so less easily the more there are; look at the pass rate, not at the flips"
        )
    cached = sum(attempt.cached for both in pairs.values() for tried in both for attempt in tried)
    if cached:
        told = "attempts are from the cache: their cost and duration are those of an earlier run"
        notes.append(f"{cached} {told}")
    return tuple(notes)


def _saved_notes(before: SavedRun, after: SavedRun) -> list[str]:
    notes = [*before.problems, *after.problems]
    for run in (before, after):
        if run.missing:
            notes.append(f"{run.directory} is not complete: {run.missing} attempts are missing")
    digests = {run.manifest.digest for run in (before, after) if run.manifest and run.manifest.digest}
    if len(digests) > 1:
        notes.append("the cases were changed between the runs: the same id may stand for another question")
    return notes
