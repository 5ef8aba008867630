"""Applying scorers: those of a case to one attempt, concurrently; what fails is an error of its metric."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from swink.errors import AgentError, message_of
from swink.eval.case import Case
from swink.eval.result import Metric, Score
from swink.eval.scorers.judges import JudgeModel, Panel
from swink.eval.scorers.registry import (
    ScoreFunction,
    Scorer,
    as_scorer,
    check_threshold,
    find_scorer,
    registered,
)
from swink.eval.trajectory import Trajectory
from swink.messages.jsondata import clean
from swink.messages.redact import describe_error, redact_text
from swink.stream import StreamFn
from swink.system.aio import is_async, resolve
from swink.system.shorten import clip
from swink.system.threads import in_thread

TIMEOUT = 600.0
"""Seconds that a scorer may take, its judges included."""
_NOTHING_APPLIES = (
    "no scorer applies to this case: give it expected_trajectory, expected_response, expected_assertion, "
    "expected_environment_state or a budget, or name evaluators"
)


class ScorerFailed(AgentError):
    """A scorer gave no usable score."""


async def score(
    case: Case,
    trajectory: Trajectory,
    *,
    scorers: Sequence[str | Scorer | ScoreFunction] | None = None,
    judges: Sequence[JudgeModel] = (),
    ask: StreamFn | None = None,
    timeout: float = TIMEOUT,
) -> tuple[Metric, ...]:
    """The metrics of an attempt: by the evaluators that the case names, or else by all that apply.

    There is always a metric: if no scorer applies, one that says so and does not pass.

    Args:
        case: what was asked, and what must come of it
        trajectory: what the agent did
        scorers: more of them, used for every case
        judges: the models that judge, by default the agent's own
        ask: the stream function of judges that bring none
        timeout: seconds that one scorer may take
    """
    attempt = _Attempt(case, trajectory, tuple(judges), ask, timeout)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(attempt.apply(use)) for use in _uses(case, scorers or ())]
    metrics = [task.result() for task in tasks]
    return _numbered(metrics) or (Metric("scorers", 0.0, 1.0, False, _NOTHING_APPLIES, _NOTHING_APPLIES),)


class _Use(Struct, frozen=True):
    """A scorer, and how a case wants it used; one that is only named is looked up when it is applied."""

    name: str
    scorer: Scorer | None = None
    threshold: float | None = None
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    trouble: Exception | None = None
    """What its `applies` raised."""


def _uses(case: Case, more: Sequence[str | Scorer | ScoreFunction]) -> list[_Use]:
    named = [_Use(item.name, None, item.threshold, item.options) for item in case.evaluators]
    uses = named or list(_applicable(case))
    known = {use.name for use in uses}
    for item in more:
        use = _Use(item) if isinstance(item, str) else _Use((made := as_scorer(item)).name, made)
        if use.name not in known:  # a case may use it with options of its own
            uses.append(use)
    return uses


def _applicable(case: Case) -> Iterator[_Use]:
    for found in registered():
        try:
            if found.applies(case):
                yield _Use(found.name, found)
        except Exception as error:
            # A user's function; a failure of it must not let the case pass.
            yield _Use(found.name, found, trouble=error)


class _Attempt(Struct, frozen=True):
    """What is scored, and who judges it."""

    case: Case
    trajectory: Trajectory
    judges: tuple[JudgeModel, ...]
    ask: StreamFn | None
    timeout: float

    async def apply(self, use: _Use) -> Metric:
        """The metric of one scorer."""
        panel = Panel(self.case, self.trajectory, self.judges, self.ask)
        metric = await self._apply(use, panel)
        verdicts = [replace(verdict, why=_shown(verdict.why)) for verdict in panel.verdicts]
        return replace(metric, cost=panel.cost, verdicts=tuple(verdicts))

    async def _apply(self, use: _Use, panel: Panel) -> Metric:
        threshold, limit = use.threshold, None
        try:
            if use.trouble is not None:
                raise use.trouble
            found = use.scorer or find_scorer(use.name)
            threshold = found.threshold if threshold is None else threshold
            check_threshold(threshold)
            panel.threshold = threshold
            options = {**use.options, "judge": panel} if "judge" in found.keywords else use.options
            async with asyncio.timeout(self.timeout) as limit:
                answer = await _call(found.function, self.case, self.trajectory, options)
            given = _as_score(answer)
            if use.threshold is None and given.threshold is not None:
                check_threshold(threshold := given.threshold)
            passed = given.value >= threshold
            return Metric(use.name, float(given.value), float(threshold), passed, _shown(given.why))
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            # Scorers and judges are foreign code: what they raise becomes the error of their metric, and so
            # does a CancelledError that is not meant for this task.
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            text = _describe(error)
            if limit is not None and limit.expired():
                text = f"the scorer took longer than {self.timeout:g} s and was given up"
            if not isinstance(threshold, float | int) or not 0 <= threshold <= 1:
                threshold = 1.0
            return Metric(use.name, 0.0, float(threshold), False, text, text)


async def _call(function: ScoreFunction, case: Case, trajectory: Trajectory, options: dict[str, Any]) -> Any:
    """What the scorer says; one that is not async may block, and gets a thread."""
    if is_async(function):
        return await resolve(function(case, trajectory, **options))

    def call() -> tuple[Any, BaseException | None]:
        try:
            return function(case, trajectory, **options), None
        except BaseException as error:
            return None, error  # also what would end the program: `sys.exit`, the failure of a test

    answer, failure = await in_thread(call)
    try:
        if failure is not None:
            raise failure if isinstance(failure, Exception) else ScorerFailed(_describe(failure))
        return await resolve(answer)
    finally:
        failure = None  # its traceback holds this frame, and must not hold itself


def _as_score(answer: Any) -> Score:
    """A score of what a scorer returned; raises `ScorerFailed` if it is no value in [0, 1]."""
    given = answer if isinstance(answer, Score) else Score(answer)
    value: Any = given.value
    try:
        usable = not isinstance(value, str | bytes) and 0 <= value <= 1
    except Exception:
        # A foreign class may compare in any way.
        usable = False
    if not usable or isinstance(value, complex):
        advice = "a scorer returns a Score, a bool or a number from 0 to 1"
        raise ScorerFailed(f"it returned {_brief(answer)}; {advice}")
    return Score(float(value), given.why, given.threshold)


def _describe(error: BaseException) -> str:
    """What went wrong, for people; our own errors say it without the name of their class."""
    return _shown(redact_text(message_of(error)) if isinstance(error, AgentError) else describe_error(error))


def _brief(value: Any) -> str:
    try:
        return _shown(repr(value), 200)
    except Exception:
        # A foreign `__repr__` may fail.
        return f"a {type(value).__name__}"


def _shown(text: Any, limit: int = 2_000) -> str:
    """A text of a scorer or judge as it is kept: short, without secrets."""
    return clip(redact_text(clean(str(text)[: 4 * limit])), limit)  # a secret that is cut there is not shown


def _numbered(metrics: Sequence[Metric]) -> tuple[Metric, ...]:
    """The metrics with names of their own: a scorer may be used twice, with different options."""
    seen: Counter[str] = Counter()
    named: list[Metric] = []
    for metric in metrics:
        seen[metric.name] += 1
        count = seen[metric.name]
        named.append(metric if count == 1 else replace(metric, name=f"{metric.name} {count}"))
    return tuple(named)
