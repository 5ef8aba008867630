"""`swink keys`: keys are kept where only their owner reads them, used by later runs, and shown to nobody."""

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from command_line import KEY, Place, Provider, Screen
from tests.counts import MORE

from swink.models.keys import store
from swink.models.keys.keychain import Keychain
from swink.models.keys.store import KeyStoreError, key_places, remove_key, store_key, stored_key

KEYCHAIN = '''
import json
import os
from pathlib import Path
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError

class Working(KeyringBackend):
    """A keychain for tests, in a file beside this module."""

    priority = 5
    name = "test keychain"
    file = Path(__file__).with_name("keychain.json")

    def _all(self):
        return json.loads(self.file.read_text()) if self.file.exists() else {}

    def get_password(self, service, username):
        return self._all().get(f"{service}/{username}")

    def set_password(self, service, username, password):
        if os.environ.get("IS_LOCKED"):
            raise KeyringLocked("the keychain is locked")
        self.file.write_text(json.dumps({**self._all(), f"{service}/{username}": password}))

    def delete_password(self, service, username):
        kept = self._all()
        if kept.pop(f"{service}/{username}", None) is None:
            raise PasswordDeleteError("not there")
        self.file.write_text(json.dumps(kept))
'''


def test_a_key_is_stored_used_and_forgotten(place: Place, provider: Provider):
    stored = place.swink("keys", "set", "openai", stdin=f"{KEY}\n")
    file = place.config / "keys.json"
    assert stored.code == 0
    assert str(file) in stored.err
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700

    used = place.swink("run", "hi", env={"OPENAI_BASE_URL": provider.url})
    assert used.err == "swink: using openai:gpt-5 (the key of openai is stored; another with --model)\n"
    assert used.code == 0
    assert provider.keys == [f"Bearer {KEY}"]

    listed = place.swink("keys", "list")
    assert [line.split()[:2] for line in listed.out.splitlines()[1:3]] == [
        ["anthropic", "none"],
        ["openai", "in"],
    ]
    assert place.swink("keys", "rm", "openai").code == 0
    assert json.loads(file.read_bytes()) == {}
    for done in (stored, used, listed):
        assert KEY not in done.out + done.err
        assert KEY[-4:] not in done.out + done.err


def test_a_key_as_an_argument_is_refused_and_not_repeated(place: Place):
    done = place.swink("keys", "set", "openai", KEY)
    assert done.code == 2
    assert "a key is no argument" in done.err
    assert KEY not in done.err
    assert not place.config.exists()


def test_a_typed_key_is_not_echoed(place: Place):
    screen = Screen(place, "keys", "set", "anthropic")
    screen.wait_for("(not shown): ")
    screen.type(f"{KEY}\n")
    assert screen.end() == 0
    assert KEY not in screen.text
    assert KEY in (place.config / "keys.json").read_text()


def test_a_working_keychain_is_preferred_and_one_that_fails_is_replaced_by_the_file(
    place: Place, provider: Provider
):
    pytest.importorskip("keyring")
    place.write("chain.py", KEYCHAIN)
    env = {"PYTHON_KEYRING_BACKEND": "chain.Working", "PYTHONPATH": str(place.here)}
    assert "your keychain" in place.swink("keys", "set", "openai", stdin=KEY, env=env).err
    assert json.loads((place.here / "keychain.json").read_text()) == {"swink/openai": KEY}
    assert json.loads((place.config / "keys.json").read_text()) == {"openai": {"place": "keychain"}}
    assert place.swink("run", "hi", env={**env, "OPENAI_BASE_URL": provider.url}).code == 0
    assert provider.keys == [f"Bearer {KEY}"]
    assert place.swink("keys", "rm", "openai", env=env).code == 0
    assert json.loads((place.here / "keychain.json").read_text()) == {}

    assert KEY not in (place.config / "keys.json").read_text()
    done = place.swink("keys", "set", "openai", stdin=KEY, env={**env, "IS_LOCKED": "1"})
    assert done.code == 0
    assert "the keychain is locked; the key goes into" in done.err
    assert KEY in (place.config / "keys.json").read_text()


def test_a_keychain_that_cannot_be_opened_is_a_warning_and_the_command_that_helps(place: Place):
    place.config.mkdir(parents=True)
    (place.config / "keys.json").write_text('{"openai": {"place": "keychain"}}')
    done = place.swink("run", "hi")
    assert done.code == 1
    assert [line.partition(": ")[2] for line in done.err.splitlines()[1:2]] == [
        "warning: the key of openai is in a keychain that cannot be opened here; "
        "set it again with: swink keys set openai"
    ]


