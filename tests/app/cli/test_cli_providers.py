"""Servers of one's own, from `swink providers add` to an answer: real commands, real servers on loopback."""

import json
import tomllib

import pytest
from command_line import KEY, Place, Provider, Refusal

ENV = {"MY_KEY": KEY}


def add(place: Place, provider: Provider, *more: str, kind: str = "openai", **env: str):
    options = ["--kind", kind, "--base-url", provider.url]
    return place.swink("providers", "add", "mine", *options, *more, env={**ENV, **env})


def test_a_server_like_openai_is_added_asked_for_its_models_and_answers(place: Place, provider: Provider):
    config = place.configure('# mine\nretries = 0\n\n[keys]\nhelp = "f12"\n')
    provider.models = ["small", "large"]
    done = add(place, provider, "--key-env", "MY_KEY")
    assert (done.code, done.out) == (0, "mine:small\nmine:large\n")
    assert config.read_text().startswith('# mine\nretries = 0\n\n[keys]\nhelp = "f12"\n\n[providers.mine]\n')
    assert tomllib.loads(config.read_text())["providers"]["mine"] == {
        "kind": "openai",
        "base_url": provider.url,
        "key_env": "MY_KEY",
        "models": ["small", "large"],
    }
    assert KEY not in config.read_text()
    answered = place.swink("run", "--model", "mine:large", "--output", "json", "hi", env=ENV)
    assert answered.code == 0, answered
    result = json.loads(answered.out.splitlines()[-1])
    assert (result["text"], result["cost"]) == ("Hello there.", None), "a price that is not known is not 0"
    assert provider.requests[-1]["model"] == "large"
    assert provider.keys == [f"Bearer {KEY}"] * 2
    assert provider.paths == ["/v1/models", "/v1/chat/completions"]


def test_a_server_like_anthropic_is_added_with_or_without_v1_and_answers(place: Place, provider: Provider):
    provider.models = ["claude-of-mine"]
    done = add(place, provider, "--key-env", "MY_KEY", kind="anthropic")
    assert (done.code, done.out) == (0, "mine:claude-of-mine\n")
    answered = place.swink("run", "hi", env=ENV)
    assert (answered.code, answered.out) == (0, "Hello there.\n")
    assert "using mine:claude-of-mine ([providers.mine] in " in answered.err
    assert provider.paths == ["/v1/models", "/v1/messages"]
    assert provider.keys == [KEY, KEY]


def test_its_models_are_listed_completed_and_shown_without_a_price(place: Place, provider: Provider):
    assert add(place, provider, "--model", "small", "--model", "x/large").code == 0
    assert provider.paths == [], "named models need no question"
    listed = place.swink("models", "list", "mine").out
    row = next(line for line in listed.splitlines() if line.startswith("mine:small"))
    assert row.split() == ["mine:small", "?", "?", "?", "?", "?", "yes"]
    assert "mine:x/large" in place.swink("completion", "bash").out
    assert "price" in place.swink("models", "show", "mine:small").out
    which = place.swink("run", "--model", "mine:", "hi")
    assert which.code == 2
    assert "which model of mine? mine:small or mine:x/large" in which.err
    assert "did you mean mine:small?" in place.swink("run", "--model", "mne:small", "hi").err
    shown = place.swink("providers", "list").out
    assert ["mine", "openai", provider.url, "none", "small,", "x/large"] in [
        line.split() for line in shown.splitlines()
    ]


def test_a_server_that_does_not_list_its_models_is_added_and_told_of(place: Place, provider: Provider):
    done = add(place, provider)
    assert done.code == 0
    assert "its models are not known: " in done.err
    assert "HTTP 404" in done.err
    assert place.swink("run", "--model", "mine:any", "hi").out == "Hello there.\n"
    listed = place.swink("models", "list", "mine")
    assert "the models of mine are not known: " in listed.err
    provider.models = ["late"]
    assert "mine:late" in place.swink("models", "list", "mine").out


