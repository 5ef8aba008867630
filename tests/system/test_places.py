"""Places: the user's directories are absolute, the same everywhere, and found without HOME too."""

import os
import sys
from pathlib import Path

import pytest

from swink.errors import SessionError
from swink.memory.jsonl import sessions_dir
from swink.models.keys.store import KeyStoreError, keys_file
from swink.system.places import NoHome, cache_dir, config_dir, data_dir, expand, home_dir, state_dir

VARIABLES = {
    "XDG_CONFIG_HOME": config_dir,
    "XDG_DATA_HOME": data_dir,
    "XDG_STATE_HOME": state_dir,
    "XDG_CACHE_HOME": cache_dir,
}
LINUX = (".config/swink", ".local/share/swink", ".local/state/swink", ".cache/swink")
MAC = (*["Library/Application Support/swink"] * 3, "Library/Caches/swink")
WINDOWS = (".config/swink", "AppData/Local/swink", "AppData/Local/swink", ".cache/swink")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (*VARIABLES, "SWINK_CACHE_DIR", "SWINK_SESSIONS_DIR", "APPDATA", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user whom the password database does not know, as in many containers."""
    pwd = pytest.importorskip("pwd", reason="Windows has no password database")
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)


@pytest.mark.parametrize(("platform", "usual"), [("linux", LINUX), ("darwin", MAC), ("win32", WINDOWS)])
def test_each_platform_has_its_usual_places(
    platform: str, usual: tuple[str, ...], home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "platform", platform)
    assert tuple(find() for find in VARIABLES.values()) == tuple(home / name for name in usual)


def test_windows_says_where_its_places_are(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("APPDATA", str(home / "Roaming"))
    monkeypatch.setenv("LOCALAPPDATA", str(home / "Local"))
    assert config_dir() == home / "Roaming" / "swink"
    assert data_dir() == state_dir() == home / "Local" / "swink"
    assert cache_dir() == home / "Local" / "swink" / "Cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "Cache"))
    assert cache_dir() == home / "Cache" / "swink"


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
@pytest.mark.parametrize("variable", VARIABLES)
def test_the_variables_come_first_and_every_place_is_absolute(
    platform: str, variable: str, home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.chdir(home)
    for chosen in (str(home / "mine"), "mine", "~/mine"):
        monkeypatch.setenv(variable, chosen)
        assert VARIABLES[variable]() == home / "mine" / "swink"


def test_the_caches_of_swink_alone_can_be_put_elsewhere(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SWINK_CACHE_DIR", "~/models")
    assert cache_dir() == home / "models"


@pytest.mark.parametrize("value", ["", None])
def test_without_home_the_password_database_says_where_it_is(
    value: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pwd = pytest.importorskip("pwd", reason="Windows has no password database")
    entry = pwd.struct_passwd(("me", "x", 1, 1, "", str(tmp_path / "listed"), "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: entry)
    monkeypatch.delenv("HOME") if value is None else monkeypatch.setenv("HOME", value)
    assert home_dir() == tmp_path / "listed"
    assert expand("~/x") == tmp_path / "listed" / "x"
    assert [find().is_relative_to(home_dir()) for find in VARIABLES.values()] == [True] * 4


@pytest.mark.usefixtures("nobody")
@pytest.mark.parametrize("value", ["", None])
def test_who_has_no_home_is_told_what_to_set(value: str | None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("HOME") if value is None else monkeypatch.setenv("HOME", value)
    for variable, find in VARIABLES.items():
        with pytest.raises(NoHome, match=f"set HOME or {variable}"):
            find()
    with pytest.raises(KeyStoreError, match="set HOME or XDG_CONFIG_HOME"):
        keys_file()
    with pytest.raises(SessionError, match="set HOME or SWINK_SESSIONS_DIR"):
        sessions_dir()
    with pytest.raises(NoHome, match="no user of that name"):
        expand("~nobody-of-that-name/x")


@pytest.mark.usefixtures("nobody")
def test_who_has_no_home_can_name_every_place(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", "")
    for variable, find in VARIABLES.items():
        monkeypatch.setenv(variable, os.path.abspath("/somewhere"))
        assert find() == Path("/somewhere/swink").absolute()
