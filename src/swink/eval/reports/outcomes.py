"""Outcomes: what the attempts at one case came to, and figures written the same way in every report."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, wraps
from statistics import fmean, median
from typing import ParamSpec

from msgspec import Struct
from msgspec.structs import replace

from swink.eval.case import SourceLine
from swink.eval.result import CaseResult
from swink.eval.summary import State, cost_of, pass_rate_of, state_of
from swink.messages.jsondata import clean
from swink.messages.modelspec import format_dollars
from swink.messages.redact import redact_text

P = ParamSpec("P")
_LONGEST = 2_000  # characters of a reason


class CaseOutcome(Struct, frozen=True, dict=True):
    """One case and its attempts, of which there is at least one, in the order of their numbers."""

    attempts: tuple[CaseResult, ...]
    """Without what was said, but for the last message: a run may be larger than memory."""
    places: tuple[int, ...]
    """Of the whole attempts among the results."""

    @property
    def id(self) -> str:
        return clean(self.attempts[0].case_id)

    @property
    def name(self) -> str:
        """The case's name, where it has one besides its id."""
        name = redact_text(clean(self.attempts[0].name))
        return "" if name == self.id else name

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple([clean(tag) for tag in dict.fromkeys(self.attempts[0].tags)])

    @property
    def place(self) -> SourceLine | None:
        """Where the case stands, if that is known."""
        return next((attempt.place for attempt in self.attempts if attempt.place is not None), None)

    @cached_property
    def state(self) -> State:
        """It has passed if every attempt did; an error is something else than a bad answer."""
        return state_of(self.attempts)

    @property
    def pass_rate(self) -> float:
        """The share of its attempts that passed."""
        return pass_rate_of(self.attempts)

    @property
    def passed(self) -> int:
        return sum(attempt.passed for attempt in self.attempts)

    @cached_property
    def score(self) -> float | None:
        """The mean of all metrics of all attempts; None if there is none."""
        scores = [score for attempt in self.attempts if (score := score_of(attempt)) is not None]
        return fmean(scores) if scores else None

    @cached_property
    def cost(self) -> float | None:
        """Of all attempts, judges included; None: unknown for some of it."""
        costs = [cost_of(attempt) for attempt in self.attempts]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) else None

    @cached_property
    def duration(self) -> float:
        """Of the median attempt, in seconds."""
        return median(attempt.duration for attempt in self.attempts)

    @cached_property
    def tokens(self) -> int:
        return sum(attempt.usage.total for attempt in self.attempts)

    @cached_property
    def turns(self) -> float:
        """Replies of the model in the median attempt."""
        return median(attempt.turns for attempt in self.attempts)

    @property
    def cells(self) -> list[str]:
        """Score, attempts, cost and time, as the columns of a table show them."""
        score = "–" if self.score is None else f"{self.score:.2f}"
        cost = "–" if self.cost is None else dollars(self.cost)
        return [score, f"{self.passed}/{len(self.attempts)}", cost, seconds(self.duration)]

    @cached_property
    def whys(self) -> list[str]:
        """Why it has not passed: a line for every attempt and metric that did not, each once."""
        return list(dict.fromkeys(why for attempt in self.attempts for why in whys_of(attempt)))


def outcomes_of(results: Sequence[CaseResult]) -> list[CaseOutcome]:
    """The outcomes in the order of the cases' first results; of an attempt made twice the newer counts."""
    cases: dict[str, dict[int, tuple[CaseResult, int]]] = {}
    for place, result in enumerate(results):
        last = result.transcript[-1:]
        slim = replace(result, transcript=last, calls=(), timings=(), tools=(), system_prompt="", metadata={})
        cases.setdefault(result.case_id, {})[result.repeat] = slim, place
    ordered = [[tried[repeat] for repeat in sorted(tried)] for tried in cases.values()]
    return [CaseOutcome(*map(tuple, zip(*tried, strict=True))) for tried in ordered]


def score_of(attempt: CaseResult) -> float | None:
    """The mean of its metrics; None if there is none."""
    return fmean(metric.value for metric in attempt.metrics) if attempt.metrics else None


def whys_of(attempt: CaseResult) -> list[str]:
    """Why an attempt has not passed, as lines without secrets."""
    if attempt.passed:
        return []
    told = [f"error: {attempt.error}"] if attempt.error is not None else []
    told += [f"stopped: {attempt.reason}"] if attempt.reason and attempt.error is None else []
    for metric in attempt.metrics:
        if metric.error is not None:
            told.append(f"{metric.name} could not be scored: {metric.error}")
        elif not metric.passed:
            why = f": {metric.why}" if metric.why else ""
            told.append(f"{metric.name} {metric.value:.2f} < {metric.threshold:.2f}{why}")
    return [redact_text(clean(line[: 2 * _LONGEST]))[:_LONGEST] for line in told or ["no metric applied"]]


def joined(parts: Callable[P, Iterator[str]]) -> Callable[P, str]:
    """A report that is written part by part, as one text."""

    @wraps(parts)
    def write(*args: P.args, **kwargs: P.kwargs) -> str:
        return "".join(parts(*args, **kwargs))

    return write


def percent(share: float, digits: int = 1) -> str:
    """0.923 as `92.3 %`; a whole is never written for what is a little less."""
    shown = f"{100 * share:.{digits}f}"
    if (share < 1 and float(shown) == 100) or (share > 0 and float(shown) == 0):
        shown = f"{100 * share:.{digits + 2}f}"
    return f"{shown.removesuffix('.' + '0' * digits)} %"


def points(change: float) -> str:
    """A change of a share, in percentage points."""
    return f"{100 * change:+.1f} points"


def dollars(cost: float | None) -> str:
    """A cost in as many digits as it takes to see it."""
    return "unknown" if cost is None else format_dollars(cost, exact=True)


def seconds(duration: float) -> str:
    """A duration in the unit that suits it."""
    if duration < 1:
        return f"{1000 * duration:.0f} ms"
    if duration < 59.95:
        return f"{duration:.1f} s"
    minutes, left = divmod(round(duration), 60)
    if minutes < 60:
        return f"{minutes} min {left:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"
