"""An evaluation as a check of every change: `python eval_in_ci.py` ends with 1 if the agent got worse.

The model is scripted here, so that it runs without a key. With a real one, record its answers once with
`swink eval run --record` and replay them in CI; .github/workflows of `swink eval init` does that.
"""

import asyncio
import sys
from pathlib import Path

from swink import Agent, ToolCall, tool
from swink.eval import Case, ExpectedCall, ExpectedResponse, evaluate, gate
from swink.testing import ScriptedModel

CASES = [
    Case(
        id=city.lower(),
        user_messages=(f"What should I wear in {city}?",),
        expected_trajectory=(ExpectedCall(tool_name="weather", arguments={"city": city}),),
        expected_response=ExpectedResponse(contains=clothes),
    )
    for city, clothes in [("Oslo", "jacket"), ("Cairo", "linen")]
]


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return {"Oslo": "4 °C", "Cairo": "31 °C"}[city]


def make(case: Case) -> Agent:
    city = case.id.title()
    answer = "A jacket." if city == "Oslo" else "Light linen."
    model = ScriptedModel([ToolCall("call_1", "weather", {"city": city}), answer])
    return Agent("test:scripted", stream_fn=model, tools=[weather])


async def main() -> int:
    results = Path("eval-results")
    await evaluate(make, CASES, repeat=2, output=results)
    verdict = gate(results, min_pass_rate=1.0)  # and max_cost=0.50, with a real model
    print(verdict)
    return 0 if verdict.passed else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
