"""Structured output: typed results from a synthetic tool."""

import asyncio
import copy
import dataclasses
import json
import threading
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import attrs
import jsonschema
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import tried
from tests.scripted import make
from tests.strategies import json_values

from swink import (
    Agent,
    AuthError,
    InvalidTool,
    StructuredOutputFailed,
    ToolCall,
    ToolContext,
    ToolError,
    tool,
)
from swink.agent.structured import NAME, NOTHING, StructuredOutput
from swink.errors import InvalidInput, MisuseError
from swink.events import AgentEnd
from swink.messages import Extension, Text
from swink.messages.modelspec import Capabilities, ModelSpec
from swink.messages.providertools import CodeExecution, McpConnector, WebSearch
from swink.stream import LlmContext, StreamOptions
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


async def test_a_check_that_returns_no_value_of_the_type_is_refused_and_says_how_to_write_it():
    agent = Agent("test:m", stream_fn=ScriptedModel([[ToolCall("1", NAME, {"name": "Oslo", "people": 1})]]))
    result = await agent.run("q", output=StructCity, validate=lambda city: True, max_output_retries=0)
    with pytest.raises(StructuredOutputFailed, match="validate returned bool; return the value") as raised:
        result.raise_for_error()
    assert isinstance(raised.value.__cause__, InvalidInput)


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


async def test_of_two_wrong_answers_in_one_reply_the_last_is_told():
    wrong = [ToolCall("1", NAME, {"name": "Oslo"}), ToolCall("2", NAME, {"people": 1})]
    error = (await agent_on(wrong).run("q", output=DataCity, max_output_retries=1)).exception
    assert isinstance(error, StructuredOutputFailed)
    assert error.attempts == 2
    assert '"name" is a required' in error.last_error


async def test_plain_text_is_asked_again_and_counts_as_an_attempt():
    agent = agent_on("it is Tokyo", call(GOOD))
    assert (await agent.run("q", output=DataCity)).output == DataCity("Tokyo", 14)


async def test_retries_end_at_the_configured_maximum_and_what_was_said_survives():
    model = ScriptedModel([call({"name": 1}, str(n)) for n in range(10)])
    agent = Agent("test:m", stream_fn=model)
    result = await agent.run("q", output=DataCity, max_output_retries=2)
    assert len(model.calls) == 3
    assert (result.stop_reason, result.error_kind) == ("error", "structured_output_failed")
    with pytest.raises(StructuredOutputFailed, match="after 3 attempts"):
        _ = result.output
    assert "after 3 attempts" in (result.error or "")
    assert "$.name" in (result.error or "")
    assert agent.error == result.error
    assert history_problems(agent.messages) == []


async def test_events_result_and_log_agree_on_an_output_that_never_came(caplog: pytest.LogCaptureFixture):
    agent = agent_on("words", "more words")
    ends: list[Any] = []
    agent.subscribe(lambda event: ends.append(event) if isinstance(event, AgentEnd) else None)
    result = await agent.run("q", output=int, max_output_retries=1)
    assert [(end.stop_reason, end.reason) for end in ends] == [("error", result.reason)]
    assert isinstance(result.exception, StructuredOutputFailed)
    assert result.error == result.reason == agent.error
    assert [line.getMessage() for line in caplog.records] == [f"the run failed: {result.error}"]


@pytest.mark.parametrize(
    ("can", "lacks"),
    [
        (Capabilities(tools=False), "no tools"),
        (Capabilities(structured_output=False), "no structured output"),
    ],
)
async def test_a_model_that_cannot_give_an_output_is_not_asked_for_one(can: Capabilities, lacks: str):
    model = ScriptedModel(["words"])
    agent = Agent(ModelSpec("test", "m", capabilities=can), stream_fn=model)
    with pytest.raises(InvalidInput, match=lacks):
        await agent.run("q", output=int)
    assert (len(model.calls), len(agent.messages)) == (0, 0)
    assert (await agent.run("q")).text == "words"


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
    assert result.error_kind == "auth"
    with pytest.raises(AuthError, match="key"):
        _ = result.output


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


# Validators


