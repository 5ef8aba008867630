"""Two agents on the same cases: what flipped, and may it be chance? `python examples/compare_runs.py`."""

import asyncio
import tempfile
from pathlib import Path

from swink import Agent
from swink.eval import Case, ExpectedResponse, compare, comparison_table, evaluate, gate, verify
from swink.testing import ScriptedModel

CASES = [
    Case(
        id=f"sum-{number}",
        user_messages=(f"What is {number} + {number}?",),
        expected_response=ExpectedResponse(contains=str(2 * number)),
    )
    for number in range(10, 40)
]


def careful(case: Case) -> Agent:
    """Knows its sums."""
    number = int(case.id.removeprefix("sum-"))
    return Agent("test:careful", stream_fn=ScriptedModel([f"It is {2 * number}."]))


def hasty(case: Case) -> Agent:
    """Gets every third one wrong."""
    number = int(case.id.removeprefix("sum-"))
    return Agent("test:hasty", stream_fn=ScriptedModel([f"It is {2 * number - (number % 3 == 0)}."]))


async def main() -> None:
    """Run both, and compare."""
    with tempfile.TemporaryDirectory() as directory:
        before, after = Path(directory, "before"), Path(directory, "after")
        await evaluate(careful, CASES, output=before)
        await evaluate(hasty, CASES, output=after)
        found = compare(before, after)
        print(comparison_table(found).replace(directory, ""))
        print(gate(after, baseline=before, max_regressions=2))
        print("as written:", verify(after).ok)


if __name__ == "__main__":
    asyncio.run(main())
