"""Budget: what a run, and everything it starts, may cost.

Before each model call its cost is estimated and held until the reply is there, so that neither one big call
nor several sub-agents at once can exceed the limit. A sub-agent's run has a row below its parent's, which is
counted there until the parent's own figures include it.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextvars import ContextVar
from copy import copy
from typing import Any, Literal
from weakref import WeakKeyDictionary

from msgspec import Struct

from swink.agent.policy import (
    Ending,
    Policy,
    PolicyContext,
    RetryVerdict,
    RunKey,
    Stop,
    Turn,
    aside,
    enclosing,
)
from swink.errors import InvalidInput
from swink.messages import AssistantMessage, Cost, Message, ModelSpec, Price, ToolCall, Usage
from swink.messages.checks import check_word
from swink.messages.tokens import estimate_tokens, overhead_tokens
from swink.models import catalog
from swink.policies.inputs import check_flag, check_number
from swink.system.aio import running_loop

log = logging.getLogger("swink.policies.budget")

EXPECTED_OUTPUT = 1_000
"""Tokens that a reply is expected to take, without thinking, unless an option says otherwise."""
_THINKING = {"off": 0, "minimal": 1_024, "low": 2_048, "medium": 8_192, "high": 16_384, "extra_high": 24_576}
_LEAST_ANSWER = 1_024
"""Tokens that providers add for the answer where a limit on the output leaves no room beside the thinking."""
_Priced = Sequence[tuple[ModelSpec, Price | None]]  # models with their prices, as far as they are known


class Spending(Struct, frozen=True):
    """Tokens and money; an unknown cost is None.

    Args:
        usage: the tokens
    """

    usage: Usage = Usage()
    cost: Cost | None = Cost()

    def __add__(self, other: "Spending") -> "Spending":
        cost = self.cost + other.cost if self.cost is not None and other.cost is not None else None
        return Spending(self.usage + other.usage, cost)


class Budget(Policy):
    """Stop when money or tokens run out; failed turns and sub-agents count.

    `scope="run"` counts every run by itself; `scope="session"` adds up every run this object sees, beginning
    with what a restored history says it cost. A call is estimated at the most expensive of the model and its
    fallbacks: all input at the full price, plus `expected_output` tokens, or else the `max_tokens` that are
    asked for, or else 1,000 and the thinking budget (at least as many as the last reply had). `reserve=False`
    counts only what was spent. With a cost limit, a model or fallback without a known price stops the run,
    unless `unknown_price="warn"`. A reply that was cut off is counted as what was sent and arrived.

    Args:
        max_input_tokens: tokens that may be sent
        max_output_tokens: tokens that may be written

    >>> agent = Agent(model, policies=[Budget(max_cost=0.50, max_tokens=200_000)])
    """

    fail_closed = True
    advice = "set ModelSpec.price, limit tokens instead, or use Budget(unknown_price='warn')"
    """What is said to do about a model without a price."""

    def __init__(
        self,
        *,
        max_cost: float | None = None,
        max_input_tokens: int | None = None,
        max_output_tokens: int | None = None,
        max_tokens: int | None = None,
        scope: Literal["run", "session"] = "run",
        reserve: bool = True,
        expected_output: int | None = None,
        unknown_price: Literal["stop", "warn"] = "stop",
    ) -> None:
        limits = (max_cost, max_input_tokens, max_output_tokens, max_tokens)
        names = ("max_cost", "max_input_tokens", "max_output_tokens", "max_tokens")
        if all(limit is None for limit in limits):
            options = f"{', '.join(names[:-1])} or max_tokens"
            raise InvalidInput(f"a Budget without a limit limits nothing: give {options}")
        for name, limit in (*zip(names, limits, strict=True), ("expected_output", expected_output)):
            if limit is not None:
                check_number(name, limit)
        check_word("scope", scope, ("run", "session"))
        check_word("unknown_price", unknown_price, ("stop", "warn"))
        check_flag("reserve", reserve)
        self.max_cost, self.max_input_tokens, self.max_output_tokens, self.max_tokens = limits
        self.scope: Literal["run", "session"] = scope
        self.reserve = reserve
        self.expected_output = expected_output
        self.unknown_price: Literal["stop", "warn"] = unknown_price
        self._warned: set[str] = set()
        self._forget()

    def _forget(self) -> None:
        self._past = Spending()
        self._roots: list[_Row] = []
        self._of_run: WeakKeyDictionary[RunKey, _Row] = WeakKeyDictionary()
        self._used = False

    def twin(self) -> "Budget":
        """One with the same limits that has seen no run yet; what one of them warned of, none does again."""
        twin = copy(self)
        twin._forget()
        return twin

    @property
    def spent(self) -> Spending:
        """What the session has spent so far; with `scope="run"` nothing is kept beyond a run."""
        return sum((row.total for row in self._roots), self._past)

    def pre_turn(self, ctx: PolicyContext) -> RetryVerdict:
        """Stop if this call may exceed a limit; otherwise hold what it may cost."""
        row = self._row(ctx)
        row.report(_spent(ctx))
        return self._hold(ctx, row)

    def pre_retry(self, ctx: PolicyContext) -> RetryVerdict:
        """As before a turn, once what the failed request has cost is counted."""
        row = self._row(ctx)
        if ctx.attempt is not None and row.asked:
            row.count_reply(ctx.attempt)
        return self._hold(ctx, row)

    def pre_dispatch(self, ctx: PolicyContext, call: ToolCall) -> None:
        """Begin to count: a turn that is taken up later begins with its calls, which may start sub-agents."""
        self._row(ctx)

    def pre_commit(self, message: Message) -> None:
        """A reply is there: count what it cost instead of what was held for it."""
        row = self._current_row()
        if isinstance(message, AssistantMessage) and row is not None and row.asked:
            row.count_reply(message)

    def post_turn(self, ctx: PolicyContext, turn: Turn) -> None:
        """Take the run's own figures, which include its sub-agents."""
        if (row := self._current_row()) is not None:
            row.report(_spent(ctx))

    def post_run(self, ctx: PolicyContext, ending: Ending) -> None:
        """Take the figures of the whole run, which include the attempts of a turn that failed."""
        if ctx.run is not None and (row := self._of_run.get(ctx.run)) is not None:
            last = ctx.messages[-1] if ctx.messages else None
            if row.asked and isinstance(last, AssistantMessage):
                row.count_reply(last)  # it was cut off where the row is not at hand
            row.report(_spent(ctx))
            row.ended = True

    def _hold(self, ctx: PolicyContext, row: "_Row") -> RetryVerdict:
        """Stop if the next request may pass a limit; otherwise hold what it may cost."""
        spent = self.spent if self.scope == "session" else row.root.total
        models = [(model, model.price or catalog.price_of(model)) for model in ctx.models or (ctx.model,)]
        if self.max_cost is not None and (unpriced := self._unpriced(spent, models)) is not None:
            return Stop(
                f"budget: the cost of {unpriced} is unknown, so a cost limit cannot be kept; {self.advice}"
            )
        estimate = _estimate(ctx, models, spent, self.expected_output)
        held = estimate if self.reserve else Spending()
        if problem := self._problem(spent, held):
            return Stop(problem)
        row.held, row.estimate, row.price, row.asked = held, estimate, models[0][1], True
        return None

    def _problem(self, spent: Spending, estimate: Spending) -> str | None:
        cost, after = spent.cost or Cost(), (spent + estimate)
        figures: list[tuple[str, float | None, float, float]] = [
            ("cost", self.max_cost, cost.total, (after.cost or cost).total),
            ("input tokens", self.max_input_tokens, _input(spent.usage), _input(after.usage)),
            ("output tokens", self.max_output_tokens, spent.usage.output, after.usage.output),
            ("tokens", self.max_tokens, spent.usage.total, after.usage.total),
        ]
        for what, limit, used, expected in figures:
            if limit is not None and used >= limit:
                return f"budget: {what} {used:g} of {limit:g} used"
            if limit is not None and expected > limit:
                more = expected - used
                return f"budget: {what} {used:g} of {limit:g} used, and the next call may need {more:g}"
        return None

    def _unpriced(self, spent: Spending, models: _Priced) -> ModelSpec | None:
        """The model without a price to stop for; with `unknown_price="warn"` it logs a warning instead."""
        # A provider that prices its own replies needs no price table, which shows once it has replied.
        prices_itself = spent.cost is not None and spent.cost.total > 0
        unknown = [model for model, price in models if price is None and not prices_itself]
        if not unknown and spent.cost is None:
            unknown = [models[0][0]]
        for model in unknown:
            if self.unknown_price == "stop":
                return model
            if str(model) not in self._warned:
                self._warned.add(str(model))
                problem = "budget: the cost of %s is unknown; the cost limit of %g is not kept"
                log.warning(problem, model, self.max_cost)
        return None

    def _row(self, ctx: PolicyContext) -> "_Row":
        """This run's row; a run seen for the first time gets one, below the run it was started in."""
        above = self._current_row()
        task = asyncio.current_task() if running_loop() is not None else None
        if ctx.run is not None:
            known = self._of_run.get(ctx.run)
        else:
            known = above if above is not None and above.task is task and (task or ctx.turn) else None
        if known is not None:
            return known
        row = _Row(task, above if above is not None and not above.over else None)
        if ctx.run is not None:
            self._of_run[ctx.run] = row
        _rows.set((*((budget, other) for budget, other in _rows.get() if budget is not self), (self, row)))
        enclosing.set((*(policy for policy in enclosing.get() if policy is not self), self))
        if row.parent is None and self.scope == "session":
            if not self._used:
                self._past = _recorded(ctx)
            self._past = sum((old.total for old in self._roots if old.over), self._past)
            self._roots = [*(old for old in self._roots if not old.over), row]
        self._used = True
        return row

    def _current_row(self) -> "_Row | None":
        return next((row for budget, row in _rows.get() if budget is self), None)