async def test_a_validator_that_raises_sends_the_model_its_reason_and_counts_as_an_attempt():
    def validate(city: DataCity) -> None:
        if city.people < 10:
            raise ToolError("too small, name a larger one")

    small = {"name": "Arles", "people": 5}
    agent = agent_on(call(small), call(GOOD, "2"))
    assert (await agent.run("q", output=DataCity, validate=validate)).output == DataCity("Tokyo", 14)
    assert agent.messages[2].text == "too small, name a larger one"
    failing = agent_on(call(small), call(small, "2"))
    result = await failing.run("q", output=DataCity, validate=validate, max_output_retries=1)
    assert "after 2 attempts; the last problem: too small" in (result.error or "")


@pytest.mark.parametrize("is_async", [False, True])
async def test_what_a_validator_returns_is_taken_instead_unless_it_is_none(is_async: bool):
    threads: list[int] = []

    def sync(city: DataCity) -> DataCity | None:
        threads.append(threading.get_ident())
        return None if city.people == 14 else DataCity(city.name.upper(), 0)

    async def later(city: DataCity) -> DataCity | None:
        return sync(city)

    for arguments, expected in (
        (GOOD, DataCity("Tokyo", 14)),
        ({"name": "a", "people": 1}, DataCity("A", 0)),
    ):
        output = StructuredOutput(DataCity, 1, later if is_async else sync)
        await output.tool.execute("1", arguments, ToolContext("1", NAME))
        assert output.value == expected
    assert (threading.get_ident() in threads) is is_async, "one that may block does not block the event loop"


async def test_another_error_of_a_validator_comes_out_as_it_is():
    def validate(city: DataCity) -> None:
        raise LookupError("no such city")

    output = StructuredOutput(DataCity, 1, validate)
    with pytest.raises(LookupError):
        await output.tool.execute("1", GOOD, ToolContext("1", NAME))
    assert not output.received
    agent = agent_on(call(GOOD))
    await agent.run("q", output=DataCity, validate=validate, max_output_retries=0)
    assert agent.messages[2].is_error, "and is an error result in a run"


@pytest.mark.parametrize("options", [{"retries": -1}, {"retries": "3"}, {"retries": 1, "validate": 5}])
def test_options_that_cannot_work_are_refused(options: dict[str, Any]):
    with pytest.raises(InvalidInput, match="; pass "):
        StructuredOutput(DataCity, **options)


# Growing values


class Place(pydantic.BaseModel):
    city: ModelCity
    tags: list[str] = ["default"]
    at: str = pydantic.Field("", alias="where")


class Fussy(msgspec.Struct, frozen=True):
    name: str
    people: int

    def __post_init__(self) -> None:
        if self.people < 0:
            raise ValueError


@dataclasses.dataclass
class Circle:
    kind: Literal["circle"]
    size: int


@dataclasses.dataclass
class Square:
    kind: Literal["square"]
    size: int


class Cat(msgspec.Struct, tag=True):
    name: str


class Dog(msgspec.Struct, tag=True):
    name: str


class Spot(NamedTuple):
    x: int
    y: int


@attrs.define(eq=False)
class Sized:
    n: int
    _m: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sized)


@dataclasses.dataclass(frozen=True, slots=True)
class Refusal:
    reason: str
    code: int = 3


@pytest.mark.parametrize(
    ("output", "text", "expected"),
    [
        (DataCity, '{"name": "To', DataCity("To", None)),
        (DataCity, '{"name": "Tokyo", "people": 1', DataCity("Tokyo", 1)),
        (Refusal, '{"reason": "', Refusal("", None)),
        (StructCity, '{"people": 14, "na', StructCity(None, 14)),
        (DictCity, '{"name": "To', {"name": "To"}),
        (dict[str, DataCity], '{"a": {"name": "x', {"a": DataCity("x", None)}),
        (SCHEMA, '{"name": "To', {"name": "To"}),
        (
            list[DataCity],
            '{"value": [{"name": "a", "people": 1}, {',
            [DataCity("a", 1), DataCity(None, None)],
        ),
        (tuple[DataCity, ...], '{"value": [{"name": "a', (DataCity("a", None),)),
        (tuple[str, DataCity], '{"value": ["x", {"name": "a', ("x", DataCity("a", None))),
        (str, '{"value": "once upon', "once upon"),
        (int, '{"value": 12', 12),
        (DataCity | Refusal, '{"value": {"reason": "n', Refusal("n", None)),
        (DataCity | Refusal, '{"value": {"name": "n', DataCity("n", None)),
        (DataCity | Refusal, '{"value": {"other": "n', {"other": "n"}),
        (DataCity | None, '{"value": null', None),
        (list[DataCity | None], '{"value": [null, {"name": "n', [None, DataCity("n", None)]),
        (Annotated[DataCity, "a city"], '{"name": "To', DataCity("To", None)),
        (Circle | Square, '{"value": {"kind": "squ', Square("squ", None)),
        (Circle | Square, '{"value": {"kind": "square", "size": 1', Square("square", 1)),
        (Cat | Dog, '{"value": {"type": "D', Dog(None)),
        (Spot, '{"value": [1', Spot(1, None)),
        (Sized, '{"n": 1', Sized.__new__(Sized)),
        (pydantic.RootModel[list[int]], '{"value": [1', pydantic.RootModel[list[int]]([1])),
    ],
)
def test_the_growing_value_has_none_where_nothing_has_arrived(output: Any, text: str, expected: Any):
    assert StructuredOutput(output, 0).partial(text) == expected


