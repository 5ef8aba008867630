"""Simulated users talk to an agent until they are done; simulated tools answer as they are told to."""

import asyncio
from typing import Any

import pytest

from swink import Agent, ModelError, ToolCall, tool
from swink.agent.retry import ExponentialBackoff
from swink.errors import AgentError, NetworkError
from swink.eval.case import Case, SimulatedTool, SimulatedUser
from swink.eval.simulation import GREETING, STOP, Simulation, converse
from swink.messages import ToolResultMessage
from swink.policies import MaxTurns
from swink.stream import LlmContext
from swink.testing import Pause, ScriptedModel

NO_RETRY = ExponentialBackoff(max_attempts=1)


class Cast:
    """A stream function that gives each role its own script: users and tools are known by their prompts."""

    def __init__(self, agent: Any = (), user: Any = (), tool: Any = ()) -> None:
        self.agent, self.user, self.tool = ScriptedModel(agent), ScriptedModel(user), ScriptedModel(tool)

    def __call__(self, model: Any, context: LlmContext, options: Any) -> Any:
        prompt = context.system_prompt or ""
        role = self.user if "play a user" in prompt else self.tool if "stand in" in prompt else self.agent
        return role(model, context, options)


def case(**fields: Any) -> Case:
    return Case(id="one", **fields)


def said_to(model: ScriptedModel, call: int) -> list[str]:
    return [message.text for message in model.calls[call].messages]


async def test_a_simulated_user_talks_until_it_has_what_it_wants():
    models = Cast(agent=["Which city?", "A jacket."], user=["What do I wear?", "Oslo", STOP])
    agent = Agent("test:agent", stream_fn=models, system_prompt="You help.")
    simulation = Simulation(agent, case(simulated_user=SimulatedUser(goal="know what to wear in Oslo")))
    assert await simulation.converse() == "goal"
    assert simulation.said == ("What do I wear?", "Oslo")
    assert said_to(models.user, 2) == [GREETING, "What do I wear?", "Which city?", "Oslo", "A jacket."]
    assert "know what to wear in Oslo" in (models.user.calls[0].system_prompt or "")
    assert [message.text for message in agent.messages] == [
        "What do I wear?",
        "Which city?",
        "Oslo",
        "A jacket.",
    ]


async def test_a_conversation_ends_when_the_turns_of_the_user_run_out():
    models = Cast(agent=["Again?"] * 3, user=["More"] * 3)
    agent = Agent("test:agent", stream_fn=models)
    simulation = Simulation(agent, case(simulated_user=SimulatedUser(goal="more", max_turns=3)))
    assert await simulation.converse() == "turns"
    assert len(models.agent.calls) == 3
    assert len(models.user.calls) == 3


async def test_messages_of_the_case_are_sent_first_and_the_user_knows_them():
    models = Cast(agent=["Hello.", "Fine."], user=["How are you?", STOP])
    agent = Agent("test:agent", stream_fn=models)
    simulation = await converse(
        agent,
        case(user_messages=("Hi",), simulated_user=SimulatedUser(goal="small talk", persona="a sailor")),
    )
    assert simulation.said == ("Hi", "How are you?")
    assert said_to(models.user, 0) == [GREETING, "Hi", "Hello."]
    assert "Who you are: a sailor" in (models.user.calls[0].system_prompt or "")


async def test_without_a_simulated_user_the_messages_of_the_case_are_all():
    agent = Agent("test:agent", stream_fn=ScriptedModel(["one", "two"]))
    assert await Simulation(agent, case(user_messages=("1", "2"))).converse() == "messages"


async def test_the_user_asks_its_own_model_and_never_sees_the_agents_tools_policies_or_history():
    models = Cast(agent=["ok"], user=["hello", STOP])
    agent = Agent(
        "test:agent", stream_fn=models, tools=[weather], policies=[MaxTurns(9)], system_prompt="Secret rules"
    )
    await converse(agent, case(simulated_user=SimulatedUser(goal="greet", model="test:user")))
    assert [model.model_id for model in models.user.models] == ["user", "user"]
    assert all(not context.tools for context in models.user.calls)
    assert all("Secret" not in (context.system_prompt or "") for context in models.user.calls)


async def test_a_conversation_ends_when_the_agent_fails():
    models = Cast(agent=[NetworkError("down")], user=["hello"])
    agent = Agent("test:agent", stream_fn=models, retry=NO_RETRY)
    assert await Simulation(agent, case(simulated_user=SimulatedUser(goal="greet"))).converse() == "agent"


async def test_a_conversation_ends_when_a_policy_stops_the_agent():
    models = Cast(agent=[ToolCall("1", "weather", {"city": "Oslo"})], user=["hello"])
    agent = Agent("test:agent", stream_fn=models, tools=[weather], policies=[MaxTurns(1)])
    assert await Simulation(agent, case(simulated_user=SimulatedUser(goal="greet"))).converse() == "agent"


async def test_a_user_whose_model_fails_raises_its_error():
    models = Cast(user=[ModelError("no such model")])
    agent = Agent("test:agent", stream_fn=models, retry=NO_RETRY)
    with pytest.raises(AgentError, match="no such model"):
        await converse(agent, case(simulated_user=SimulatedUser(goal="greet")))


