"""What a sub-agent gets of its caller: dependencies, and the context of the call for a function that makes it."""

from typing import Any

import pytest

from swink import Agent, InvalidTool, ToolCall, ToolContext, tool
from swink.teams import agent_tool
from swink.testing import ScriptedModel


class Shop:
    def __init__(self, owner: str) -> None:
        self.owner = owner


@tool
async def owner(ctx: ToolContext[Shop]) -> str:
    """Whose shop it is."""
    return ctx.deps.owner


def helper(**options: Any) -> Agent[Any, Any]:
    model = ScriptedModel([ToolCall("1", "owner", {}), "done"])
    return Agent("test:inner", stream_fn=model, tools=[owner], **options)


async def asked_through(sub: Any, deps: Any) -> str:
    """What the tool of the sub-agent said, as the caller's history has it."""
    seen: list[Any] = []
    model = ScriptedModel([ToolCall("1", "sub", {"task": "go"}), "fine"])
    agent: Agent[Any, Any] = Agent("test:m", stream_fn=model, tools=[agent_tool(sub, "sub")], deps=deps)
    agent.subscribe(seen.append)
    result = await agent.run("q")
    assert result.text == "fine"
    if result.messages[2].is_error:  # type: ignore[union-attr]
        return result.messages[2].text
    inner = [event.update.event for event in seen if type(event).__name__ == "ToolExecutionUpdate"]
    return next(event.result.text for event in inner if type(event).__name__ == "ToolExecutionEnd")


async def test_a_sub_agent_without_dependencies_gets_those_of_its_caller():
    assert await asked_through(helper(), Shop("Ada")) == "Ada"


async def test_a_sub_agent_with_its_own_keeps_them():
    assert await asked_through(helper(deps=Shop("Bob")), Shop("Ada")) == "Bob"


async def test_a_sub_agent_that_wants_dependencies_which_nobody_has_is_an_error_the_model_is_told():
    assert "this run has no dependencies" in await asked_through(helper(), None)


async def test_a_function_that_makes_the_agent_may_take_the_context_of_the_call():
    def make(ctx: ToolContext[Shop]) -> Agent[Any, Any]:
        return helper(deps=Shop(f"{ctx.deps.owner}'s heir, for {ctx.name}"))

    assert await asked_through(make, Shop("Ada")) == "Ada's heir, for sub"
    assert await asked_through(helper, Shop("Ada")) == "Ada"


def test_the_name_of_the_agent_is_that_of_its_tool():
    made = agent_tool(helper(name="scout"))
    assert made.name == "scout"
    assert made.description == "Gives a task to scout, which works on it and answers."
    with pytest.raises(InvalidTool, match="a tool needs a name"):
        agent_tool(helper())