@pytest.mark.more
def test_keys_set_at_once_are_all_kept(place: Place):
    providers = ["anthropic", "openai", "gemini", "mistral", "xai", "groq"]
    for _ in range(3 if MORE else 1):
        with ThreadPoolExecutor(len(providers)) as pool:
            codes = list(
                pool.map(
                    lambda name: place.swink("keys", "set", name, stdin=f"key-of-{name}\n").code, providers
                )
            )
        assert codes == [0] * len(providers)
        file = place.config / "keys.json"
        assert {name: entry["key"] for name, entry in json.loads(file.read_bytes()).items()} == {
            name: f"key-of-{name}" for name in providers
        }
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert os.listdir(place.config) == ["keys.json"]
        file.unlink()


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The key file of this process, in an empty place, without a keychain."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    monkeypatch.setattr(store, "open_keychain", lambda: None)
    return tmp_path / "swink" / "keys.json"


def test_no_moment_lets_others_read_the_file(file: Path, monkeypatch: pytest.MonkeyPatch):
    seen: list[int] = []
    replace = os.replace

    def look(source: str | Path, target: str | Path) -> None:
        seen.append(stat.S_IMODE(os.stat(source).st_mode))
        replace(source, target)

    monkeypatch.setattr("os.replace", look)
    before = os.umask(0)
    try:
        store_key("openai", "first-key")
        store_key("xai", "second-key")
    finally:
        os.umask(before)
    assert seen == [0o600, 0o600]
    assert key_places() == {"openai": "file", "xai": "file"}


def test_a_write_that_fails_changes_nothing_and_leaves_nothing(file: Path, monkeypatch: pytest.MonkeyPatch):
    store_key("openai", "first-key")
    before = file.read_bytes()

    def fail(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(KeyStoreError, match="nothing was changed"):
        store_key("xai", "second-key")
    assert file.read_bytes() == before
    assert os.listdir(file.parent) == ["keys.json"]


def test_keys_stored_by_threads_at_once_are_all_kept(file: Path):
    names = [f"provider-{number}" for number in range(24)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: store_key(name, f"key-of-{name}"), names))
    assert sorted(key_places()) == sorted(names)
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(remove_key, names[1:]))
    assert list(key_places()) == names[:1]
    assert os.listdir(file.parent) == ["keys.json"]


def test_a_key_file_that_is_a_link_stays_one(file: Path, tmp_path: Path):
    target = tmp_path / "dotfiles" / "keys.json"
    file.parent.mkdir()
    file.symlink_to(target)
    store_key("openai", "first-key")
    store_key("xai", "second-key")
    assert file.is_symlink()
    assert json.loads(target.read_bytes())["xai"]["key"] == "second-key"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_what_a_killed_command_left_behind_is_cleared_away(file: Path):
    file.parent.mkdir()
    (file.parent / "keys.json.part").write_text("half of the ke")
    (file.parent / "keys.json.lock").write_bytes(b"")
    store_key("openai", "first-key")
    assert os.listdir(file.parent) == ["keys.json"]


def test_a_first_write_that_fails_leaves_nothing(file: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(KeyStoreError, match="nothing was changed"):
        store_key("xai", "a-key")
    assert os.listdir(file.parent) == []


def test_a_damaged_file_is_named_and_not_quoted(file: Path):
    file.parent.mkdir()
    file.write_text('{"openai": {"place": "file", "key": "sk-secret-value", }}')
    with pytest.raises(KeyStoreError, match="is damaged") as raised:
        key_places()
    assert "sk-secret" not in str(raised.value)
    assert raised.value.__suppress_context__


def test_a_keychain_may_fail_in_any_way_of_its_own(file: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any):
    class Failing:
        name = "failing keychain"

        def get_password(self, service: str, username: str) -> str:
            raise LookupError

    monkeypatch.setattr(store, "open_keychain", lambda: Keychain(Failing()))
    file.parent.mkdir()
    file.write_text('{"openai": {"place": "keychain"}}')
    assert stored_key("openai") is None
    assert "the keychain (failing keychain) cannot be read: LookupError" in caplog.text


def test_a_key_in_a_keychain_that_is_gone_is_explained(file: Path, caplog: pytest.LogCaptureFixture):
    file.parent.mkdir()
    file.write_text('{"openai": {"place": "keychain"}}')
    assert stored_key("openai") is None
    assert "swink keys set openai" in caplog.text
    with pytest.raises(KeyStoreError, match="cannot be opened here"):
        remove_key("openai")


@pytest.mark.parametrize("typed", ["", "  \n", "two words\n", "schl\u00fcssel\n", "tab\there\n"])
def test_what_is_no_key_is_not_stored(file: Path, typed: str, monkeypatch: pytest.MonkeyPatch):
    import io

    from swink.app.cli.key_commands import _read_key
    from swink.errors import MisuseError

    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    with pytest.raises(MisuseError, match="nothing was changed"):
        _read_key("openai")
