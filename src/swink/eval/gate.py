"""Gates: whether a run is good enough to go on."""

from pathlib import Path

from msgspec import Struct

from swink.eval.compare import Comparison
from swink.eval.result import Summary


class GateCheck(Struct, frozen=True):
    """One demand and what the run has to say to it."""

    name: str
    passed: bool
    why: str


class GateResult(Struct, frozen=True, kw_only=True):
    """What a gate found; `passed` if every check did."""

    checks: tuple[GateCheck, ...]
    summary: Summary
    comparison: Comparison | None = None
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the run may pass."""
        return all(check.passed for check in self.checks)

    def __str__(self) -> str:
        raise NotImplementedError


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
    """
    raise NotImplementedError
