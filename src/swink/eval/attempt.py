"""Attempts: one agent, made for one case, asked, scored, and cleaned up.

    workspace → factory → agent → its runs → trajectory → score → result

Whatever goes wrong is in the result, with who is to blame for it. Provider trouble is tried again from the
start, with a new agent in a new workspace; what an agent does wrong is not.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any
from weakref import WeakSet

from msgspec import Struct, convert, json
from msgspec.structs import replace

from swink import Agent
from swink.agent.agentresult import AgentResult
from swink.agent.config import Model
from swink.agent.policy import Policy
from swink.agent.retry import ExponentialBackoff, RetryStrategy, wait_before
from swink.errors import AgentError, InvalidInput, MisuseError, ModelError, error_for
from swink.eval.attemptfiles import read_attachments, read_files, workspace
from swink.eval.budgets import limits_of
from swink.eval.case import Case
from swink.eval.result import CaseResult, ErrorSource, Metric
from swink.eval.resultcache import find_result, keep_result, key_of
from swink.eval.scorers import JudgeModel, score
from swink.eval.scorers.registry import find_scorer
from swink.eval.simulation import STOP, Simulation, said_before
from swink.eval.trajectory import Collector, Trajectory
from swink.messages import ModelSpec, Usage
from swink.messages.codec import copy_state, plain, to_builtins
from swink.messages.jsondata import copy_data, encode, from_data
from swink.messages.redact import describe_error, redact_texts, redact_value, secret_spans
from swink.stream import AssistantMessageEvent, LlmContext, StreamFn, StreamOptions
from swink.stream.scopedwrap import Wrap, through
from swink.stream.wrappers.sending import copy_traits
from swink.system.aio import closing, resolve
from swink.system.threads import in_thread
from swink.telemetry import span
from swink.telemetry.conventions import ERROR, EVALUATION, error_class
from swink.telemetry.recorder import Span
from swink.testing import ScriptedModel

Factory = Callable[[Case], Agent[Any, Any] | Awaitable[Agent[Any, Any]]]

_tried: WeakSet[Agent[Any, Any]] = WeakSet()
"""Agents that attempts have had: one that is given again would remember another case."""
_SAID = ("content", "details", "error_message", "data")  # what a message may say, whatever its role


class Plan(Struct, frozen=True, kw_only=True):
    """How every attempt of a run is made."""

    factory: Factory
    scorers: Sequence[Any] | None = None
    """Used for every case, besides its own."""
    judges: Sequence[JudgeModel] = ()
    """By default the agent's own model."""
    model: Model | None = None
    """In place of the model that the factory chose."""
    timeout: float | None = None
    """Seconds, for cases that name none."""
    retry: RetryStrategy = ExponentialBackoff()
    """For attempts that failed for their provider; the agent has retries of its own before that."""
    cache: Path | None = None
    """A directory of results that need not be made again."""
    policies: Sequence[Policy] = ()
    wrap: Wrap | None = None
    """Asks every model of the attempt, judges too."""

    async def attempt(self, case: Case, repeat: int = 0) -> CaseResult:
        """Try the case until it has a result that is not for its provider to answer for."""
        with span("eval case", {"swink.eval.case": case.id, "swink.eval.repeat": repeat}) as observed:
            result = await self._settle(case, repeat)
            if observed.wants_more:
                _tell(observed, result)
            return result

    async def _settle(self, case: Case, repeat: int) -> CaseResult:
        spent, cost, simulated, tried = Usage(), 0.0, 0.0, 0
        while True:
            tried += 1
            result, failure = await self._try(case, repeat)
            if failure is None or not self.retry.should_retry(failure, tried):
                if tried == 1:
                    return result
                known = None if result.cost is None else result.cost + cost
                metadata = result.metadata
                if simulated and (more := metadata.get("simulation_cost", 0.0)) is not None:
                    metadata = metadata | {"simulation_cost": more + simulated}
                return replace(result, usage=result.usage + spent, cost=known, metadata=metadata)
            spent, cost = spent + result.usage, cost + (result.cost or 0.0)
            simulated += result.metadata.get("simulation_cost") or 0.0
            await asyncio.sleep(wait_before(self.retry, failure, tried))

    async def _try(self, case: Case, repeat: int) -> tuple[CaseResult, AgentError | None]:
        """One try; also gives the error that its provider is to blame for."""
        attempt = _Attempt(self, case, repeat)
        with through(attempt.wrap):
            try:
                async with workspace(case) as root:
                    attempt.case = replace(case, workspace=root)
                    await attempt.run()
            except Exception as error:
                # Opening and closing an agent runs the user's code.
                attempt.fail("harness", describe_error(error))
        result = attempt.result()
        if self.cache is not None and attempt.found is None:
            await in_thread(keep_result, self.cache, result)
        return result, attempt.failure


