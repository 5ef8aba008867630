"""The key store: which keys are kept, in the system's keychain or, where there is none, in a file that only its owner reads.

keys.json    {"anthropic": {"place": "keychain"}, "openai": {"place": "file", "key": "…"}}

The file also tells which keys the keychain has, so that no keychain is opened for a key that is not there.
"""

import os
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from swink.cli.accounts import ACCOUNTS
from swink.cli.keychain import KeychainFailed, open_keychain
from swink.cli.settings import config_dir
from swink.cli.terminal import say
from swink.errors import AgentError
from swink.filelock import alone

Place = Literal["keychain", "file"]


class KeyStoreError(AgentError):
    """The stored keys cannot be read or written."""


class _Entry(Struct, frozen=True, omit_defaults=True):
    place: Place
    key: str | None = None

    def __repr__(self) -> str:
        return f"_Entry({self.place})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("place", self.place)]


def keys_file() -> Path:
    """Where keys are listed, and kept if there is no keychain."""
    return config_dir() / "keys.json"


def key_places() -> dict[str, Place]:
    """For each provider with a stored key, where it is."""
    return {provider: entry.place for provider, entry in _load().items()}


def store_key(provider: str, key: str) -> Place:
    """Keep a key, in the keychain if there is one that works."""
    _load()  # a damaged file is found before the keychain has changed
    keychain = open_keychain()
    entry = _Entry("file", key)
    if keychain is not None:
        try:
            keychain.write(provider, key)
            entry = _Entry("keychain")
        except KeychainFailed as error:
            say(f"{error}; the key goes into {keys_file()} instead", "warning")
    _change(provider, entry)
    return entry.place


def remove_key(provider: str) -> bool:
    """Forget a key; whether there was one."""
    entry = _load().get(provider)
    if entry is None:
        return False
    if entry.place == "keychain":
        keychain = open_keychain()
        if keychain is None:
            raise KeyStoreError(
                f"the key of {provider} is in a keychain that cannot be opened here; delete swink/{provider} there"
            )
        keychain.remove(provider)
    _change(provider, None)
    return True


@cache
def stored_key(provider: str) -> str | None:
    """The stored key, asked for once per process: a keychain may ask its owner each time."""
    entry = _load().get(provider)
    if entry is None or entry.place == "file":
        return None if entry is None else entry.key
    keychain = open_keychain()
    if keychain is None:
        say(
            f"the key of {provider} is in a keychain that cannot be opened here; set it again with: swink keys set {provider}",
            "warning",
        )
        return None
    return keychain.read(provider)


def key_for(provider: str) -> str | None:
    """The stored key to use, or None where the environment has one, which wins."""
    account = ACCOUNTS.get(provider)
    return None if account is None or account.variable is not None else stored_key(account.key_name)


def open_to_others(path: Path) -> bool:
    """Whether somebody else on this machine may read a file."""
    return os.name == "posix" and bool(path.stat().st_mode & 0o077)


def _load() -> dict[str, _Entry]:
    path = keys_file()
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, _Entry])
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise KeyStoreError(f"{path} cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError):
        # Without the decoder's words: they may quote what they stumbled over.
        raise KeyStoreError(
            f"{path} is damaged; delete it and store the keys again with: swink keys set PROVIDER"
        ) from None


def _change(provider: str, entry: _Entry | None) -> None:
    """Set or remove one entry and leave the others as they are now: several commands may run at once."""
    # What a link leads to is written, so that a file kept elsewhere stays there.
    path = Path(os.path.realpath(keys_file()))
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with alone(path.with_name(f"{path.name}.lock")):
            entries = {name: kept for name, kept in _load().items() if name != provider}
            _save(path, entries if entry is None else {**entries, provider: entry})
    except OSError as error:
        raise KeyStoreError(f"{path} cannot be written: {error.strerror}; nothing was changed") from error


def _save(path: Path, entries: dict[str, _Entry]) -> None:
    """Write the file whole or not at all, readable by nobody else from its first byte on."""
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)  # whoever held the lock before may have been killed
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(entries)) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
