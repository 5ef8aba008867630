"""The page of a provider says what is true of that provider, and nothing of another."""

import re
from functools import cache

import pytest

from swink.messages import ModelSpec
from swink.models import catalog
from swink.models.catalog import PROVIDERS
from swink.providers.chat.dialect import ChatDialect
from swink.providers.chat.presets import PRESETS
from tests.pages import ROOT
from tools import providerpages

pages = cache(providerpages.provider_pages)
SERVERS = {name: dialect for name, dialect in PRESETS.items() if name != "openai"}
"""The presets, each with its dialect; OpenAI itself has a row of its own."""
OPTIONS = {"top_p", "stop", "seed", "service_tier", "verbosity", "parallel_tool_calls"}
MEANT = {"openai": {"openai-responses"}, "azure": {"azure-responses"}, "xai": {"xai-responses"}}
"""Providers that the page of another is right to name."""
WORDS = {
    "OpenAI": {"openai", "openai-responses"},
    "DeepSeek": {"deepseek", "together"},
    "GLM": {"zai", "together"},
    "Kimi": {"moonshot"},
    "Claude": {"anthropic", "bedrock", "vertex", "openrouter"},
    "Gemini": {"gemini", "vertex"},
}
"""Names of others, and the providers that have their models."""


def facts_of(name: str) -> dict[str, str]:
    """What a page lists, by the word in bold."""
    return dict(re.findall(r"^- \*\*(.+?)\*\*: (.+)$", pages()[name], re.MULTILINE))


def options_of(cell: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", cell)) & OPTIONS


def test_each_provider_has_a_page_with_what_it_can_do_and_its_models():
    assert set(pages()) == set(PROVIDERS)
    assert "`anthropic.AnthropicStreamFn`" in pages()["anthropic"]
    assert "- **Tools**: yes, several in one reply" in pages()["anthropic"]
    assert "| `claude-sonnet-4-6` | 1,000,000 | 128,000 | 3 | 15 |" in pages()["anthropic"]
    assert "- **Address**: `https://api.groq.com/openai/v1`" in pages()["groq"]
    assert "- **Schema held by the provider**: yes, without tools" in pages()["vllm"]
    for name, page in pages().items():
        for heading in ("What it can do", "Hosted tools, documents, schemas"):
            assert name in providerpages.ELSEWHERE or f"## {heading}\n" in page, (name, heading)
        assert f'"models/providers/{name}.md"' in (ROOT / "zensical.toml").read_text("utf-8"), name


@pytest.mark.parametrize("name", PROVIDERS)
def test_the_page_names_no_other_provider_and_sends_nobody_to_its_page(name: str):
    for fact, said in facts_of(name).items():
        named = set(re.findall(r"`([a-z-]+)`", said)) & set(PROVIDERS)
        assert named <= {name} | MEANT.get(name, set()), fact
        plain = re.sub(r"`[^`]*`", "", said)
        assert not [word for word, theirs in WORDS.items() if word in plain and name not in theirs], fact
        assert " as `" not in f" {said}", fact


@pytest.mark.parametrize(("name", "dialect"), SERVERS.items())
def test_the_facts_of_a_preset_are_those_of_its_dialect(name: str, dialect: ChatDialect):
    facts = facts_of(name)
    has_session = bool(dialect.session_field or dialect.session_header)
    assert ("neither `session_id`" not in facts["Prompt cache"]) == has_session
    assert (facts["`tool_choice`"] == "all") == (dialect.forces_thinkers and dialect.names_choice)
    assert ("it is not sent back" not in facts["Thinking"]) == bool(dialect.replay)
    assert ("PDF" in facts["Documents, audio"]) == bool(dialect.documents)
    assert ("no audio" not in facts["Documents, audio"]) == bool(dialect.audio)
    schema = facts["Schema held by the provider"]
    assert schema.startswith("yes") == bool(dialect.schemas)
    assert ("beside tools" in schema) == (dialect.schemas == "beside tools")


@pytest.mark.parametrize("name", sorted(set(PROVIDERS) - {"local", "vertex", "proxy"}))
def test_the_options_of_the_page_are_those_that_the_adapter_honours(
    monkeypatch: pytest.MonkeyPatch, name: str
):
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com")
    honours: frozenset[str] = catalog.stream_fn_for(ModelSpec(name, "any")).honours  # type: ignore[attr-defined]
    assert options_of(facts_of(name)["Options beside `temperature` and `max_tokens`"]) == honours & OPTIONS


def test_the_table_of_all_providers_says_of_presets_what_their_dialects_say():
    _, *rows = providerpages.cells_of("Hosted tools, documents, schemas")
    named = {name: row for row in rows for name in re.findall(r"`([a-z-]+)`", row[0]) if name in SERVERS}
    rest = next(row for row in rows if row[0] == "other presets")
    for name, dialect in SERVERS.items():
        _, _, documents, schema, options = named.get(name, rest)
        without = re.findall(r"\(not `([a-z]+)`\)", options)
        taken = options_of(options) - ({"parallel_tool_calls"} if name in without else set())
        assert taken == dialect.honours & OPTIONS, name
        assert schema.startswith("yes") == bool(dialect.schemas), name
        for kind, has in (("PDF", dialect.documents), ("audio", dialect.audio)):
            part = documents.partition(kind)[2].partition(";")[0]
            listed = set(re.findall(r"`([a-z]+)`", part))
            assert (kind in documents and (name in named or name in listed)) == bool(has), (name, kind)
