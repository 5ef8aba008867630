"""Structured output: typed results from a synthetic tool."""

import asyncio
import dataclasses
from typing import Any, TypedDict

import msgspec
import pydantic
import pytest

from swink import Agent, AuthError, InvalidTool, ToolCall, tool
from swink.structured import NAME
from swink.testing import Pause, ScriptedModel, history_problems


@dataclasses.dataclass
class DataCity:
    name: str
    people: int


class StructCity(msgspec.Struct):
    name: str
    people: int


class DictCity(TypedDict):
    name: str
    people: int


class ModelCity(pydantic.BaseModel):
    name: str
    people: int


SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "people": {"type": "integer"}},
    "required": ["name", "people"],
}
GOOD = {"name": "Tokyo", "people": 14}


def call(arguments: Any, id: str = "1") -> list[ToolCall]:
    return [ToolCall(id, NAME, arguments)]


def agent_on(*script: Any, **options: Any) -> Agent:
    return Agent("test:m", stream_fn=ScriptedModel(list(script)), **options)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (DataCity, DataCity("Tokyo", 14)),
        (StructCity, StructCity("Tokyo", 14)),
        (DictCity, GOOD),
        (ModelCity, ModelCity(name="Tokyo", people=14)),
        (SCHEMA, GOOD),
    ],
)
def test_every_kind_of_type_is_accepted_sync_and_async(output: Any, expected: Any):
    assert agent_on(call(GOOD)).run_sync("q", output=output).output == expected
    assert asyncio.run(agent_on(call(GOOD)).run("q", output=output)).output == expected


def test_a_list_or_a_scalar_is_wrapped_for_the_model_and_unwrapped_for_the_caller():
    assert agent_on(call({"value": [GOOD]})).run_sync("q", output=list[DataCity]).output == [
        DataCity("Tokyo", 14)
    ]
    assert agent_on(call({"value": 3})).run_sync("q", output=int).output == 3
    assert agent_on(call({"value": [GOOD]})).run_sync("q", output=list[ModelCity]).output == [
        ModelCity(name="Tokyo", people=14)
    ]


async def test_the_run_stops_as_soon_as_a_call_validates():
    model = ScriptedModel([call(GOOD), "never asked"])
    agent = Agent("test:m", stream_fn=model)
    result = await agent.run("q", output=DataCity)
    assert len(model.calls) == 1
    assert result.stop_reason != "error"
    assert history_problems(agent.messages) == []


async def test_an_invalid_call_gets_the_violations_and_counts_as_an_attempt():
    agent = agent_on(call({"name": 1}), call(GOOD, "2"))
    result = await agent.run("q", output=DataCity)
    assert result.output == DataCity("Tokyo", 14)
    assert "$.name" in agent.messages[2].text
    assert "people" in agent.messages[2].text


async def test_plain_text_is_asked_again_and_counts_as_an_attempt():
    agent = agent_on("it is Tokyo", call(GOOD))
    assert (await agent.run("q", output=DataCity)).output == DataCity("Tokyo", 14)


async def test_retries_end_at_the_configured_maximum_and_what_was_said_survives():
    model = ScriptedModel([call({"name": 1}, str(n)) for n in range(10)])
    agent = Agent("test:m", stream_fn=model)
    result = await agent.run("q", output=DataCity, max_output_retries=2)
    assert len(model.calls) == 3
    assert (result.stop_reason, result.error_kind, result.output) == (
        "error",
        "structured_output_failed",
        None,
    )
    assert "after 3 attempts" in (result.error or "")
    assert "$.name" in (result.error or "")
    assert agent.error == result.error
    assert history_problems(agent.messages) == []


async def test_other_tools_may_be_used_on_the_way():
    @tool
    async def look(city: str) -> int:
        return 14

    agent = agent_on(
        [ToolCall("1", "look", {"city": "Tokyo"})],
        [*call(GOOD, "2"), ToolCall("3", "look", {"city": "x"})],
        tools=[look],
    )
    assert (await agent.run("q", output=DataCity)).output == DataCity("Tokyo", 14)
    assert history_problems(agent.messages) == []


async def test_the_tool_is_gone_afterwards_also_after_cancellation():
    model = ScriptedModel([[Pause(5)], "plain"])
    agent = Agent("test:m", stream_fn=model)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(agent.run("q", output=DataCity), 0.02)
    assert (await agent.run("q")).text == "plain"
    assert [tool.name for tool in model.calls[0].tools] == [NAME]
    assert list(model.calls[1].tools) == []
    assert agent.tools == ()


async def test_a_model_failure_stays_what_it_is():
    result = await agent_on(AuthError("key")).run("q", output=DataCity)
    assert (result.error_kind, result.output) == ("auth", None)


async def test_streams_give_the_output_too():
    async with agent_on(call(GOOD)).stream("q", output=DataCity) as run:
        async for _ in run:
            pass
        assert (await run.result()).output == DataCity("Tokyo", 14)


async def test_a_type_without_a_schema_is_refused_at_once():
    for output in (object, {"type": "objekt"}):
        agent = agent_on("x")
        with pytest.raises(InvalidTool):
            await agent.run("q", output=output)
        assert not agent.is_running


async def test_the_users_schema_is_not_changed():
    schema = {"type": "array", "items": {"$ref": "#/$defs/city"}, "$defs": {"city": dict(SCHEMA)}}
    before = msgspec.json.encode(schema)
    result = await agent_on(call({"value": [GOOD]})).run("q", output=schema)
    assert result.output == [GOOD]
    assert msgspec.json.encode(schema) == before
