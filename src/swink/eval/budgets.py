"""Limits that stop an agent while it is evaluated: those of its case, and the money of the whole run."""

from collections.abc import Sequence
from functools import lru_cache

from swink.agent.policy import Ending, Policy, PolicyContext, RunKey, Stop, TurnVerdict
from swink.eval.case import CaseBudget
from swink.policies import Budget


def limits_of(budget: CaseBudget) -> Sequence[Policy]:
    """Policies that stop an attempt at its budget, over all its runs; their reasons begin with `budget:`."""
    limits: list[Policy] = []
    if budget.max_turns is not None:
        limits.append(TurnLimit(budget.max_turns))
    if (budget.max_cost, budget.max_input, budget.max_output) != (None, None, None):
        limits.append(_budget(budget).twin())
    return limits


class TurnLimit(Policy):
    """At most `limit` replies of the model; requests that are sent again do not count."""

    fail_closed = True

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._taken = 0

    def pre_turn(self, ctx: PolicyContext) -> TurnVerdict:
        """Stop once the turns are used up."""
        if self._taken >= self.limit:
            return Stop(f"budget: {self._taken} of {self.limit} turns taken", expected=True)
        self._taken += 1
        return None


class RunBudget(Policy):
    """Dollars for the whole evaluation: every attempt stops before its next turn once they are spent."""

    fail_closed = True

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.reason = f"the budget of {limit:g} $ for the whole run is spent"
        self._ended = 0.0
        self._running: dict[RunKey, float] = {}

    @property
    def spent(self) -> float:
        """Dollars so far, of attempts that go on too."""
        return self._ended + sum(self._running.values())

    @property
    def is_spent(self) -> bool:
        return self.spent >= self.limit

    def add(self, cost: float) -> None:
        """Count what was spent elsewhere: by judges, and before the run was resumed."""
        self._ended += cost

    def pre_turn(self, ctx: PolicyContext) -> TurnVerdict:
        """Stop if nothing is left."""
        if ctx.run is not None and ctx.cost is not None:
            self._running[ctx.run] = ctx.cost.total
        return Stop(self.reason, expected=True) if self.is_spent else None

    def post_run(self, ctx: PolicyContext, ending: Ending) -> None:
        """Count the run as a whole."""
        known = self._running.pop(ctx.run, 0.0) if ctx.run is not None else 0.0
        self._ended += known if ctx.cost is None else ctx.cost.total


@lru_cache(256)
def _budget(budget: CaseBudget) -> Budget:
    """One for all attempts with these limits, whose twins warn once of a model without a known price."""
    return Budget(
        max_cost=budget.max_cost,
        max_input_tokens=budget.max_input,
        max_output_tokens=budget.max_output,
        scope="session",
        reserve=False,
        unknown_price="warn",
    )
