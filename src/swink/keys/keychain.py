"""The system's keychain, through the extra `keyring`, where both are there and work."""

import importlib
from typing import Any

from swink.errors import AgentError

_SERVICE = "swink"
_RECOMMENDED = 1
"""keyring's own line between real keychains and stores that keep secrets in the clear."""


class KeychainFailed(AgentError):
    """The keychain did not do what it was asked."""


class Keychain:
    """One working keychain; every failure is a `KeychainFailed`."""

    def __init__(self, backend: Any, failures: tuple[type[Exception], ...]) -> None:
        self._backend = backend
        self._failures = failures

    @property
    def name(self) -> str:
        """What people call it."""
        return str(self._backend.name)

    def read(self, provider: str) -> str | None:
        """The key, or None."""
        try:
            return self._backend.get_password(_SERVICE, provider)
        except self._failures as error:
            raise KeychainFailed(
                f"the keychain ({self.name}) cannot be read: {error or type(error).__name__}"
            ) from error

    def write(self, provider: str, key: str) -> None:
        """Keep a key, and make sure that it can be read again."""
        try:
            self._backend.set_password(_SERVICE, provider, key)
            kept = self._backend.get_password(_SERVICE, provider)
        except self._failures as error:
            raise KeychainFailed(
                f"the keychain ({self.name}) takes no key: {error or type(error).__name__}"
            ) from error
        if kept != key:
            raise KeychainFailed(f"the keychain ({self.name}) does not give back what it was given")

    def remove(self, provider: str) -> None:
        """Forget a key; one that is not there is no failure."""
        if self.read(provider) is None:
            return
        try:
            self._backend.delete_password(_SERVICE, provider)
        except self._failures as error:
            raise KeychainFailed(
                f"the keychain ({self.name}) does not delete the key: {error or type(error).__name__}"
            ) from error


def open_keychain() -> Keychain | None:
    """The keychain of this system, or None where there is none to trust."""
    try:
        keyring = importlib.import_module("keyring")
    except ImportError:
        return None
    # Backends on D-Bus let its errors through as they are.
    failures = (keyring.errors.KeyringError, RuntimeError, OSError)
    try:
        backend = keyring.get_keyring()
        trusted = backend.priority >= _RECOMMENDED
    except failures:
        return None
    return Keychain(backend, failures) if trusted else None