class _Row:
    """What one run has spent, and what is held for its next call; the runs inside it are below."""

    def __init__(self, task: "asyncio.Task[Any] | None", parent: "_Row | None") -> None:
        self.task = task
        self.parent = parent
        self.spent = Spending()
        self.unreported = Spending()
        self.inside = Spending()
        self.cut = Spending()
        self.own = self.reported = self.uncharged = 0
        self.held = self.estimate = Spending()
        self.price: Price | None = None
        self.asked = self.ended = False
        self.mark = aside.get()
        self.beside = Spending()
        self.below: list[_Row] = []
        if parent is not None:
            parent.below.append(self)

    @property
    def over(self) -> bool:
        return self.ended or self.task is None or self.task.done()

    @property
    def root(self) -> "_Row":
        return self if self.parent is None else self.parent.root

    @property
    def total(self) -> Spending:
        """Spending and held, here and below; an ended run holds nothing."""
        own = self.spent if self.over else self.spent + self.held
        return sum((row.total for row in self.below), own)

    def count_reply(self, message: AssistantMessage) -> None:
        """Count a reply; what its provider did not report of it is estimated."""
        self.own += message.usage.total
        self.spent += _reported(message)
        if message.usage.unknown:
            rest = _unreported(message, _input(self.estimate.usage), self.price)
            rest = rest if self.price is not None else Spending(rest.usage, self.estimate.cost)
            self.unreported += rest
            self.spent += rest
        self.held, self.asked = Spending(), False

    def report(self, spent: Spending) -> None:
        """Take the run's own figures, which include ended runs inside it if those were charged to it."""
        for row in [row for row in self.below if row.over]:
            self.below.remove(row)
            if row.mark is not self.mark:  # never charged to this run, whatever else was
                self.beside += row.total
                continue
            self.inside += row.total
            self.cut += row.unreported + row.cut
            self.uncharged += row.reported
        self.reported = spent.usage.total
        charged = self.reported - self.own >= self.uncharged
        self.spent = spent + self.unreported + self.beside + (self.cut if charged else self.inside)
        self.held = Spending()