async def test_a_cancelled_conversation_leaves_nothing_running():
    for slow in ({"user": [Pause(60)]}, {"agent": [Pause(60)], "user": ["hello"]}):
        agent = Agent("test:agent", stream_fn=Cast(**slow))
        talk = asyncio.create_task(converse(agent, case(simulated_user=SimulatedUser(goal="greet"))))
        while not agent.messages and "agent" in slow:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        talk.cancel()
        with pytest.raises(asyncio.CancelledError):
            await talk
        await agent.aclose()
        assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_what_simulating_costs_is_counted_apart_from_the_agent():
    models = Cast(agent=["ok"], user=["hello", STOP])
    agent = Agent("openai:gpt-5", stream_fn=models)
    simulation = await converse(agent, case(simulated_user=SimulatedUser(goal="greet")))
    assert simulation.usage.total == 4
    assert simulation.cost is not None
    assert simulation.cost > 0
    unknown = Agent("test:agent", stream_fn=Cast(agent=["ok"], user=["hello", STOP]))
    assert (await converse(unknown, case(simulated_user=SimulatedUser(goal="greet")))).cost is None


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    raise AssertionError("the real tool was called")


def results(agent: Agent) -> list[tuple[str, bool]]:
    return [
        (message.text, message.is_error)
        for message in agent.messages
        if isinstance(message, ToolResultMessage)
    ]


async def test_written_results_come_one_after_the_other_and_the_last_again():
    calls = [ToolCall(str(number), "weather", {"city": "Oslo"}) for number in range(4)]
    agent = Agent("test:agent", stream_fn=ScriptedModel([calls[:2], calls[2:3], calls[3:], "done"]))
    Simulation(
        agent,
        case(
            simulated_tools=(SimulatedTool("weather", "", {"type": "object"}, ("rain", {"sun": 3}, "snow")),)
        ),
    )
    await agent.run("go")
    assert [text for text, _ in results(agent)] == ["rain", '{"sun":3}', "snow", "snow"]


async def test_a_written_error_is_a_failure_of_the_tool():
    agent = Agent("test:agent", stream_fn=ScriptedModel([ToolCall("1", "weather", {}), "done"]))
    Simulation(agent, case(simulated_tools=(SimulatedTool("weather", replies=({"error": "no network"},)),)))
    await agent.run("go")
    assert results(agent) == [("no network", True)]


async def test_a_simulated_tool_stands_in_for_the_agents_own_and_keeps_its_description_and_schema():
    model = ScriptedModel([[ToolCall("1", "weather", {"city": "Oslo"})], "done"])
    agent = Agent("test:agent", stream_fn=model, tools=[weather])
    Simulation(agent, case(simulated_tools=(SimulatedTool("weather", replies=("rain",)),)))
    await agent.run("go")
    assert results(agent) == [("rain", False)]
    (offered,) = model.calls[0].tools
    assert offered.description == "The weather in a city."
    assert offered.parameters_schema["required"] == ["city"]


async def test_arguments_of_a_simulated_tool_are_validated_by_its_schema():
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    agent = Agent("test:agent", stream_fn=ScriptedModel([ToolCall("1", "weather", {"city": 1}), "done"]))
    Simulation(agent, case(simulated_tools=(SimulatedTool("weather", "w", schema, ("rain",)),)))
    await agent.run("go")
    ((text, is_error),) = results(agent)
    assert is_error
    assert "city" in text


async def test_a_model_makes_up_results_from_the_instructions_and_knows_its_earlier_ones():
    calls = [ToolCall("1", "find", {"name": "Ann"}), ToolCall("2", "pay", {"id": 7})]
    models = Cast(agent=[calls, "done"], tool=['{"id": 7}', "paid"])
    agent = Agent("test:agent", stream_fn=models)
    tools = (
        SimulatedTool("find", "Find a customer", {"type": "object"}, instructions="Ann has the id 7."),
        SimulatedTool("pay", "Pay an invoice", {"type": "object"}, instructions="It always works."),
    )
    simulation = Simulation(agent, case(simulated_tools=tools))
    await agent.run("go")
    assert [text for text, _ in results(agent)] == ['{"id": 7}', "paid"]
    prompt = models.tool.calls[0].system_prompt or ""
    assert "Ann has the id 7." in prompt
    assert "It always works." in prompt
    assert said_to(models.tool, 1)[1] == '{"id": 7}'
    assert simulation.usage.total == 4
    assert simulation.failure is None


async def test_a_tool_whose_model_fails_says_so_to_the_simulation():
    models = Cast(agent=[ToolCall("1", "find", {}), "done"], tool=[ModelError("gone")])
    agent = Agent("test:agent", stream_fn=models, retry=NO_RETRY)
    simulation = Simulation(agent, case(simulated_tools=(SimulatedTool("find", instructions="Find."),)))
    await agent.run("go")
    assert simulation.failure is not None
    assert "gone" in str(simulation.failure)
    assert results(agent)[0][1]
