"""What an agent declares of its runs, dependencies, name, output and thinking, holds for every one of them."""

import dataclasses
from typing import Any

import pytest
from msgspec import UNSET

from swink import Agent, MisuseError, Policy, PolicyContext, PromptContext, ToolCall, ToolContext, tool
from swink.agent.structured import NAME
from swink.testing import ScriptedModel


class Shop:
    def stock(self) -> int:
        return 3


@dataclasses.dataclass
class City:
    name: str


@tool
async def stock_of(tea: str, ctx: ToolContext[Shop]) -> int:
    """How much there is."""
    return ctx.deps.stock()


@tool
def maybe(ctx: ToolContext[Shop | None]) -> str:
    """Works without a shop, too."""
    return "closed" if ctx.deps is None else "open"


def agent_on(*script: Any, **options: Any) -> Agent[Any, Any]:
    return Agent("test:m", stream_fn=ScriptedModel(list(script)), **options)


def asked(agent: Agent[Any, Any]) -> list[Any]:
    model: Any = agent._config.stream_fn
    return model.calls


# Without what is wanted


async def test_a_run_without_the_declared_dependencies_is_refused_before_anything_is_sent():
    agent = agent_on("hi", deps_type=Shop)
    with pytest.raises(MisuseError, match=r"deps_type=Shop.*pass deps= to Agent\(…\) or to the run"):
        await agent.run("q")
    assert asked(agent) == []
    assert not agent.is_running
    assert (await agent.run("q", deps=Shop())).text == "hi"


async def test_a_tool_that_wants_dependencies_is_enough_to_refuse_a_run_without_them():
    agent = agent_on("hi", tools=[stock_of])
    with pytest.raises(MisuseError, match=r"tool 'stock_of' takes a ToolContext\[Shop\].*pass deps="):
        await agent.run("q")
    with pytest.raises(MisuseError, match="no dependencies"):
        async with agent.stream("q"):
            pass
    assert asked(agent) == []


async def test_a_prompt_that_wants_dependencies_is_enough_too():
    def write(ctx: PromptContext[Shop]) -> str:
        return f"{ctx.deps.stock()} left"

    agent = agent_on("hi", system_prompt=write)
    with pytest.raises(MisuseError, match=r"system prompt takes a PromptContext\[Shop\]"):
        await agent.run("q")
    assert (await agent.run("q", deps=Shop())).text == "hi"
    assert asked(agent)[0].system_prompt == "3 left"


async def test_what_may_do_without_dependencies_is_not_refused():
    def write(ctx: PromptContext) -> str:
        return "Be short."

    agent = agent_on([ToolCall("1", "maybe", {})], "done", tools=[maybe], system_prompt=write)
    assert (await agent.run("q")).messages[2].text == "closed"


# With it


async def test_tools_prompt_and_policies_get_the_dependencies_of_the_run():
    seen: list[Any] = []

    class Watch(Policy[Shop]):
        def pre_turn(self, ctx: PolicyContext[Shop]) -> None:
            seen.append(ctx.deps.stock())
            assert "Shop" not in repr(ctx), "dependencies may hold secrets"

    shop = Shop()
    call = [ToolCall("1", "stock_of", {"tea": "oolong"})]
    agent = agent_on(call, "done", tools=[stock_of], policies=[Watch()], deps=shop)
    result = await agent.run("q")
    assert result.messages[2].text == "3"
    assert seen == [3, 3]


async def test_a_fake_is_as_good_as_the_declared_type():
    class Fake:
        def stock(self) -> int:
            return 9

    agent = agent_on([ToolCall("1", "stock_of", {"tea": "x"})], "done", tools=[stock_of], deps_type=Shop)
    assert (await agent.run("q", deps=Fake())).messages[2].text == "9"


async def test_a_copy_has_the_same_declarations():
    agent = agent_on("hi", deps_type=Shop, name="shop", output=City).copy()
    assert agent.name == "shop"
    with pytest.raises(MisuseError, match="deps_type=Shop"):
        await agent.run("q")


# Output, thinking and name


async def test_the_output_of_the_agent_is_that_of_every_run_that_names_none():
    give = [ToolCall("1", NAME, {"name": "Oslo"})]
    agent = agent_on(give, [ToolCall("2", NAME, {"value": 5})], output=City)
    assert (await agent.run("q")).output == City("Oslo")
    assert (await agent.run("q", output=int)).output == 5


def test_the_thinking_level_is_that_of_the_model():
    assert agent_on("hi", thinking_level="high").model.thinking_level == "high"
    assert agent_on("hi").thinking_level == "off"


def test_a_name_that_is_no_text_is_refused():
    with pytest.raises(TypeError, match="name takes str, not int"):
        agent_on("hi", name=5)


async def test_an_agent_shows_in_one_line_what_it_is():
    agent = agent_on("hi", name="scout", deps=Shop())
    assert repr(agent) == "<Agent 'test:m', name='scout', 0 messages>"
    await agent.run("q")
    assert repr(agent) == "<Agent 'test:m', name='scout', 2 messages>"
    long = Agent(f"test:{'m' * 60}", name="n" * 60, stream_fn=ScriptedModel([]))
    assert repr(long) == f"<Agent 'test:{'m' * 43}…, name='{'n' * 28}…, 0 messages>"


async def test_the_name_is_in_the_log_of_a_run_that_failed(caplog: pytest.LogCaptureFixture):
    await agent_on(ValueError("broken"), name="scout").run("q")
    assert any("the run of scout failed" in record.getMessage() for record in caplog.records)


async def test_a_bool_is_no_int_that_a_validation_may_return():
    give = [ToolCall("1", NAME, {"value": 7})]
    result = await agent_on(give).run("q", output=int, validate=lambda value: value > 5)
    assert "validate returned bool" in result.messages[2].text
    assert result.value is UNSET
