"""The runner: cases × repeats → attempts on an engine → results, as they come, in a file."""

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

import swink
from swink.agent.config import Model
from swink.agent.retry import ExponentialBackoff, RetryStrategy
from swink.errors import InvalidInput
from swink.eval.attempt import Factory, Plan
from swink.eval.budgets import RunBudget
from swink.eval.case import Case, Suite
from swink.eval.engines import ENGINES, EngineName, run_attempts
from swink.eval.evalrun import SUMMARY, EvalRun, busy
from swink.eval.factories import suite_factory
from swink.eval.progressbar import Progress, Tally, cost_of
from swink.eval.result import CaseResult, Manifest
from swink.eval.resultfile import Attempt, OtherRun, ResultFile, read_manifest, write_manifest
from swink.eval.scorers import problem_of
from swink.eval.scorers.registry import as_scorer
from swink.messages.checks import check_list, check_positive, check_type, check_word
from swink.messages.jsondata import encode
from swink.messages.redact import redact_value
from swink.system.aio import call_to_end
from swink.system.threads import Serial, in_thread
from swink.telemetry import span


async def evaluate(
    factory: Factory | None,
    cases: Suite | Sequence[Case],
    *,
    scorers: Sequence[Any] | None = None,
    concurrency: int = 8,
    repeat: int = 1,
    engine: EngineName = "local",
    model: Model | None = None,
    output: str | Path | None = None,
    resume: bool = False,
    cache: str | Path | None = None,
    budget: float | None = None,
    timeout: float | None = None,
    rate_limit: float | None = None,
    progress: Callable[[Progress], object] | None = None,
    judges: Sequence[Model] = (),
    retry: RetryStrategy = ExponentialBackoff(),
    key: str | bytes | None = None,
    name: str = "",
    agent: str = "",
    arguments: Mapping[str, Any] | None = None,
) -> EvalRun:
    """Try each of `cases` `repeat` times with agents of the factory, and score what they did.

    Each result is written to the directory `output` as it comes; `resume` makes only the attempts that are
    missing. `budget` (dollars) ends the whole run, `timeout` (seconds) each attempt that has none of its own;
    `rate_limit` is requests a minute to each provider. `retry` is for attempts that their provider failed.
    `scorers` judge (default: those of each case), `judges` are the models that some ask; `concurrency`
    attempts run at once, by `engine` in this process or on a cluster, with `model` instead of the suite's.
    `progress` is told of each. `cache` is a directory of results of the same case, agent and code. Only who
    has the `key` can write the chain of results anew. `name`, `agent`, `arguments` are noted in run.json.
    """
    listed = _checked(cases)
    if factory is None and not isinstance(cases, Suite):
        advice = "pass a function from a Case to an Agent, or a Suite of cases"
        raise InvalidInput(f"there is no factory: {advice}")
    suite = cases if isinstance(cases, Suite) else Suite(name="", cases=listed)
    chosen = None if model is None else str(model)
    _check_numbers(engine, repeat, concurrency, budget=budget, timeout=timeout, rate_limit=rate_limit)
    if resume and output is not None and (before := await in_thread(read_manifest, output)) is not None:
        repeat = max(repeat, before.repeat)  # with fewer, results would be no part of their run
    manifest = _manifest(suite, name, agent, chosen, repeat, concurrency, engine, arguments)
    run_budget = RunBudget(budget) if budget is not None else None
    plan = Plan(
        factory=factory or suite_factory(suite, chosen),
        scorers=tuple([_scorer(item) for item in scorers or ()]),
        judges=judges or suite.judges,
        model=model,
        timeout=timeout,
        retry=retry,
        cache=None if cache is None else Path(cache),
        policies=() if run_budget is None else (run_budget,),
    )
    attempts = [(case, number) for number in range(repeat) for case in listed]
    results = await in_thread(_open, output, manifest, resume, key)
    tally = Tally(len(attempts))
    evaluation = _Evaluation(plan, manifest, attempts, results, run_budget, progress, tally)
    return await evaluation.run(engine, rate_limit)