class _Attempt:
    """One try at a case, while it goes on."""

    def __init__(self, plan: Plan, case: Case, repeat: int) -> None:
        self.plan = plan
        self.case = case
        self.repeat = repeat
        self.started = time.time()
        self.collector = Collector()
        self.trajectory: Trajectory | None = None
        self.metrics: tuple[Metric, ...] = ()
        self.error: str | None = None
        self.source: ErrorSource | None = None
        self.failure: AgentError | None = None
        self.agent: Agent[Any, Any] | None = None
        self.simulation: Simulation | None = None
        self.key = ""
        self.found: CaseResult | None = None
        self._asked: dict[str, StreamFn] = {}
        self._is_looked_up = False

    def wrap(self, stream_fn: StreamFn) -> StreamFn:
        """Note which model is asked through which stream function: judges may ask the same one."""
        asked = self._asked  # an enclosing block keeps the wrapper, which must not keep the attempt

        def stream(
            model: ModelSpec, context: LlmContext, options: StreamOptions
        ) -> AsyncIterator[AssistantMessageEvent]:
            asked.setdefault(str(model), stream_fn)
            return stream_fn(model, context, options)

        noted = copy_traits(stream_fn, stream)
        wrapped = noted if self.plan.wrap is None else self.plan.wrap(noted)
        return wrapped if self.plan.cache is None else self._looked_up(stream_fn, wrapped)

    def _looked_up(self, stream_fn: StreamFn, asked: StreamFn) -> StreamFn:
        """Look for the result before the first request is sent; if there is one, none ever is."""

        async def stream(
            model: ModelSpec, context: LlmContext, options: StreamOptions
        ) -> AsyncIterator[AssistantMessageEvent]:
            if not self._is_looked_up:
                self._is_looked_up = True
                await self._look_up((model, context, options, stream_fn))
            if self.found is not None and self.agent is not None and self.agent.is_running:
                self.agent.abort()
                await asyncio.get_running_loop().create_future()  # until the abort arrives
            # The only other one that is asked first plays the user, who has nothing to say then.
            answer = asked if self.found is None else ScriptedModel([STOP])
            async with closing(answer(model, context, options)) as events:
                async for event in events:
                    yield event

        return copy_traits(stream_fn, stream)

    async def _look_up(self, request: tuple[Any, ...]) -> None:
        plan, agent = self.plan, self.agent
        if plan.cache is None or agent is None:
            return  # the factory itself asked a model
        used = [plan.factory, plan.scorers, plan.judges, *_named_scorers(self.case)]
        self.key = await in_thread(key_of, self.case, self.repeat, agent, request, used)
        if self.key:
            self.found = await in_thread(find_result, plan.cache, self.key)

    async def run(self) -> None:
        """Make the agent, ask it, score what it did."""
        async with AsyncExitStack() as stack:
            limit = self.plan.timeout if self.case.timeout is None else self.case.timeout
            timer = asyncio.timeout(limit)
            try:
                async with timer:
                    await self._make_and_ask(stack)
            except TimeoutError:
                if not timer.expired():
                    raise
                self.fail("timeout", f"timed out after {limit:g} s")
            if (agent := self.agent) is None or self.found is not None:
                return
            expected, root = self.case.expected_environment_state, self.case.workspace
            found = {} if expected is None or root is None else await read_files(root, expected.files)
            self.trajectory = self.collector.trajectory(copy_state(agent.state), found)
            if self.error is None:
                plan, done = self.plan, self.trajectory
                ask = None if plan.judges else self._asked.get(done.model)
                self.metrics = await score(self.case, done, scorers=plan.scorers, judges=plan.judges, ask=ask)

    def fail(self, source: ErrorSource, error: str) -> None:
        """Keep the first thing that went wrong."""
        if self.error is None:
            self.source, self.error = source, error

    def result(self) -> CaseResult:
        """What it came to, without secrets."""
        if self.found is not None:
            return replace(self.found, cached=True, started=self.started, place=self.case.place)
        case, trajectory = self.case, self.trajectory or Trajectory(stop_reason="error")
        passed = self.error is None and bool(self.metrics) and all(metric.passed for metric in self.metrics)
        metadata = case.metadata
        if self.simulation is not None and self.simulation.cost != 0:
            metadata = metadata | {"simulation_cost": self.simulation.cost}
        result = CaseResult(
            case_id=case.id,
            repeat=self.repeat,
            passed=passed,
            metrics=self.metrics,
            usage=trajectory.usage,
            cost=0.0 if self.trajectory is None else trajectory.cost,
            turns=len(trajectory.turns),
            duration=trajectory.duration,
            stop_reason=trajectory.stop_reason,
            error=self.error,
            transcript=trajectory.messages,
            name=case.name,
            tags=case.tags,
            model=trajectory.model or ("" if self.agent is None else str(self.agent.model)),
            system_prompt=trajectory.system_prompt,
            reason=trajectory.reason,
            error_source=self.source,
            calls=trajectory.calls,
            timings=trajectory.turns,
            started=self.started,
            key=self.key,
            metadata=metadata,
            tools=self.collector.tools,
            place=case.place,
        )
        return without_secrets(result)

    async def _make_and_ask(self, stack: AsyncExitStack) -> None:
        agent = await self._make()
        if agent is None:
            return
        self.agent = await stack.enter_async_context(agent)
        self.collector = Collector(tuple(agent.messages))
        with agent.subscribe(self.collector):
            try:
                await self._ask(agent)
            except AgentError as error:
                self._blame(error)
            except BaseException as error:
                # Hooks of the agent are the user's code.
                if _ends_us(error):
                    raise
                self.fail("agent", describe_error(error))

    async def _make(self) -> Agent[Any, Any] | None:
        try:
            agent: object = await resolve(self.plan.factory(self.case))
            if not isinstance(agent, Agent):
                raise InvalidInput(f"the factory returns an Agent, not {type(agent).__name__}")
            if agent in _tried:
                raise InvalidInput("the factory gave the same agent again; make a new one for each case")
            _tried.add(agent)
            if self.plan.model is not None:
                agent.model = self.plan.model
            if self.case.system_prompt is not None:
                agent.system_prompt = self.case.system_prompt
            agent.state.update(copy_data(self.case.session_state))
            if self.case.history:
                agent.append_messages([said_before(item) for item in self.case.history])
        except BaseException as error:
            # A factory is the user's code, and may call `sys.exit`.
            if _ends_us(error):
                raise
            self.fail("factory", f"the factory failed: {describe_error(error)}")
            return None
        return agent

    async def _ask(self, agent: Agent[Any, Any]) -> None:
        """Say what the case's user says, until the agent has answered or was stopped."""
        case = self.case
        attached: list[Any] = list(await read_attachments(case))
        policies = (self.collector, *limits_of(case.budget), *self.plan.policies)

        async def say(text: str) -> AgentResult[Any]:
            result = await agent.run([*attached, text] if attached else text, policies=policies)
            attached.clear()
            if result.stop_reason == "error":
                error = error_for(result.error_kind, result.error or "the run failed")
                self._blame(result.exception or error)
            return result

        if not case.user_messages and case.simulated_user is None:
            raise InvalidInput(f"case {case.id!r} has no user_messages: there is nothing to ask")
        self.simulation = Simulation(agent, case)
        await self.simulation.converse(say)
        if self.simulation.failure is not None:
            self._blame(self.simulation.failure)

    def _blame(self, error: AgentError) -> None:
        is_provider = isinstance(error, ModelError) and error.kind != "context_window_exceeded"
        self.failure = error if is_provider and self.error is None else self.failure
        self.fail("provider" if is_provider else "agent", describe_error(error))


