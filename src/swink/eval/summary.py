"""Summaries: what all attempts of a run come to.

An attempt that ended in an error has not passed, and counts like any other. Intervals are over cases:
attempts at one case are not independent of each other. What is unknown, such as a cost, is None, never 0.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from swink.eval.result import CaseResult, Manifest, RunSummary
from swink.eval.statistics import deviation, interval, mean, pass_at_k, pass_hat_k
from swink.messages.modelspec import Usage
from swink.policies.chain import Head

State = Literal["passed", "failed", "error"]
Attempts = Mapping[str, Sequence[CaseResult]]
"""The attempts at each case, by its id."""

_FEW = 10


def summarise(
    results: Iterable[CaseResult],
    manifest: Manifest | None = None,
    duration: float = 0.0,
    head: Head | dict[str, Any] | None = None,
) -> RunSummary:
    """What the attempts come to; with a manifest also whether any are missing.

    Args:
        results: the attempts
        manifest: what the run was about
        duration: seconds it took
        head: the signed head of the results, which the summary repeats
    """
    cases = by_case(results)
    attempts = [attempt for tried in cases.values() for attempt in tried]
    states = [state_of(tried) for tried in cases.values()]
    rates = [pass_rate_of(tried) for tried in cases.values()]
    ks = _ks(min(map(len, cases.values()), default=0))
    tallies = [(len(tried), sum(attempt.passed for attempt in tried)) for tried in cases.values()]
    at_k = {k: [pass_at_k(*tally, k) for tally in tallies] for k in ks}
    hat_k = {k: [pass_hat_k(*tally, k) for tally in tallies] for k in ks}
    costs = [cost_of(attempt) for attempt in attempts]
    usage = Usage()
    for attempt in attempts:
        usage += attempt.usage
    return RunSummary(
        cases=len(cases),
        passed=states.count("passed"),
        failed=states.count("failed"),
        errors=states.count("error"),
        pass_rate=mean(rates) if rates else 0.0,
        cost=None if None in costs else fsum([cost for cost in costs if cost is not None]),
        duration=duration,
        name=manifest.name if manifest else "",
        attempts=len(attempts),
        pass_rate_interval=interval(rates) if rates else None,
        pass_at_k={str(k): mean(values) for k, values in at_k.items()},
        pass_hat_k={str(k): mean(values) for k, values in hat_k.items()},
        metrics=_metrics(cases),
        usage=usage,
        complete=manifest is None or not missing(cases, manifest),
        deviation=deviation(rates) if len(rates) > 1 else None,
        pass_at_k_intervals={str(k): interval(values) for k, values in at_k.items()},
        pass_hat_k_intervals={str(k): interval(values) for k, values in hat_k.items()},
        unpriced=costs.count(None),
        cached=sum(attempt.cached for attempt in attempts),
        head=msgspec.to_builtins(head) if isinstance(head, Head) else head,
    )


def by_case(results: Iterable[CaseResult]) -> dict[str, list[CaseResult]]:
    """The attempts at each case in order, without what was said; of one made twice the newer counts."""
    cases: dict[str, dict[int, CaseResult]] = {}
    for result in results:
        slim = replace(result, transcript=(), calls=(), timings=(), system_prompt="")
        cases.setdefault(result.case_id, {})[result.repeat] = slim
    return {case: [tried[repeat] for repeat in sorted(tried)] for case, tried in cases.items()}


def state_of(attempts: Sequence[CaseResult]) -> State:
    """What a case came to: passed if every attempt did; otherwise an error if one ended in one, or failed."""
    if attempts and all(attempt.passed for attempt in attempts):
        return "passed"
    return "error" if any(attempt.error is not None for attempt in attempts) else "failed"


def pass_rate_of(attempts: Sequence[CaseResult]) -> float:
    """The share of the attempts at a case that passed."""
    return sum(attempt.passed for attempt in attempts) / len(attempts)


def cost_of(attempt: CaseResult) -> float | None:
    """What an attempt, its judges and its simulated user and tools cost; None if any part is unknown."""
    simulated = attempt.metadata.get("simulation_cost", 0.0)
    parts = [attempt.cost, *[metric.cost for metric in attempt.metrics], simulated]
    known = [part for part in parts if isinstance(part, int | float)]
    return fsum(known) if len(known) == len(parts) else None


def missing(cases: Attempts, manifest: Manifest) -> int:
    """How many attempts that the run set out to make have no result."""
    asked = dict.fromkeys(manifest.case_ids, max(1, manifest.repeat))
    return sum(max(0, wanted - len(cases.get(case, ()))) for case, wanted in asked.items())


def _ks(attempts: int) -> list[int]:
    """Every k of a few attempts; of many the powers of two and the number itself."""
    if attempts <= _FEW:
        return list(range(1, attempts + 1))
    return sorted({attempts, *[2**power for power in range(attempts.bit_length())]})


def _metrics(cases: Attempts) -> dict[str, dict[str, float]]:
    """The figures of every scorer; its values are averaged by case first."""
    values: dict[str, dict[str, list[float]]] = {}
    counts: dict[str, dict[str, float]] = {}
    for case, tried in cases.items():
        for metric in [metric for attempt in tried for metric in attempt.metrics]:
            count = counts.setdefault(metric.name, {"count": 0, "passed": 0, "errors": 0})
            count["passed"] += metric.passed
            if metric.error is not None:
                count["errors"] += 1
                continue
            count["count"] += 1
            values.setdefault(metric.name, {}).setdefault(case, []).append(metric.value)
    return {name: _figures(values.get(name, {})) | count for name, count in counts.items()}


def _figures(values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Mean, deviation and interval; nothing where there are no values."""
    if not values:
        return {}
    means = [mean(scores) for scores in values.values()]
    low, high = interval(means)
    every = [score for scores in values.values() for score in scores]
    return {"mean": mean(means), "deviation": deviation(every), "low": low, "high": high}
