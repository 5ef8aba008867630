"""The workshop: which tools and which prompt an assistant gets in a directory."""

from pathlib import Path

from swink.assistant.workshop import Workshop, make_assistant
from swink.messages import ModelSpec
from swink.testing import ScriptedModel

LARGE = ModelSpec("test", "large", context_window=200_000)
SMALL = ModelSpec("test", "small", context_window=8_192)


async def asked(workshop: Workshop, model: ModelSpec = LARGE) -> tuple[str, set[str]]:
    """The system prompt and the names of the tools that a model is sent."""
    scripted = ScriptedModel(["hello"])
    await workshop.make_agent(model, stream_fn=scripted).run("Hi")
    context = scripted.calls[0]
    return context.system_prompt, {tool.name for tool in context.tools}


async def test_a_directory_with_files_gets_coding_tools_and_an_empty_one_does_not(tmp_path: Path):
    assert "bash" not in (await asked(Workshop(tmp_path)))[1]
    (tmp_path / "main.py").write_text("print(1)\n")
    prompt, tools = await asked(Workshop(tmp_path))
    assert {"read_file", "edit_file", "bash", "fetch_url", "todo"} <= tools
    assert "coding agent" in prompt
    assert f"Directory: {tmp_path}" in prompt


async def test_an_empty_git_repository_is_work_too_and_its_branch_is_named(tmp_path: Path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/feature/one\n")
    (tmp_path / "inner").mkdir()
    prompt, tools = await asked(Workshop(tmp_path / "inner"))
    assert "bash" in tools
    assert "Git branch: feature/one" in prompt


async def test_a_model_with_a_small_window_gets_a_short_prompt_and_no_tools(tmp_path: Path):
    (tmp_path / "main.py").touch()
    prompt, tools = await asked(Workshop(tmp_path), SMALL)
    assert not tools
    assert len(prompt) < 200


async def test_a_larger_model_taken_later_gets_the_tools(tmp_path: Path):
    (tmp_path / "main.py").touch()
    scripted = ScriptedModel(["one", "two"])
    agent = make_assistant(tmp_path, SMALL, stream_fn=scripted)
    await agent.run("Hi")
    agent.model = LARGE
    await agent.run("Hi")
    assert [bool(context.tools) for context in scripted.calls] == [False, True]
