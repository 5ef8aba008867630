"""Which model is meant, and what a mistyped name may have meant; what the table of accounts promises."""

from pathlib import Path

import pytest

from swink.app.assistant.modelchoice import choose_model, nearest_models, parse_model, unknown_provider
from swink.app.assistant.settings import config_dir
from swink.app.cli.agentsetup import announce
from swink.errors import MisuseError, UnknownModel
from swink.messages import ModelSpec
from swink.models import catalog
from swink.models.keys.accounts import ACCOUNTS, account_for
from swink.models.keys.store import store_key
from swink.system.extras import install_command
from swink.tools.named import load_tools


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty configuration, and no key anywhere."""
    for account in ACCOUNTS.values():
        for name in (*account.variables, account.url_variable, "SWINK_MODEL"):
            monkeypatch.delenv(name or "SWINK_MODEL", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    directory = tmp_path / "swink"
    directory.mkdir()
    return directory


def test_nothing_configured_means_the_local_model():
    choice = choose_model(None)
    assert str(choice.model) == "local:smollm2-135m"
    assert choice.why is not None
    assert "no API key found" in choice.why


def test_a_local_model_that_cannot_be_loaded_says_at_once_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("swink.app.assistant.modelchoice.find_spec", lambda name: None)
    choice = choose_model(None)
    assert choice.why is not None
    assert choice.why.endswith(f"It lacks the extra local; install it with: {install_command('local')}")


def test_the_first_provider_with_a_key_decides(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XAI_API_KEY", "x")
    assert choose_model(None).model.provider == "xai"
    monkeypatch.setenv("GEMINI_API_KEY", "x")
    assert choose_model(None).model.provider == "gemini"
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    assert choose_model(None).model.provider == "openai"
    monkeypatch.setenv("ANTHROPIC_API_KEY", "x")
    choice = choose_model(None)
    assert str(choice.model) == "anthropic:claude-sonnet-4-6"
    assert choice.why == "ANTHROPIC_API_KEY is set; another with --model"


def test_an_empty_variable_is_no_key(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", " ")
    assert choose_model(None).model.provider == "local"


def test_a_stored_key_counts_like_one_in_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XAI_API_KEY", "x")
    store_key("mistral", "abcdefgh")
    choice = choose_model(None)
    assert choice.model.provider == "mistral"
    assert choice.why == "the key of mistral is stored; another with --model"


def test_a_key_of_a_provider_without_a_default_model_is_not_passed_over_in_silence(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("GROQ_API_KEY", "x")
    choice = choose_model(None)
    assert choice.model.provider == "local"
    assert choice.why == "there is a key for groq, but which model? --model groq:MODEL"


def test_the_configured_model_wins_over_keys_and_the_variable_over_the_file(
    config: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    (config / "config.toml").write_text('default_model = "mistral:mistral-small-latest"\n')
    choice = choose_model(None)
    assert str(choice.model) == "mistral:mistral-small-latest"
    assert choice.why == f"default_model in {config / 'config.toml'}"
    monkeypatch.setenv("SWINK_MODEL", "ollama:qwen3")
    assert str(choose_model(None).model) == "ollama:qwen3"
    assert str(choose_model("openai:gpt-5").model) == "openai:gpt-5"
    assert choose_model("openai:gpt-5").why is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("default_model = ", "cannot be read"),
        ('default_model = "gpt-5"', "did you mean openai:gpt-5"),
    ],
)
def test_settings_that_make_no_sense_are_named_with_their_file(config: Path, text: str, said: str):
    (config / "config.toml").write_text(text)
    with pytest.raises(MisuseError, match=said) as raised:
        choose_model(None)
    assert str(config / "config.toml") in str(raised.value)


def test_settings_are_kept_where_the_platform_keeps_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    assert config_dir() == tmp_path / "swink"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setattr("sys.platform", "linux")
    assert config_dir() == tmp_path / ".config" / "swink"
    monkeypatch.setattr("sys.platform", "darwin")
    assert config_dir() == tmp_path / "Library" / "Application Support" / "swink"


@pytest.mark.parametrize(
    ("mistyped", "meant"),
    [
        ("gpt-5", "openai:gpt-5"),
        ("opnai:gpt-5", "openai:gpt-5"),
        ("openai:gpt5", "openai:gpt-5"),
        ("antropic:claude-sonnet-4-6", "anthropic:claude-sonnet-4-6"),
        ("claude-sonnet", "anthropic:claude-sonnet-5"),
        ("olama:qwen3", "ollama:qwen3"),
        ("local:smollm", "local:smollm2-135m"),
    ],
)
def test_the_nearest_name_comes_first(mistyped: str, meant: str):
    assert nearest_models(mistyped)[0] == meant


@pytest.mark.parametrize("text", ["nope", "openai:nope", "anthropic:xyz", "gemini:nope", "nobody:m", "x"])
def test_nothing_is_named_where_nothing_is_near(text: str):
    assert nearest_models(text) == []


def test_a_model_newer_than_the_catalog_is_taken_as_it_is():
    assert parse_model("openai:gpt-9-ultra") == ModelSpec("openai", "gpt-9-ultra")


@pytest.mark.parametrize(
    ("text", "said"),
    [("openai:", "which model of openai"), (":x", "is not a model"), ("zzz:y", "unknown provider 'zzz'")],
)
def test_what_is_no_model_is_refused(text: str, said: str):
    with pytest.raises(UnknownModel, match=said):
        parse_model(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("foo:bar", "unknown provider 'foo' in 'foo:bar'; swink models list shows what there is"),
        (
            "opnai:x",
            "unknown provider 'opnai' in 'opnai:x'; did you mean openai:x? swink models list shows what there is",
        ),
        (
            "foo:gpt-5",
            "unknown provider 'foo' in 'foo:gpt-5'; did you mean openai:gpt-5? swink models list shows what there is",
        ),
        ("opnai", "unknown provider 'opnai'; did you mean openai? swink models list shows what there is"),
    ],
)
def test_an_unknown_provider_brings_the_nearest_one_and_the_way_to_the_list(text: str, said: str):
    assert str(unknown_provider(text)) == said


def test_every_provider_but_the_local_one_has_an_account():
    assert set(ACCOUNTS) == set(catalog.PROVIDERS) - {"local"}


@pytest.mark.parametrize("provider", [name for name in ACCOUNTS if name != "bedrock"])
def test_an_account_agrees_with_its_adapter(provider: str, monkeypatch: pytest.MonkeyPatch):
    account = ACCOUNTS[provider]
    if account.url_variable and not account.base_url:
        monkeypatch.setenv(account.url_variable, "https://models.example.com:443")
    adapter = catalog.stream_fn_for(ModelSpec(provider, "m"))._endpoint  # type: ignore[attr-defined]
    assert adapter.variables == account.variables
    assert adapter.base_url == account.url
    if account.url_variable:
        monkeypatch.setenv(account.url_variable, "http://127.0.0.1:9/v9")
        assert catalog.stream_fn_for(ModelSpec(provider, "m"))._endpoint.base_url == account.url  # type: ignore[attr-defined]


def test_default_models_are_known_to_the_catalog():
    named = [
        f"{account.provider}:{account.default_model}"
        for account in ACCOUNTS.values()
        if account.default_model
    ]
    unknown = [name for name in named if catalog.price_of(catalog.parse_model(name)) is None]
    assert unknown == ["openrouter:openrouter/auto"], "whose price is that of the model it chooses"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("opnai", "did you mean openai\\? swink keys list"),
        ("openai-responses", "swink keys set openai"),
        ("local", "need no key"),
    ],
)
def test_a_provider_without_a_key_of_its_own_is_refused(name: str, said: str):
    with pytest.raises(MisuseError, match=said):
        account_for(name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tools_of_a_test:wether", "did you mean 'weather'"),
        ("tools_of_a_test:number", "--tool tools_of_a_test:number: 7 is not a tool"),
        ("tools_of_a_test.py:weather", "--tool tools_of_a_test:weather"),
        ("tools_of_a_test", "write MODULE:FUNCTION"),
        ("no_such_module:f", "no module 'no_such_module' here"),
        ("needs_a_module_of_a_test:f", "needs a module that is not installed: missing_thing"),
        ("leaves_in_a_test:f", "importing leaves_in_a_test failed: SystemExit"),
    ],
)
def test_a_tool_that_cannot_be_had_is_explained(
    name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "tools_of_a_test.py").write_text(
        'number = 7\ndef weather(city: str) -> str:\n    """Weather."""\n    return city\n'
    )
    (tmp_path / "needs_a_module_of_a_test.py").write_text("import missing_thing\n")
    (tmp_path / "leaves_in_a_test.py").write_text("raise SystemExit(3)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(MisuseError) as raised:
        load_tools([name])
    assert said in str(raised.value)


def test_a_setting_that_means_nothing_is_told_with_every_answer(
    config: Path, capsys: pytest.CaptureFixture[str]
):
    (config / "config.toml").write_text('default_modle = "openai:gpt-5"\n')
    announce(choose_model("openai:gpt-5"))
    assert "line 1: default_modle means nothing; did you mean default_model?" in capsys.readouterr().err
    (config / "config.toml").write_text("default_model =")
    announce(choose_model("openai:gpt-5"))
    assert capsys.readouterr().err == ""
