"""Every adapter, every level, with and without a budget: the body says it, or a notice does (S8)."""

import itertools
import json
import logging
from typing import Any, get_args

import pytest
from adapters import ADAPTERS, KEY
from loopback import MemoryClient, read
from tests.counts import in_cells

from swink.messages import Capabilities, ModelSpec, ThinkingLevel
from swink.providers.azure import AzureStreamFn
from swink.providers.openai import OpenAIStreamFn
from swink.providers.proxy import ProxyStreamFn
from swink.providers.thinking import nearest, openai_efforts
from swink.stream import StreamOptions

LEVELS: tuple[ThinkingLevel, ...] = get_args(ThinkingLevel)
BUDGET = 3456

# Provider and model, and whether a model thinks that is asked not to: "silent" does not think, "may" is not known to.
MODELS: list[tuple[str, str, str]] = [
    ("anthropic", "claude-sonnet-4-5", "silent"),
    ("anthropic", "claude-opus-4-7", "silent"),
    ("anthropic", "claude-sonnet-5", "told"),
    ("anthropic", "claude-fable-5", "always"),
    ("openai", "gpt-4.1", "silent"),
    ("openai", "gpt-5", "told"),
    ("openai", "gpt-5-pro", "told"),
    ("openai", "gpt-5.1", "told"),
    ("openai", "gpt-5.2-codex", "told"),
    ("openai", "o3", "told"),
    ("openai", "gpt-5-chat-latest", "silent"),
    ("openai-responses", "gpt-5", "told"),
    ("openai-responses", "gpt-5.4", "told"),
    ("openai-responses", "gpt-4.1", "silent"),
    ("azure", "gpt-5.1", "told"),
    ("azure", "gpt-4o", "silent"),
    ("azure", "our-deployment", "may"),
    ("xai", "grok-3-mini", "told"),
    ("xai", "grok-4", "always"),
    ("xai", "grok-4.3", "told"),
    ("xai", "grok-4.20-0309-reasoning", "always"),
    ("xai", "grok-4.20-0309-non-reasoning", "silent"),
    ("mistral", "magistral-medium-latest", "always"),
    ("mistral", "mistral-small-latest", "told"),
    ("mistral", "mistral-large-latest", "silent"),
    ("ollama", "qwen3:8b", "told"),
    ("ollama", "gpt-oss:20b", "told"),
    ("gemini", "gemini-2.0-flash", "silent"),
    ("gemini", "gemini-2.5-flash", "told"),
    ("gemini", "gemini-2.5-pro", "told"),
    ("gemini", "gemini-3-pro-preview", "told"),
    ("gemini", "gemini-flash-latest", "told"),
    ("gemini", "gemma-3-27b-it", "silent"),
    ("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "silent"),
    ("bedrock", "us.anthropic.claude-opus-4-6-v1", "silent"),
    ("bedrock", "us.amazon.nova-2-lite-v1:0", "told"),
    ("bedrock", "openai.gpt-oss-120b-1:0", "told"),
    ("bedrock", "us.deepseek.r1-v1:0", "always"),
    ("bedrock", "us.amazon.nova-pro-v1:0", "silent"),
    ("groq", "qwen/qwen3-32b", "told"),
    ("groq", "openai/gpt-oss-120b", "told"),
    ("groq", "llama-3.3-70b-versatile", "silent"),
    ("together", "openai/gpt-oss-20b", "told"),
    ("together", "Qwen/Qwen3.5-397B-A17B", "told"),
    ("together", "deepseek-ai/DeepSeek-R1", "always"),
    ("together", "meta-llama/Llama-3.3-70B-Instruct-Turbo", "silent"),
    ("openrouter", "anthropic/claude-sonnet-4.5", "may"),
    ("deepseek", "deepseek-v4-flash", "told"),
    ("deepseek", "deepseek-reasoner", "always"),
    ("moonshot", "kimi-k2.6", "told"),
    ("moonshot", "kimi-k3", "told"),
    ("moonshot", "kimi-k2-thinking", "always"),
    ("zai", "glm-5", "told"),
    ("perplexity", "sonar-deep-research", "told"),
    ("perplexity", "sonar", "silent"),
    ("cerebras", "gpt-oss-120b", "told"),
    ("sglang", "qwen3", "told"),
    ("vllm", "Qwen/Qwen3-8B", "may"),
    ("llamacpp", "qwen3", "told"),
    ("lmstudio", "qwen3", "may"),
    ("elsewhere", "some-model", "may"),
    ("proxy", "anthropic:claude-sonnet-4-5", "told"),
    ("proxy-1", "anthropic:claude-sonnet-4-5", "silent"),
]


def function_for(provider: str) -> Any:
    if provider == "openai":
        return OpenAIStreamFn(api_key=KEY)
    if provider == "elsewhere":
        return OpenAIStreamFn(base_url="https://models.example/v1", api_key=KEY)
    if provider == "proxy-1":
        return ProxyStreamFn(base_url="https://proxy.example", api_key=KEY, version=1)
    if provider in ADAPTERS:
        return ADAPTERS[provider].make("https://provider.example", KEY)
    return OpenAIStreamFn(preset=provider, api_key=KEY)


async def sent(provider: str, model: ModelSpec, **options: Any) -> dict[str, Any]:
    client = MemoryClient(b"")
    await read(function_for(provider), model, options=StreamOptions(http=client, **options))
    return client.sent


WITHOUT: dict[tuple[str, str], dict[str, Any]] = {}


def said(log: pytest.LogCaptureFixture, name: str) -> list[logging.LogRecord]:
    return [record for record in log.records if f"option '{name}'" in record.getMessage()]


def thinking_in(body: dict[str, Any]) -> dict[str, Any]:
    """What of a body says how hard to think: it is none of the fields that every body has."""
    config = body.get("generationConfig", {}).get("thinkingConfig", {})
    model = body.get("model") if isinstance(body.get("model"), dict) else {}
    named = {
        name: value
        for name, value in {**body, **body.get("additionalModelRequestFields", {})}.items()
        if name
        in ("thinking", "output_config", "reasoning_effort", "reasoning", "prompt_mode", "reasoningConfig")
        or name in ("think", "chat_template_kwargs")
    }
    return {**named, **config, **{name: model[name] for name in model if name.startswith("thinking")}}


@in_cells(("provider", "name", "kind"), MODELS, every=3)
async def test_a_level_is_in_the_body_or_in_a_notice(
    provider: str, name: str, kind: str, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "swink.providers")
    for level in LEVELS:
        caplog.clear()
        body = thinking_in(await sent(provider, ModelSpec(provider, name, level)))
        notices = said(caplog, "thinking_level")
        if level != "off":
            assert bool(body) != bool(notices), (level, body, notices)
            assert all(record.levelno == logging.WARNING for record in notices)
            continue
        expected = {
            "told": (True, False),
            "silent": (False, False),
            "always": (False, True),
            "may": (False, True),
        }
        assert (bool(body), bool(notices)) == expected[kind], (body, notices)
        # Nobody who said nothing about thinking is warned about it.
        assert all(record.levelno == logging.INFO for record in notices)


@in_cells(("provider", "name", "kind"), MODELS, every=3)
async def test_a_budget_is_in_the_body_or_in_a_notice(
    provider: str, name: str, kind: str, caplog: pytest.LogCaptureFixture
):
    for level in LEVELS:
        caplog.clear()
        body = thinking_in(await sent(provider, ModelSpec(provider, name, level, {level: BUDGET})))
        carried = str(BUDGET) in json.dumps(body)
        if level == "off" and not carried:
            continue  # a budget for not thinking means nothing but to those who take it
        assert carried != bool(said(caplog, "thinking_budgets")), (level, body)


@pytest.mark.parametrize(("provider", "name", "kind"), MODELS)
async def test_a_budget_of_another_level_is_none_of_this_one(
    provider: str, name: str, kind: str, caplog: pytest.LogCaptureFixture
):
    plain = await sent(provider, ModelSpec(provider, name, "high"))
    with_budget = await sent(provider, ModelSpec(provider, name, "high", {"low": BUDGET}))
    assert thinking_in(plain) == {
        field: value for field, value in thinking_in(with_budget).items() if field != "thinking_budgets"
    }
    assert not said(caplog, "thinking_budgets")


@pytest.mark.parametrize(("provider", "name", "kind"), MODELS)
async def test_a_model_that_is_known_not_to_think_is_not_asked_to_and_that_is_reported(
    provider: str, name: str, kind: str, caplog: pytest.LogCaptureFixture
):
    if provider.startswith("proxy"):
        return  # the server knows its models
    spec = ModelSpec(provider, name, "high", capabilities=Capabilities(thinking=False))
    body = thinking_in(await sent(provider, spec))
    assert body in ({}, {"think": False})
    assert len(said(caplog, "thinking_level")) == 1


@pytest.mark.parametrize(
    ("provider", "name", "words"),
    [
        ("openai", "gpt-4.1", [None] * 6),
        ("openai", "o3", ["low", "low", "low", "medium", "high", "high"]),
        ("openai", "gpt-5", ["minimal", "minimal", "low", "medium", "high", "high"]),
        ("openai", "gpt-5-codex", ["low", "low", "low", "medium", "high", "high"]),
        ("openai", "gpt-5-pro", ["high"] * 6),
        ("openai", "gpt-5.1", ["none", "low", "low", "medium", "high", "high"]),
        ("openai", "gpt-5.1-codex-max", ["low", "low", "low", "medium", "high", "xhigh"]),
        ("openai", "gpt-5.2", ["none", "low", "low", "medium", "high", "xhigh"]),
        ("openai", "gpt-5.2-pro", ["medium", "medium", "medium", "medium", "high", "xhigh"]),
        ("azure", "gpt-5.1", ["none", "low", "low", "medium", "high", "high"]),
        ("azure", "our-deployment", [None, "low", "low", "medium", "high", "high"]),
        ("xai", "grok-3-mini", ["low", "low", "low", "high", "high", "high"]),
        ("xai", "grok-4.3", ["none", "low", "low", "medium", "high", "high"]),
        ("mistral", "mistral-small-latest", ["none", "high", "high", "high", "high", "high"]),
        ("groq", "qwen/qwen3-32b", ["none", "default", "default", "default", "default", "default"]),
        ("groq", "openai/gpt-oss-20b", ["low", "low", "low", "medium", "high", "high"]),
        ("deepseek", "deepseek-v4-pro", [None, "low", "low", "high", "high", "max"]),
        ("lmstudio", "qwen3", [None, "low", "low", "medium", "high", "high"]),
    ],
)
async def test_levels_in_the_words_of_chat_completions(provider: str, name: str, words: list[str | None]):
    bodies = [await sent(provider, ModelSpec(provider, name, level)) for level in LEVELS]
    assert [body.get("reasoning_effort") for body in bodies] == words


def test_every_effort_asked_for_is_one_that_the_model_takes():
    names = [
        "o1",
        "o3-mini",
        "o4-mini",
        "o3-deep-research",
        "gpt-5-nano",
        "gpt-5.4",
        "gpt-6",
        "codex-mini-latest",
    ]
    for name, level in itertools.product(names, LEVELS):
        efforts = openai_efforts(name)
        assert nearest(level, efforts) in efforts
        assert level == "off" or nearest(level, efforts) != "none"


async def test_the_callers_own_template_arguments_stay_beside_the_switch():
    spec = ModelSpec("llamacpp", "qwen3")
    body = await sent("llamacpp", spec, extra={"chat_template_kwargs": {"tone": "dry"}})
    assert body["chat_template_kwargs"] == {"tone": "dry", "enable_thinking": False}
    body = await sent("vllm", spec, extra={"chat_template_kwargs": {"enable_thinking": False}})
    assert body["chat_template_kwargs"] == {"enable_thinking": False}


async def test_a_notice_is_given_once(caplog: pytest.LogCaptureFixture):
    fn = AzureStreamFn(base_url="https://a.example", api_key=KEY)
    for name in ("gpt-4o", "gpt-4o", "gpt-4.1"):
        options = StreamOptions(http=MemoryClient(b""))
        await read(fn, ModelSpec("azure", name, "high"), options=options)
    assert len(said(caplog, "thinking_level")) == 1
