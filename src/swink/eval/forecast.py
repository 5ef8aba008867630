"""Forecasts: what a run would do and about what it would cost, before anything is asked."""

from collections import Counter

from msgspec import Struct

from swink import Agent, catalog
from swink.config import Model
from swink.engine.waiting import resolve
from swink.eval.case import Case, Suite
from swink.eval.factories import Factory
from swink.messages import ModelSpec, Usage, UserMessage
from swink.redact import describe_error
from swink.tokens import estimate_tokens, overhead_tokens

REPLY = 300
"""Tokens that a reply is taken to have."""
RESULT = 200
"""Tokens that a tool's result is taken to have."""


class Forecast(Struct, frozen=True, kw_only=True):
    """What a run would come to, estimated."""

    name: str
    cases: int
    attempts: int
    requests: int
    usage: Usage
    models: dict[str, int]
    """Attempts by model."""
    cost: float | None
    """Dollars; None: a price is unknown."""
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        asked = ", ".join(f"{model} ({count})" for model, count in self.models.items()) or "unknown"
        cost = "unknown" if self.cost is None else f"about {self.cost:.4f} $"
        rows = [
            ("suite", self.name),
            ("cases", str(self.cases)),
            ("attempts", str(self.attempts)),
            ("models", asked),
            ("requests", f"about {self.requests}"),
            ("tokens", f"about {self.usage.input} in, {self.usage.output} out"),
            ("cost", f"{cost}, judges not included" if self.cost else cost),
        ]
        return "\n".join([*[f"{name:<10}{value}" for name, value in rows], *self.notes])


async def forecast(
    factory: Factory, suite: Suite, *, model: Model | None = None, repeat: int = 1, replayed: bool = False
) -> Forecast:
    """Estimate a run from its cases and the agents that the factory makes; nothing is asked.

    A case takes a reply for each call that is expected and one for each message, but no more than its budget
    allows. What is `replayed` costs nothing.
    """
    models: Counter[str] = Counter()
    total, requests = Usage(), 0
    cost: float | None = 0.0
    problems: dict[str, int] = {}
    for case in suite.cases:
        try:
            agent: Agent = await resolve(factory(case))
        except Exception as error:
            # A factory is somebody else's code; the run itself would tell the same.
            problem = f"the factory fails: {describe_error(error)}"
            problems[problem] = problems.get(problem, 0) + 1
            cost = None
            continue
        spec = agent.model if model is None else catalog.parse_model(model)
        await agent.aclose()
        models[str(spec)] += repeat
        replies, usage = _expected(agent, case)
        requests += replies * repeat
        total += Usage(usage.input * repeat, usage.output * repeat)
        price = _price(spec, usage)
        cost = None if cost is None or price is None else cost + price * repeat
    notes = [f"{problem} ({count} cases)" for problem, count in problems.items()]
    if replayed:
        cost, notes = 0.0, [*notes, "answers come from a cassette: nothing is asked"]
    return Forecast(
        name=suite.name,
        cases=len(suite.cases),
        attempts=len(suite.cases) * repeat,
        requests=requests,
        usage=total,
        models=dict(models),
        cost=cost,
        notes=tuple(notes),
    )


def _expected(agent: Agent, case: Case) -> tuple[int, Usage]:
    """How many replies an attempt takes, and the tokens of all of them."""
    said = case.simulated_user.max_turns if case.simulated_user else max(1, len(case.user_messages))
    calls = len(case.expected_trajectory) if case.expected_trajectory is not None else len(agent.tools) and 1
    replies = min(said + calls, case.budget.max_turns or said + calls)
    prompt = case.system_prompt or (agent.system_prompt if isinstance(agent.system_prompt, str) else "")
    asked = sum(estimate_tokens(UserMessage(text)) for text in case.user_messages)
    begins = overhead_tokens(prompt, agent.tools) + asked
    grown = sum(turn * (REPLY + RESULT) for turn in range(replies))
    return replies, Usage(begins * replies + grown, REPLY * replies)


def _price(spec: ModelSpec, usage: Usage) -> float | None:
    if spec.provider == "local":
        return 0.0
    cost = catalog.cost_of(spec, usage)
    return None if cost is None else cost.total
