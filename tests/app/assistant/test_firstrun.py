"""The first run: when a model has to be chosen, and what can be no key."""

from pathlib import Path

import pytest

from swink.app.assistant.firstrun import BRIGHTER, BRIGHTER_SIZE, is_first_run, problem_with, providers
from swink.app.assistant.settings import UserSettings
from swink.models.keys.accounts import ACCOUNTS


def test_it_is_a_first_run_until_there_is_a_model_or_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("SWINK_MODEL", *(name for account in ACCOUNTS.values() for name in account.variables)):
        monkeypatch.delenv(name, raising=False)
    settings = UserSettings(tmp_path / "config.toml")
    assert is_first_run(settings, None)
    assert not is_first_run(settings, "openai:gpt-5")
    assert not is_first_run(UserSettings(settings.path, default_model="openai:gpt-5"), None)
    monkeypatch.setenv("SWINK_MODEL", "openai:gpt-5")
    assert not is_first_run(settings, None)
    monkeypatch.delenv("SWINK_MODEL")
    monkeypatch.setenv("MISTRAL_API_KEY", "x")
    assert not is_first_run(settings, None)
    monkeypatch.delenv("MISTRAL_API_KEY")
    (tmp_path / "swink").mkdir()
    (tmp_path / "swink" / "keys.json").write_text('{"groq": {"place": "file", "key": "x"}}')
    assert not is_first_run(settings, None)


def test_what_can_be_no_key_is_refused_before_it_is_sent():
    assert problem_with("sk-abc") is None
    assert problem_with("  ") == "no key was given"
    for typed in ("two words", "schlüssel", "sk-\x1b[31m"):
        assert "that is no key" in (problem_with(typed) or "")
    assert providers()[0].provider == "anthropic"


def test_the_size_that_is_told_is_the_one_that_is_fetched():
    from swink.local import KNOWN

    assert KNOWN[BRIGHTER.removeprefix("local:")].wheel_size == BRIGHTER_SIZE
