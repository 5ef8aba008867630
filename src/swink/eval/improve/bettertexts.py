"""The search: evaluate → choose a parent → reflect on its failures → evaluate the new text, and again.

Candidates are kept as long as they are best in some training case, not only on average. What a directory
holds is not asked for again: a search that was ended begins anew there and finds its own answers.
"""

import hashlib
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from swink import Agent
from swink.agent.config import Model
from swink.errors import AgentError, InvalidInput, MissingKey, MisuseError
from swink.eval.attempt import Factory
from swink.eval.case import Case, Suite
from swink.eval.compare import compare_results
from swink.eval.evalrun import EvalRun
from swink.eval.improve.candidates import (
    Improvement,
    SearchRound,
    TextCandidate,
    best_of,
    choose_parent,
    difference,
    score_of_attempts,
)
from swink.eval.improve.journal import Journal, SearchPlan
from swink.eval.improve.reflection import MOST_SHOWN, problem_with, reflect
from swink.eval.improve.texttargets import NothingToImprove, TextTarget, check_reach, parse_target, with_text
from swink.eval.progressbar import Progress
from swink.eval.result import CaseResult
from swink.eval.runner import evaluate
from swink.eval.summary import cost_of
from swink.messages.checks import check_positive
from swink.messages.jsondata import encode
from swink.system.aio import resolve
from swink.system.threads import in_thread

FEWEST = 4
"""Cases without which there is nothing to hold out."""
_IN_VAIN = 3
"""Rounds in a row without a candidate, after which the search ends."""

AnyAgent = Agent[Any, Any]
Tell = Callable[[str], object]


class SearchTrouble(AgentError):
    """Cases could not be judged, or no model could be asked: the search can be gone on with."""


class _Spent(Exception):
    """The money is used up."""


async def improve(
    factory: Factory,
    suite: Suite,
    target: str,
    *,
    output: str | Path,
    resume: bool = False,
    rounds: int = 10,
    holdout: float = 0.4,
    repeat: int = 1,
    concurrency: int = 8,
    budget: float | None = None,
    timeout: float | None = None,
    model: Model | None = None,
    reflect_with: Model | None = None,
    seed: int = 0,
    agent: str = "",
    progress: Callable[[Progress], object] | None = None,
    tell: Tell = lambda text: None,
) -> Improvement:
    """Search for a better text of an agent: its system prompt, `tool:NAME` or `skill:NAME`, the `target`.

    At most `rounds` texts are tried on the cases of the `suite` with agents of `factory`, and with `model`,
    `repeat`, `concurrency` and `timeout` as `evaluate` has them. A share `holdout`, drawn by `seed`, is kept
    from the search and judges what it found. `reflect_with` writes the texts, else the agent's own model.
    `budget` (dollars) ends the search. `output` is where all is written, also `agent`, a name of the factory;
    `resume` goes on there. `progress` is told of each attempt, and `tell` gets a line for each step.
    """
    _check_limits(rounds, budget)
    training, kept = split_cases(suite.cases, holdout, seed)
    check_reach(what := parse_target(target), suite.cases)
    async with AsyncExitStack() as stack:
        sample = await _sample(stack, factory, suite.cases[0], model)
        plan = SearchPlan(
            target=str(what),
            text=what.text_of(sample),
            cases=_digest(suite.cases),
            training=_ids(training),
            holdout=_ids(kept),
            repeat=repeat,
            seed=seed,
            agent=agent,
            model=str(model or ""),
            reflect=str(reflect_with or ""),
        )
        journal = await in_thread(Journal, output, plan, resume=resume)
        return await _Search(
            factory=factory,
            target=what,
            plan=plan,
            journal=journal,
            suite=suite,
            cases=(training, kept),
            options={"repeat": repeat, "concurrency": concurrency, "timeout": timeout, "model": model},
            budget=budget,
            progress=progress,
            tell=tell,
            sample=sample,
            reflect_with=reflect_with,
        ).run(rounds)


def split_cases(cases: Sequence[Case], holdout: float, seed: int) -> tuple[list[Case], list[Case]]:
    """The cases to learn from and those held out, the same ones for the same ids and seed."""
    if not 0 < holdout < 1:
        raise InvalidInput(f"holdout is {holdout!r}; pass a share between 0 and 1, such as 0.4")
    if len(cases) < FEWEST:
        why = "some must be held out to judge what the others taught"
        raise InvalidInput(f"there are only {len(cases)} cases, and {FEWEST} are the least: {why}")
    shuffled = sorted(cases, key=lambda case: hashlib.sha256(f"{seed} {case.id}".encode()).digest())
    count = min(max(2, round(holdout * len(cases))), len(cases) - 2)
    chosen = {case.id for case in shuffled[:count]}
    return [case for case in cases if case.id not in chosen], [case for case in cases if case.id in chosen]


