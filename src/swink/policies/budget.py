"""Budget: what a run, and everything it starts, may cost.

Before each model call the cost of that call is estimated and held until the reply is there, so that one big call, or
several sub-agents at once, cannot overshoot the limit. A run inside a run (a sub-agent) is a row below its parent's:

    run  spent + held
    ├── sub-agent  spent + held        counted here until its parent's own figures include it
    └── sub-agent  spent + held
"""

import asyncio
import logging
from contextvars import ContextVar
from typing import Any, Literal

from msgspec import Struct

from swink import catalog
from swink.errors import MisuseError
from swink.messages import AssistantMessage, Cost, Message, ModelSpec, Price, Usage
from swink.policies.scope import current_task
from swink.policy import Policy, PolicyContext, Stop, Turn, Verdict, enclosing
from swink.tokens import estimate_tokens

log = logging.getLogger("swink.policies.budget")


class Spent(Struct, frozen=True):
    """Tokens and money; an unknown cost is None."""

    usage: Usage = Usage()
    cost: Cost | None = Cost()

    def __add__(self, other: "Spent") -> "Spent":
        cost = self.cost + other.cost if self.cost is not None and other.cost is not None else None
        return Spent(self.usage + other.usage, cost)


class Budget(Policy):
    """Stop when money or tokens run out; failed turns and sub-agents count.

    `scope="run"` starts afresh with every run; `scope="session"` adds up every run this object sees, beginning with
    what a restored history says it cost. The estimate of a call takes the context at the full input price plus
    `expected_output` tokens (or the last reply's, if longer); set it to the `max_tokens` you send for a hard limit,
    or `reserve=False` to look only at what was spent. With a cost limit, a model without a known price stops the
    run, unless `unknown_price="warn"`.

    >>> agent = Agent(model, policies=[Budget(max_cost=0.50, max_tokens=200_000)])
    """

    fail_closed = True

    def __init__(
        self,
        *,
        max_cost: float | None = None,
        max_input_tokens: int | None = None,
        max_output_tokens: int | None = None,
        max_tokens: int | None = None,
        scope: Literal["run", "session"] = "run",
        reserve: bool = True,
        expected_output: int = 1_000,
        unknown_price: Literal["stop", "warn"] = "stop",
    ) -> None:
        limits = (max_cost, max_input_tokens, max_output_tokens, max_tokens)
        if all(limit is None for limit in limits):
            raise MisuseError("a Budget needs a limit: max_cost, max_input_tokens, max_output_tokens or max_tokens")
        self.max_cost, self.max_input_tokens, self.max_output_tokens, self.max_tokens = limits
        self.scope: Literal["run", "session"] = scope
        self.reserve = reserve
        self.expected_output = expected_output
        self.unknown_price: Literal["stop", "warn"] = unknown_price
        self._past = Spent()
        self._roots: list[_Row] = []
        self._used = False
        self._warned = False

    @property
    def spent(self) -> Spent:
        """What the session has spent so far; with `scope="run"` nothing is kept beyond a run."""
        return sum((row.total for row in self._roots), self._past)

    def pre_turn(self, ctx: PolicyContext) -> Verdict:
        """Stop if a limit is reached, or would be passed by this call; otherwise hold what the call may cost."""
        row = self._row(ctx)
        row.report(Spent(ctx.usage, ctx.cost))
        spent = self.spent if self.scope == "session" else row.root.total
        price = ctx.model.price or catalog.price_of(ctx.model)
        if self.max_cost is not None and not self._priced(spent, price, ctx.model):
            return Stop(
                f"budget: the cost of {ctx.model} is unknown, so a cost limit cannot be kept; "
                "set ModelSpec.price, limit tokens instead, or use Budget(unknown_price='warn')"
            )
        estimate = _estimate(ctx, price, spent, self.expected_output) if self.reserve else Spent()
        if problem := self._problem(spent, estimate):
            return Stop(problem)
        row.held = estimate
        return None

    def pre_commit(self, message: Message) -> None:
        """A reply is there: count what it cost instead of what was held for it."""
        row = self._current_row()
        if isinstance(message, AssistantMessage) and row is not None:
            row.spent += Spent(message.usage, message.cost if message.usage.total else Cost())
            row.held = Spent()

    def post_turn(self, ctx: PolicyContext, turn: Turn) -> None:
        """Take the run's own figures, which include its sub-agents."""
        if (row := self._current_row()) is not None:
            row.report(Spent(ctx.usage, ctx.cost))

    def _problem(self, spent: Spent, estimate: Spent) -> str | None:
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
                return f"budget: {what} {used:g} of {limit:g} used, and the next call may need {expected - used:g}"
        return None

    def _priced(self, spent: Spent, price: Price | None, model: ModelSpec) -> bool:
        # A provider that prices its own replies needs no price table, which shows once it has replied.
        known = spent.cost is not None and (price is not None or spent.cost.total > 0)
        if known or self.unknown_price == "stop":
            return known
        if not self._warned:
            self._warned = True
            log.warning("budget: the cost of %s is unknown; the cost limit of %g is not kept", model, self.max_cost)
        return True

    def _row(self, ctx: PolicyContext) -> "_Row":
        """This run's row; a run seen for the first time gets one, below the run it was started in."""
        above, task = self._current_row(), current_task()
        if above is not None and above.task is task and (task is not None or ctx.turn > 0):
            return above
        row = _Row(task, above if above is not None and not above.over else None)
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
    """What one run has spent and what is held for the call it is about to make; the runs inside it are below."""

    __slots__ = ("below", "held", "parent", "spent", "task")

    def __init__(self, task: "asyncio.Task[Any] | None", parent: "_Row | None") -> None:
        self.task = task
        self.parent = parent
        self.spent = Spent()
        self.held = Spent()
        self.below: list[_Row] = []
        if parent is not None:
            parent.below.append(self)

    @property
    def over(self) -> bool:
        """Whether the run has ended."""
        return self.task is None or self.task.done()

    @property
    def root(self) -> "_Row":
        """The outermost run."""
        return self if self.parent is None else self.parent.root

    @property
    def total(self) -> Spent:
        """Spent and held, here and below; an ended run holds nothing."""
        own = self.spent if self.over else self.spent + self.held
        return sum((row.total for row in self.below), own)

    def report(self, spent: Spent) -> None:
        """Take the run's own figures, which include every run inside it that has ended."""
        self.spent = spent
        self.held = Spent()
        self.below = [row for row in self.below if not row.over]


