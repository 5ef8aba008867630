"""Mistyped names of models and providers: one hint where something is near, and none where nothing is."""

import logging

import pytest
from tests.counts import left_to_more

from swink import Agent, ExponentialBackoff, InvalidInput, UnknownModel
from swink.models import catalog
from swink.models.nearnames import nearest_model
from swink.providers.anthropic import AnthropicStreamFn
from swink.providers.openai import OpenAIStreamFn
from swink.testing import ScriptedModel


@pytest.fixture(autouse=True)
def never_warned(monkeypatch: pytest.MonkeyPatch):
    for variable in ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    catalog.forget()


def hints(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "did you mean" in record.getMessage()]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("anthropic:claude-sonet-4-6", "anthropic:claude-sonnet-4-6"),
        ("anthropic:claude-sonet-4-6-20260101", "anthropic:claude-sonnet-4-6"),
        ("anthropic:claude-4-6-sonnet", "anthropic:claude-sonnet-4-6"),
        ("openai:gpt5-mini", "openai:gpt-5-mini"),
        ("openai:gpt-5-mni", "openai:gpt-5-mini"),
        ("mistral:mistral-larg-latest", "mistral:mistral-large-latest"),
        ("deepseek:deepseek-chta", "deepseek:deepseek-chat"),
    ],
)
def test_a_mistyped_model_is_told_once(said: str, meant: str, caplog: pytest.LogCaptureFixture):
    for _ in range(3):
        Agent(said)
    assert hints(caplog) == [f"{said!r} is not in the list of models; did you mean {meant!r}?"]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


@pytest.mark.parametrize(
    "model",
    [
        "anthropic:claude-sonnet-4-6",
        "anthropic:claude-sonnet-4-6-20991231",
        "anthropic:claude-sonnet-9-1",
        "openai:gpt-9",
        "openai:gpt-9.9-mini",
        "openai:nope",
        "openai:ft:gpt-5:acme::x1",
        "gemini:gemini-99-pro",
        "ollama:lama3",
        "vllm:qwen3-codr",
        "lmstudio:gpt-5-mni",
    ],
)
def test_nothing_is_told_of_other_names(model: str, caplog: pytest.LogCaptureFixture):
    Agent(model)
    assert not hints(caplog)


def test_nothing_is_told_where_another_server_is_asked(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    Agent("openai:gpt-5-mni", stream_fn=OpenAIStreamFn(base_url="http://127.0.0.1:9/v1"))
    Agent("openai:gpt-5-mni", stream_fn=ScriptedModel([]))
    monkeypatch.setenv("OPENAI_BASE_URL", "https://models.example.com/v1")
    Agent("openai:gpt-5-mni")
    assert not hints(caplog)


def test_a_stream_function_of_ones_own_that_asks_the_provider_is_no_excuse(caplog: pytest.LogCaptureFixture):
    Agent("anthropic:claude-sonet-4-6", stream_fn=AnthropicStreamFn(api_key="x"))
    assert len(hints(caplog)) == 1


def test_fallbacks_and_models_that_are_assigned_are_looked_at(caplog: pytest.LogCaptureFixture):
    agent = Agent("openai:gpt-5", fallback_models=["anthropic:claude-opuss-4-6"])
    agent.model = "openai:gpt-5-nanno"
    assert ["claude-opuss" in hints(caplog)[0], "gpt-5-nanno" in hints(caplog)[1]] == [True, True]


def test_a_registered_provider_may_have_any_models(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(catalog, "_registered", {})
    catalog.register_provider("openai", lambda: OpenAIStreamFn(api_key="x"))
    Agent("openai:gpt-5-mni")
    assert not hints(caplog)


@left_to_more
def test_no_listed_model_would_be_taken_for_another_if_it_were_new():
    """Each of the 700 is held against the others of its provider; two names that differ by one letter remain."""
    for provider in {spec.provider for spec in catalog.models()}:
        names = [spec.model_id for spec in catalog.models(provider)]
        taken = [name for name in names if nearest_model(name, [other for other in names if other != name])]
        assert len(taken) <= 2, taken


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("antropic:claude-sonnet-4-6", "did you mean 'anthropic'?"),
        ("OpenAI:gpt-5", "did you mean 'openai'?"),
        ("google:gemini-2.5-flash", "did you mean 'gemini'?"),
        ("azure_openai:x", "did you mean 'azure'?"),
        ("gpt-5", "did you mean 'openai:gpt-5'?"),
        ("openai/gpt-5", "did you mean 'openai:gpt-5'?"),
    ],
)
def test_a_provider_that_is_unknown_or_left_out_gets_the_nearest(said: str, hint: str):
    with pytest.raises(UnknownModel) as raised:
        Agent(said)
    assert hint in str(raised.value)


@pytest.mark.parametrize("said", ["nope:x", "nope", "nope/x", ":", ""])
def test_nothing_is_suggested_where_nothing_is_near(said: str):
    with pytest.raises(UnknownModel) as raised:
        Agent(said)
    assert "did you mean" not in str(raised.value)


@pytest.mark.parametrize(
    ("keyword", "hint"),
    [
        ("instructions", "write system_prompt="),
        ("llm", "write model="),
        ("sytem_prompt", "write system_prompt="),
        ("fallback_model", "write fallback_models="),
        ("temperature", "write options=StreamOptions(temperature=…)"),
        ("max_turns", "write policies=[MaxTurns(…)]"),
        ("frobnicate", "it has model, name, thinking_level, "),
    ],
)
def test_a_keyword_that_does_not_exist_is_told_with_the_one_that_does(keyword: str, hint: str):
    agent = Agent("test:m", stream_fn=ScriptedModel([]), retry=ExponentialBackoff())
    for make in (Agent, agent.copy):
        with pytest.raises(InvalidInput, match=f"no keyword '{keyword}'") as raised:
            make(**{keyword: 1})  # pyright: ignore
        assert hint in str(raised.value)
