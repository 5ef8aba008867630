"""Where an adapter sends its requests, and with which key: the rules for base URLs and API keys.

A key from the environment belongs to one provider: it goes to that provider, to the base URL that the
environment names for it, or to this machine, and nowhere else. A stored key goes to the provider or to that
base URL alone. No key travels over plain http, except to this machine.
"""

import hashlib
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from swink.errors import AuthError, MissingKey, MisuseError, StreamError
from swink.messages.redact import hold
from swink.models.keys.accounts import ACCOUNTS
from swink.models.keys.store import is_listed, is_read, stored_key
from swink.stream import StreamOptions
from swink.stream.urls import is_local, is_loopback, is_private, is_secret_header
from swink.system.threads import in_thread

_LISTS = frozenset({"anthropic-beta"})
"""Headers whose values add up: what an adapter needs stays when the caller adds more."""
_NETLOC = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\[\]\\:@/?#%\x00-\x20\x7f]+)(?::[0-9]{0,5})?")


class Endpoint(Struct, frozen=True):
    """A base URL and the key that goes with it; the key shows in no repr."""

    provider: str
    base_url: str
    api_key: str | None = None
    variables: tuple[str, ...] = ()
    owned: bool = True
    """Whether the address is the provider's own, or the one that the environment names."""
    allow_http: bool = False
    """Whether a key may go there over plain http."""
    key_name: str = ""
    """The name under which `swink keys set` stores the key; empty if it stores none for this provider."""

    @property
    def host(self) -> str:
        return _host(self.base_url)

    @property
    def is_local(self) -> bool:
        """Whether the server runs on this machine."""
        return is_local(self.host)

    @property
    def takes_environment(self) -> bool:
        """Whether what the environment holds for the provider may go there."""
        return self.owned or is_loopback(self.host)

    def key(self, override: str | None = None) -> str:
        """The key to send: the request's, the constructor's, the environment's or the stored one.

        Empty for a server of the private network without a key; raises `MissingKey` for any other.
        """
        for given in (override, self.api_key):
            if given is not None:
                hold(key := given.strip())
                return self._unless_clear(key, "the key")
        if found := self.found_key():
            hold(found)
            variable = self._from_environment()
            return self._unless_clear(found, f"the key in {variable}" if variable else "the stored key")
        if is_private(self.host):
            return ""
        if self.owned and self.variables:
            stored = f"run: swink keys set {self.key_name}, or " if self.key_name else ""
            variables = " or ".join(self.variables)
            raise MissingKey(f"no API key for {self.provider}: set {variables}, or {stored}pass api_key=")
        known = f"{self.variables[0]} is not sent there; " if self.variables else ""
        how = f"{known}pass api_key= (api_key='' for a server without keys)"
        raise MissingKey(f"no API key for {self.host}: {how}")

    def check_key(self, override: str | None = None) -> None:
        """Raise what `key` would, without opening a keychain, which may have to ask its owner."""
        given = override is not None or self.api_key is not None or self._from_environment()
        if given or not self.has_key():
            self.key(override)

    def has_key(self) -> bool:
        """Whether the environment or the key store lists a key for this address."""
        if self._from_environment():
            return True
        return self._may_be_stored and is_listed(self.key_name)

    async def prepare_key(self, override: str | None = None) -> None:
        """Read the stored key that `key` may need in a thread: a keychain may have to ask its owner."""
        given = override is not None or self.api_key is not None or self._from_environment()
        if not given and self._may_be_stored and not is_read(self.key_name):
            await in_thread(stored_key, self.key_name)

    def found_key(self) -> str:
        """The key that the environment or the key store has for this address; empty if there is none."""
        if variable := self._from_environment():
            return os.environ[variable].strip()
        return (stored_key(self.key_name) if self._may_be_stored else None) or ""

    def asker(self, *others: object) -> str:
        """A digest of who asks: the key, where a request brings none, and the adapter's other settings."""
        key = self.api_key if self.api_key is not None else self.found_key()
        return digest_of(self.base_url, key, *others)

    def bearer_headers(self, options: StreamOptions) -> dict[str, str]:
        """The headers of a streamed request with the key as a bearer token, if there is a key."""
        headers = {"content-type": "application/json", "accept": "text/event-stream"}
        if key := self.key(options.api_key):
            headers["authorization"] = f"Bearer {key}"
        return headers

    def check_headers(self, own: Mapping[str, str], *given: Mapping[str, str]) -> dict[str, str]:
        """The headers of one request: the adapter's own, and over them those given, the last first.

        `AuthError` if one holds a secret that would travel in clear text.
        """
        headers = dict(own)
        for more in given:
            for name, value in more.items() if more else ():
                joined = name in _LISTS and headers.get(name)
                headers[name] = f"{joined},{value}" if joined else value
                if is_secret_header(name):
                    hold(value.partition(" ")[2] or value)
        if self._is_clear:
            for name, value in headers.items():
                if is_secret_header(name):
                    self._unless_clear(value, f"the secret in the header {name!r}")
        return headers

    @property
    def _may_be_stored(self) -> bool:
        """Whether the key store is asked: never for a server that only `base_url` names."""
        return self.owned and bool(self.key_name)

    def _from_environment(self) -> str | None:
        """The variable that holds the key, if it may go there."""
        variables = self.variables if self.takes_environment else ()
        return next((name for name in variables if os.environ.get(name, "").strip()), None)

    @property
    def _is_clear(self) -> bool:
        """Whether others could read what travels there."""
        return not self.allow_http and self.base_url.startswith("http:") and not is_loopback(self.host)

    def _unless_clear(self, secret: str, what: str) -> str:
        if secret and self._is_clear:
            raise AuthError(
                f"{what} would travel to {self.host} in clear text, so nothing was sent; use https, "
                "or pass allow_http=True if you trust the network, or api_key='' for a server without keys"
            )
        return secret

    def __repr__(self) -> str:
        return f"Endpoint({self.provider}, {self.base_url})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("provider", self.provider), ("base_url", self.base_url)]


