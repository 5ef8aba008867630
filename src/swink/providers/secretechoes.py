"""Echoes: whatever secret a request carried is taken out of what its server says, in any spelling.

A server may repeat a key in an error as it is, escaped for JSON, HTML or a URL, in base64, and cut off.
"""

import base64
import json
import re
from collections.abc import Iterable, Sequence
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from swink.messages.redact import MARK, redact_text
from swink.providers.http import Request
from swink.stream.urls import is_secret_header

KEPT_LIMIT = 2 * 1024
LEAST_LENGTH = 4
LEAST_START = 8
"""How much of a secret has to stand at the end of a text to be taken for its start."""

_PUBLIC = frozenset(
    {
        "accept", "anthropic-beta", "anthropic-version", "content-type", "host", "openai-organization",
        "openai-project", "user-agent", "x-amz-content-sha256", "x-amz-date", "x-grok-conv-id",
    }
)  # fmt: skip
_FIELD = re.compile(r"\b(Credential|Signature)=([^,/\s]+)")


def shown(text: str, secrets: Iterable[str]) -> str:
    """What a provider said as it may be shown: without what it was sent, without keys, and short."""
    # What was sent goes first: a mark inside it would keep the rest of it from being found.
    return cap(redact_text(without_echoes(text, secrets)), KEPT_LIMIT)


def secrets_of(request: Request) -> list[str]:
    """What a request carries that nobody else may see: in headers, in its URL, and for a proxy on the way."""
    from urllib.request import getproxies  # slow to import, and needed where something failed

    secrets: list[str] = list(request.secrets)
    for name, value in request.headers.items():
        if is_secret_header(name):
            fields = [found[1] for found in _FIELD.findall(value)]
            secrets += [*fields, value] if fields else [value.partition(" ")[2] or value, value]
        elif name not in _PUBLIC and len(value) >= LEAST_START:
            secrets.append(value)  # a gateway may call its key anything
    query = parse_qsl(urlsplit(request.url).query)
    secrets += [value for name, value in query if is_secret_header(name)]
    for proxy in getproxies().values():
        user, password = urlsplit(proxy).username or "", urlsplit(proxy).password
        if password:
            pair = f"{unquote(user)}:{unquote(password)}"
            secrets += [unquote(password), password, base64.b64encode(pair.encode()).decode()]
    return [secret for secret in secrets if len(secret) >= LEAST_LENGTH]


def without_echoes(text: str, secrets: Iterable[str]) -> str:
    """The text without the secrets, in any spelling; a start of one at the end of the text goes too."""
    spellings = sorted({form for secret in secrets for form in _spellings(secret)}, key=len, reverse=True)
    for form in spellings:
        text = text.replace(form, MARK)
    end = text.removesuffix("…").rstrip()
    length = max((_start_at_the_end(end, form) for form in spellings), default=0)
    return end[:-length] + MARK if length else text


def _start_at_the_end(text: str, form: str) -> int:
    """How much of the start of `form` a text ends with."""
    lengths = range(min(len(form) - 1, len(text)), LEAST_START - 1, -1)
    return next((length for length in lengths if text.endswith(form[:length])), 0)


def cap(text: str, limit: int) -> str:
    """The text up to a number of bytes."""
    data = text.encode("utf-8", "replace")
    return text if len(data) <= limit else data[:limit].decode("utf-8", "ignore") + "…"


def _spellings(secret: str) -> Sequence[str]:
    import html  # as above

    escaped = json.dumps(secret)[1:-1]
    encoded = quote(secret, safe="")
    data = secret.encode("utf-8", "replace")
    return (
        secret,
        escaped,
        json.dumps(escaped)[1:-1],
        escaped.replace("/", "\\/"),
        html.escape(secret),
        quote(secret),
        encoded,
        quote_plus(secret),
        re.sub("%..", lambda found: found[0].lower(), encoded),
        base64.b64encode(data).decode().rstrip("="),
        base64.urlsafe_b64encode(data).decode().rstrip("="),
    )
