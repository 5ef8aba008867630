"""Compare: what changed between two runs, and whether it could be chance."""

from pathlib import Path

from msgspec import Struct, field

from swink.eval.statistics import Interval
from swink.eval.summary import State


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
    before: float | None
    """None: unknown, or no case to compare."""
    after: float | None
    difference: float | None
    interval: Interval | None = None
    """Of the difference: bootstrap over cases."""
    p: float | None = None
    """How likely a difference this large is by chance."""
    significant: bool = False
    detectable: float | None = None
    """The smallest difference that so many cases show four times out of five."""


class Comparison(Struct, frozen=True, kw_only=True):
    """Two runs, case by case. Only the cases of both are compared."""

    before: str
    after: str
    cases: int
    """Those of both runs."""
    regressions: tuple[Flip, ...] = ()
    """Passed before, and not now."""
    improvements: tuple[Flip, ...] = ()
    pass_rate: Change
    cost: Change
    duration: Change
    metrics: dict[str, Change] = field(default_factory=dict[str, Change])
    only_before: tuple[str, ...] = ()
    only_after: tuple[str, ...] = ()
    troubled: tuple[str, ...] = ()
    """Cases that a provider or the harness failed in either run: no test looks at them."""
    notes: tuple[str, ...] = ()

    def to_json(self) -> bytes:
        """As JSON."""
        raise NotImplementedError

    def __str__(self) -> str:
        raise NotImplementedError


def compare(before: str | Path, after: str | Path) -> Comparison:
    """Compare the runs of two directories: the earlier one first."""
    raise NotImplementedError
