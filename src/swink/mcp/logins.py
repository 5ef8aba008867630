"""Logins at MCP servers: what the key store keeps of each, by the server's URL.

A server's name may mean another server tomorrow, or in another project; its tokens go to its URL alone.
"""

import hashlib
import time
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from swink.models.keys.store import LOGIN, is_listed, remove_key, store_key, stored_key
from swink.system.threads import in_thread


class Login(Struct, frozen=True, omit_defaults=True):
    """What a server's authorisation server gave us; the dicts are the SDK's models as JSON."""

    tokens: dict[str, Any] | None = None
    expires: float | None = None
    client: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    """Of the authorisation server: a refresh after a restart needs its token endpoint."""
    resource: dict[str, Any] | None = None
    wanted: str = ""
    """Scopes that the server has asked for since, and that the next login asks for too."""

    def __repr__(self) -> str:
        return f"Login(expires={self.expires})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("expires", self.expires)]

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not appear in a log or an error."""
        tokens, client = self.tokens or {}, self.client or {}
        found = [tokens.get("access_token"), tokens.get("refresh_token"), client.get("client_secret")]
        return tuple(secret for secret in found if isinstance(secret, str) and secret)

    @property
    def is_expired(self) -> bool:
        """Whether its token is no longer good."""
        return self.expires is not None and self.expires <= time.time()


class Logins:
    """The stored login of one server."""

    def __init__(self, url: str) -> None:
        self._name = _name_of(url)

    async def read(self) -> Login:
        """The login as it is stored now; an empty one if there is none, or none that can be read."""
        return await in_thread(self.read_now)

    def read_now(self) -> Login:
        text = stored_key(self._name)
        try:
            return Login() if text is None else msgspec.json.decode(text, type=Login)
        except msgspec.DecodeError:
            return Login()

    async def write(self, login: Login) -> None:
        await in_thread(store_key, self._name, msgspec.json.encode(login).decode())

    def exists(self) -> bool:
        """Whether there is one; no keychain is opened."""
        return is_listed(self._name)

    def remove(self) -> bool:
        """Forget it; whether there was one."""
        return remove_key(self._name)


def _name_of(url: str) -> str:
    parts = urlsplit(url)
    place = f"{LOGIN}{parts.scheme}://{(parts.hostname or '').lower()}"
    place += f":{parts.port}" if parts.port else ""
    # A query may hold a key, which must not be listed.
    rest = parts.query or parts.username or parts.password
    mark = f"#{hashlib.sha256(url.encode()).hexdigest()[:12]}" if rest else ""
    return f"{place}{parts.path}{mark}"
