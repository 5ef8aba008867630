"""Estimates: what a run would ask, and about what it would cost, without asking any model."""

from collections.abc import Sequence

from msgspec import Struct

from swink import Agent
from swink.agent.config import Model
from swink.eval.attempt import Factory
from swink.eval.case import Case
from swink.messages import Usage, UserMessage
from swink.messages.redact import describe_error
from swink.messages.tokens import estimate_tokens, overhead_tokens
from swink.models import catalog
from swink.system.aio import resolve
from swink.tools import Tool

REPLY = 300
"""Tokens that a reply is expected to take."""


class Estimate(Struct, frozen=True, kw_only=True):
    """What a run may come to; judges and simulated users are not in it."""

    attempts: int
    requests: int
    usage: Usage = Usage()
    cost: float | None = 0.0
    """Dollars; None: the price of a model is unknown."""
    models: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """Cases for which no agent can be made."""


async def estimate(
    factory: Factory, cases: Sequence[Case], *, repeat: int = 1, model: Model | None = None
) -> Estimate:
    """Make the agent of every case, and reckon what its expected calls and messages may take."""
    usage, cost, requests = Usage(), 0.0, 0
    models: dict[str, None] = {}
    problems: list[str] = []
    for case in cases:
        try:
            async with await resolve(factory(case)) as agent:
                if model is not None:
                    agent.model = model
                price = agent.model.price or catalog.price_of(agent.model)
                asked, needed = _usage(case, agent)
        except Exception as error:
            # A factory is the user's code.
            problems.append(f"{case.place or case.id}: the factory failed: {describe_error(error)}")
            continue
        models[str(agent.model)] = None
        requests += asked
        usage += needed
        cost = None if cost is None or price is None else cost + price.cost(needed).total
    total = Usage(input=usage.input * repeat, output=usage.output * repeat)
    return Estimate(
        attempts=len(cases) * repeat,
        requests=requests * repeat,
        usage=total,
        cost=None if cost is None else cost * repeat,
        models=tuple(models),
        problems=tuple(problems),
    )


def _usage(case: Case, agent: Agent) -> tuple[int, Usage]:
    """Requests and tokens: every message is answered, and every expected call takes a turn of its own."""
    prompt = case.system_prompt if case.system_prompt is not None else agent.system_prompt
    tools = [tool for tool in agent.tools if isinstance(tool, Tool)]
    fixed = overhead_tokens(prompt if isinstance(prompt, str) else "", tools)
    user = case.simulated_user
    requests = len(case.user_messages) + len(case.expected_trajectory or ()) + (user.max_turns if user else 0)
    requests = max(1, min(requests, case.budget.max_turns or requests))
    said = sum(estimate_tokens(UserMessage(text)) for text in case.user_messages)
    # Each request sends what was said before it: the prompt, the messages, and the replies so far.
    read = requests * (fixed + said) + REPLY * requests * (requests - 1) // 2
    return requests, Usage(input=read, output=REPLY * requests)
