"""AWS Signature Version 4 for one request with its body in memory."""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlsplit

from msgspec import Struct

# What proxies and clients on the way may add or change.
_UNSIGNED = frozenset(
    {
        "authorization", "baggage", "connection", "expect", "keep-alive", "proxy-authenticate",
        "proxy-authorization", "te", "traceparent", "tracestate", "trailer", "transfer-encoding", "upgrade",
        "user-agent", "x-amzn-trace-id",
    }
)  # fmt: skip
_DEFAULT_PORTS = {"http": 80, "https": 443}


class Credentials(Struct, frozen=True):
    """An access key pair, with the session token where it is temporary."""

    access_key: str
    secret_key: str
    session_token: str | None = None

    def __repr__(self) -> str:
        return "Credentials(…)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []


def sign_headers(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    credentials: Credentials,
    region: str,
    service: str,
    now: datetime | None = None,
) -> dict[str, str]:
    """The headers with date, session token and signature; `url` must be sent exactly as it is given here."""
    timestamp = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
    replaced = ("authorization", "x-amz-date", "x-amz-security-token")
    sent = {name: value for name, value in headers.items() if name.lower() not in replaced}
    sent["X-Amz-Date"] = timestamp
    if credentials.session_token:
        sent["X-Amz-Security-Token"] = credentials.session_token
    to_sign = {
        name.lower(): " ".join(value.split()) for name, value in sent.items() if name.lower() not in _UNSIGNED
    }
    to_sign.setdefault("host", _host(url))
    names = ";".join(sorted(to_sign))
    scope = f"{timestamp[:8]}/{region}/{service}/aws4_request"
    request = hashlib.sha256(_canonical_request(method, url, to_sign, names, body).encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{timestamp}\n{scope}\n{request}"
    signature = _signature(credentials.secret_key, scope, text)
    sent["Authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{scope}, "
        f"SignedHeaders={names}, Signature={signature}"
    )
    return sent


def _canonical_request(method: str, url: str, to_sign: Mapping[str, str], names: str, body: bytes) -> str:
    parts = urlsplit(url)
    headers = "".join(f"{name}:{to_sign[name]}\n" for name in sorted(to_sign))
    payload = hashlib.sha256(body).hexdigest()
    place = _canonical_path(parts.path), _canonical_query(parts.query)
    return "\n".join((method.upper(), *place, headers, names, payload))


def _canonical_path(path: str) -> str:
    """The path without dot segments and empty segments, its percent signs encoded once more."""
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment and segment != ".":
            kept.append(segment)
    tail = "/" if kept and path.endswith("/") else ""
    return quote("/" + "/".join(kept) + tail, safe="/~")


def _canonical_query(query: str) -> str:
    if not query:
        return ""
    pairs = sorted(pair.partition("=")[::2] for pair in query.split("&"))
    return "&".join(f"{key}={value}" for key, value in pairs)


def _host(url: str) -> str:
    parts = urlsplit(url)
    host = parts.hostname or ""
    if ":" in host:
        host = f"[{host}]"
    if parts.port is not None and parts.port != _DEFAULT_PORTS.get(parts.scheme):
        host = f"{host}:{parts.port}"
    return host


def _signature(secret: str, scope: str, text: str) -> str:
    key = ("AWS4" + secret).encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
