"""What a type checker tells people who use swink: their types come out again, and their mistakes are found."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import swink

REVEALED = """
import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypedDict, reveal_type

import msgspec
import pydantic

from swink import Agent, AgentResult, Policy, ToolContext, tool
from swink.agent.config import PromptContext
from swink.agent.policy import PolicyContext
from swink.teams import agent_tool


@dataclasses.dataclass
class City:
    name: str


class Model(pydantic.BaseModel):
    name: str


class Record(TypedDict):
    name: str


class Struct(msgspec.Struct):
    name: str


class Db:
    async def fetch(self, key: str) -> list[str]:
        return [key]


agent = Agent("test:m", deps=Db())
schema: dict[str, Any] = {"type": "object"}
frozen: Mapping[str, Any] = schema


async def outputs() -> None:
    reveal_type((await agent.run("x", output=City)).output)  # City
    reveal_type((await agent.run("x", output=Model)).output)  # Model
    reveal_type((await agent.run("x", output=Record)).output)  # Record
    reveal_type((await agent.run("x", output=Struct)).output)  # Struct
    reveal_type((await agent.run("x", output=list[City])).output)  # list[City]
    reveal_type((await agent.run("x", output=dict[str, int])).output)  # dict[str, int]
    reveal_type((await agent.run("x", output=tuple[City, ...])).output)  # tuple[City, ...]
    reveal_type((await agent.run("x", output=City | Struct)).output)  # City | Struct
    reveal_type((await agent.run("x", output=City | None)).output)  # City | None
    reveal_type((await agent.run("x", output=Literal["a", "b"])).output)  # Literal['a', 'b']
    reveal_type((await agent.run("x", output=int)).output)  # int
    reveal_type((await agent.run("x", output=None)).output)  # None
    reveal_type((await agent.run("x")).output)  # None
    reveal_type((await agent.run()).output)  # None
    reveal_type((await agent.run("x", output={"type": "object"})).output)  # Any
    reveal_type((await agent.run("x", output=schema)).output)  # Any
    reveal_type((await agent.run("x", output=frozen)).output)  # Any
    reveal_type(await agent.run("x"))  # AgentResult[None]
    reveal_type(await agent.run("x", output=City))  # AgentResult[City]
    reveal_type((await agent.run("x", output=City)).raise_for_error().output)  # City
    reveal_type((await agent.run("x", output=City, deadline=5, deps=Db(), policies=[])).output)  # City
    reveal_type((await agent.run("x", deadline=5)).output)  # None


def sync_outputs() -> None:
    reveal_type(agent.run_sync("x", output=City).output)  # City
    reveal_type(agent.run_sync("x", output=City | Struct).output)  # City | Struct
    reveal_type(agent.run_sync("x", output=schema).output)  # Any
    reveal_type(agent.run_sync("x").output)  # None
    reveal_type(agent.run_sync("x").text)  # str


async def streams() -> None:
    async with agent.stream("x", output=City) as run:
        async for value in run.output():
            reveal_type(value)  # City
        async for piece in run.text():
            reveal_type(piece)  # str
        async for event in run:
            match event.__class__.__name__:
                case _:
                    pass
        reveal_type((await run.result()).output)  # City
    async with agent.stream("x") as plain:
        reveal_type((await plain.result()).output)  # None
    async with agent.stream("x", output=schema) as raw:
        reveal_type((await raw.result()).output)  # Any
        async for shown in raw.output():
            reveal_type(shown)  # Any


async def copies() -> None:
    reveal_type(agent.copy(model="test:b"))  # Agent[Db, None]
    async with Agent("test:m") as own:
        reveal_type(own)  # Agent[None, None]
    reveal_type(Agent.restore({}))  # Agent[Any, Any]


@tool
async def look(key: str, ctx: ToolContext[Db]) -> str:
    reveal_type(ctx.deps)  # Db
    reveal_type(await ctx.deps.fetch(key))  # list[str]
    reveal_type(ctx.state)  # dict[str, Any]
    return key