def _named_scorers(case: Case) -> list[Any]:
    """The scorers that a case names; one that is not there is an error of the attempt later on."""
    found: list[Any] = []
    for evaluator in case.evaluators:
        with suppress(MisuseError):
            found.append(find_scorer(evaluator.name))
    return found


def _ends_us(error: BaseException) -> bool:
    """Whether the attempt itself is cancelled or interrupted; other CancelledErrors come from the agent."""
    task = asyncio.current_task()
    is_sent = task is not None and task.cancelling() > 0
    return is_sent if isinstance(error, asyncio.CancelledError) else isinstance(error, KeyboardInterrupt)


def _tell(observed: Span, result: CaseResult) -> None:
    """Note what an attempt came to, with an event for each metric."""
    known: dict[str, Any] = {"swink.eval.passed": result.passed, "swink.eval.cached": result.cached}
    if result.error_source is not None:
        known |= {ERROR: error_class(result.error, result.error_source)}
        known["swink.eval.error_source"] = result.error_source
    observed.note(known)
    for metric in result.metrics:
        said: dict[str, Any] = {
            "gen_ai.evaluation.name": metric.name,
            "gen_ai.evaluation.score.value": metric.value,
            "gen_ai.evaluation.score.label": "pass" if metric.passed else "fail",
        }
        failed = {} if metric.error is None else {ERROR: error_class(metric.error, "_OTHER")}
        observed.event(EVALUATION, said | failed)


