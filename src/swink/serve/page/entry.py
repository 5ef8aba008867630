"""The way into a page on this machine: a token in the address that works once, and a cookie after that.

http://127.0.0.1:8765/?token=…   the page, and a cookie that only this browser has
the same address again           refused, unless this browser has the cookie
"""

import secrets

from swink.serve.hosting import LOCAL, Caller
from swink.serve.web import WebRequest
from swink.serve.wire import Refused

_USED = (
    "the token of this address was used already, and works once; open the page in the browser that used it, "
    "or start the server again"
)


class Entry:
    """Who is let in by the address that was printed: `authorize` of an application."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(32)
        """What stands in the address; it is exchanged once."""
        self.key = secrets.token_urlsafe(32)
        """The value of the cookie, and what a program sends as `Authorization: Bearer`."""
        self._cookie = f"swink-{secrets.token_hex(4)}"  # cookies of all ports of a host are in one jar
        self._is_used = False

    def __repr__(self) -> str:
        return "Entry()"

    def authorize(self, request: WebRequest) -> Caller | None:
        """The caller, for one with the cookie or the key; for the page itself also with the token."""
        given = request.cookies.get(self._cookie) or request.token
        if given and secrets.compare_digest(given.encode(), self.key.encode()):
            return LOCAL
        token = request.query.get("token") if request.path == "/" and request.method == "GET" else None
        if token is None or not secrets.compare_digest(token.encode(), self.token.encode()):
            return None
        if self._is_used:
            raise Refused(401, _USED)
        return LOCAL

    def exchange(self, request: WebRequest) -> str | None:
        """The cookie for a request that brought the token, which is used up by that; None if none is due."""
        if request.cookies.get(self._cookie) == self.key or "token" not in request.query:
            return None
        if self._is_used:
            raise Refused(401, _USED)
        self._is_used = True
        return f"{self._cookie}={self.key}; Path=/; HttpOnly; SameSite=Strict"