@tool(read_only=True)
def plain(ctx: ToolContext) -> str:
    reveal_type(ctx.deps)  # Any
    return ""


@tool(timeout=5)
async def look_first(ctx: ToolContext[Db], key: str, times: int = 1) -> str:
    return key


@tool
async def add(one: int, other: int) -> int:
    return one + other


@tool
def anything(value: Any) -> str:
    return str(value)


async def bare(key: str) -> str:
    return key


class Methods:
    def method(self, key: str) -> str:
        return key


class Fake(Db):
    pass


class Guard(Policy[Db]):
    def pre_turn(self, ctx: PolicyContext[Db]) -> None:
        reveal_type(ctx.deps)  # Db


class Plain(Policy):
    def pre_turn(self, ctx: PolicyContext) -> None:
        reveal_type(ctx.deps)  # Any


class Shaped:
    name = "shaped"
    description = "Looks."
    parameters_schema: dict[str, Any] = {"type": "object"}

    async def execute(self, call_id: str, arguments: dict[str, Any], ctx: ToolContext[Db]) -> str:
        return ""


def from_deps(context: PromptContext[Db]) -> str:
    reveal_type(context.deps)  # Db
    return ""


reveal_type(look)  # Tool[Db]
reveal_type(look_first)  # Tool[Db]
reveal_type(plain)  # Tool[Any]
reveal_type(add)  # Tool[Any]
reveal_type(anything)  # Tool[Any]
tools = [look, look_first, plain, add, anything, bare, Methods().method, Shaped()]
reveal_type(Agent("test:m"))  # Agent[None, None]
reveal_type(Agent("test:m", deps=Db()))  # Agent[Db, None]
reveal_type(Agent("test:m", deps=Db(), tools=tools, policies=[Guard(), Plain()]))  # Agent[Db, None]
reveal_type(Agent("test:m", deps=Fake(), tools=[look], system_prompt=from_deps))  # Agent[Fake, None]
reveal_type(Agent("test:m", deps_type=Db, tools=[look]))  # Agent[Db, None]
reveal_type(Agent("test:m", tools=[plain, add, bare]))  # Agent[None, None]
reveal_type(Agent("test:m", output=City))  # Agent[None, City]
reveal_type(Agent("test:m", output=list[City], deps=Db()))  # Agent[Db, list[City]]
reveal_type(Agent("test:m", output=schema))  # Agent[None, Any]
reveal_type(Agent("test:m", output=schema, deps=Db()))  # Agent[Db, Any]
reveal_type(agent_tool(agent, "sub", "Helps."))  # Tool[Db]
reveal_type(agent_tool(Agent("test:m", name="sub")))  # Tool[Any]
reveal_type(agent_tool(lambda: Agent("test:m"), "sub"))  # Tool[Any]


def make(ctx: ToolContext[Db]) -> Agent[Db]:
    return Agent("test:m", deps=ctx.deps)


reveal_type(agent_tool(make, "sub"))  # Tool[Db]


async def outputs_of_the_agent() -> None:
    cities = Agent("test:m", output=City, name="cities", thinking_level="low")
    reveal_type((await cities.run("x")).output)  # City
    reveal_type((await cities.run("x", output=int)).output)  # int
    reveal_type(cities.run_sync("x").output)  # City
    async with cities.stream("x") as run:
        reveal_type((await run.result()).output)  # City
    reveal_type((await Agent("test:m", deps_type=Db).run("x", deps=Fake())).output)  # None


def validated(city: City) -> City | None:
    return city


async def validated_later(city: City) -> None:
    return None


async def validators() -> None:
    reveal_type((await agent.run("x", output=City, validate=validated)).output)  # City
    reveal_type((await agent.run("x", output=City, validate=validated_later)).output)  # City
    reveal_type((await agent.run("x", output=City, validate=lambda city: None)).output)  # City


