"""Deferred tools in the coding agent: modes, rules and agent files hold for them as for all others."""

from pathlib import Path
from typing import Any

import pytest

from swink import Agent, ToolCall, ToolResultMessage, tool
from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.planning import plan_tools
from swink.app.assistant.rulebook import RuleBook
from swink.app.assistant.rules import parse_rule
from swink.app.assistant.settings import UserSettings
from swink.app.assistant.toolcalls import format_call
from swink.events import ApprovalRequested
from swink.testing import EventCollector, ScriptedModel
from swink.tools import TurnContext, prepared


@tool(deferred=True, read_only=True)
def files_read(path: str) -> str:
    """Read a file of the server."""
    return f"text of {path}"


@tool(deferred=True, requires_approval=True)
def files_wipe(path: str) -> str:
    """Wipe a file of the server."""
    return f"wiped {path}"


CALL = ToolCall("w", "call_tool", {"name": "files_wipe", "arguments": {"path": "a"}})


class Source:
    def tools(self) -> Any:
        return [files_read, files_wipe]


async def results(*replies: Any, **options: Any) -> list[ToolResultMessage]:
    agent = Agent("test:m", stream_fn=ScriptedModel([*replies, "done"]), **options)
    await agent.run("go")
    return [message for message in agent.messages if isinstance(message, ToolResultMessage)]


@pytest.mark.parametrize("tools", [[files_read, files_wipe], [Source()]])
async def test_plan_mode_finds_and_calls_only_what_reads(tools: list[Any]):
    found, wiped, read = await results(
        [
            ToolCall("f", "find_tools", {"query": "wipe or read a file"}),
            CALL,
            ToolCall("r", "call_tool", {"name": "files_read", "arguments": {"path": "a"}}),
        ],
        tools=plan_tools(tools),
    )
    assert "files_wipe" not in found.text
    assert "files_read" in found.text
    assert "no tool named 'files_wipe'" in wiped.text
    assert read.text == "text of a"


def test_plan_mode_hands_the_turn_on_to_a_tool_set():
    def for_some(turn: TurnContext, tool: Any) -> Any:
        return tool if turn.deps == "reader" else None

    (source,) = plan_tools([prepared([files_read, files_wipe], for_some)])
    assert [tool.name for tool in source.tools_for(TurnContext("reader"))] == ["files_read"]  # type: ignore[union-attr]
    assert source.tools() == []  # type: ignore[union-attr]


async def test_a_rule_that_denies_a_tool_denies_it_through_call_tool(tmp_path: Path):
    book = RuleBook(tmp_path, path=tmp_path / "permissions")
    book.add([parse_rule("deny files_wipe")], "project")
    seen = EventCollector()
    agent = Agent(
        "test:m",
        stream_fn=ScriptedModel([[CALL], "done"]),
        tools=[files_read, files_wipe],
        approve=Permissions("off", rules=book),
        approval_mode="on",
    )
    agent.subscribe(seen)
    await agent.run("go")
    (result,) = [message for message in agent.messages if isinstance(message, ToolResultMessage)]
    assert result.is_error
    assert "deny files_wipe" in result.text
    assert [event.name for event in seen.of(ApprovalRequested)] == ["files_wipe"]


async def test_looking_for_tools_is_not_asked_about(tmp_path: Path):
    found = await results(
        [ToolCall("f", "find_tools", {"query": "file"})],
        tools=[files_read, files_wipe],
        approve=Permissions("smart", rules=RuleBook(tmp_path, path=tmp_path / "permissions")),
        approval_mode="on",
    )
    assert not found[0].is_error


def test_a_call_is_shown_as_what_it_does():
    made = CALL.resolved
    assert format_call(made.name, made.arguments) == 'files_wipe(path="a")'


@pytest.mark.parametrize("word", ["auto", True, False])
async def test_the_setting_reaches_the_servers(tmp_path: Path, word: Any):
    settings = UserSettings(tmp_path / "config.toml", mcp_deferred=word)
    environment = AgentEnvironment(tmp_path, settings=settings)
    await environment.open()
    assert environment.servers.deferred == word
    await environment.aclose()