def test_growing_pydantic_models_are_made_without_validation():
    place = StructuredOutput(Place, 0).partial('{"where": "here", "city": {"name": "To')
    assert isinstance(place, Place)
    assert isinstance(place.city, ModelCity)
    assert (place.city.name, place.city.people, place.tags, place.at) == ("To", None, None, "here")


def test_a_growing_attrs_class_has_none_too():
    sized = StructuredOutput(Sized, 0).partial('{"n": 1')
    assert (sized.n, sized._m) == (1, None)


def test_a_growing_struct_is_not_judged_by_its_own_checks():
    fussy = StructuredOutput(Fussy, 0).partial('{"name": "To')
    assert isinstance(fussy, Fussy)
    assert (fussy.name, fussy.people) == ("To", None)


@given(
    st.text(max_size=30)
    | json_values.map(json.dumps).flatmap(lambda text: st.integers(0, len(text)).map(lambda end: text[:end]))
)
@tried(100, 1_000)
def test_a_growing_value_never_raises_on_any_text(text: str):
    for output in (DataCity, Place, list[Fussy], DataCity | Refusal, DictCity, SCHEMA, str, set[str]):
        StructuredOutput(output, 0).partial(text)


@pytest.mark.parametrize(
    "text", ["", "{", '{"na', "}", "[1]", '"x', "nul", '{"value', '{"value": {', "\ud800", "[" * 9999]
)
def test_nothing_to_show_is_said(text: str):
    assert StructuredOutput(DataCity, 0).partial(text) is NOTHING or text.startswith('{"value": {')
    assert StructuredOutput(DataCity | Refusal, 0).partial(text) is NOTHING


# Any kind of output


@dataclasses.dataclass
class Tree:
    name: str
    children: "list[Tree]" = dataclasses.field(default_factory=list)


class ModelTree(pydantic.BaseModel):
    name: str
    children: "list[ModelTree]" = []


NODE = {"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": False}
LIST = {"type": "array", "items": {"anyOf": [{"$ref": "#"}, {"type": "integer"}]}}


