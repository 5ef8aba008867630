"""The settings of a person: what the file says, what is reported, and how one setting is changed."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swink.app.assistant.settings import KNOWN, UserSettings, change_setting, line_in, load_settings, toml_of
from swink.errors import MisuseError


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "swink").mkdir()
    return tmp_path / "swink" / "config.toml"


def test_without_a_file_the_defaults_hold(file: Path):
    assert load_settings() == UserSettings(file)


def test_everything_that_can_be_set_is_read(file: Path):
    file.write_text(
        'default_model = "openai:gpt-5"\napprove = "off"\nsave = false\ntitle = "model"\ntheme = "light"\n'
        'thinking = "shown"\nbusy_enter = "queue"\nnotifications = false\neditor = "code --wait"\n'
        'snapshot_megabytes = 5\nsnapshot_files = 7\nfallbacks = ["openai:gpt-5"]\nretries = 3\n'
        'web_search = true\nstatus_line = "{model}"\nstatus_command = "date"\nmcp_deferred = true\n[keys]\nquit = "ctrl+x"\n'
        '[local]\ngpu = 4\n[sandbox]\nlevel = "none"\nnetwork = ["pypi.org"]\nwritable = ["~/x"]\n'
        '[providers.mine]\nkind = "openai"\nbase_url = "http://127.0.0.1:8000/v1"\n'
        '[diagnostics.ruff]\ncommand = "ruff check"\nfiles = "*.py"\n'
        '[mcp.files]\ncommand = "npx"\nargs = ["-y"]\n'
        '[[hooks]]\nevent = "Stop"\ncommand = "make test"\n'
    )
    settings = load_settings()
    assert settings.problems == ()
    assert all(getattr(settings, name) != getattr(UserSettings(file), name) for name in KNOWN)
    assert settings.mcp == {"files": {"command": "npx", "args": ["-y"]}}


def test_what_means_nothing_is_reported_with_its_line_and_the_rest_applies(file: Path):
    file.write_text(
        '# mine\ntheem = "dark"\ntheme = "light"\nsnapshot_files = -1\n\n[keys]\nquit = 7\n[zzz]\n'
    )
    settings = load_settings()
    assert settings.theme == "light"
    assert settings.snapshot_files == UserSettings(file).snapshot_files
    theem, files, keys, zzz = settings.problems
    assert theem == f"{file}, line 2: theem means nothing; did you mean theme?"
    assert files.startswith(f"{file}, line 4: snapshot_files takes a number of at least 0")
    assert keys.startswith(
        f"{file}, line 7: quit is wrong (Expected `str`, got `int`); keys takes a table of texts"
    )
    assert zzz.startswith(f"{file}, line 8: zzz means nothing; known: default_model, approve")


def test_of_a_table_the_line_of_the_name_itself_is_found():
    text = 'theme = "dark"\nkeys.leave = "f9"\n# help = "f1"\n[mcp.help]\nhelp = "x"\n[keys] # mine\n"help" = 3\n'
    assert line_in(text, "keys", "help") == 7
    assert line_in(text, "keys", "leave") == 2
    assert line_in(text, "keys", "hel") == 2  # where the table is first
    assert line_in('\nkeys = { help = "f1" }\n', "keys", "help") == 2
    assert line_in("", "keys", "help") == 1


def test_one_wrong_key_costs_no_other(file: Path):
    file.write_text('[keys]\nhelp = "f12"\nleave = 3\nplan = ["a"]\n')
    settings = load_settings()
    assert settings.keys == {"help": "f12"}
    assert [problem.partition(": ")[0] for problem in settings.problems] == [
        f"{file}, line 3",
        f"{file}, line 4",
    ]
    file.write_text("keys = 3\n")
    assert load_settings().problems[0].startswith(f"{file}, line 1: keys takes a table of texts")


def test_a_value_that_cannot_be_understood_never_loosens_what_was_wanted(file: Path):
    file.write_text('save = "no"\napprove = "paranoid"\n')
    settings = load_settings()
    assert (settings.save, settings.approve) == (False, "on")
    assert "line 1: save takes true or false" in settings.problems[0]
    assert "'paranoid' is not one of them; taken as 'on' until then" in settings.problems[1]


def test_a_wrong_entry_of_a_table_is_told_with_its_line_and_the_others_hold(file: Path):
    file.write_text(
        '[sandbox]\nnetwork = "sometimes"\nwritable = ["~/x"]\nlevle = "none"\n'
        '[providers.a]\nkind = "cohere"\nbase_url = "http://x"\n'
        '[providers.b]\nkind = "openai"\nbase_url = "http://x"\n'
    )
    settings = load_settings()
    assert (settings.sandbox.network, settings.sandbox.writable) == ("off", ("~/x",))
    assert list(settings.providers) == ["b"]
    network, levle, provider = settings.problems
    assert network.startswith(f"{file}, line 2: network is wrong")
    assert "taken as 'off' until then" in network
    assert levle.startswith(f"{file}, line 4: levle is wrong")
    assert provider.startswith(f"{file}, line 5: a is wrong (Invalid enum value 'cohere')")


def test_checkers_can_be_switched_off_all_or_one(file: Path):
    file.write_text("diagnostics = false\n")
    assert load_settings().diagnostics is False
    file.write_text('[diagnostics]\nruff = false\nmypy = "no"\n[diagnostics.mine]\ncommand = "mine"\n')
    settings = load_settings()
    assert settings.diagnostics == {"ruff": False}
    assert [problem.partition(": ")[0] for problem in settings.problems] == [
        f"{file}, line 3",
        f"{file}, line 4",
    ]


def test_a_file_that_is_no_toml_is_refused_with_the_place(file: Path):
    file.write_text('theme = "light\n')
    with pytest.raises(MisuseError, match="line 1"):
        load_settings()


def test_a_secret_of_a_server_is_not_in_the_repr(file: Path):
    file.write_text('[mcp.a]\ncommand = "x"\nenv = { TOKEN = "geheim" }\n')
    assert "geheim" not in repr(load_settings())


def test_changing_a_setting_keeps_the_other_lines(file: Path):
    file.write_text('# mine\ntheme = "dark"  # at night\n\n[keys]\nquit = "ctrl+x"\n')
    change_setting("theme", "light")
    change_setting("notifications", False)
    assert file.read_text().startswith('# mine\ntheme = "light"\n')
    settings = load_settings()
    assert (settings.theme, settings.notifications, settings.keys) == ("light", False, {"quit": "ctrl+x"})
    assert settings.problems == ()
    assert [path.name for path in file.parent.iterdir()] == ["config.toml"]


def test_a_file_that_cannot_be_changed_stays_as_it_is_and_says_what_to_write(file: Path):
    file.write_text("theme = \n")
    with pytest.raises(MisuseError, match='write theme = "light" into it'):
        change_setting("theme", "light")
    assert file.read_text() == "theme = \n"
    with pytest.raises(MisuseError, match="cannot be set here"):
        change_setting("them", "light")


@given(st.text(st.characters(codec="utf-8"), max_size=20))
def test_any_text_is_written_as_it_is(text: str):
    assert tomllib.loads(f"a = {toml_of(text)}") == {"a": text}
