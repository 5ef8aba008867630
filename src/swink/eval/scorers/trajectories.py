"""Trajectory scorers: which calls were made, against those that are expected, and how many were wasted."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Literal

from swink.errors import InvalidInput
from swink.eval.case import Case, ExpectedCall
from swink.eval.result import Score
from swink.eval.scorers.registry import scorer
from swink.eval.scorers.values import contains, equal
from swink.eval.trajectory import TakenCall, Trajectory
from swink.messages.jsondata import encode
from swink.system.threads import in_thread

Arguments = Literal["equal", "contain"]
MANY = 20_000
"""Pairs of an expectation and a call; more are not compared on the event loop."""
_MATCHES: dict[str, Callable[[Any, Any], bool]] = {"equal": equal, "contain": contains}


@scorer("trajectory", applies=lambda case: case.expected_trajectory is not None)
async def trajectory_score(
    case: Case, trajectory: Trajectory, *, mode: str | None = None, arguments: Arguments = "equal"
) -> Score:
    """The calls that were expected and made, as a part of the expected ones.

    `exact`: these calls in this order and no other; `in_order`: these in this order, others between them;
    `any_order`: these in any order, and others. A call satisfies at most one expectation, and only if it ran.
    With `arguments="contain"` a call may have more arguments than the expected ones.
    """
    expected = case.expected_trajectory
    if expected is None:
        raise InvalidInput("the case has no expected_trajectory; write one ([] for no calls at all)")
    mode = mode or case.mode
    if mode not in _FOUND:
        raise InvalidInput(f"no mode {mode!r}; there are {', '.join(_FOUND)}")
    if arguments not in _MATCHES:
        raise InvalidInput(f"arguments={arguments!r}; there are {', '.join(_MATCHES)}")
    same = _MATCHES[arguments]

    def satisfies(call: TakenCall, wanted: ExpectedCall) -> bool:
        known = wanted.arguments is None or same(wanted.arguments, call.arguments)
        return call.ran and call.name == wanted.tool_name and known

    def find() -> set[int]:
        return _FOUND[mode]([[satisfies(call, wanted) for call in calls] for wanted in expected])

    calls = trajectory.calls
    found = find() if len(expected) * len(calls) <= MANY else await in_thread(find)
    missing = [wanted for number, wanted in enumerate(expected) if number not in found]
    surplus = len(calls) - len(found) if mode == "exact" else 0
    total = len(expected) + surplus
    why = _explain(mode, missing, surplus, calls)
    return Score(len(found) / total if total else 1.0, why)


@scorer("efficiency", threshold=0.8)
async def efficiency(case: Case, trajectory: Trajectory, *, ideal: int | None = None) -> Score:
    """0.6 · unique calls / calls + 0.4 · min(ideal, calls) / calls; 1 if no call was made.

    `ideal` is how many calls the task takes: by default as many as are expected, else as are unique.
    """
    calls = trajectory.calls
    if not calls:
        return Score(1.0, "no calls were made")
    unique = len({(call.name, _as_key(call.arguments)) for call in calls})
    if ideal is None:
        ideal = unique if case.expected_trajectory is None else len(case.expected_trajectory)
    if isinstance(ideal, bool) or not isinstance(ideal, int) or ideal < 0:
        raise InvalidInput(f"ideal is {ideal!r}; pass how many calls the task takes")
    value = 0.6 * unique / len(calls) + 0.4 * min(ideal, len(calls)) / len(calls)
    return Score(min(value, 1.0), f"{len(calls)} calls, {unique} of them unique, {ideal} would be ideal")


@scorer("used_skill")
def used_skill(case: Case, trajectory: Trajectory, *, skill: str, expected: bool = True) -> Score:
    """1 if the model entered the skill; with `expected=False` 1 if it did not."""
    if not isinstance(skill, str) or not skill:
        raise InvalidInput(f"skill is {skill!r}; pass the name of a skill")
    if not isinstance(expected, bool):
        raise InvalidInput(f"expected is {expected!r}; pass true or false")
    calls = [call for call in trajectory.calls if call.name == "skill" and call.ran and not call.is_error]
    entered = list(dict.fromkeys(str(call.arguments.get("name", "")).strip() for call in calls))
    others = f"; entered: {', '.join(entered)}" if entered else "; no skill was"
    if "skill" not in trajectory.tools:
        others = ": the agent has no skills"
    why = f"{skill} was entered" if skill in entered else f"{skill} was not entered{others}"
    return Score(float((skill in entered) == expected), why)


Fits = Sequence[Sequence[bool]]
"""For each expectation, whether each of the calls satisfies it."""


def _found_in_order(fits: Fits) -> set[int]:
    """The longest part of the expectations that the calls satisfy in this order."""
    height, width = len(fits), len(fits[0]) if fits else 0
    rows = [[0] * (width + 1) for _ in range(height + 1)]
    for row in reversed(range(height)):
        below, own = rows[row + 1], rows[row]
        for column in reversed(range(width)):
            own[column] = below[column + 1] + 1 if fits[row][column] else max(below[column], own[column + 1])
    found: set[int] = set()
    row = column = 0
    while row < height and column < width:
        if fits[row][column]:
            found.add(row)
            row, column = row + 1, column + 1
        elif rows[row + 1][column] >= rows[row][column + 1]:
            row += 1
        else:
            column += 1
    return found


def _found_any_order(fits: Fits) -> set[int]:
    """The most expectations that can have a call each.

    An expectation may have to leave its call to another that only this call satisfies: each one looks, in
    breadth, for a chain of such exchanges that ends at a free call.
    """
    columns = [[column for column, is_fit in enumerate(row) if is_fit] for row in fits]
    taker: dict[int, int] = {}
    held: dict[int, int] = {}
    for start in range(len(fits)):
        came_from: dict[int, int] = {}
        waiting, free = deque([start]), None
        while waiting and free is None:
            row = waiting.popleft()
            for column in columns[row]:
                if column in came_from:
                    continue
                came_from[column] = row
                if column not in taker:
                    free = column
                    break
                waiting.append(taker[column])
        while free is not None:
            row = came_from[free]
            left = held.get(row)
            taker[free], held[row], free = row, free, left
    return set(held)


_FOUND: dict[str, Callable[[Fits], set[int]]] = {
    "exact": _found_in_order,
    "in_order": _found_in_order,
    "any_order": _found_any_order,
}


def _explain(mode: str, missing: Sequence[ExpectedCall], surplus: int, calls: Sequence[TakenCall]) -> str:
    if not missing and not surplus:
        is_none = mode == "exact" and not calls
        return "no calls were made, as expected" if is_none else "all expected calls were made"
    lacked = ", ".join(_show(call.tool_name, call.arguments) for call in missing)
    lacks = [f"missing: {lacked}"] if missing else []
    lacks += [f"{surplus} more than expected"] if surplus else []
    shown = [
        f"{_show(call.name, call.arguments)}{'' if call.ran else ' [did not run]'}" for call in calls[:20]
    ]
    more = f" and {len(calls) - 20} more" if len(calls) > 20 else ""
    return f"{'; '.join(lacks)} ({mode}); made: {', '.join(shown) or 'none'}{more}"


def _show(name: str, arguments: dict[str, Any] | None) -> str:
    return name if arguments is None else f"{name}({_as_key(arguments)})"


def _as_key(arguments: Any) -> str:
    return encode(arguments).decode()