@pytest.mark.parametrize(
    ("output", "value", "expected", "wrong"),
    [
        (DataCity | Refusal, {"reason": "x"}, Refusal("x"), {"reason": 1}),
        (DataCity | Refusal | None, None, None, 5),
        (ModelCity | StructCity | Refusal, {"reason": "x"}, Refusal("x"), {"code": 1}),
        (DataCity | list[DataCity], [GOOD], [DataCity("Tokyo", 14)], [{}]),
        (Annotated[int, pydantic.Field(gt=0)], 5, 5, -5),
        (str, "x", "x", 1),
        (list[Tree], [{"name": "a", "children": [{"name": "b"}]}], [Tree("a", [Tree("b")])], [{"name": 1}]),
        (ModelTree | None, {"name": "a"}, ModelTree(name="a"), {"name": 1}),
        (LIST, [1, [2, []]], [1, [2, []]], [["x"]]),
        ({"$id": "https://x.test/list.json", **LIST}, [1, [2]], [1, [2]], [["x"]]),
        ({"$id": "urn:x:y", **LIST}, [1, [2]], [1, [2]], [["x"]]),
        (
            {
                "$id": "https://x.test/a.json",
                "type": "array",
                "items": {"$ref": "https://x.test/a.json#/definitions/a"},
                "definitions": {"a": {"type": "integer"}},
            },
            [1],
            [1],
            ["x"],
        ),
        (
            {
                "$id": "https://x.test/a.json",
                "items": {"$ref": "a.json#/definitions/a"},
                "definitions": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#/$defs/b"}]}},
                "type": "array",
                "$defs": {"b": {"type": "integer"}},
            },
            [1, [1]],
            [1, [1]],
            [["x"]],
        ),
        (
            {
                "$schema": "http://json-schema.org/draft-07/schema#",
                "type": "array",
                "items": [{"$ref": "#/definitions/a"}],
                "definitions": {"a": {"type": "integer"}},
            },
            [1, "x"],
            [1, "x"],
            ["x"],
        ),
        (
            {"type": "array", "items": {"$ref": "#/contains"}, "contains": {"type": "integer"}},
            [1],
            [1],
            ["x"],
        ),
        ({"$anchor": "top", "type": "array", "items": {"$ref": "#top"}}, [[]], [[]], [1]),
        ({"enum": [{"$ref": "#"}]}, {"$ref": "#"}, {"$ref": "#"}, {"$ref": "#/properties/value"}),
    ],
)
async def test_any_type_or_schema_can_be_the_output(output: Any, value: Any, expected: Any, wrong: Any):
    before = copy.deepcopy(output)
    agent = agent_on(call({"value": wrong}), call({"value": value}, "2"))
    assert (await agent.run("q", output=output)).output == expected
    assert "error" in agent.messages[2].text
    (sent,) = agent_tools(output)
    assert sent["type"] == "object"
    jsonschema.validators.validator_for(sent).check_schema(sent)
    if isinstance(output, dict):
        assert output == before


@pytest.mark.parametrize("output", [Tree, ModelTree, NODE, {"$id": "https://x.test/n.json", **NODE}])
async def test_an_output_that_is_an_object_is_not_wrapped(output: Any):
    (sent,) = agent_tools(output)
    assert "value" not in sent["properties"]
    value = {"next": {"next": {}}} if isinstance(output, dict) else {"name": "a", "children": [{"name": "b"}]}
    received = StructuredOutput(output, 0)
    await received.tool.execute("1", value, ToolContext("1", NAME))
    assert received.received


def agent_tools(output: Any) -> list[Any]:
    return [StructuredOutput(output, 0).tool.parameters_schema]


async def test_a_tool_named_like_the_output_tool_is_refused():
    @tool(name="final_output")
    async def mine() -> str:
        return "x"

    agent, _ = make(["x"], tools=[mine])
    with pytest.raises(MisuseError, match="rename"):
        await agent.run("go", output=int)
    assert not agent.is_running


class Native(ScriptedModel):
    """A model whose provider sees to the schema of an answer."""

    def native_output(self, model: ModelSpec, context: LlmContext) -> bool:
        return context.output is not None and not any(tool.name == "blocks" for tool in context.tools)


async def test_a_provider_that_sees_to_the_schema_is_asked_for_it_and_needs_no_tool():
    model = Native(['{"name": "Oslo", "people": 7}'])
    agent = Agent("test:m", stream_fn=model)
    agent.thinking_level = "high"
    result = await agent.run("Which?", output=StructCity)
    assert result.output == StructCity("Oslo", 7)
    (asked,) = model.calls
    assert asked.tools == ()
    assert asked.output is not None
    assert set(asked.output.schema["properties"]) == {"name", "people"}


async def test_an_answer_that_does_not_fit_is_asked_for_again_with_the_reason():
    model = Native(['{"name": "Oslo"}', '{"name": "Oslo", "people": 7}'])
    result = await Agent("test:m", stream_fn=model).run("Which?", output=StructCity)
    assert result.output == StructCity("Oslo", 7)
    assert "people" in model.calls[1].messages[-1].text
    model = Native(["I would rather not."] * 4)
    result = await Agent("test:m", stream_fn=model).run("Which?", output=StructCity)
    assert "rather not" in str(result.error)


async def test_an_answer_may_follow_what_the_model_says_it_is_about_to_do():
    search = Extension("openai-responses", {"type": "web_search_call"}, "web search")
    said = [Text("I will {look} it up."), search, Text('{"name": "Oslo",'), Text(' "people": 7}')]
    result = await Agent("test:m", stream_fn=Native([said])).run("Which?", output=StructCity)
    assert result.output == StructCity("Oslo", 7)


