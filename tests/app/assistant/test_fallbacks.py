"""Fallbacks: an agent whose model fails goes on with the next, says so once, and stays with it."""

import asyncio
from pathlib import Path

import pytest

from swink import Agent
from swink.agent.retry import ExponentialBackoff
from swink.app.assistant.agentenvironment import AgentEnvironment
from swink.app.assistant.fallbacks import obey_fallback, read_fallbacks
from swink.app.assistant.settings import load_settings
from swink.app.tui.conversationdriver import ConversationDriver
from swink.errors import NetworkError, UnknownModel
from swink.events.transcript import Fallback, NoticeBlock
from swink.messages import ModelSpec, ToolCall
from swink.testing import Pause, ScriptedModel

DOWN = NetworkError("down")
ONCE = ExponentialBackoff(max_attempts=1)
A, B, C = (ModelSpec("test", name, context_window=200_000) for name in "abc")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "swink").mkdir()
    return tmp_path / "swink" / "config.toml"


def agent_of(*replies: object, fallbacks: tuple[ModelSpec, ...] = (B,)) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel(replies)
    return Agent(A, stream_fn=model, retry=ONCE, fallback_models=fallbacks), model


def told(driver: ConversationDriver) -> list[str]:
    blocks = driver.transcript.blocks
    return [
        str(block.notice)
        for block in blocks
        if isinstance(block, NoticeBlock) and isinstance(block.notice, Fallback)
    ]


def asked(model: ScriptedModel) -> list[str]:
    return [spec.model_id for spec in model.models]


async def test_a_fallback_that_answers_is_told_once_and_stays_for_the_turns_and_runs_that_follow():
    agent, model = agent_of(DOWN, ToolCall("1", "none", {}), "done", "again")
    driver = ConversationDriver(agent)
    for prompt in ("hi", "and?"):
        driver.send(prompt)
        await driver.wait()
    assert asked(model) == ["a", "b", "b", "b"]
    assert told(driver) == ["test:a does not answer; switched to test:b"]
    assert str(driver.agent.model) == "test:b"


async def test_if_the_fallback_fails_later_the_first_is_asked_again():
    agent, model = agent_of(DOWN, "one", DOWN, "two")
    driver = ConversationDriver(agent)
    for prompt in ("hi", "and?"):
        driver.send(prompt)
        await driver.wait()
    assert asked(model) == ["a", "b", "b", "a"]
    assert str(driver.agent.model) == "test:a"


async def test_if_all_fail_the_model_stays_the_one_that_was_chosen():
    agent, model = agent_of(DOWN, DOWN, DOWN, fallbacks=(A, B, C))
    driver = ConversationDriver(agent)
    driver.send("hi")
    await driver.wait()
    assert asked(model) == ["a", "b", "c"], "a fallback that is the model itself is no other model"
    assert (driver.activity.state, str(driver.agent.model)) == ("error", "test:a")


async def test_a_model_that_was_chosen_while_a_fallback_answered_stays():
    agent, model = agent_of(DOWN, "one", ["two", Pause(0.1)], "three")
    driver = ConversationDriver(agent)
    driver.send("hi")
    await driver.wait()
    driver.send("and?")
    while len(model.calls) < 3:
        await asyncio.sleep(0)
    driver.switch(C)
    await driver.wait()
    driver.send("now?")
    await driver.wait()
    assert asked(model) == ["a", "b", "b", "c"]
    assert str(driver.agent.model) == "test:c"


async def test_a_sub_agent_falls_back_as_its_assistant_does(tmp_path: Path):
    (tmp_path / "main.py").write_text("print(42)\n")
    model = ScriptedModel([ToolCall("1", "explore", {"task": "look"}), DOWN, "found", "done"])
    environment = AgentEnvironment(tmp_path)
    agent = environment.make_agent(
        A, stream_fn=model, approve=lambda request: True, retry=ONCE, fallback_models=[B]
    )
    result = await agent.run("go")
    assert result.text == "done"
    assert asked(model) == ["a", "a", "b", "a"]


def test_an_unknown_model_among_the_fallbacks_is_told_with_its_line(config: Path):
    config.write_text(
        'retries = 4\n# openia:gpt\nfallbacks = [\n  "openai:gpt-5",\n  "openia:gpt-5",\n  "gpt",\n]\n'
    )
    found, (provider, name) = read_fallbacks(load_settings(), "low")
    assert [(str(spec), spec.thinking_level) for spec in found] == [("openai:gpt-5", "low")]
    assert f"{config}, line 5: fallbacks: unknown provider 'openia'" in provider
    assert "did you mean openai:gpt-5?" in provider
    assert f"{config}, line 6: fallbacks: 'gpt' is not a model" in name


def test_fallbacks_are_shown_set_and_taken_away():
    agent, _ = agent_of(fallbacks=())
    assert obey_fallback(agent, "") is None
    assert obey_fallback(agent, "openai:gpt-5") is None
    assert "no model is asked" in str(obey_fallback(agent, "fallback"))
    said = obey_fallback(agent, "fallback openai:gpt-5, openai:gpt-4.1")
    assert said == "if test:a fails for good: openai:gpt-5, then openai:gpt-4.1"
    with pytest.raises(UnknownModel, match="openia"):
        obey_fallback(agent, "fallback openia:gpt-5")
    assert len(agent.fallback_models) == 2
    assert "no model is asked" in str(obey_fallback(agent, "fallback none"))
    assert agent.fallback_models == ()
