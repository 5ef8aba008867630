"""The system's keychain, if there is one that works and the extra `keyring` is installed."""

import importlib
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from swink.errors import AgentError

_SERVICE = "swink"
_RECOMMENDED = 1
"""The priority below which keyring's backends are no real keychains: some keep secrets in clear text."""


class KeychainFailed(AgentError):
    """The keychain did not do what it was asked."""


class Keychain:
    """One working keychain; every failure is a `KeychainFailed`."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    @property
    def name(self) -> str:
        return str(self._backend.name)

    def read(self, provider: str) -> str | None:
        with self._naming("cannot be read"):
            return self._backend.get_password(_SERVICE, provider)

    def write(self, provider: str, key: str) -> None:
        """Keep a key, and make sure that it can be read again."""
        with self._naming("takes no key"):
            self._backend.set_password(_SERVICE, provider, key)
            kept = self._backend.get_password(_SERVICE, provider)
        if kept != key:
            raise KeychainFailed(f"the keychain ({self.name}) does not give back what it was given")

    def remove(self, provider: str) -> None:
        """Delete a key; one that is not there is no failure."""
        if self.read(provider) is not None:
            with self._naming("does not delete the key"):
                self._backend.delete_password(_SERVICE, provider)

    @contextmanager
    def _naming(self, what: str) -> Generator[None]:
        """Turn a failure of the backend into one that names the keychain and what it does not do."""
        try:
            yield
        except Exception as error:
            # A backend is foreign code: those on D-Bus, for one, raise its errors as they are.
            reason = str(error) or type(error).__name__
            raise KeychainFailed(f"the keychain ({self.name}) {what}: {reason}") from error


def open_keychain() -> Keychain | None:
    """The keychain of this system, or None where there is none to trust."""
    try:
        keyring = importlib.import_module("keyring")
        backend = keyring.get_keyring()
        trusted = backend.priority >= _RECOMMENDED
    except Exception:
        # keyring may be missing; its backends are foreign code, and one that fails is not trusted.
        return None
    return Keychain(backend) if trusted else None
