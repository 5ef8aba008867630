"""Gates: whether a run is good enough to go on."""

from collections.abc import Sequence
from math import inf, isfinite
from pathlib import Path

from msgspec import Struct

from swink.errors import InvalidInput
from swink.eval.compare import Change, Comparison, compare_runs, pass_rate_change
from swink.eval.comparisontable import percent
from swink.eval.evalrun import SavedRun, read_run
from swink.eval.result import RunSummary
from swink.eval.summary import summarise
from swink.messages.modelspec import format_dollars
from swink.system.oneline import strip_controls

_ROUNDING = 1e-9


class GateCheck(Struct, frozen=True):
    """One demand, and how the run meets it."""

    name: str
    passed: bool
    why: str


class GateResult(Struct, frozen=True, kw_only=True):
    """The checks of a run against its limits; it has passed if every check has.

    Args:
        summary: the summary of the run
        comparison: how it differs from the baseline
        notes: what to know about the checks
    """

    checks: tuple[GateCheck, ...]
    summary: RunSummary
    comparison: Comparison | None = None
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every check has passed."""
        return all(check.passed for check in self.checks)

    def __str__(self) -> str:
        lines = [f"{'ok' if check.passed else 'FAILED':6} {check.name}: {check.why}" for check in self.checks]
        return strip_controls("\n".join([*lines, *[f"note: {note}" for note in self.notes]]))


def gate(
    directory: str | Path,
    min_pass_rate: float | None = None,
    max_cost: float | None = None,
    max_duration: float | None = None,
    baseline: str | Path | None = None,
    max_regressions: int | None = None,
    significant: bool = False,
) -> GateResult:
    """Hold a run against limits, and against an earlier one; without any limit every case must pass.

    No cases, and attempts that are missing, fail it. `max_regressions` counts the cases that passed in the
    baseline and do not now (0 unless given). `significant`: more of them fail only if the pass rate fell by
    more than chance explains.

    Args:
        directory: the run
        min_pass_rate: the least share of cases that must pass
        max_cost: dollars
        max_duration: seconds
    """
    _check_limits(1.0, min_pass_rate=min_pass_rate)
    _check_limits(None, max_cost=max_cost, max_duration=max_duration, max_regressions=max_regressions)
    if baseline is None and (max_regressions is not None or significant):
        raise InvalidInput("max_regressions and significant compare with an earlier run: name it as baseline")
    run = read_run(directory)
    before = None if baseline is None else read_run(baseline)
    comparison = None if before is None else compare_runs(before, run)
    summary = summarise(run.attempts, run.manifest, run.duration or 0.0)
    if min_pass_rate is max_cost is max_duration is baseline is None:
        min_pass_rate = 1.0
    checks = [_complete(run)]
    if min_pass_rate is not None:
        checks.append(_pass_rate(summary, min_pass_rate))
    if max_cost is not None:
        checks.append(_cost(summary, max_cost))
    if max_duration is not None:
        checks.append(_duration(run.duration, max_duration))
    if before is not None and comparison is not None:
        asked = pass_rate_change(before, run) if significant else None
        checks.append(_regressions(comparison, max_regressions or 0, asked))
    notes = () if comparison is None else comparison.notes
    if comparison is not None and (gone := comparison.only_before):
        notes = (f"{len(gone)} cases of the baseline are not in this run: {_first(gone)}", *notes)
    return GateResult(checks=tuple(checks), summary=summary, comparison=comparison, notes=notes)


def _check_limits(most: float | None, **limits: float | None) -> None:
    for name, value in limits.items():
        if value is None or (not isinstance(value, bool) and isfinite(value) and 0 <= value <= (most or inf)):
            continue
        bounds = "at least 0" if most is None else f"between 0 and {most:g} (90 % is 0.9)"
        raise InvalidInput(f"{name} is {bounds}, not {value}")


def _complete(run: SavedRun) -> GateCheck:
    why = f"{len(run.cases)} cases, {len(run.attempts)} attempts"
    if not run.cases:
        why = "no case was run"
    elif run.missing:
        why += f"; {run.missing} attempts are missing: `swink eval run --resume` makes them"
    elif run.problems:
        why += f"; {'; '.join(run.problems)}"
    return GateCheck("complete", bool(run.cases) and not run.missing and not run.problems, why)


def _pass_rate(summary: RunSummary, least: float) -> GateCheck:
    low, high = summary.pass_rate_interval or (0.0, 1.0)
    errors = f", {summary.errors} of them errors, which count as failed" if summary.errors else ""
    others = f"{summary.cases - summary.passed} of {summary.cases} cases did not pass{errors}"
    rate = f"{percent(summary.pass_rate)} (95 % interval {percent(low)} to {percent(high)})"
    why = f"{rate}, {percent(least)} demanded; {others}"
    return GateCheck("pass rate", bool(summary.cases) and summary.pass_rate >= least - _ROUNDING, why)


def _cost(summary: RunSummary, most: float) -> GateCheck:
    if summary.cost is None:
        unknown = f"unknown for {summary.unpriced} of {summary.attempts} attempts"
        why = f"{unknown}, so that a limit of {format_dollars(most, exact=True)}"
        return GateCheck("cost", False, f"{why} cannot be checked: use models with known prices")
    why = f"{format_dollars(summary.cost, 4)}, at most {format_dollars(most, exact=True)} allowed"
    return GateCheck("cost", summary.cost <= most + _ROUNDING, why)


def _duration(seconds: float | None, most: float) -> GateCheck:
    if seconds is None:
        return GateCheck("duration", False, f"unknown, so that a limit of {most:g} s cannot be checked")
    return GateCheck("duration", seconds <= most + _ROUNDING, f"{seconds:.1f} s, at most {most:g} s allowed")


def _regressions(comparison: Comparison, most: int, change: Change | None) -> GateCheck:
    """The flips; with the change of the pass rate, only where that is a significant fall."""
    if not comparison.cases:
        return GateCheck("regressions", False, "the baseline has no case in common with this run")
    flipped = len(comparison.regressions)
    why = f"{flipped} of {comparison.cases} cases passed in the baseline and do not now, {most} allowed"
    if flipped:
        why += f": {_first([flip.case_id for flip in comparison.regressions])}"
    if change is None:
        return GateCheck("regressions", flipped <= most, why)
    fell = change.significant and (change.difference or 0.0) < 0
    p = "unknown" if change.p is None else f"{change.p:.3g}"
    why += f"; the pass rate {'fell' if fell else 'did not fall'} significantly (p = {p})"
    if not fell:
        shown = "are too few to show any fall"
        if change.detectable is not None:
            shown = f"show a fall of {percent(change.detectable)} four times out of five"
        why += f"; {change.cases} cases {shown}"
    # Where a provider failed every case there is nothing to test, and flips stay flips.
    return GateCheck("regressions", flipped <= most or (not fell and change.cases > 0), why)


def _first(cases: Sequence[str]) -> str:
    return ", ".join(cases[:20]) + (f" and {len(cases) - 20} more" if len(cases) > 20 else "")
