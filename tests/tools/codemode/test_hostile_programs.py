"""What programs, tools and servers may bring that is odd or hostile: it is refused, cut or kept, and told."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from swink import Agent, Policy, PolicyContext, ToolCall, Turn, defer, tool
from swink.errors import InvalidTool
from swink.mcp.taskcalls import _seconds
from swink.messages import AssistantMessage, ToolResultMessage, UserMessage
from swink.models import parse_model
from swink.policies import AuditLogger, ToolAllowList
from swink.providers.convert import prepare
from swink.testing import ScriptedModel
from swink.tools import Tool, ToolError, code_mode, narrowed, prefixed
from swink.tools.codemode.program import plain_data
from swink.tools.codemode.signatures import functions_of


@tool(read_only=True)
async def look(path: str) -> str:
    """Look."""
    return f"{path} is there"


@tool
async def delete(path: str) -> str:
    """Delete."""
    return f"{path} is gone"


def program(code: str, id: str = "c0") -> ToolCall:
    return ToolCall(id, "run_code", {"code": code})


async def ran(agent: Agent, *words: Any, **options: Any) -> str:
    await agent.run(*words, **options)
    return "\n".join(message.text for message in agent.messages if isinstance(message, ToolResultMessage))


def test_a_value_whose_parts_are_shared_is_counted_as_json_would_be():
    row = [1] * 100
    with pytest.raises(ToolError, match="more than 1,000,000 characters"):
        plain_data([[row] * 100] * 100)
    with pytest.raises(ToolError):
        plain_data(["x" * 100_000] * 11)
    assert plain_data({1: (2, {3})}) == {"1": [2, [3]]}


async def test_arguments_that_are_too_large_raise_in_the_program():
    code = "big = ['x' * 100_000] * 11\ntry:\n    delete(big)\nexcept RuntimeError as e:\n    str(e)[:40]"
    agent = Agent("test:m", stream_fn=ScriptedModel([[program(code)], "done"]), tools=[code_mode([delete])])
    text = await ran(agent, "go")
    assert "is gone" not in text


async def test_a_program_that_is_too_long_is_refused():
    agent = Agent(
        "test:m", stream_fn=ScriptedModel([[program("1\n" * 60_000)], "done"]), tools=[code_mode([look])]
    )
    assert "at most 100,000 characters" in await ran(agent, "go")


async def test_an_approval_counts_for_the_tool_that_was_asked_about():
    """A provider may give an id that a call inside of a program has, too."""
    seen: list[str] = []

    @tool(requires_approval=True)
    async def look(path: str) -> str:
        """Look."""
        seen.append("look")
        return path

    @tool(requires_approval=True)
    async def delete(path: str) -> str:
        """Delete."""
        seen.append("delete")
        return path

    calls = [program("delete('/x')"), ToolCall("c0.1", "look", {"path": "/x"})]
    agent = Agent(
        "test:m",
        stream_fn=ScriptedModel([calls, "done"]),
        tools=[code_mode([delete]), look],
        approve=defer,
    )
    await agent.run("go")
    await agent.run(approvals={"c0.1": True})
    assert "delete" not in seen


async def test_the_audit_log_and_policies_have_the_calls_of_programs(tmp_path: Path):
    turns: list[Turn] = []

    class Watch(Policy):
        def post_turn(self, ctx: PolicyContext, turn: Turn) -> None:
            turns.append(turn)

    path = tmp_path / "audit.jsonl"
    agent = Agent(
        "test:m",
        stream_fn=ScriptedModel([[program("delete('/x')")], "done"]),
        tools=[code_mode([delete])],
        policies=[AuditLogger(path), Watch()],
    )
    await agent.run("go")
    record = json.loads(path.read_text().splitlines()[0])
    assert record["inner_calls"] == [
        {
            "id": "c0.1",
            "name": "delete",
            "arguments": {"path": "/x"},
            "is_error": False,
            "result": "/x is gone",
            "outer": "c0",
        }
    ]
    assert [(inner.call.name, inner.result.text, inner.outer) for inner in turns[0].inner_calls] == [
        ("delete", "/x is gone", "c0")
    ]
    assert turns[1].inner_calls == ()


def test_a_narrowed_program_keeps_its_name_and_what_was_set_on_it():
    made = replace(code_mode([look, delete]), requires_approval=True, timeout=5.0, max_result=1_000)
    (renamed,) = prefixed([made], "a_").tools()
    (left,) = narrowed([renamed], lambda each: each.name != "delete")
    assert (left.name, left.requires_approval, left.timeout, left.max_result) == (
        "a_run_code",
        True,
        5.0,
        1_000,
    )
    assert left.read_only
    assert "def delete" not in left.description


@pytest.mark.parametrize("description", ["", "  ", "Does it."])
def test_any_legal_tool_becomes_a_function(description: str):
    async def body(call_id: str, arguments: dict[str, Any], ctx: Any) -> str:
        return "done"

    schema: dict[str, Any] = {"type": "object", "properties": {"x": True, "y": {"type": "string"}}}
    (function,) = functions_of([Tool.raw("odd", description or "-", schema, body)]).values()
    assert str(function).startswith("def odd(x: Any = ..., y: str = ...)")
    assert str(functions_of([replace(function.tool, description="\n")])["odd"])


def test_a_schema_that_refers_to_itself_stays_short():
    properties = {f"p{number}": {"$ref": "#"} for number in range(300)}
    schema = {"type": "object", "properties": properties, "required": list(properties)}

    async def body(call_id: str, arguments: dict[str, Any], ctx: Any) -> str:
        return "done"

    (function,) = functions_of([Tool.raw("deep", "Deep.", schema, body)]).values()
    assert len(str(function)) < 200_000


def test_the_name_of_the_tool_that_calls_others_is_taken():
    with pytest.raises(InvalidTool, match="call_tool"):
        Agent("test:m", tools=[replace(look, name="call_tool")])


def test_deferred_tools_can_be_found_whatever_is_allowed():
    verdict = ToolAllowList("github_*").pre_dispatch(PolicyContext, ToolCall("1", "find_tools", {}))  # type: ignore[arg-type]
    assert verdict is None


def test_a_result_has_the_name_by_which_the_model_called_it_last():
    called = AssistantMessage([ToolCall("1", "call_tool", {"name": "near", "arguments": {}})])
    direct = AssistantMessage([ToolCall("1", "near", {})])
    messages = [
        UserMessage("go"),
        called,
        ToolResultMessage("1", "near", "a"),
        direct,
        ToolResultMessage("1", "near", "b"),
    ]
    names = [
        message.tool_name
        for message in prepare(messages, parse_model("openai:gpt-5"))
        if isinstance(message, ToolResultMessage)
    ]
    assert names == ["call_tool", "near"]


@pytest.mark.parametrize("given", [float("nan"), -1, 0, 10**400, None, "soon", True])
def test_a_task_is_asked_about_after_a_pause_whatever_its_server_says(given: Any):
    assert 0 < _seconds(given) < 1_000