def _check_limits(rounds: int, budget: float | None) -> None:
    if type(rounds) is not int or rounds < 1:
        raise InvalidInput(f"rounds is {rounds!r}; pass a whole number from 1 on")
    if budget is not None:
        check_positive("budget", budget)


async def _sample(stack: AsyncExitStack, factory: Factory, case: Case, model: Model | None) -> AnyAgent:
    """An agent to read the text from, and through which the model is asked that writes others."""
    made: object = await resolve(factory(case))
    if not isinstance(made, Agent):
        raise InvalidInput(f"the factory returns an Agent, not {type(made).__name__}")
    agent: AnyAgent = await stack.enter_async_context(made)
    if model is not None:
        agent.model = model
    return agent


def _digest(cases: Sequence[Case]) -> str:
    """SHA-256 of cases, wherever their file is."""
    lines = [encode(replace(case, place=None, workspace=None)) + b"\n" for case in cases]
    return hashlib.sha256(b"".join(lines)).hexdigest()


def _ids(cases: Sequence[Case]) -> tuple[str, ...]:
    return tuple([case.id for case in cases])


class _Search(Struct):
    """One search, while it goes on."""

    factory: Factory
    target: TextTarget
    plan: SearchPlan
    journal: Journal
    suite: Suite
    cases: tuple[list[Case], list[Case]]
    options: dict[str, Any]
    budget: float | None
    progress: Callable[[Progress], object] | None
    tell: Tell
    sample: AnyAgent
    reflect_with: Model | None
    spent: float = 0.0
    candidates: list[TextCandidate] = []
    results: dict[int, list[CaseResult]] = {}
    made: int = 0

    async def run(self, rounds: int) -> Improvement:
        """Search, and judge the best text by the cases that were held out."""
        stopped, judged = "", None
        try:
            stopped = await self._search(rounds)
            best = best_of(self.candidates)
            if best.number:
                judged = await self._judge(best)
        except _Spent:
            stopped = f"the budget of {self.budget:g} $ is spent"
        found = self._found(judged, stopped)
        await in_thread(self.journal.finish, found)
        return found

    async def _search(self, rounds: int) -> str:
        """Make candidates until the rounds are over; why it ended before."""
        training = self.cases[0]
        first = await self._tried("original", self.plan.text, training)
        self._keep(TextCandidate(number=0, text=self.plan.text), first)
        before = self.candidates[0]
        self.tell(f"the text as it is: {before.passed} of {len(training)} training cases pass")
        if not before.failed:
            raise NothingToImprove(f"all {len(training)} training cases pass: there is nothing to improve")
        vain = 0
        for number in range(1, rounds + 1):
            luck = Random(f"{self.plan.seed} {number}")
            parent = choose_parent(self.candidates, luck)
            if not parent.failed:
                return ""  # every training case passes
            made = await self._proposal(number, parent, luck)
            self.made = number
            vain = vain + 1 if made.problem else 0
            if made.problem:
                self.tell(f"round {number} of {rounds}: {made.problem}")
                if vain == _IN_VAIN:
                    return f"{_IN_VAIN} rounds in a row gave no candidate: {made.problem}"
            else:
                await self._try(made, parent, f"round {number} of {rounds}")
        return ""

    async def _proposal(self, number: int, parent: TextCandidate, luck: Random) -> SearchRound:
        """What a model answers to some failures of the parent, or has answered before."""
        if number <= len(self.journal.rounds):
            made = self.journal.rounds[number - 1]
            self.spent += made.cost or 0.0
            return made
        self._check_budget()
        failed = [case for case in self.cases[0] if case.id in parent.failed]
        shown = luck.sample(failed, min(MOST_SHOWN, len(failed)))
        pairs = [(case, self._worst(parent, case)) for case in shown]
        try:
            said = await reflect(self.sample, self.reflect_with, self.target, parent, pairs)
        except AgentError as error:
            raise SearchTrouble(f"the model that writes texts cannot be asked: {error}") from error
        self.spent += said.cost or 0.0
        problem = said.problem or problem_with(said.text, self.candidates)
        made = SearchRound(
            number=number,
            parent=parent.number,
            cases=tuple(case.id for case in shown),
            text=None if problem else said.text,
            why=said.why,
            problem=problem,
            cost=said.cost,
        )
        await in_thread(self.journal.add, made)
        return made

    def _worst(self, parent: TextCandidate, case: Case) -> CaseResult:
        tried = [one for one in self.results[parent.number] if one.case_id == case.id]
        return min(tried, key=lambda one: (one.passed, score_of_attempts([one])))

    async def _try(self, made: SearchRound, parent: TextCandidate, told: str) -> None:
        """Try a new text on what its parent failed; on all training cases if it does better there."""
        assert made.text is not None
        training = self.cases[0]
        shown = [case for case in training if case.id in made.cases]
        rest = [case for case in training if case.id not in made.cases]
        name = f"round-{made.number:03}"
        results = await self._tried(f"{name}-failed", made.text, shown)
        scores = _scores(results)
        if sum(scores.values()) <= sum(parent.scores[case.id] for case in shown):
            self.tell(f"{told}: no better on the {len(shown)} failed cases that it was written for")
            return
        if rest:
            results += await self._tried(f"{name}-others", made.text, rest)
        candidate = TextCandidate(number=made.number, text=made.text, parent=parent.number)
        self._keep(candidate, results)
        new = self.candidates[-1]
        self.tell(f"{told}: {new.passed} of {len(training)} training cases pass ({parent.passed} before)")

    def _keep(self, candidate: TextCandidate, results: list[CaseResult]) -> None:
        scores = _scores(results)
        failed = tuple(id for id in scores if not all(one.passed for one in results if one.case_id == id))
        self.results[candidate.number] = results
        self.candidates.append(replace(candidate, scores=scores, failed=failed))

    async def _tried(self, name: str, text: str, cases: Sequence[Case]) -> list[CaseResult]:
        """The results of some cases with a text, as far as they are not there already."""
        directory = self.journal.run(name)
        self._check_budget()
        left = None if self.budget is None else self.budget - self.spent  # a run counts what it has already
        run: EvalRun = await evaluate(
            with_text(self.factory, self.target, text),
            replace(self.suite, name=name, cases=tuple(cases)),
            output=directory,
            resume=directory.is_dir(),
            budget=left,
            progress=self.progress,
            agent=self.plan.agent,
            **self.options,
        )
        results = await in_thread(list, run.cases)
        self.spent += sum(cost_of(one) or 0.0 for one in results)
        if run.stopped is not None:
            raise _Spent
        troubled = [one for one in results if one.error_source in ("provider", "harness", "factory")]
        if troubled:
            error = str(troubled[0].error)
            why = f"{troubled[0].case_id}: {error}"
            if error.startswith(MissingKey.__name__):
                raise MisuseError(f"no attempt could be made ({why})")
            raise SearchTrouble(f"{len(troubled)} of {len(results)} attempts could not be judged ({why})")
        return results

    async def _judge(self, best: TextCandidate) -> tuple[list[CaseResult], list[CaseResult]]:
        """The cases that were held out, with the text as it was and with the best one."""
        held = self.cases[1]
        self.tell(f"candidate {best.number} is the best one; the {len(held)} cases held out judge it")
        before = await self._tried("holdout-before", self.plan.text, held)
        return before, await self._tried("holdout-after", best.text, held)

    def _check_budget(self) -> None:
        if self.budget is not None and self.spent >= self.budget:
            raise _Spent

    def _found(self, judged: tuple[list[CaseResult], list[CaseResult]] | None, stopped: str) -> Improvement:
        first = self.candidates[0] if self.candidates else TextCandidate(number=0, text=self.plan.text)
        best = best_of(self.candidates) if self.candidates else first
        training = len(self.cases[0])
        found = Improvement(
            target=self.plan.target,
            accepted=False,
            text=best.text,
            diff=difference(first.text, best.text, self.plan.target),
            why=next((made.why for made in self.journal.rounds if made.number == best.number), ""),
            candidate=best.number,
            rounds=self.made,
            training=training,
            holdout=len(self.cases[1]),
            training_before=first.passed / training,
            training_after=best.passed / training,
            cost=self.spent,
            stopped=stopped,
        )
        if judged is None:
            return found
        change = compare_results(*judged).pass_rate
        return replace(
            found,
            holdout_before=change.before,
            holdout_after=change.after,
            p=change.p,
            accepted=(change.difference or 0.0) > 0,
        )


def _scores(results: Sequence[CaseResult]) -> dict[str, float]:
    tried: dict[str, list[CaseResult]] = {}
    for result in results:
        tried.setdefault(result.case_id, []).append(result)
    return {case: score_of_attempts(attempts) for case, attempts in tried.items()}
