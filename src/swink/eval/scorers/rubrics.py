"""Rubrics: the judge-based scorers, made of the table rubrics.toml."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from swink.eval.case import Case
from swink.eval.result import Score
from swink.eval.scorers.judges import Aggregator, Panel, Scale
from swink.eval.scorers.registry import Scorer, scorer
from swink.eval.trajectory import Trajectory


class Rubric(Struct, frozen=True):
    """What judges are asked, on which scale, and how their verdicts become one."""

    text: str
    scale: Scale = "grades"
    aggregator: Aggregator = "majority"
    threshold: float = 0.75


def _register(name: str, rubric: Rubric) -> Scorer:
    async def judged(
        case: Case,
        trajectory: Trajectory,
        *,
        judge: Panel,
        models: Sequence[str] | str = (),
        aggregator: Aggregator = rubric.aggregator,
    ) -> Score:
        return await judge(rubric.text, scale=rubric.scale, aggregator=aggregator, models=models)

    judged.__qualname__ = name
    return scorer(name, threshold=rubric.threshold)(judged)


RUBRICS = msgspec.toml.decode(Path(__file__).with_name("rubrics.toml").read_bytes(), type=dict[str, Rubric])
"""The rubrics that are scorers, by name."""
for _name, _rubric in RUBRICS.items():
    _register(_name, _rubric)


@scorer("assertion", applies=lambda case: case.expected_assertion is not None)
async def assertion(
    case: Case,
    trajectory: Trajectory,
    *,
    judge: Panel,
    models: Sequence[str] | str = (),
    aggregator: Aggregator = "majority",
    text: str | None = None,
) -> Score:
    """Whether judges find that the case's `expected_assertion` holds."""
    claim = case.expected_assertion if text is None else text
    if claim is None:
        raise ValueError("the case has no expected_assertion")
    rubric = f"This is true of the run: {claim}"
    return await judge(rubric, scale="yes_no", aggregator=aggregator, models=models)


@scorer("judge", threshold=0.75)
async def judged_by(
    case: Case,
    trajectory: Trajectory,
    *,
    judge: Panel,
    rubric: str,
    scale: Scale = "grades",
    models: Sequence[str] | str = (),
    aggregator: Aggregator = "majority",
) -> Score:
    """What judges say by a rubric of the case's own."""
    return await judge(rubric, scale=scale, aggregator=aggregator, models=models)
