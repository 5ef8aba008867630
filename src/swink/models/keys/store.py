"""The key store: keys in the system's keychain or, where there is none, in a file that only its owner reads.

keys.json    {"anthropic": {"place": "keychain"}, "openai": {"place": "file", "key": "…"}}

The file also lists the keys that the keychain has, so that it is not opened for a key that it does not have.
"""

import logging
import os
import time
from functools import cache, lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import msgspec
from msgspec import Struct

from swink.errors import AgentError
from swink.models.keys.keychain import KeychainFailed, open_keychain
from swink.system.filelock import alone
from swink.system.files import remove_leftovers, write_whole
from swink.system.places import NoHome, config_dir

KeyPlace = Literal["keychain", "file"]

LOGIN = "mcp:"
"""What the names of logins begin with: a login is JSON with several secrets, kept like a key."""

_Version = tuple[str, int, int, int]
"""One state of the file: its path, inode, size and time of change."""
_NOWHERE: _Version = "", 0, 0, 0

_LOOK_AGAIN = 0.5
"""Seconds for which `known_keys` does not look whether another program has stored a key."""

_found: dict[str, tuple[_Version, str | None]] = {}
_recent: tuple[float, list[str]] | None = None
_looking = Lock()

logger = logging.getLogger("swink.keys")


class KeyStoreError(AgentError):
    """The stored keys cannot be read or written."""


class _Entry(Struct, frozen=True, omit_defaults=True):
    place: KeyPlace
    key: str | None = None

    def __repr__(self) -> str:
        return f"_Entry({self.place})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("place", self.place)]


class _Login(Struct, frozen=True):
    tokens: dict[str, Any] = {}
    client: dict[str, Any] = {}

    def __repr__(self) -> str:
        return "_Login()"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []


def keys_file() -> Path:
    """Where keys are listed, and kept if there is no keychain."""
    try:
        return config_dir() / "keys.json"
    except NoHome as error:
        raise KeyStoreError(str(error)) from error


def key_places() -> dict[str, KeyPlace]:
    """For each provider with a stored key, where it is."""
    return {provider: entry.place for provider, entry in _load().items()}


def store_key(provider: str, key: str) -> KeyPlace:
    """Keep a key, in the keychain if there is one that works."""
    _load()  # a damaged file is found before the keychain has changed
    keychain = open_keychain()
    entry = _Entry("file", key)
    if keychain is not None:
        try:
            keychain.write(provider, key)
            entry = _Entry("keychain")
        except KeychainFailed as error:
            logger.warning("%s; the key goes into %s instead", error, keys_file())
    _change(provider, entry)
    return entry.place


def remove_key(provider: str) -> bool:
    """Delete a key; whether there was one."""
    entry = _load().get(provider)
    if entry is None:
        return False
    if entry.place == "keychain":
        keychain = open_keychain()
        if keychain is None:
            raise KeyStoreError(
                f"the key of {provider} is in a keychain that cannot be opened here; "
                f"delete swink/{provider} there"
            )
        keychain.remove(provider)
    _change(provider, None)
    return True


def stored_key(provider: str) -> str | None:
    """The stored key; None, with a warning, where it cannot be read.

    A keychain may ask its owner, so it is opened once per process and provider, and again only after the file
    has changed: a key that is set while the process runs is found.
    """
    global _recent
    version = _version()
    with _looking:
        known = _found.get(provider)
        if known is None or known[0] != version:
            known = _found[provider] = version, _read(provider, version)
            _recent = None
    return known[1]


def known_keys() -> list[str]:
    """The stored keys, as far as they can be read without a keychain, which may have to ask its owner.

    A session asks with every append, so the file is looked at now and then.
    """
    global _recent
    recent, now = _recent, time.monotonic()
    if recent is None or now - recent[0] > _LOOK_AGAIN:
        recent = _recent = now, _known_now()
    return recent[1]


