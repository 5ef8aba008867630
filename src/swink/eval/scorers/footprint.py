"""Footprint scorers: what a run left behind, in its workspace and in the session state, and what it used."""

import os
from pathlib import Path
from typing import Any

from swink.errors import InvalidInput
from swink.eval.case import Case, CaseBudget, ExpectedResponse
from swink.eval.result import Score
from swink.eval.scorers.registry import scorer
from swink.eval.scorers.responses import problems_with, score_of
from swink.eval.scorers.values import equal
from swink.eval.trajectory import Trajectory
from swink.messages.jsondata import encode
from swink.system.shorten import clip_end
from swink.system.threads import in_thread


@scorer("environment_state", applies=lambda case: case.expected_environment_state is not None)
async def environment_state(case: Case, trajectory: Trajectory) -> Score:
    """The part of the case's `expected_environment_state` that holds, file by file and key by key."""
    expected = case.expected_environment_state
    if expected is None:
        raise InvalidInput("the case has no expected_environment_state")
    problems = [
        await _file_problem(case.workspace, path, wanted, trajectory.files.get(path))
        for path, wanted in expected.files.items()
    ]
    problems += [_state_problem(key, wanted, trajectory.state) for key, wanted in expected.state.items()]
    if not problems:
        raise InvalidInput("expected_environment_state is empty; give files or state")
    return score_of(problems, "the environment:")


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
    problems = [_limit_problem(what, *limit) for what, limit in used.items() if limit[0] is not None]
    if not problems:
        raise InvalidInput("the case has no budget; give it max_cost, max_input, max_output or max_turns")
    if was_stopped(trajectory):
        return Score(0.0, f"the agent was stopped at its limit: {trajectory.reason}")
    return score_of(problems, "the attempt")


def was_stopped(trajectory: Trajectory) -> bool:
    """Whether a limit of the case ended the attempt."""
    return trajectory.reason is not None and trajectory.reason.startswith(("budget: ", "max turns: "))


async def _file_problem(
    workspace: Path | None, path: str, wanted: str | ExpectedResponse | None, found: str | None
) -> str | None:
    if wanted is None:
        # What is there may be no text, or a directory.
        is_there = found is not None
        if not is_there and workspace is not None:
            is_there = await in_thread(os.path.lexists, workspace / path)
        return f"{path} is there, and should not be" if is_there else None
    if found is None:
        return f"{path} is not there, or no text"
    if isinstance(wanted, str):
        is_same = found.strip() == wanted.strip()
        return None if is_same else f"{path} does not hold what it should: {clip_end(found, 200)!r}"
    wrong = [problem for problem in await problems_with(found, wanted) if problem is not None]
    return f"{path} {'; '.join(wrong)}" if wrong else None


def _state_problem(key: str, wanted: Any, state: dict[str, Any]) -> str | None:
    if key not in state:
        return f"the state has no {key!r}"
    shown = repr(clip_end(encode(state[key]).decode(), 200))
    return None if equal(wanted, state[key]) else f"{key!r} of the state is {shown}"


def _limit_problem(what: str, limit: float | None, spent: float | None, unit: str) -> str | None:
    if limit is None:
        return None
    if spent is None:
        unknown = f"has an unknown {what}, which may exceed {unit}{limit:g}"
        return f"{unknown}; set the model's price, or limit tokens"
    return f"used {what} {unit}{spent:g} of {unit}{limit:g}" if spent > limit else None
