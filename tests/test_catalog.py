"""The catalog (D3, D5): model strings, limits and prices, and who serves a provider."""

import datetime
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from swink import catalog
from swink.catalog import (
    PROVIDERS,
    catalog_date,
    has_provider,
    models,
    parse_model,
    price_of,
    register_provider,
    stream_fn_for,
    with_limits,
)
from swink.errors import InvalidInput, UnknownModel
from swink.messages import Capabilities, ModelSpec, Price
from swink.testing import ScriptedModel


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    monkeypatch.setattr(catalog, "_registered", {})


# Model strings


def test_a_string_becomes_a_spec_with_the_limits_the_catalog_knows():
    spec = parse_model("anthropic:claude-sonnet-4-6")
    assert (spec.provider, spec.model_id, str(spec)) == (
        "anthropic",
        "claude-sonnet-4-6",
        "anthropic:claude-sonnet-4-6",
    )
    assert (spec.context_window, spec.max_output) == (200_000, 64_000)


def test_a_model_nobody_knows_is_taken_as_it_is():
    assert parse_model("acme:m1") == ModelSpec("acme", "m1")
    assert parse_model("ollama:llama3.2:3b") == ModelSpec("ollama", "llama3.2:3b"), "the first colon divides"


def test_a_spec_stays_as_it_is():
    spec = ModelSpec("acme", "m1", thinking_level="high")
    assert parse_model(spec) is spec


@pytest.mark.parametrize("text", ["", "claude", ":", "anthropic:", ":claude", None, 5])
def test_what_is_no_model_string_says_how_one_looks(text):
    with pytest.raises(UnknownModel, match=r'write "provider:model", e\.g\. "anthropic:claude-sonnet-4-6"'):
        parse_model(text)


def test_what_the_spec_says_outweighs_the_catalog():
    spec = with_limits(
        ModelSpec(
            "anthropic",
            "claude-sonnet-4-6",
            context_window=1_000_000,
            capabilities=Capabilities(images=False),
        )
    )
    assert spec.context_window == 1_000_000
    assert spec.max_output == 64_000
    assert spec.capabilities == Capabilities(images=False)


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("anthropic:claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("anthropic:claude-opus-4-1@20250805", "claude-opus-4-1"),
        ("openai:gpt-4.1-2025-04-14", "gpt-4.1"),
        ("openai:gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("openai:gpt-4o-2024-11-20", "gpt-4o"),
        ("openai:gpt-5-2025-08-07", "gpt-5"),
    ],
)
def test_a_dated_model_is_priced_like_its_family(model, family):
    spec = parse_model(model)
    family_spec = ModelSpec(spec.provider, family)
    assert price_of(spec) == price_of(family_spec) is not None
    assert spec.context_window == with_limits(family_spec).context_window


@pytest.mark.parametrize(
    "model",
    [
        "openai:gpt-5-nano",
        "openai:gpt-5-2",
        "openai:gpt-4o-audio-preview",
        "xai:grok-4-20",
        "acme:gpt-5",
        "openai:gpt-",
    ],
)
def test_a_model_of_another_family_has_no_price(model):
    assert price_of(parse_model(model)) is None, "unknown, never guessed"


# Prices and limits


def test_the_catalog_is_dated():
    checked = datetime.date.fromisoformat(catalog_date())
    assert datetime.date(2025, 1, 1) < checked < datetime.date(2100, 1, 1)


@pytest.mark.parametrize("spec", models(), ids=str)
def test_every_entry_is_sane(spec):
    price = price_of(spec)
    assert isinstance(price, Price)
    assert spec.provider in PROVIDERS
    assert spec.context_window is not None
    assert spec.max_output is not None
    assert 1_000 <= spec.max_output < spec.context_window <= 10_000_000
    if spec.provider == "local":
        assert (price.input, price.output) == (0.0, 0.0)
        return
    assert 0 < price.input < price.output < 1_000
    assert price.cache_read is None or 0 < price.cache_read <= price.input
    assert price.cache_write is None or price.input <= price.cache_write <= 2 * price.input


def test_models_can_be_listed_by_provider():
    assert {spec.provider for spec in models()} >= {"anthropic", "openai", "gemini"}
    assert {spec.provider for spec in models("anthropic")} == {"anthropic"}
    assert models("acme") == []


# Who serves a provider


def test_an_unknown_provider_names_the_nearest_and_all_others():
    with pytest.raises(
        UnknownModel,
        match=r"unknown provider 'antropic'; did you mean 'anthropic'\? known: anthropic, .*; or pass stream_fn=",
    ):
        stream_fn_for(ModelSpec("antropic", "claude"))
    with pytest.raises(UnknownModel) as caught:
        stream_fn_for(ModelSpec("zzz", "m"))
    assert "did you mean" not in str(caught.value)
    assert all(name in str(caught.value) for name in PROVIDERS)
    assert not has_provider("zzz")


def test_a_registered_provider_serves_its_models_and_may_replace_a_known_one():
    model = ScriptedModel(["hi"])
    register_provider("acme", lambda: model)
    register_provider("anthropic", lambda: model)
    assert has_provider("acme")
    assert stream_fn_for(ModelSpec("acme", "m1")) is model
    assert stream_fn_for(ModelSpec("anthropic", "m1")) is model
    with pytest.raises(UnknownModel, match="did you mean 'acme'"):
        stream_fn_for(ModelSpec("acmee", "m1"))


@pytest.mark.parametrize("target", PROVIDERS.values())
def test_every_known_provider_names_a_module_of_ours(target):
    path, _, preset = target.partition("#")
    module, _, name = path.partition(":")
    assert module.startswith(("swink.providers.", "swink.local"))
    assert name.endswith("StreamFn")
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        pytest.skip(f"needs an extra: {error}")
    assert callable(getattr(found, name))
    assert preset == "" or preset in PROVIDERS


def test_a_third_party_serves_its_provider_through_an_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "acme_swink.py").write_text(
        "class AcmeStreamFn:\n"
        "    async def __call__(self, model, context, options):\n"
        "        yield model\n"
        "async def stream(model, context, options):\n"
        "    yield model\n"
    )
    info = tmp_path / "acme_swink-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-swink\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[swink.providers]\nacme-cls = acme_swink:AcmeStreamFn\nacme-fn = acme_swink:stream\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert has_provider("acme-cls")
    assert type(stream_fn_for(ModelSpec("acme-cls", "m1"))).__name__ == "AcmeStreamFn", (
        "something that makes a stream function"
    )
    assert getattr(stream_fn_for(ModelSpec("acme-fn", "m1")), "__name__", "") == "stream", (
        "a stream function itself"
    )
    with pytest.raises(UnknownModel, match="did you mean 'acme-"):
        stream_fn_for(ModelSpec("acme-", "m1"))


def test_looking_a_model_up_loads_no_provider():
    code = (
        "import sys; from swink import catalog; catalog.price_of(catalog.parse_model('anthropic:claude-sonnet-4-6'));"
        "print([name for name in sys.modules if name.startswith(('swink.providers', 'swink.local', 'aiohttp'))])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )


@pytest.mark.parametrize("provider", ["", "acme:", "acme:model", None])
def test_a_provider_that_no_model_could_name_is_not_registered(provider):
    with pytest.raises(InvalidInput, match="word before the colon"):
        register_provider(provider, lambda: ScriptedModel([]))


def test_what_makes_no_stream_function_is_not_registered():
    with pytest.raises(InvalidInput, match="a function that returns a stream function"):
        register_provider("acme", "acme.streams:make")
    assert not has_provider("acme")