_rows: ContextVar[tuple[tuple[Budget, _Row], ...]] = ContextVar("swink.budget_rows", default=())


def _estimate(ctx: PolicyContext, models: _Priced, spent: Spending, expected_output: int | None) -> Spending:
    """What the next call may take, at most, with any of the models."""
    tokens, last = _tokens(ctx)
    average = spent.cost.total / spent.usage.total if spent.cost is not None and spent.usage.total else 0.0
    most, costs = Usage(), list[Cost]()
    for model, price in models:
        read = min(tokens, model.context_window or tokens)
        usage = Usage(read, _output(ctx, model, last, expected_output))
        if price is None:
            costs.append(Cost(total=average * usage.total))
        else:  # some charge more for input that is new to their cache, which all of it may be
            costs += [price.cost(usage), price.cost(Usage(output=usage.output, cache_write=read))]
        most = Usage(max(most.input, read), max(most.output, usage.output))
    return Spending(most, max(costs, key=lambda cost: cost.total))


def _tokens(ctx: PolicyContext) -> tuple[int, int]:
    """The input of the next call, and the output of the last reply: its figures, plus what came after it."""
    overhead = overhead_tokens(ctx.system_prompt, ctx.tools)
    since = 0
    for message in reversed(ctx.messages):
        if isinstance(message, AssistantMessage) and message.usage.total and not message.failed:
            # What the provider counted includes prompt and tools, unless they have grown since.
            return max(message.usage.total, overhead) + since, message.usage.output
        since += estimate_tokens(message)
    return overhead + since, 0


