"""Plan mode: read-only tools alone, whatever the model names."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from swink import Agent, Tool, ToolCall, ToolResultMessage, tool
from swink.agent.config import PromptContext
from swink.app.assistant.planning import PLAN_INSTRUCTION, has_plan, plan_prompt, plan_tools, without_plan
from swink.testing import ScriptedModel
from swink.tools import coding_tools


@tool(read_only=True)
def look() -> str:
    """Look."""
    return "seen"


@tool
def says_nothing() -> str:
    """Do something."""
    raise AssertionError("it ran")


class Source:
    def tools(self) -> Sequence[Any]:
        return [look, says_nothing]


async def test_a_tool_that_does_not_say_it_is_read_only_is_refused_even_if_the_model_names_it():
    model = ScriptedModel([[ToolCall("1", "look", {}), ToolCall("2", "says_nothing", {})], "Done."])
    agent = Agent("test:m", stream_fn=model, tools=plan_tools([Source()]), approval_mode="off")
    await agent.run("go")
    assert [spec.name for spec in model.calls[0].tools] == ["look"]
    results = [message for message in agent.messages if isinstance(message, ToolResultMessage)]
    assert [result.is_error for result in results] == [False, True]


def test_of_the_coding_tools_those_that_look_are_left(tmp_path: Path):
    left = plan_tools(coding_tools(tmp_path, sandbox="none"))
    names = {tool.name for tool in left if isinstance(tool, Tool)}
    assert "read_file" in names
    assert not names & {"bash", "write_file", "edit_file", "delete_file"}
    assert plan_tools([look, says_nothing]) == [look]


async def test_the_instruction_follows_the_prompt_whether_text_or_function():
    assert plan_prompt("Be brief.") == f"Be brief.\n\n{PLAN_INSTRUCTION}"
    assert plan_prompt("") == PLAN_INSTRUCTION
    assert [without_plan(text) for text in (plan_prompt("Be brief."), PLAN_INSTRUCTION, "x", None)] == [
        "Be brief.", "", "x", "",
    ]  # fmt: skip
    context = PromptContext(None, {}, ())

    async def later(context: PromptContext) -> str:
        return "Later."

    def at_once(context: PromptContext) -> str:
        return "Later."

    for prompt in (at_once, later):
        planned = plan_prompt(prompt)
        assert not isinstance(planned, str)
        text = planned(context)
        assert not isinstance(text, str)
        assert await text == f"Later.\n\n{PLAN_INSTRUCTION}"


async def test_a_plan_is_offered_only_after_a_reply():
    agent = Agent("test:m", stream_fn=ScriptedModel(["1. Do it."]))
    assert not has_plan(agent.messages)
    await agent.run("plan")
    assert has_plan(agent.messages)
