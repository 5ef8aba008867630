"""The budget scorer: whether an attempt kept to its case's budget, and was not stopped for it."""

from swink.errors import InvalidInput
from swink.eval.case import Case, CaseBudget
from swink.eval.score import Score
from swink.eval.scorers.registry import scorer
from swink.eval.scorers.responses import score_of
from swink.eval.trajectory import Trajectory


@scorer("budget", applies=lambda case: case.budget != CaseBudget())
async def budget(case: Case, trajectory: Trajectory) -> Score:
    """The part of the budget's limits that were kept; an unknown cost keeps no limit."""
    limits, usage = case.budget, trajectory.usage
    used = {
        "cost": (limits.max_cost, trajectory.cost, "$"),
        "input tokens": (limits.max_input, usage.input + usage.cache_read + usage.cache_write, ""),
        "output tokens": (limits.max_output, usage.output, ""),
        "turns": (limits.max_turns, len(trajectory.turns), ""),
    }
    problems = [
        _problem(what, limit, spent, unit) for what, (limit, spent, unit) in used.items() if limit is not None
    ]
    if not problems:
        raise InvalidInput("the case has no budget; give it max_cost, max_input, max_output or max_turns")
    if was_stopped(trajectory):
        return Score(0.0, f"the agent was stopped at its limit: {trajectory.reason}")
    return score_of(problems, "the attempt")


def was_stopped(trajectory: Trajectory) -> bool:
    """Whether a limit of the case ended the attempt."""
    return trajectory.reason is not None and trajectory.reason.startswith(("budget: ", "max turns: "))


def _problem(what: str, limit: float, spent: float | None, unit: str) -> str | None:
    if spent is None:
        return (
            f"has an unknown {what}, which may exceed {unit}{limit:g}; set the model's price, or limit tokens"
        )
    return f"used {what} {unit}{spent:g} of {unit}{limit:g}" if spent > limit else None