def provider_endpoint(
    provider: str, base_url: str | None, api_key: str | None, *, allow_http: bool = False, default: str = ""
) -> Endpoint:
    """The endpoint of one of our own providers, by its account, or at `default` if that has no address."""
    account = ACCOUNTS[provider]
    default = account.base_url or default or account.url or base_url or ""
    if not default:
        raise MisuseError(f"{provider} has no address: pass base_url=, or set {account.url_variable}")
    made = endpoint(
        provider,
        default,
        base_url,
        api_key,
        keys=account.variables,
        url_variable=account.url_variable,
        allow_http=allow_http,
    )
    return replace(made, key_name=account.key_name)


def endpoint(
    provider: str,
    default: str,
    base_url: str | None,
    api_key: str | None,
    *,
    keys: tuple[str, ...],
    url_variable: str = "",
    allow_http: bool = False,
) -> Endpoint:
    """The endpoint that a constructor's `base_url` and `api_key` mean.

    Args:
        provider: its name, under which keys are stored
        default: its own base URL
        base_url: another one
        api_key: the key that was given
        keys: the variables that may hold the key
        url_variable: the variable that names another base URL
        allow_http: lets a key travel over plain http
    """
    named = os.environ.get(url_variable, "").strip() if url_variable else ""
    url = check_base_url(base_url or named or default, allow_http=allow_http)
    owned = not base_url or _site(base_url) in (_site(default), _site(named))
    return Endpoint(provider, url, api_key, keys, owned, allow_http)


def digest_of(*parts: object) -> str:
    """A digest that tells apart what may be secret."""
    return hashlib.sha256(repr(parts).encode("utf-8", "backslashreplace")).hexdigest()


def segment(name: str) -> str:
    """A model's name as one segment of a URL's path, whatever characters it has."""
    if not name.strip(". ") or any(ord(character) < 32 or ord(character) == 127 for character in name):
        raise StreamError(f"{name!r} is not the name of a model")
    # An escaped colon would be unescaped by some HTTP clients, and a URL must be sent as it was signed.
    return quote(name, safe=":", errors="replace")


def check_base_url(url: str, *, allow_http: bool = False) -> str:
    """The URL without its trailing slash; raises `MisuseError` with what is wrong with it."""
    try:
        parts = urlsplit(url.strip())
        _ = parts.port
    except ValueError as error:
        raise MisuseError(f"base_url cannot be read: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise MisuseError(f"base_url must be an http or https URL with a host, not {_shown(url)}")
    if "@" in parts.netloc:
        raise MisuseError(f"base_url must not hold credentials ({parts.hostname}); pass api_key= instead")
    if not _NETLOC.fullmatch(parts.netloc):
        # Parsers of URLs disagree on such hosts: the one checked here might not be the one connected to.
        raise MisuseError(f"base_url has no plain host and port: {_shown(url)}")
    if parts.query or parts.fragment:
        raise MisuseError(f"base_url must not hold a query or a fragment ({parts.hostname})")
    if parts.scheme == "http" and not allow_http and not is_private(parts.hostname):
        how = "use https, or pass allow_http=True"
        raise MisuseError(f"base_url {_shown(url)} would send the key in clear text; {how}")
    return parts.geturl().rstrip("/")


@lru_cache(256)
def _host(url: str) -> str:
    return urlsplit(url).hostname or ""


def _site(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port


def _shown(url: str) -> str:
    parts = urlsplit(url)
    return repr(f"{parts.scheme}://{parts.hostname}" if parts.hostname else url[:80])