@pytest.mark.parametrize(
    "said",
    [
        '```json\n{"name": "Oslo", "people": 7}\n```',
        'Here it is:\n\n```\n{\n  "name": "Oslo",\n  "people": 7\n}\n```\n',
        '```\n{"name": "Rome", "people": 1}\n```\nNo:\n```json\n{"name": "Oslo", "people": 7}\n```',
    ],
)
async def test_an_answer_in_a_block_of_code_at_the_end_is_read(said: str):
    model = Native([said])
    result = await Agent("test:m", stream_fn=model).run("Which?", output=StructCity)
    assert result.output == StructCity("Oslo", 7)
    assert len(model.calls) == 1


async def test_a_block_of_code_that_is_not_the_end_is_no_answer():
    said = '```json\n{"name": "Oslo", "people": 7}\n```\nOr do you want another one?'
    model = Native([said, '{"name": "Rome", "people": 3}'])
    result = await Agent("test:m", stream_fn=model).run("Which?", output=StructCity)
    assert result.output == StructCity("Rome", 3)


async def test_an_answer_that_was_cut_off_is_asked_for_again_as_json():
    model = Native(['{"name": "Oslo", "peo', '{"name": "Oslo", "people": 7}'])
    result = await Agent("test:m", stream_fn=model).run("Which?", output=StructCity)
    assert result.output == StructCity("Oslo", 7)
    assert "cut off" in model.calls[1].messages[-1].text
    assert "final_output" not in model.calls[1].messages[-1].text


async def test_a_validator_sees_an_answer_that_is_text_and_may_send_it_back():
    def known(city: StructCity) -> None:
        if city.people < 5:
            raise ToolError("too few people")

    model = Native(['{"name": "Oslo", "people": 1}', '{"name": "Oslo", "people": 7}'])
    result = await Agent("test:m", stream_fn=model).run("Which?", output=StructCity, validate=known)
    assert result.output.people == 7
    assert "too few people" in model.calls[1].messages[-1].text


async def test_a_schema_that_the_provider_cannot_hold_is_left_to_the_tool():
    @tool
    def blocks() -> str:
        """Block."""
        return ""

    model = Native([[ToolCall("c", "final_output", {"name": "Oslo", "people": 7})]])
    result = await Agent("test:m", stream_fn=model, tools=[blocks]).run("Which?", output=StructCity)
    assert result.output == StructCity("Oslo", 7)
    assert model.calls[0].output is None
    assert [item.name for item in model.calls[0].tools] == ["blocks", "final_output"]


async def test_the_growing_value_is_read_off_the_text():
    model = Native(['{"name": "Oslo", "people": 7}'])
    seen: list[Any] = []
    async with Agent("test:m", stream_fn=model).stream("Which?", output=StructCity) as run:
        async for value in run.output():
            seen.append(value)
    assert seen[-1] == StructCity("Oslo", 7)


async def test_hosted_tools_reach_the_model_and_what_is_none_is_refused():
    model = ScriptedModel(["hi"])
    agent = Agent("test:m", stream_fn=model, hosted=[WebSearch(max_uses=2), CodeExecution()])
    await agent.run("go")
    assert model.calls[0].hosted == (WebSearch(max_uses=2), CodeExecution())
    copied = agent.copy(stream_fn=ScriptedModel(["hi"]))
    await copied.run("again")
    for wrong, says in (
        (WebSearch(), "list"),
        ([WebSearch], r"WebSearch\(\)"),
        (["web"], "swink.messages.providertools"),
    ):
        with pytest.raises(InvalidInput, match=says):
            Agent("test:m", stream_fn=model, hosted=wrong)
    assert "secret" not in repr(McpConnector("docs", "https://x.example", token="secret"))


async def test_an_answer_is_not_forced_before_the_provider_has_used_its_tools():
    model = ScriptedModel([call({"name": "Oslo", "people": 7})])
    asked: list[StreamOptions] = []

    def watched(spec: ModelSpec, context: LlmContext, options: StreamOptions):
        asked.append(options)
        return model(spec, context, options)

    result = await Agent("test:m", stream_fn=watched, hosted=[WebSearch()]).run("Which?", output=StructCity)
    assert result.output == StructCity("Oslo", 7)
    assert asked[0].tool_choice is None
