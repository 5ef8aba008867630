"""Tool sets: tools under other names, fewer of them, or as each turn wants them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.counts import tried

from swink import Agent, tool
from swink.errors import InvalidInput, InvalidTool
from swink.messages import ToolCall, ToolResultMessage
from swink.testing import ScriptedModel
from swink.tools import (
    InvalidArguments,
    Tool,
    ToolSource,
    TurnContext,
    filtered,
    prefixed,
    prepared,
    renamed,
    script_tools,
    skill_tools,
)


@tool(requires_approval=lambda arguments: arguments["a"] > 9, timeout=3, sequential=True, priority=2)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b


class Server:
    """A source whose tools come and go."""

    def __init__(self, *offers: Any) -> None:
        self.offers = offers

    def tools(self) -> Any:
        return self.offers


class Opened:
    """Servers as `McpServers` has them: the tools are a property."""

    tools = (add,)


def names(source: Any) -> list[str]:
    return [tool.name for tool in source.tools()]


# what fails


def test_two_that_get_one_name_are_refused_where_the_set_is_made():
    with pytest.raises(InvalidTool, match=r"renamed.*'multiply'"):
        renamed([add, multiply], {"add": "multiply"})
    with pytest.raises(InvalidTool, match="two tools are named 'add'"):
        prefixed([add, add], "x_")


def test_a_name_to_rename_that_no_tool_has_is_refused_with_the_nearest():
    with pytest.raises(InvalidTool, match=r"no tool named 'ad' to rename; did you mean add"):
        renamed([add], {"ad": "plus"})


def test_a_name_that_no_tool_can_have_is_refused():
    with pytest.raises(InvalidTool, match="must be 1 to 64"):
        renamed([add], {"add": "plus one"})
    with pytest.raises(InvalidTool, match="must be 1 to 64"):
        prefixed([add], "x" * 64)
    with pytest.raises(InvalidInput, match="prefix"):
        prefixed([add], "a b")


@pytest.mark.parametrize(
    "make",
    [lambda: filtered([add], "x"), lambda: prepared([add], None), lambda: renamed([add], ["add"])],  # type: ignore[arg-type]
)
def test_what_is_no_function_or_no_dict_is_refused(make: Callable[[], Any]):
    with pytest.raises(InvalidInput):
        make()


def test_what_is_no_tool_is_refused():
    with pytest.raises(InvalidTool):
        prefixed([3], "x_")


def test_a_tool_to_rename_that_went_away_is_told_once_and_the_others_stay(caplog: pytest.LogCaptureFixture):
    server = Server(add, multiply)
    given = renamed(server, {"add": "plus", "multiply": "times"})
    assert names(given) == ["plus", "times"]
    server.offers = (multiply,)
    assert names(given) == ["times"]
    assert names(given) == ["times"]
    assert [record.getMessage() for record in caplog.records] == [
        "renamed(): there is no tool named 'add' to rename; there are multiply"
    ]


async def test_a_clash_in_a_source_that_changes_ends_the_run_with_the_name():
    server = Server(add)
    agent = Agent("test:m", stream_fn=ScriptedModel(["done"]), tools=[renamed(server, {"add": "plus"})])
    server.offers = (add, replace(add, name="plus"))
    with pytest.raises(InvalidTool, match="two tools are named 'plus'"):
        await agent.run("go")


async def test_a_function_that_raises_ends_the_run_with_its_error():
    def broken(context: TurnContext, tool: Tool) -> Tool:
        raise ZeroDivisionError("no")

    agent = Agent("test:m", stream_fn=ScriptedModel(["done"]), tools=[prepared([add], broken)])
    with pytest.raises(ZeroDivisionError):
        await agent.run("go")


def test_arguments_are_checked_as_before():
    (tool,) = prefixed([add], "x_").tools()
    with pytest.raises(InvalidArguments):
        tool.prepare({"a": "one"})


# what holds


def test_each_does_what_it_says_on_every_kind_of_source():
    for source in (
        [add],
        add,
        multiply,
        Server(add, multiply),
        Opened(),
        [Server(add), multiply],
        [[add], multiply],
    ):
        have = names(filtered(source, lambda tool: True))
        assert names(prefixed(source, "x_")) == [f"x_{name}" for name in have]
        assert names(renamed(source, {have[0]: "other"})) == ["other", *have[1:]]
        assert names(filtered(source, lambda tool, first=have[0]: tool.name == first)) == have[:1]
        assert names(prepared(source, lambda _, tool: tool)) == have


def test_tools_of_scripts_and_of_skills_are_changed_like_others(tmp_path: Path):
    (tmp_path / "greet.toml").write_text('description = "Greet."\ncommand = "echo hello"\n')
    (tmp_path / "tea").mkdir()
    (tmp_path / "tea" / "SKILL.md").write_text("---\nname: tea\ndescription: Makes tea.\n---\nBoil water.\n")
    source = [*skill_tools(tmp_path), script_tools(tmp_path)]
    assert names(prefixed(source, "my_")) == ["my_skill", "my_greet"]
    assert names(filtered(source, lambda tool: tool.name == "greet")) == ["greet"]


def test_a_set_is_a_source_of_tools():
    assert isinstance(prefixed([add], "x_"), ToolSource)


async def test_an_agent_calls_a_tool_by_its_new_name():
    model = ScriptedModel([[ToolCall("c", "x_add", {"a": 1, "b": 2})], "done"])
    agent = Agent("test:m", stream_fn=model, tools=prefixed([add], "x_"))
    await agent.run("go")
    assert [message.text for message in agent.messages if isinstance(message, ToolResultMessage)] == ["3"]
    assert [tool.name for tool in model.calls[0].tools] == ["x_add"]


async def test_prepared_is_asked_at_every_turn_with_what_is_known_then():
    seen: list[tuple[Any, dict[str, Any], int]] = []

    def only_first(context: TurnContext, tool: Tool) -> Tool | None:
        seen.append((context.deps, dict(context.state), len(context.messages)))
        return tool if len(context.messages) < 3 else None

    model = ScriptedModel([[ToolCall("c", "add", {"a": 1, "b": 2})], "done"])
    agent = Agent(
        "test:m", stream_fn=model, tools=[prepared([add], only_first)], deps="db", state={"who": "Ada"}
    )
    await agent.run("go")
    assert seen == [("db", {"who": "Ada"}, 1), ("db", {"who": "Ada"}, 3)]
    assert [len(context.tools) for context in model.calls] == [1, 0]


async def test_what_prepared_is_given_of_the_state_is_a_copy():
    def change(context: TurnContext, tool: Tool) -> Tool:
        dict.update(context.state, who="Eve")  # type: ignore[arg-type]
        return tool

    agent = Agent(
        "test:m", stream_fn=ScriptedModel(["done"]), tools=[prepared([add], change)], state={"who": "Ada"}
    )
    await agent.run("go")
    assert agent.state == {"who": "Ada"}


def test_a_set_inside_another_gets_the_turn():
    inner = prepared([add, multiply], lambda context, tool: tool if context.deps == tool.name else None)
    outer = prefixed(inner, "x_")
    assert [tool.name for tool in outer.tools_for(TurnContext("multiply"))] == ["x_multiply"]


def test_nothing_that_was_given_is_changed():
    given = [add, multiply]
    prefixed(given, "x_").tools()
    assert given == [add, multiply]
    assert add.name == "add"


# together

Change = Callable[[Any], Any]
CHANGES: dict[str, Change] = {
    "a": lambda tools: prefixed(tools, "a_"),
    "b": lambda tools: prefixed(tools, "b_"),
    "even": lambda tools: filtered(tools, lambda tool: len(tool.name) % 2 == 0),
    "calm": lambda tools: filtered(tools, lambda tool: not tool.requires_approval),
    "described": lambda tools: prepared(
        tools, lambda _, tool: replace(tool, description=tool.description + ".")
    ),
    "upper": lambda tools: renamed(
        Server(*tools.tools()) if hasattr(tools, "tools") else Server(*tools), {"t1": "T1"}
    ),
}


@st.composite
def tools_of_all_kinds(draw: st.DrawFn) -> list[Tool]:
    made: list[Tool] = []
    for number in range(draw(st.integers(0, 5))):
        options = {
            "requires_approval": draw(st.booleans()),
            "timeout": draw(st.none() | st.floats(0.1, 9)),
            "sequential": draw(st.booleans()),
            "idempotent": draw(st.booleans()),
            "read_only": draw(st.booleans()),
            "deferred": draw(st.sampled_from([True, False, "auto"])),
            "priority": draw(st.integers(-3, 3)),
            "max_result": draw(st.integers(1, 99)),
        }
        schema = {
            "type": "object",
            "properties": {"x": {"type": draw(st.sampled_from(["string", "integer"]))}},
        }
        made.append(Tool.raw(f"t{number}", "d", schema, lambda *_: None, **options))
    return made


def traits(tool: Tool) -> tuple[Any, ...]:
    """All of a tool but its name and description."""
    fields = [name for name in Tool.__struct_fields__ if name not in ("name", "description")]
    return tuple(getattr(tool, name) for name in fields)


@tried(60, 1_000)
@given(tools_of_all_kinds(), st.lists(st.sampled_from(sorted(CHANGES)), max_size=5), st.data())
def test_changes_compose_in_any_grouping_and_keep_what_a_tool_is(
    tools: list[Tool], order: list[str], data: st.DataObject
):
    def apply(given: Any, names: list[str]) -> Any:
        for name in names:
            given = CHANGES[name](given)
        return given

    whole = list(apply(Server(*tools), order).tools()) if order else tools
    at = data.draw(st.integers(0, len(order)))
    first = apply(Server(*tools), order[:at])
    parted = list(apply(Server(*first.tools()), order[at:]).tools())
    assert [(tool.name, tool.description, traits(tool)) for tool in parted] == [
        (tool.name, tool.description, traits(tool)) for tool in whole
    ]
    cut = data.draw(st.integers(0, len(tools)))
    halves = [apply(Server(*half), order) for half in (tools[:cut], tools[cut:])]
    joined = [tool for half in halves for tool in half.tools()]
    assert [(tool.name, traits(tool)) for tool in joined] == [(tool.name, traits(tool)) for tool in whole]
    by_body = {tool.body: tool for tool in tools}
    for made in whole:
        assert traits(made) == traits(by_body[made.body])
        for arguments in ({"x": "a"}, {"x": 1}):
            assert _prepared(made, arguments) == _prepared(by_body[made.body], arguments)


def _prepared(tool: Tool, arguments: dict[str, Any]) -> Any:
    try:
        return tool.prepare(arguments)
    except InvalidArguments as error:
        return error.problems
