"""used_skill: whether a skill was entered, by calls that ran."""

from typing import Any

import pytest

from swink.errors import InvalidInput
from swink.eval import Case
from swink.eval.scorers import used_skill
from swink.eval.trajectory import TakenCall, Trajectory


def taken(name: str, **more: Any) -> Trajectory:
    return Trajectory(tools=("skill",), calls=(TakenCall("1", "skill", {"name": name}, **more),))


def scored(trajectory: Trajectory, **options: Any) -> tuple[float, str]:
    found: Any = used_skill(Case(id="a"), trajectory, **options)
    return found.value, found.why


def test_an_entered_skill_counts_and_one_that_was_refused_or_failed_does_not():
    assert scored(taken("forms"), skill="forms") == (1.0, "forms was entered")
    assert scored(taken("forms"), skill="sheets") == (0.0, "sheets was not entered; entered: forms")
    for more in ({"ran": False}, {"is_error": True}):
        assert scored(taken("forms", **more), skill="forms") == (
            0.0,
            "forms was not entered; no skill was",
        )


def test_a_skill_can_be_unwanted():
    assert scored(taken("forms"), skill="forms", expected=False)[0] == 0.0
    assert scored(taken("sheets"), skill="forms", expected=False)[0] == 1.0


def test_an_agent_without_skills_is_said_to_have_none():
    assert "has no skills" in scored(Trajectory(), skill="forms")[1]


@pytest.mark.parametrize("options", [{"skill": ""}, {"skill": 3}, {"skill": "a", "expected": "no"}])
def test_wrong_options_are_mistakes(options: dict[str, Any]):
    with pytest.raises(InvalidInput):
        scored(taken("forms"), **options)
