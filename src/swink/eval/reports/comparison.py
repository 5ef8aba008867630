"""Comparison: two runs in a report: which cases flipped, and what became of score, cost and time."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from statistics import fmean, median

from msgspec import Struct

from swink.eval.reports.outcomes import CaseOutcome, dollars, percent, points, seconds
from swink.eval.result import CaseResult
from swink.events.transcript.blockkinds import counted


class TwoRuns(Struct, frozen=True, dict=True):
    """Two runs, case by case."""

    before: Mapping[str, CaseOutcome]
    now: Mapping[str, CaseOutcome]
    chance: float | None = None
    """How likely a change of the pass rate as large as this is by chance; None: nothing to test."""
    name: str = ""
    """What people call the earlier run."""
    results: Sequence[CaseResult] = ()
    """The attempts of the earlier run, with what was said."""

    @staticmethod
    def between(
        before: Sequence[CaseOutcome],
        now: Sequence[CaseOutcome],
        chance: float | None = None,
        name: str = "",
        results: Sequence[CaseResult] = (),
    ) -> "TwoRuns":
        earlier, later = ({outcome.id: outcome for outcome in run} for run in (before, now))
        return TwoRuns(earlier, later, chance, name, results)

    @property
    def title(self) -> str:
        """A heading that names the earlier run."""
        return f"Compared with {self.name or 'the baseline'}"

    @cached_property
    def both(self) -> list[tuple[CaseOutcome, CaseOutcome]]:
        """The cases that both runs have: before and now."""
        return [(self.before[id], outcome) for id, outcome in self.now.items() if id in self.before]

    @cached_property
    def broke(self) -> list[str]:
        """The cases that passed before and do not now."""
        return [now.id for was, now in self.both if was.state == "passed" != now.state]

    @cached_property
    def fixed(self) -> list[str]:
        """The cases that pass now and did not before."""
        return [now.id for was, now in self.both if was.state != "passed" == now.state]

    @cached_property
    def new(self) -> list[str]:
        """The cases that the earlier run has not."""
        return [id for id in self.now if id not in self.before]

    @cached_property
    def gone(self) -> list[str]:
        """The cases of the earlier run that this one has not."""
        return [id for id in self.before if id not in self.now]

    @property
    def figures(self) -> list[tuple[str, str, str, str]]:
        """What, before, now, and by how much it changed, over the cases that both runs have."""
        if not self.both:
            return []
        rates = [fmean(run[side].pass_rate for run in self.both) for side in (0, 1)]
        rows = [("Pass rate", percent(rates[0]), percent(rates[1]), points(rates[1] - rates[0]))]
        scored = [(was.score, now.score) for was, now in self.both]
        scores = [(was, now) for was, now in scored if was is not None and now is not None]
        if scores:
            was, now = fmean(pair[0] for pair in scores), fmean(pair[1] for pair in scores)
            rows.append(("Score", f"{was:.3f}", f"{now:.3f}", f"{now - was:+.3f}"))
        costs = [(was.cost, now.cost) for was, now in self.both]
        known = [(was, now) for was, now in costs if was is not None and now is not None]
        if len(known) == len(costs):
            was, now = sum(pair[0] for pair in known), sum(pair[1] for pair in known)
            rows.append(("Cost", dollars(was), dollars(now), _growth(was, now)))
        was, now = (median(run[side].duration for run in self.both) for side in (0, 1))
        rows.append(("Median time", seconds(was), seconds(now), _growth(was, now)))
        return rows

    @property
    def verdict(self) -> str:
        """What the flips amount to, in a sentence."""
        if not self.both:
            return "The two runs have no case in common."
        if not self.broke and not self.fixed:
            return f"None of the {len(self.both):,} cases in common flipped."
        flips = f"{len(self.broke):,} newly failing, {len(self.fixed):,} newly passing"
        if self.chance is None:
            return f"{flips} of {len(self.both):,} cases in common."
        told = "unlikely to be chance" if self.chance < 0.05 else "may well be chance"
        chance = f"p = {self.chance:.2g}" if self.chance >= 0.001 else "p < 0.001"
        return f"{flips} of {len(self.both):,} cases in common: {told} ({chance})."

    @property
    def lines(self) -> list[str]:
        """All of it as lines of text."""
        told = [self.verdict]
        told += [f"{what}: {was} → {now} ({change})" for what, was, now, change in self.figures]
        if self.new:
            told.append(f"{counted(len(self.new), 'case')} {_are(self.new)} new")
        if self.gone:
            told.append(f"{counted(len(self.gone), 'case')} of the baseline {_are(self.gone)} missing")
        return told


def _are(some: Sequence[object]) -> str:
    return "is" if len(some) == 1 else "are"


def _growth(was: float, now: float) -> str:
    if not was:
        return "±0 %" if not now else "from nothing"
    change = round(100 * (now - was) / was)
    return f"{change:+,} %" if change else "±0 %"
