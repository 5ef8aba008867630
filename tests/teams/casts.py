"""Scripted agents for the tests of teams."""

from typing import Any

from swink import Agent, ModelSpec, Price, ToolCall, Usage
from swink.testing import ScriptedModel, history_problems

PRICED = ModelSpec("test", "priced", price=Price(1.0, 1.0))
"""A dollar per million tokens, in and out."""


def agent(*replies: Any, usage: Usage = Usage(input=1, output=1), **options: Any) -> Agent:
    return Agent(options.pop("model", PRICED), stream_fn=ScriptedModel(replies, usage=usage), **options)


def model_of(agent: Agent) -> ScriptedModel:
    return agent._config.stream_fn  # type: ignore[return-value]


def task(name: str, text: str = "do it", number: int = 1) -> ToolCall:
    return ToolCall(f"call_{number}", name, {"task": text})


def hand_over(target: str, number: int = 1, **more: Any) -> ToolCall:
    return ToolCall(f"call_{number}", "transfer_to_agent", {"agent": target, **more})


def check_idle(*agents: Agent) -> None:
    """Every agent is idle, its history pairs, and it takes a new prompt."""
    for item in agents:
        assert not item.is_running
        assert not history_problems(item.messages), history_problems(item.messages)