def test_a_variable_that_is_not_set_is_named_before_anything_is_sent(place: Place, provider: Provider):
    done = add(place, provider, "--key-env", "OTHER_KEY", "--model", "m")
    assert done.code == 0
    assert "OTHER_KEY is not set" in done.err
    failed = place.swink("run", "--model", "mine:m", "hi")
    assert failed.code == 2
    assert "no API key for mine: set OTHER_KEY" in failed.err
    assert provider.requests == []
    assert "OTHER_KEY (not set)" in place.swink("providers", "list").out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["openai", "--kind", "openai", "--base-url", "https://a.example/v1"], "swink has already"),
        (["local", "--kind", "openai", "--base-url", "https://a.example/v1"], "swink has already"),
        (["a b", "--kind", "openai", "--base-url", "https://a.example/v1"], "is no name"),
        (["mine", "--kind", "openai", "--base-url", f"https://me:{KEY}@a.example/v1"], "credentials"),
        (["mine", "--kind", "openai", "--base-url", "ftp://a.example/v1"], "https://"),
        (["mine", "--kind", "openai", "--base-url", "http://a.example/v1"], "use https"),
        (["mine", "--kind", "openai", "--base-url", "http://10.0.0.7/v1", "--key-env", "K"], "use https"),
        (["mine", "--kind", "openai", "--base-url", "https://a.example/v1", "--key-env", KEY], "no key"),
        (["mine", "--kind", "gemini", "--base-url", "https://a.example/v1"], "invalid choice"),
    ],
)
def test_what_cannot_be_a_server_is_refused_and_nothing_is_written(
    place: Place, options: list[str], said: str
):
    done = place.swink("providers", "add", *options, "--model", "m")
    assert done.code == 2, done
    assert said in done.err
    assert KEY not in done.err
    assert not (place.config / "config.toml").exists()


def test_a_name_is_added_once_and_removed_with_its_lines_alone(place: Place, provider: Provider):
    before = '# first\nretries = 0\n\n[mcp.files]\ncommand = "files"\n'
    config = place.configure(before)
    assert add(place, provider, "--model", "m").code == 0
    config.write_text(config.read_text() + '\n# keys of mine\n[keys]\nhelp = "f12"\n')
    again = add(place, provider, "--model", "m")
    assert again.code == 2
    assert "swink providers remove mine" in again.err
    config.write_text('default_model = "mine:m"\n' + config.read_text())
    removed = place.swink("providers", "remove", "mine")
    assert removed.code == 0
    assert "still names mine:m" in removed.err
    after = f'default_model = "mine:m"\n{before}\n\n# keys of mine\n[keys]\nhelp = "f12"\n'
    assert config.read_text() == after
    gone = place.swink("providers", "remove", "mine")
    assert gone.code == 2
    assert "there is no server mine" in gone.err


def test_a_table_that_cannot_be_taken_out_line_by_line_is_left_and_told(place: Place):
    text = 'providers = { mine = { kind = "openai", base_url = "https://a.example/v1" } }\n'
    config = place.configure(text)
    done = place.swink("providers", "remove", "mine")
    assert done.code == 2
    assert "delete [providers.mine] there" in done.err
    assert config.read_text() == text


def test_a_wrong_table_in_the_file_is_told_with_its_line_and_the_rest_works(place: Place, provider: Provider):
    config = place.configure(
        '[providers.openai]\nkind = "openai"\nbase_url = "https://a.example/v1"\n\n'
        '[providers.bad]\nkind = "openai"\nbase_url = "https://me:secret@a.example/v1"\n\n'
        f'[providers.mine]\nkind = "openai"\nbase_url = "{provider.url}"\n'
    )
    done = place.swink("run", "--model", "mine:m", "hi")
    assert (done.code, done.out) == (0, "Hello there.\n")
    assert f"{config}, line 1: openai is a provider that swink has already" in done.err
    assert f"{config}, line 5: bad: base_url must not hold credentials" in done.err
    assert "secret" not in done.err


def test_a_key_that_the_server_refuses_is_named_by_its_variable(place: Place, provider: Provider):
    assert add(place, provider, "--key-env", "MY_KEY", "--model", "m").code == 0
    provider.replies = [Refusal(401, f"no such key: {KEY}")]
    failed = place.swink("run", "--model", "mine:m", "hi", env=ENV)
    assert failed.code == 1
    assert "the key is that of MY_KEY" in failed.err
    assert KEY not in failed.err


def test_the_doctor_tells_whether_a_server_answers_and_what_is_wrong_in_the_settings(
    place: Place, provider: Provider
):
    config = place.configure('fallbacks = ["mien:m"]\n')
    assert add(place, provider, "--model", "m").code == 0
    told = place.swink("doctor", env={"SWINK_MODEL": "mine:m"}).out
    assert f"{provider.url} answers" in told
    assert f"{config}, line 1: fallbacks: unknown provider 'mien'" in told


def test_a_fallback_may_be_a_server_of_ones_own(place: Place, provider: Provider):
    place.configure(
        'retries = 0\nfallbacks = ["mine:m"]\n\n[providers.mine]\nkind = "openai"\n'
        f'base_url = "{provider.url}"\n'
    )
    env = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_API_KEY": KEY}
    done = place.swink("run", "--model", "openai:m", "hi", env=env)
    assert (done.code, done.out) == (0, "Hello there.\n")
    assert "switched to mine:m" in done.err
    assert provider.keys == [None], "the key of another provider is not sent there"