def write(context: PromptContext) -> str:
    reveal_type(context.messages[0])  # UserMessage | AssistantMessage | ToolResultMessage | CustomMessage
    return ""


def result_of(result: AgentResult[City]) -> None:
    reveal_type(result.output)  # City


def context_of(ctx: PolicyContext, annotated: Annotated[City, "x"]) -> None:
    reveal_type(ctx.turn)  # int
    reveal_type(annotated)  # City
"""

MISTAKES = """
import dataclasses

from swink import Agent, ApprovalRequest, Approved, Image, Inject, Policy, Replace, Rewrite, Skip
from swink import PromptContext, Stop, StreamOptions, Text, ToolCall, ToolContext, tool
from swink.agent.policy import PolicyContext, Turn
from swink.teams import agent_tool


@dataclasses.dataclass
class City:
    name: str


class Db:
    pass


def says_words(request: ApprovalRequest) -> str:
    return "yes"


async def says_words_later(request: ApprovalRequest) -> str:
    return "yes"


def takes_nothing() -> bool:
    return True


class Wrong(Policy):
    def pre_turn(self, ctx: PolicyContext) -> Skip:  # wrong
        return Skip("x")

    async def pre_dispatch(self, ctx: PolicyContext, call: ToolCall) -> Replace:  # wrong
        raise NotImplementedError

    def post_turn(self, ctx: PolicyContext, turn: Turn) -> Rewrite:  # wrong
        return Rewrite({})

    async def post_loop(self, ctx: PolicyContext) -> str:  # wrong
        return "x"

    def pre_retry(self, ctx: PolicyContext) -> Inject:  # wrong
        return Inject("x")


def returns_another(city: City) -> int:
    return 5


def takes_another(number: int) -> None:
    return None


agent = Agent("test:m")
Agent("test:m", approve=says_words)  # wrong
Agent("test:m", approve=says_words_later)  # wrong
Agent("test:m", approve=takes_nothing)  # wrong
Agent("test:m", approve=lambda request: "yes")  # wrong
Agent("test:m", approval_mode="always")  # wrong
Agent("test:m", steering_mode="some")  # wrong
Agent("test:m", tool_execution="parallel")  # wrong
Agent("test:m", retry=5)  # wrong
Agent("test:m", policies=[Policy])  # wrong
Agent("test:m", policies=Policy())  # wrong
Agent("test:m", system_prompt=5)  # wrong
Agent("test:m", system_prompt=lambda context: 5)  # wrong
Agent("test:m", messages=["x"])  # wrong
Agent("test:m", options={})  # wrong
Agent("test:m", get_api_key="sk")  # wrong
Agent("test:m", transform_context=5)  # wrong
Agent("test:m", state=[1])  # wrong
Agent("test:m", unknown=1)  # wrong
agent.thinking_level = "very"  # wrong
agent.steering_mode = "some"  # wrong
agent.run_sync(5)  # wrong
agent.run_sync("x", deadline="5")  # wrong
agent.run_sync("x", max_output_retries="3")  # wrong
agent.run_sync("x", policies=[Policy])  # wrong
agent.run_sync("x", timeout=5)  # wrong
agent.run_sync("x", output=City, validate=returns_another)  # wrong
agent.run_sync("x", output=City, validate=takes_another)  # wrong
agent.run_sync("x", output=City).output.nmae  # wrong
agent.run_sync("x").output.name  # wrong
Image("/x.png")  # wrong
Text(5)  # wrong
Skip(None)  # wrong
Stop(5)  # wrong
Approved("x")  # wrong
StreamOptions(temperature="hot")  # wrong


async def wrong_streams() -> None:
    agent.stream("x", output=City, validate=takes_another)  # wrong
    async with agent.stream("x", output=City) as run:
        async for value in run.output():
            value.nmae  # wrong


def reads(ctx: ToolContext[Db]) -> None:
    ctx.deps.fetch()  # wrong


