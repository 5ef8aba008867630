"""Where an adapter sends its requests, and with which key: the rules for base URLs and API keys.

A key from the environment belongs to one provider: it goes to that provider, to the base URL that the environment names
beside it, or to this machine and its private network, and nowhere else.
"""

import ipaddress
import os
from urllib.parse import urlsplit

from msgspec import Struct

from swink.errors import AuthError, MisuseError
from swink.stream import StreamOptions


class Endpoint(Struct, frozen=True):
    """A base URL and the key that goes with it; the key shows in no repr."""

    provider: str
    base_url: str
    api_key: str | None = None
    variables: tuple[str, ...] = ()
    owned: bool = True
    """Whether the key from the environment may go there."""

    @property
    def host(self) -> str:
        """The host, without port."""
        return urlsplit(self.base_url).hostname or ""

    @property
    def is_local(self) -> bool:
        """Whether the server runs on this machine."""
        return is_loopback(self.host)

    def key(self, override: str | None = None) -> str:
        """The key to send: the caller's, the constructor's, the environment's; empty for a local server without one."""
        for given in (override, self.api_key):
            if given is not None:
                return given.strip()
        private = is_private(self.host)
        if self.owned or private:
            for variable in self.variables:
                if found := os.environ.get(variable, "").strip():
                    return found
        if private:
            return ""
        if self.owned and self.variables:
            raise AuthError(f"no API key for {self.provider}: set {' or '.join(self.variables)}, or pass api_key=")
        known = f"{self.variables[0]} is not sent there; " if self.variables else ""
        raise AuthError(f"no API key for {self.host}: {known}pass api_key= (api_key='' for a server without keys)")

    def bearer_headers(self, options: StreamOptions) -> dict[str, str]:
        """The headers of a streamed request with the key as a bearer token, if there is a key."""
        headers = {"content-type": "application/json", "accept": "text/event-stream"}
        if key := self.key(options.api_key):
            headers["authorization"] = f"Bearer {key}"
        return headers

    def __repr__(self) -> str:
        return f"Endpoint({self.provider}, {self.base_url})"


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
    """The endpoint that a constructor's `base_url` and `api_key` mean; `url_variable` names the environment's own base URL."""
    named = os.environ.get(url_variable, "").strip() if url_variable else ""
    url = check_base_url(base_url or named or default, allow_http=allow_http)
    owned = not base_url or _site(base_url) in (_site(default), _site(named))
    return Endpoint(provider, url, api_key, keys, owned)


def check_base_url(url: str, *, allow_http: bool = False) -> str:
    """The URL without its trailing slash, or a `MisuseError` that says why it will not do."""
    parts = urlsplit(url.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise MisuseError(f"base_url must be an http or https URL with a host, not {_shown(url)}")
    if parts.username is not None or parts.password is not None:
        raise MisuseError(f"base_url must not hold credentials ({parts.hostname}); pass api_key= instead")
    if parts.query or parts.fragment:
        raise MisuseError(f"base_url must not hold a query or a fragment ({parts.hostname})")
    if parts.scheme == "http" and not allow_http and not is_private(parts.hostname):
        raise MisuseError(f"base_url {_shown(url)} would send the key in clear text; use https, or pass allow_http=True")
    return parts.geturl().rstrip("/")


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    address = _address(host)
    if address is not None:
        return address.is_loopback or address.is_unspecified
    return host == "localhost" or host.endswith(".localhost")


def is_private(host: str) -> bool:
    """Whether a host is this machine or one of its private network: no public name or address leads there."""
    address = _address(host)
    if address is not None:
        return address.is_private or address.is_loopback or address.is_link_local
    return is_loopback(host) or "." not in host or host.endswith((".local", ".internal", ".lan", ".home.arpa"))


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def _site(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port


def _shown(url: str) -> str:
    parts = urlsplit(url)
    return repr(f"{parts.scheme}://{parts.hostname}" if parts.hostname else url[:80])
