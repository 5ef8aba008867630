"""A scripted agent with tools that count their calls."""

from collections.abc import Sequence
from typing import Any

from swink import Agent, ModelSpec, Policy, Price, Tool, ToolCall, ToolContext, Usage
from swink.testing import ScriptedModel, history_problems

PRICED = ModelSpec("test", "priced", price=Price(1.0, 1.0))
"""A dollar per million tokens, in and out."""


class Scene:
    def __init__(
        self,
        policies: Policy | Sequence[Policy],
        replies: Sequence[Any],
        *,
        names: Sequence[str] = ("act",),
        answer: Any = "ok",
        usage: Usage = Usage(input=1, output=1),
        model: Any = PRICED,
        **options: Any,
    ) -> None:
        self.ran: list[tuple[str, dict[str, Any]]] = []
        self.model = ScriptedModel(replies, usage=usage)

        def made(name: str) -> Tool:
            async def execute(call_id: str, arguments: dict[str, Any], ctx: ToolContext) -> Any:
                self.ran.append((name, arguments))
                return answer(arguments) if callable(answer) else answer

            return Tool.raw(name, "Counts its calls.", {"type": "object"}, execute)

        listed = [policies] if isinstance(policies, Policy) else list(policies)
        self.agent = Agent(
            model, stream_fn=self.model, tools=[made(name) for name in names], policies=listed, **options
        )

    async def run(self, text: Any = "Go.") -> Any:
        result = await self.agent.run(text)
        assert not history_problems(self.agent.messages)
        assert not self.agent.is_running
        return result


def call(number: int = 0, name: str = "act", **arguments: Any) -> ToolCall:
    return ToolCall(f"call_{number}", name, arguments)
