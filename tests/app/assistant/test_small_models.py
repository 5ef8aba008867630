"""Small local models: a short prompt, six tools of the directory put briefly, results cut short."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from swink.agent.policy import ApprovalRequest
from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.smallmodels import MOST_RESULT, MOST_TOKENS, PROMPT, is_small_local, small_tools
from swink.events import ToolExecutionEnd
from swink.local.describe import describe_tools, example_talk
from swink.messages import ModelSpec, ToolCall
from swink.models.catalog import parse_model
from swink.testing import ScriptedModel
from swink.tools import full_text
from swink.tools.coding import coding_tools
from swink.tools.schema import Shape

SMOL = parse_model("local:smollm2-135m")
QWEN = parse_model("local:qwen2.5-coder-1.5b")
NAMES = ["bash", "edit_file", "find_files", "read_file", "search_text", "write_file"]
FEWEST_CHARACTERS = 2.5
"""Characters of a token in this text: SmolLM2 has 3.2, so this leaves room for other tokenizers."""


@pytest.mark.parametrize("model", [SMOL, QWEN], ids=str)
async def test_a_small_local_model_gets_a_short_prompt_and_six_tools(tmp_path: Path, model: ModelSpec):
    (tmp_path / "AGENTS.md").write_text("A long text for larger models.\n")
    scripted = ScriptedModel(["hello", "again"])
    environment = AgentEnvironment(tmp_path)
    agent = environment.make_agent(model, stream_fn=scripted)
    await agent.run("Hi")
    await agent.run("Hi")
    assert scripted.calls[0].system_prompt == PROMPT
    assert sorted(tool.name for tool in scripted.calls[0].tools) == NAMES
    (notice,) = environment.take_notices()
    assert notice.startswith(f"{model} is a small model: it gets a short prompt and six tools")


async def test_a_larger_model_taken_later_gets_everything(tmp_path: Path):
    scripted = ScriptedModel(["one", "two"])
    agent = AgentEnvironment(tmp_path).make_agent(QWEN, stream_fn=scripted)
    await agent.run("Hi")
    agent.model = ModelSpec("test", "large", context_window=200_000)
    await agent.run("Hi")
    assert len(scripted.calls[0].tools) == 6
    assert len(scripted.calls[1].tools) > 6
    assert "todo" in scripted.calls[1].system_prompt


async def test_where_there_are_no_tools_for_files_there_are_none_in_the_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    scripted = ScriptedModel(["hello"])
    await AgentEnvironment(tmp_path).make_agent(SMOL, stream_fn=scripted).run("Hi")
    assert not scripted.calls[0].tools
    assert "tool" not in scripted.calls[0].system_prompt


def test_prompt_tools_and_examples_stay_below_the_limit(tmp_path: Path):
    tools = small_tools(coding_tools(tmp_path))
    talk = "".join(role + text for role, text in example_talk(tools))
    assert len(f"{PROMPT}{describe_tools(tools)}{talk}") / FEWEST_CHARACTERS < MOST_TOKENS


def test_weights_decide_which_local_models_are_small(tmp_path: Path):
    small, large = tmp_path / "small.gguf", tmp_path / "large.gguf"
    small.write_bytes(b"GGUF")
    with large.open("wb") as file:
        file.truncate(4_000_000_000)  # a file with a hole
    assert is_small_local(ModelSpec("local", str(small)))
    assert not is_small_local(ModelSpec("local", str(large)))
    assert not is_small_local(ModelSpec("local", str(tmp_path / "missing.gguf")))
    assert not is_small_local(ModelSpec("local", "unknown-name"))
    assert not is_small_local(ModelSpec("ollama", "smollm2-135m"))


def test_every_argument_of_the_short_schemas_is_one_of_the_tool_itself(tmp_path: Path):
    whole = {tool.name: tool for tool in coding_tools(tmp_path)}
    samples: dict[str, Any] = {
        "path": "a.py",
        "pattern": "*",
        "content": "x",
        "command": "ls",
        "edits": [{"old": "a", "new": "b"}],
    }
    for tool in small_tools(list(whole.values())):
        arguments = {name: samples[name] for name in tool.parameters_schema["properties"]}
        assert tool.prepare(arguments) == whole[tool.name].prepare(arguments)
        assert tool.body is whole[tool.name].body
        assert tool.needs_approval(arguments) == whole[tool.name].needs_approval(arguments)
        assert tool.read_only == whole[tool.name].read_only


def test_a_script_with_the_name_of_a_tool_keeps_its_own_arguments(tmp_path: Path):
    script = next(tool for tool in coding_tools(tmp_path) if tool.name == "read_file")
    script = replace(script, shape=Shape({"type": "object", "properties": {"city": {"type": "string"}}}))
    assert small_tools([script]) == []


async def carry_out(directory: Path, call: ToolCall) -> tuple[list[ApprovalRequest], ToolExecutionEnd]:
    """What was asked about a call of a small model, and how it ended."""
    requests: list[ApprovalRequest] = []
    ends: list[ToolExecutionEnd] = []

    async def approve(request: ApprovalRequest) -> bool:
        requests.append(request)
        return True

    agent = AgentEnvironment(directory).make_agent(
        QWEN, stream_fn=ScriptedModel([[call], "done"]), approve=approve, approval_mode="smart"
    )
    agent.subscribe(lambda event: ends.append(event) if isinstance(event, ToolExecutionEnd) else None)
    await agent.run("Do it")
    return requests, ends[0]


async def test_an_edit_is_asked_about_like_that_of_any_model(tmp_path: Path):
    file = tmp_path / "config.toml"
    file.write_text("port = 8080\n")
    edits = [{"old": "8080", "new": "9090"}]
    requests, end = await carry_out(
        tmp_path, ToolCall("1", "edit_file", {"path": "config.toml", "edits": edits})
    )
    assert [request.name for request in requests] == ["edit_file"]
    assert not end.is_error
    assert file.read_text() == "port = 9090\n"


async def test_arguments_that_do_not_fit_the_short_schema_are_refused(tmp_path: Path):
    _, end = await carry_out(tmp_path, ToolCall("1", "read_file", {"file": "a.py"}))
    assert end.is_error
    assert "path" in end.result.text


async def test_a_long_result_is_cut_for_the_model_and_kept_for_the_person(tmp_path: Path):
    text = "".join(f"line {number}\n" for number in range(1000))
    (tmp_path / "long.txt").write_text(text)
    _, end = await carry_out(tmp_path, ToolCall("1", "read_file", {"path": "long.txt"}))
    assert len(end.result.text) < MOST_RESULT + 100
    assert "characters cut" in end.result.text
    assert (full_text(end.result) or "").count("\n") >= 999


async def test_a_command_of_a_small_model_is_known_as_one_of_the_directorys_tools(tmp_path: Path):
    environment = AgentEnvironment(tmp_path)
    environment.make_agent(QWEN, stream_fn=ScriptedModel(["hello"]))
    (bash,) = [tool for tool in environment.tools() if tool.name == "bash"]
    is_current = environment._is_current  # pyright: ignore[reportPrivateUsage]
    assert is_current(bash)
    other = next(tool for tool in coding_tools(tmp_path) if tool.name == "bash")
    assert not is_current(other)
    assert not is_current("bash")