_rows: ContextVar[tuple[tuple[Budget, _Row], ...]] = ContextVar("swink.budget_rows", default=())


def _estimate(ctx: PolicyContext, price: Price | None, spent: Spent, expected_output: int) -> Spent:
    """What the next call may cost: the last reply's context plus what came after it, at the full input price."""
    tokens, output = 0, expected_output
    for message in reversed(ctx.messages):
        if isinstance(message, AssistantMessage) and message.usage.total:
            tokens += message.usage.total
            output = max(output, message.usage.output)
            break
        tokens += estimate_tokens(message)
    else:
        tokens += len(ctx.system_prompt) // 4
    usage = Usage(input=min(tokens, ctx.model.context_window or tokens), output=output)
    if price is not None:
        return Spent(usage, price.cost(usage))
    average = spent.cost.total / spent.usage.total if spent.cost is not None and spent.usage.total else 0.0
    return Spent(usage, Cost(total=average * usage.total))


def _recorded(ctx: PolicyContext) -> Spent:
    """What the messages before this run say they cost."""
    fresh = {id(message) for message in ctx.fresh}
    earlier = [message for message in ctx.messages if isinstance(message, AssistantMessage) and id(message) not in fresh]
    return sum((Spent(message.usage, message.cost if message.usage.total else Cost()) for message in earlier), Spent())


def _input(usage: Usage) -> int:
    return usage.input + usage.cache_read + usage.cache_write
