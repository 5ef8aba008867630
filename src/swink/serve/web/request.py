"""A request as the application sees it before it is let in, and the checks that every request passes.

    Host → Origin → authorize → the route → the body

A page anywhere can make a browser send requests here; the browser names the page in `Origin`, and a name
that the page's owner points at this machine (DNS rebinding) stands in `Host`.
"""

import ipaddress
from collections.abc import Collection, Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct

from swink.serve.asgi import Message
from swink.serve.wire import Refused
from swink.stream.urls import is_loopback

_LOCAL_ONLY = "this server lets nobody in from elsewhere (it has no authorize and no token)"
_FORWARDED = frozenset({"forwarded", "x-forwarded-for", "x-real-ip"})
"""Headers by which a proxy says for whom it asks."""


class WebRequest(Struct, frozen=True):
    """What `authorize` decides on. Names of headers are in small letters.

    Args:
        method: such as "POST"
        query: what follows the path
        scheme: "http" or "https"
    """

    method: str
    path: str
    """Below the place where the application is mounted."""
    headers: Mapping[str, str]
    query: Mapping[str, str]
    peer: str | None
    """The address that the request comes from, as far as the server says."""
    scheme: str = "http"

    def __repr__(self) -> str:
        return f"WebRequest({self.method} {self.path})"

    @property
    def token(self) -> str:
        """The bearer token that was sent, or nothing."""
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""

    @property
    def cookies(self) -> Mapping[str, str]:
        """The cookies that were sent; none if they are malformed."""
        try:
            found = SimpleCookie(self.headers.get("cookie", ""))
        except CookieError:
            return {}
        return {name: morsel.value for name, morsel in found.items()}

    @property
    def is_from_here(self) -> bool:
        """Whether this machine sent it, a proxy on it included, or the server does not say from where."""
        try:
            return self.peer is None or ipaddress.ip_address(self.peer.partition("%")[0]).is_loopback
        except ValueError:
            return True  # no address: a socket of this machine, or a test


def read_request(scope: Message) -> WebRequest:
    """The request of an ASGI scope; `Refused` if a header that is checked stands there twice."""
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1").strip()
        if key in headers and key in ("host", "origin", "authorization", "content-type"):
            raise Refused(400, f"the header {key} was sent twice")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    path, root = scope["path"], scope.get("root_path", "")
    if root and path.startswith(root):
        path = path[len(root) :] or "/"
    query = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True))
    client: Any = scope.get("client")
    return WebRequest(
        scope["method"], path, headers, query, client[0] if client else None, scope.get("scheme", "http")
    )


def check_origin(
    request: WebRequest, hosts: Collection[str], origins: Collection[str], *, is_open: bool
) -> None:
    """Refuse a request that is for another host, or comes from a web page elsewhere.

    `is_open` says whether the application has a way to tell callers apart; without one it answers programs
    on this machine alone.
    """
    if not is_open and (not request.is_from_here or not _FORWARDED.isdisjoint(request.headers)):
        raise Refused(403, f"{_LOCAL_ONLY}; start it with a token, or pass authorize= to agent_app")
    host = request.headers.get("host", "").lower()
    name = _without_port(host)
    known = {each.lower() for each in hosts}
    if request.is_from_here and not (is_loopback(name) or {host, name} & known):
        raise Refused(
            403, "the header Host names another machine; a proxy in front is named with agent_app(hosts=[…])"
        )
    origin = request.headers.get("origin")
    if origin is not None and origin not in origins and urlsplit(origin).netloc.lower() != host:
        raise Refused(
            403, "the header Origin names a web page elsewhere; let it in with agent_app(origins=[…])"
        )


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() and not name.endswith(":") else host