def _known_now() -> list[str]:
    version = _version()
    if version == _NOWHERE:
        return []
    secrets: list[str] = []
    for name, (known, key) in list(_found.items()):
        if known == version and key is not None:
            secrets += _secrets_in(name, key)
    return secrets + _keys_in_file(version)


def _secrets_in(name: str, key: str) -> list[str]:
    """The key itself, or the tokens of a login."""
    if not name.startswith(LOGIN):
        return [key]
    try:
        login = msgspec.json.decode(key, type=_Login)
    except msgspec.DecodeError:
        return []
    fields = {**login.tokens, **login.client}
    secrets = (fields.get(field) for field in ("access_token", "refresh_token", "client_secret"))
    return [secret for secret in secrets if isinstance(secret, str) and secret]


def is_read(provider: str) -> bool:
    """Whether `stored_key` answers at once, without a look at the file or the keychain."""
    known = _found.get(provider)
    return known is not None and known[0] == _version()


def is_listed(provider: str) -> bool:
    """Whether there is a stored key, as the file says; no keychain is opened."""
    known = _found.get(provider)
    if known is not None and known[0] == _version():
        return known[1] is not None
    try:
        return provider in _load()
    except KeyStoreError:
        return False  # `stored_key` says why


def open_to_others(path: Path) -> bool:
    """Whether other users of this machine may read a file."""
    return os.name == "posix" and bool(path.stat().st_mode & 0o077)


def _version() -> _Version:
    try:
        path = _path(*map(os.environ.get, ("XDG_CONFIG_HOME", "HOME", "APPDATA")))
    except KeyStoreError:
        return _NOWHERE
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return _NOWHERE
    except OSError:
        return path, 0, 0, 0  # reading it says why that fails
    return path, found.st_ino, found.st_size, found.st_mtime_ns


@lru_cache(4)
def _path(*named: str | None) -> str:
    """The path of the file, which these variables say."""
    return str(keys_file())


def _read(provider: str, version: _Version) -> str | None:
    if version == _NOWHERE:
        return None
    try:
        entry = _load().get(provider)
        if entry is None or entry.place == "file":
            return None if entry is None else entry.key
        if (keychain := open_keychain()) is not None:
            return keychain.read(provider)
        failure = f"the key of {provider} is in a keychain that cannot be opened here"
        again = "swink mcp login NAME" if provider.startswith(LOGIN) else f"swink keys set {provider}"
        _warn_once(version, f"{failure}; set it again with: {again}")
    except AgentError as error:
        _warn_once(version, str(error))
    return None


@lru_cache(1)
def _keys_in_file(version: _Version) -> list[str]:
    try:
        entries = _load().items()
        return [secret for name, entry in entries if entry.key for secret in _secrets_in(name, entry.key)]
    except KeyStoreError:
        return []  # `stored_key` says why


@cache
def _warn_once(version: _Version, text: str) -> None:
    """A damaged file concerns every provider: one warning is enough."""
    logger.warning("%s", text)


def _load() -> dict[str, _Entry]:
    path = keys_file()
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, _Entry])
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise KeyStoreError(f"{path} cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError):
        # Without the decoder's message, which may quote a key.
        raise KeyStoreError(
            f"{path} is damaged; delete it and store the keys again with: swink keys set PROVIDER"
        ) from None


def _change(provider: str, entry: _Entry | None) -> None:
    """Set or remove one entry and leave the others as they are now: several commands may run at once."""
    global _recent
    # If the file is a symbolic link, its target is written and the link stays.
    path = Path(os.path.realpath(keys_file()))
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with alone(path.with_name(f"{path.name}.lock")):
            entries = {name: kept for name, kept in _load().items() if name != provider}
            if entry is not None:
                entries[provider] = entry
            remove_leftovers(path)
            write_whole(path, msgspec.json.format(msgspec.json.encode(entries)) + b"\n")
    except OSError as error:
        raise KeyStoreError(f"{path} cannot be written: {error.strerror}; nothing was changed") from error
    finally:
        _recent = None
