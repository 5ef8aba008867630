"""Hosts: which are this machine or its private network; headers: which may be set, and which are secret."""

import ipaddress
import re
import socket
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast
from urllib.parse import urlsplit

from swink.errors import InvalidInput
from swink.messages.checks import check_type

_SECRET_HEADER = re.compile(r"key|token|secret|password|credential|auth|cookie", re.I)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t -~\x80-\xff]*")
_OF_THE_CONNECTION = frozenset(
    {
        "connection", "content-length", "expect", "host", "keep-alive", "proxy-authenticate",
        "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    }
)  # fmt: skip


def origin_of(url: object) -> str | None:
    """Scheme, host and port of a `url`; None for anything that is not a URL."""
    if not url:
        return None
    try:
        parts = urlsplit(str(url))
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return None
    return f"{parts.scheme}://{parts.hostname}:{port}" if parts.hostname else None


@lru_cache(256)
def is_secret_header(name: str) -> bool:
    """Whether a header of this name holds a key, a token or a signature."""
    return _SECRET_HEADER.search(name) is not None


def checked_headers(headers: object, what: str = "headers") -> dict[str, str]:
    """Headers that a caller adds, their names in lower case; `InvalidInput` shows no value."""
    check_type(what, headers, Mapping)
    checked: dict[str, str] = {}
    for name, value in cast("Mapping[Any, Any]", headers).items():
        if not (isinstance(name, str) and _HEADER_NAME.fullmatch(name)):
            raise InvalidInput(f"{what} has {name!r:.80}, which is not the name of a header")
        if not (isinstance(value, str) and _HEADER_VALUE.fullmatch(value)):
            raise InvalidInput(f"{what}[{name!r}] must be a string that one header line can carry")
        if name.lower() in _OF_THE_CONNECTION:
            raise InvalidInput(f"{what} must not have {name!r}: the HTTP client sets it for each connection")
        checked[name.lower()] = value.strip()
    return checked


@lru_cache(256)
def is_loopback(host: str) -> bool:
    """Whether a host certainly is this machine: a loopback address, or `localhost` itself."""
    address = _address(host)
    return address.is_loopback if address is not None else host in ("localhost", "localhost.")


def is_local(host: str) -> bool:
    """Whether a host is meant to be this machine: 0.0.0.0 and `*.localhost` count too."""
    address = _address(host)
    return is_loopback(host) or (
        address.is_unspecified if address is not None else host.removesuffix(".").endswith(".localhost")
    )


def is_private(host: str) -> bool:
    """Whether a host is this machine or in its private network, by its address or by the form of its name."""
    address = _address(host)
    if address is not None:
        return address.is_private or address.is_loopback or address.is_link_local
    name = host.removesuffix(".")
    return is_local(host) or "." not in name or name.endswith((".local", ".internal", ".lan", ".home.arpa"))


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address a host is written as, in any spelling the system's resolver takes, such as 127.1."""
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        if host.split() != [host]:
            return None  # inet_aton reads no further than to a space
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host))
        except (OSError, ValueError):
            return None
    return getattr(address, "ipv4_mapped", None) or address