class _Evaluation(Struct):
    """One evaluation, while it goes on."""

    plan: Plan
    manifest: Manifest
    attempts: Sequence[tuple[Case, int]]
    kept: "KeptResults"
    budget: RunBudget | None
    progress: Callable[[Progress], object] | None
    tally: Tally
    stopped: str | None = None
    before: float = 0.0
    serial: Serial = field(default_factory=Serial)

    async def run(self, engine: EngineName, rate_limit: float | None) -> EvalRun:
        """Make the attempts that are missing, and close the file of results."""
        attributes = {"swink.eval.suite": self.manifest.name, "swink.eval.attempts": len(self.attempts)}
        try:
            with span("eval run", attributes):
                return await self._run(engine, rate_limit)
        finally:
            await call_to_end(Serial(), self.kept.close)

    async def _run(self, engine: EngineName, rate_limit: float | None) -> EvalRun:
        wanted = {(case.id, number) for case, number in self.attempts}
        done = await in_thread(self._take_up, wanted)
        missing = [attempt for attempt in self.attempts if (attempt[0].id, attempt[1]) not in done]
        try:
            queue, many = self._next(missing), self.manifest.concurrency
            await run_attempts(engine, self.plan, queue, self._keep, concurrency=many, rate_limit=rate_limit)
        except BaseException:
            await call_to_end(self.serial, self._ended)  # what is finished has its summary
            raise
        return await in_thread(self._ended)

    def _take_up(self, wanted: set[Attempt]) -> set[Attempt]:
        """The attempts that need not be made again."""
        done: set[Attempt] = set()
        spans: list[tuple[float, float]] = []
        for result in self.kept.results():
            if (result.case_id, result.repeat) in wanted and result.error_source != "provider":
                done.add((result.case_id, result.repeat))
                self.tally.add(result, is_resumed=True)
                spans.append((result.started, result.duration))
                if self.budget is not None:
                    self.budget.add(cost_of(result) or 0.0)
        self.before = busy(spans)
        return done

    def _next(self, missing: Sequence[tuple[Case, int]]) -> Iterator[tuple[Case, int]]:
        for attempt in missing:
            if self.budget is not None and self.budget.is_spent:
                self.stopped = self.budget.reason
                return
            yield attempt

    async def _keep(self, result: CaseResult) -> None:
        """Write a result down; one that the end of the money cut short is none."""
        if self.budget is not None:
            if result.reason == self.budget.reason:
                self.stopped = self.budget.reason
                return
            # The policy has counted what the agent spent, unless it worked elsewhere or not at all.
            is_counted = self.manifest.engine == "local" and not result.cached
            self.budget.add((cost_of(result) or 0.0) - ((result.cost or 0.0) if is_counted else 0.0))
        await self.serial.call(self.kept.append, result)
        shown = self.tally.add(result)
        if self.progress is not None:
            self.progress(shown)

    def _ended(self) -> EvalRun:
        results = self.kept.results([(case.id, number) for case, number in self.attempts])
        duration, head = self.before + self.tally.elapsed, self.kept.seal()
        run = EvalRun(self.manifest, results, duration, self.kept.directory, head, self.stopped)
        run.write_summary()
        return run


def _checked(cases: Suite | Sequence[Case]) -> tuple[Case, ...]:
    """The cases, if each can be told from the others."""
    listed = tuple(cases.cases if isinstance(cases, Suite) else check_list("cases", cases, "cases"))
    if not listed:
        raise InvalidInput("there are no cases to run")
    for case in listed:
        check_type("a case", case, Case)
    twice = [id for id, count in Counter(case.id for case in listed).items() if count > 1]
    if twice or not all(case.id for case in listed):
        what = f"these ids are there more than once: {', '.join(twice)}" if twice else "a case has no id"
        raise InvalidInput(f"every case needs an id of its own; {what}")
    return listed


def _check_numbers(engine: str, repeat: int, concurrency: int, **limits: float | None) -> None:
    check_word("engine", engine, ENGINES)
    for what, number in (("repeat", repeat), ("concurrency", concurrency)):
        if type(number) is not int or number < 1:
            raise InvalidInput(f"{what} is {number!r}; pass a whole number from 1 on")
    for what, limit in limits.items():
        if limit is not None:
            check_positive(what, limit)


def _manifest(
    suite: Suite,
    name: str,
    agent: str,
    model: str | None,
    repeat: int,
    concurrency: int,
    engine: str,
    arguments: Mapping[str, Any] | None,
) -> Manifest:
    digest = hashlib.sha256()
    for case in suite.cases:  # wherever their file is
        digest.update(encode(replace(case, place=None, workspace=None)) + b"\n")
    return Manifest(
        name=name or suite.name,
        started=time.time(),
        version=swink.__version__,
        agent=agent or suite.agent or "",
        model=model,
        repeat=repeat,
        concurrency=concurrency,
        engine=engine,
        case_ids=tuple([case.id for case in suite.cases]),
        digest=digest.hexdigest(),
        arguments=redact_value(dict(arguments or {})),
    )


def _scorer(given: Any) -> Any:
    """A scorer for every case, refused now if it is none."""
    if isinstance(given, str) and (problem := problem_of(given)) is not None:
        raise InvalidInput(f"scorers: {problem}")
    return given if isinstance(given, str) else as_scorer(given)


def _open(
    output: str | Path | None, manifest: Manifest, resume: bool, key: str | bytes | None
) -> "KeptResults":
    if output is None:
        if resume:
            raise InvalidInput("resume= continues the run in output=: name its directory")
        return ResultsInMemory()
    directory = Path(output)
    before = read_manifest(directory) if resume else None
    if before is not None and before.digest != manifest.digest:
        advice = "resume it with the same ones, or run anew elsewhere"
        raise OtherRun(f"{directory} is a run of other cases: {advice}")
    if before is not None and (before.model, before.agent) != (manifest.model, manifest.agent):
        was = " with ".join(part for part in (before.agent, before.model) if part) or "the suite's own agent"
        raise OtherRun(f"{directory} is a run of {was}: resume it with the same one, or run anew elsewhere")
    file = ResultFile(directory, resume=resume, key=key.encode() if isinstance(key, str) else key)
    try:
        # An old summary would accuse the lines that are added now, should nobody live to write a new one.
        (directory / SUMMARY).unlink(missing_ok=True)
        write_manifest(directory, manifest if before is None else replace(manifest, started=before.started))
    except BaseException:
        file.close()
        raise
    return file


class ResultsInMemory:
    """Results that are written to no file; otherwise like `ResultFile`."""

    directory: Path | None = None

    def __init__(self) -> None:
        self._results: dict[Attempt, CaseResult] = {}

    def append(self, result: CaseResult) -> None:
        self._results[result.case_id, result.repeat] = result

    def results(self, order: Sequence[Attempt] | None = None) -> Sequence[CaseResult]:
        return [self._results[attempt] for attempt in order or () if attempt in self._results]

    def seal(self) -> None: ...
    def close(self) -> None: ...


KeptResults = ResultFile | ResultsInMemory