def without_secrets(result: CaseResult) -> CaseResult:
    """The result without what looks like a secret, wherever it stands."""
    if not _has_secrets(result):
        return result
    # By their names, parameters of tools may look like secrets: only texts are.
    bare = convert(from_data(redact_value(to_builtins(replace(result, tools=())))), CaseResult)
    tools = tuple([redact_texts(tool) for tool in result.tools])
    return replace(bare, case_id=result.case_id, tools=tools)  # by its id the attempt is found again


def _has_secrets(result: CaseResult) -> bool:
    """Whether any text in it looks like a secret; figures and names of fields need no look."""
    said: list[Any] = [
        [[getattr(message, name, None) for name in _SAID] for message in result.transcript],
        [call.arguments for call in result.calls],  # which a policy may have written
        [(metric.why, metric.error) for metric in result.metrics],
        (result.error, result.reason, result.metadata),
    ]
    if _is_secret(_json((result.system_prompt, result.tools, result.tags, result.name))):
        return True
    return bool(secret_spans(_json(said)))


@lru_cache(64)
def _is_secret(text: str) -> bool:
    """For what most attempts have in common: prompt and tools."""
    return bool(secret_spans(text))


def _json(value: Any) -> str:
    """Any value as text to look for secrets in; `encode` takes many times as long."""
    try:
        return json.encode(value, enc_hook=plain).decode()
    except Exception:
        # What is no JSON, and whatever a foreign `model_dump` raises.
        return encode(value).decode()
