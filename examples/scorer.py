"""A scorer of one's own, and one that asks a judge: `python examples/scorer.py`."""

import asyncio

from swink.eval import Case, Evaluator, ExpectedResponse, Panel, Score, Trajectory, scorer
from swink.eval.scorers import score
from swink.messages import ToolCall
from swink.testing import ScriptedModel


@scorer("short", threshold=0.5)
def short(case: Case, trajectory: Trajectory, *, most: int = 100) -> Score:
    """1 up to `most` characters, less for more."""
    length = len(trajectory.response)
    return Score(min(1.0, most / max(length, 1)), f"{length} characters, {most} at most")


@scorer("polite", threshold=0.75)
async def polite(case: Case, trajectory: Trajectory, *, judge: Panel) -> Score:
    """What the judges think of its manners."""
    return await judge("The response is polite.")


async def main() -> None:
    """Score a reply that is there already."""
    case = Case(
        id="oslo",
        expected_response=ExpectedResponse(contains="jacket"),
        evaluators=(Evaluator("response"), Evaluator("short", options={"most": 40}), Evaluator("polite")),
    )
    trajectory = Trajectory(response="Take a jacket, please: it rains in Oslo.")
    verdict = ToolCall("1", "final_output", {"reasoning": "It says please.", "grade": 5})
    judge = ("test:judge", ScriptedModel([verdict]))  # or "anthropic:…", "local:…"
    for metric in await score(case, trajectory, judges=[judge]):
        print(f"{metric.name:10}{metric.value:.2f}  {'passed' if metric.passed else 'failed'}  {metric.why}")


if __name__ == "__main__":
    asyncio.run(main())
