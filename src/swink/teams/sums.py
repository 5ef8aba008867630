"""Results of several runs as one: messages in order, usage and cost summed."""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from swink.agent.config import AgentResult
from swink.agent.engine.account import total_cost
from swink.messages import AssistantMessage, Cost, StopReason, Text, Usage


def summed(results: Iterable[AgentResult], **fields: Any) -> AgentResult:
    """One result for many: the last one's outcome, all messages, usage and cost, and the given fields."""
    every = list(results)
    last = every[-1] if every else AgentResult(())
    messages = tuple(message for result in every for message in result.messages)
    usage = sum((result.usage for result in every), Usage())
    cost = total_cost(result.cost for result in every)
    whole = replace(last, messages=messages, usage=usage, cost=cost)
    return replace(whole, **fields)


def failed(
    results: Sequence[AgentResult], error: str, *, stop_reason: StopReason = "error", kind: str = "misuse"
) -> AgentResult:
    """The results so far, ended by a failure that none of them is to blame for."""
    return summed(results, stop_reason=stop_reason, error=error, error_kind=kind, reason=None)


def blamed(name: str, result: AgentResult) -> AgentResult:
    """The result with its failure or early end put down to somebody."""
    error = None if result.error is None else f"{name}: {result.error}"
    return replace(result, error=error, reason=None if result.reason is None else f"{name}: {result.reason}")


def closing(text: str) -> AgentResult:
    """A result that only says something, so that it becomes the text of a sum."""
    return AgentResult((AssistantMessage((Text(text),)),), cost=Cost())
