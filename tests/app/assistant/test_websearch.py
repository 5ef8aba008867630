"""Web search: on by the setting where the provider has it, told once where it has not, and with the model."""

from pathlib import Path

import pytest

from swink import Agent
from swink.agent.retry import ExponentialBackoff
from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.settings import UserSettings
from swink.app.assistant.websearch import has_search
from swink.errors import InvalidInput, NetworkError
from swink.messages import ModelSpec, ToolCall
from swink.messages.providertools import WebSearch
from swink.testing import ScriptedModel

WITH = ModelSpec("anthropic", "claude-sonnet-4-6", context_window=200_000)
WITHOUT = ModelSpec("deepseek", "deepseek-chat", context_window=200_000)


def environment(place: Path, *, is_on: bool = True) -> AgentEnvironment:
    (place / "main.py").write_text("print(1)\n")
    return AgentEnvironment(place, settings=UserSettings(place / "config.toml", web_search=is_on))


async def test_a_model_without_search_is_told_once_and_keeps_fetch_url(tmp_path: Path):
    model = ScriptedModel(["one", "two"])
    here = environment(tmp_path)
    agent = here.make_agent(WITHOUT, stream_fn=model)
    await agent.run("hi")
    await agent.run("hi")
    assert [[*call.hosted] for call in model.calls] == [[], []]
    assert "fetch_url" in {tool.name for tool in model.calls[0].tools}
    told = [notice for notice in here.take_notices() if "web_search" in notice]
    assert told == [
        "web_search is set, but deepseek:deepseek-chat has no search of its own; fetch_url reads pages by address"
    ]


async def test_without_the_setting_there_is_none(tmp_path: Path):
    model = ScriptedModel(["one"])
    here = environment(tmp_path, is_on=False)
    await here.make_agent(WITH, stream_fn=model).run("hi")
    assert [*model.calls[0].hosted] == []
    assert here.take_notices() == []


async def test_it_follows_the_model_and_the_settings(tmp_path: Path):
    model = ScriptedModel(["one", "two", "three", "four"])
    here = environment(tmp_path)
    agent = here.make_agent(WITH, stream_fn=model)
    await agent.run("hi")
    agent.model = WITHOUT
    await agent.run("hi")
    agent.model = WITH
    await agent.run("hi")
    await here.open(settings=UserSettings(tmp_path / "config.toml"))
    await agent.run("hi")
    await here.aclose()
    assert [[*call.hosted] for call in model.calls] == [[WebSearch()], [], [WebSearch()], []]


async def test_sub_agents_have_it_too(tmp_path: Path):
    model = ScriptedModel([[ToolCall("1", "explore", {"task": "look"})], "found", "Done."])
    await environment(tmp_path).make_agent(WITH, stream_fn=model, approval_mode="off").run("hi")
    assert [[*call.hosted] for call in model.calls] == [[WebSearch()]] * 3


async def test_a_fallback_without_search_is_asked_without_it():
    first, second = ScriptedModel([NetworkError("down")] * 9), ScriptedModel(["here"])
    agent = Agent(
        WITH,
        stream_fn=first,
        fallback_models=[(WITHOUT, second)],
        hosted=lambda model: [WebSearch()] if has_search(model) else [],
        retry=ExponentialBackoff(1, 0, 0),
    )
    assert (await agent.run("hi")).text == "here"
    assert [*first.calls[0].hosted] == [WebSearch()]
    assert [*second.calls[0].hosted] == []


async def test_what_a_function_gives_is_checked_and_a_class_is_no_function():
    agent = Agent("test:m", stream_fn=ScriptedModel(["x"]), hosted=lambda model: ["search"])  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="hosted takes tools"):
        await agent.run("hi")
    with pytest.raises(InvalidInput, match="hosted is a list"):
        Agent("test:m", hosted=WebSearch)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "has"),
    [
        ("anthropic:claude-opus-4-6", True),
        ("vertex:claude-sonnet-4-5@20250929", True),
        ("vertex:gemini-3-pro-preview", False),
        ("gemini:gemini-2.5-pro", False),
        ("gemini:gemini-3-pro-preview", True),
        ("openai:gpt-5", False),
        ("openai:gpt-5-search-api", True),
        ("openai-responses:gpt-5", True),
        ("openrouter:any/model", True),
        ("groq:llama", False),
        ("bedrock:us.amazon.nova-2-lite-v1:0", True),
        ("local:smollm2-135m", False),
    ],
)
def test_who_has_search(name: str, has: bool):
    assert has_search(ModelSpec(*name.split(":", 1))) == has