def _output(ctx: PolicyContext, model: ModelSpec, last: int, expected: int | None) -> int:
    """The output of the next call: as expected, or as asked for, or the usual; at most the model's limit."""
    if expected is None:
        thinking = model.thinking_budgets.get(model.thinking_level, _THINKING[model.thinking_level])
        expected = ctx.max_tokens or EXPECTED_OUTPUT
        has_room = ctx.max_tokens is not None and ctx.max_tokens >= thinking + _LEAST_ANSWER
        expected += 0 if has_room else thinking
    output = max(expected, last)
    return min(output, model.max_output or output)


def _spent(ctx: PolicyContext) -> Spending:
    """The figures of a run; what was not reported is left out, since it is estimated reply by reply."""
    return Spending(ctx.usage, ctx.reported_cost if ctx.cost is None else ctx.cost)


def _reported(message: AssistantMessage) -> Spending:
    usage, cost = message.usage, message.cost
    return Spending(usage, Cost() if cost is None and not usage.total else cost)


def _unreported(message: AssistantMessage, sent: int, price: Price | None) -> Spending:
    """What a reply has used beyond the figures of its provider, going by what was sent and what arrived."""
    usage = message.usage
    rest = Usage(0 if _input(usage) else sent, max(0, estimate_tokens(message) - usage.output), unknown=True)
    return Spending(rest, Cost() if price is None else price.cost(rest))


def _recorded(ctx: PolicyContext) -> Spending:
    """What the messages before this run have cost, by what they say, and estimated where they cannot."""
    new = {id(message) for message in ctx.fresh}
    spent, sent = Spending(), 0
    for message in ctx.messages:
        if isinstance(message, AssistantMessage) and id(message) not in new:
            spent += _reported(message)
            if message.usage.unknown:
                model = ModelSpec(message.provider, message.model)
                price = ctx.model.price if str(model) == str(ctx.model) else None
                spent += _unreported(message, sent, price or catalog.price_of(model))
        sent += estimate_tokens(message)
    return spent


def _input(usage: Usage) -> int:
    return usage.input + usage.cache_read + usage.cache_write