class Other:
    pass


class Guard(Policy[Db]):
    def pre_turn(self, ctx: PolicyContext[Db]) -> None:
        ctx.deps.fetch()  # wrong


@tool
async def look(key: str, ctx: ToolContext[Db]) -> str:
    return key


@tool(timeout=5)
async def look_first(ctx: ToolContext[Db], key: str) -> str:
    return key


def written(context: PromptContext[Db]) -> str:
    return context.deps.fetch()  # wrong


Agent("test:m", tools=[look])  # wrong
Agent("test:m", tools=[look_first])  # wrong
Agent("test:m", policies=[Guard()])  # wrong
Agent("test:m", system_prompt=written)  # wrong
Agent("test:m", deps=Other(), tools=[look])  # wrong
Agent("test:m", deps=Other(), policies=[Guard()])  # wrong
Agent("test:m", deps=Other(), system_prompt=written)  # wrong
Agent("test:m", deps_type=Other, tools=[look])  # wrong
Agent("test:m", thinking_level="very")  # wrong
Agent("test:m", name=5)  # wrong
Agent("test:m", tools=[agent_tool(Agent("test:m", deps=Db()), "sub")])  # wrong
Agent("test:m", deps=Other(), tools=[agent_tool(Agent("test:m", deps=Db()), "sub")])  # wrong
agent.run_sync("x", deps=Db())  # wrong
Agent("test:m", deps_type=Db).run_sync("x", deps=Other())  # wrong
Agent("test:m", output=City).run_sync("x").output.nmae  # wrong
"""

PROGRAM = '''
"""A program as people write it, under the strictest rules."""

import asyncio
from dataclasses import dataclass
from typing import Any

from swink import (
    Agent,
    ApprovalRequest,
    Approved,
    ExponentialBackoff,
    Image,
    Inject,
    Policy,
    Rejected,
    Skip,
    Stop,
    StreamOptions,
    ToolCall,
    ToolContext,
    ToolError,
    UserMessage,
    tool,
)
from swink.agent.config import PromptContext
from swink.events import MessageUpdate, ToolExecutionStart
from swink.agent.policy import Answer, CallVerdict, PolicyContext, TurnVerdict
from swink.stream import TextDelta


@dataclass
class City:
    name: str
    people: int


@dataclass
class Refusal:
    reason: str


class Db:
    def people(self, city: str) -> int:
        return len(city)


@tool(requires_approval=True, timeout=5)
async def people(city: str, ctx: ToolContext[Db]) -> int:
    """How many people live there.

    Args:
        city: The name of the city.
    """
    ctx.state["last"] = city
    ctx.update(f"looking for {city}")
    if not city:
        raise ToolError("name a city")
    return ctx.deps.people(city)


def shout(text: str, times: int = 1) -> str:
    """Shout."""
    return text.upper() * times


class Guard(Policy):
    fail_closed = True

    async def pre_turn(self, ctx: PolicyContext) -> TurnVerdict:
        return Stop("enough") if ctx.turn > 5 else None

    def pre_dispatch(self, ctx: PolicyContext, call: ToolCall) -> CallVerdict:
        return Skip("not that one") if call.name == "shout" else None

    async def post_loop(self, ctx: PolicyContext) -> Inject | None:
        return None


async def approve(request: ApprovalRequest) -> Answer:
    if request.name == "people":
        return Approved(note="fine")
    return Rejected("no") if request.arguments else False


def instructions(context: PromptContext) -> str:
    return f"Be brief. {len(context.messages)} messages so far."


def known(value: City | Refusal) -> City | Refusal | None:
    if isinstance(value, City) and value.people < 0:
        raise ToolError("count again")
    return None


async def main() -> None:
    agent = Agent(
        "anthropic:claude-sonnet-4-6",
        system_prompt=instructions,
        tools=[people, shout],
        policies=[Guard()],
        approve=approve,
        deps=Db(),
        retry=ExponentialBackoff(max_attempts=2),
        options=StreamOptions(temperature=0.0),
        fallback_models=["openai:gpt-5"],
    )
    result = await agent.run(["What is this?", Image.from_url("https://example.org/x.png")], deadline=60)
    print(result.raise_for_error().text)
    answer = (await agent.run("The largest city?", output=City | Refusal, validate=known)).output
    match answer:
        case City(name=name, people=count):
            print(name, count + 1)
        case Refusal(reason=reason):
            print(reason.upper())
    async with agent.stream("Plan the week") as run:
        async for event in run:
            match event:
                case MessageUpdate(delta=TextDelta(text=text)):
                    print(text, end="")
                case ToolExecutionStart(name=name, arguments=arguments):
                    print(name, arguments)
                case _:
                    pass
    async with agent.stream("Another", output=City) as run:
        async for city in run.output():
            print(city.name)
    cities: list[City] = (await agent.run("All of them", output=list[City])).output
    print(len(cities))
    other = agent.copy(system_prompt="Be long.", tools=[])
    other.steer(UserMessage("Leave the tests alone."))
    saved: dict[str, Any] = other.checkpoint()
    async with Agent.restore(saved, tools=[people], deps=Db()) as restored:
        await restored.run("And now?", policies=[Guard()], deps=Db())


asyncio.run(main())
'''

CONFIG = {
    "typeCheckingMode": "strict",
    "pythonVersion": "3.11",
    "reportMissingModuleSource": False,
    "reportUnusedExpression": False,
    "reportUnnecessaryIsInstance": False,
}


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """What pyright says of each program, asked once for all."""
    folder = tmp_path_factory.mktemp("types")
    for name, text in (("revealed", REVEALED), ("mistakes", MISTAKES), ("program", PROGRAM)):
        (folder / f"{name}.py").write_text(text, "utf-8")
    (folder / "pyrightconfig.json").write_text(json.dumps(CONFIG), "utf-8")
    command = (
        sys.executable,
        "-m",
        "pyright",
        "--pythonpath",
        sys.executable,
        "--outputjson",
        "-p",
        str(folder),
    )
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    try:
        found = json.loads(done.stdout)["generalDiagnostics"]
    except (ValueError, KeyError):
        pytest.fail(f"pyright could not be run: {done.stdout}{done.stderr}")
    said: dict[str, list[dict[str, Any]]] = {"revealed": [], "mistakes": [], "program": []}
    for item in found:
        said[Path(item["file"]).stem].append(item)
    return said


def test_the_package_says_that_it_is_typed():
    assert Path(swink.__file__).with_name("py.typed").exists()


def test_types_come_out_as_they_went_in(checked: dict[str, list[dict[str, Any]]]):
    shown = {
        item["range"]["start"]["line"]: match[1]
        for item in checked["revealed"]
        if (match := re.search(r'Type of ".*" is "(.*)"$', item["message"], re.S))
    }
    expected = {
        number: line.rpartition("# ")[2]
        for number, line in enumerate(REVEALED.split("\n"))
        if line.lstrip().startswith("reveal_type(")
    }
    assert len(expected) > 40
    assert shown == expected
    wrong = [item for item in checked["revealed"] if item["severity"] == "error"]
    assert wrong == []


def test_mistakes_are_found_where_they_are_made(checked: dict[str, list[dict[str, Any]]]):
    lines = MISTAKES.split("\n")
    found = {item["range"]["start"]["line"] for item in checked["mistakes"] if item["severity"] == "error"}
    expected = {number for number, line in enumerate(lines) if line.endswith("# wrong")}
    assert [lines[number] for number in sorted(expected - found)] == [], "not found"
    assert [lines[number] for number in sorted(found - expected)] == [], "found without a mistake"


def test_an_ordinary_program_has_no_error_under_the_strictest_rules(checked: dict[str, list[dict[str, Any]]]):
    assert [item["message"] for item in checked["program"]] == []
