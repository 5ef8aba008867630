"""What a provider's failure means: status, code and wording → a typed error.

failure(message, status=…, code=…, headers=…)   what was said, in an answer or inside a stream
refusal(response, body)                          the error of an answer with a bad status
"""

import asyncio
import re
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from swink.errors import ErrorKind, ModelError, NetworkError, error_for, is_overflow
from swink.providers.http import Response

READ_LIMIT = 64 * 1024
SCANNED_LIMIT = 8 * 1024
BODY_SECONDS = 10.0

_CODES: dict[str, ErrorKind] = {
    "context_length_exceeded": "context_window_exceeded",
    "request_too_large": "context_window_exceeded",
    "exceed_context_size_error": "context_window_exceeded",
    "rate_limit_error": "throttled",
    "rate_limit_exceeded": "throttled",
    "too_many_requests": "throttled",
    "resource_exhausted": "throttled",
    "insufficient_quota": "auth",
    "billing_error": "auth",
    "billing_hard_limit_reached": "auth",
    "authentication_error": "auth",
    "permission_error": "auth",
    "invalid_api_key": "auth",
    "content_filter": "content_filtered",
    "content_policy_violation": "content_filtered",
    "responsibleaipolicyviolation": "content_filtered",
    "image_content_policy_violation": "content_filtered",
    "misalignment_policy_violation": "content_filtered",
    "bio_policy": "content_filtered",
    "model_not_found": "model_retired",
    "model_decommissioned": "model_retired",
    "deploymentnotfound": "model_retired",
    "invalid_model": "model_retired",
    "overloaded_error": "network",
    "api_error": "network",
    "timeout_error": "network",
    "server_error": "network",
    "internal_server_error": "network",
    "service_unavailable": "network",
    "engine_overloaded": "network",
}
_BILLING = (
    "credit balance is too low",
    "insufficient_quota",
    "insufficient quota",
    "insufficient credits",
    "insufficient balance",
)
_FILTERED = (
    "content management policy",
    "content_filter",
    "content filter",
    "content policy",
    "violates usage guidelines",
    "usage policy",
)
_BAD_KEY = ("api key not valid", "invalid api key", "incorrect api key", "api_key_invalid")
_GONE = re.compile(
    r"model\b.{0,200}?(?:not exist|not found|not available|no longer|deprecated|decommissioned|retired"
    r"|end of life|shut ?down)"
    r"|(?:invalid|unknown|unsupported|no such) model|^model: ",
    re.I | re.S,
)


def failure(
    message: str,
    *,
    status: int | None = None,
    code: str = "",
    headers: Mapping[str, str] | None = None,
) -> ModelError:
    """The typed error for what a provider said; `exchange` makes its text fit to be shown."""
    text = message[:SCANNED_LIMIT]
    return error_for(kind_of(status, code, text), text, retry_after=retry_after(headers or {}))


def kind_of(status: int | None, code: str, message: str) -> ErrorKind:
    """The error kind of a status, a provider's error code or type, and its wording; the first counts most."""
    text = message.lower()
    code = code.lower()
    if status is None and code.isdigit():
        status = int(code)
    if (
        code in ("insufficient_quota", "billing_error")
        or status == 402
        or any(phrase in text for phrase in _BILLING)
    ):
        return "auth"
    if status == 429:
        return "throttled"
    if status == 413 or (status not in (401, 403) and is_overflow(message)):
        return "context_window_exceeded"
    if _CODES.get(code) == "content_filtered" or (
        (status is None or status < 500) and any(phrase in text for phrase in _FILTERED)
    ):
        return "content_filtered"
    if status in (401, 403) or (status == 400 and any(phrase in text for phrase in _BAD_KEY)):
        return "auth"
    if status in (None, 400, 404, 410) and (_CODES.get(code) == "model_retired" or _GONE.search(message)):
        return "model_retired"
    if status is None:
        return _CODES.get(code) or "stream"
    if status in (408, 409) or status >= 500:
        return "network"
    return "stream"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait: `retry-after-ms`, or `retry-after` in seconds or as an HTTP date; lower-case names."""
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            return max(0.0, float(milliseconds) / 1000)
    except ValueError:
        pass
    given = headers.get("retry-after", "").strip()
    if not given:
        return None
    try:
        seconds = float(given)
    except ValueError:
        from email.utils import parsedate_to_datetime  # slow to import, and rarely needed

        try:
            seconds = parsedate_to_datetime(given).timestamp() - time.time()
        except ValueError:
            return None
    return max(0.0, seconds) if seconds == seconds and seconds != float("inf") else None


def refusal(response: Response, body: bytes) -> ModelError:
    """The error of an answer other than 2xx, read from its body."""
    status = response.status
    message, code = parse_error(body)
    if 300 <= status < 400:
        return error_for(
            "stream",
            f"HTTP {status}: the server redirects; set base_url to the address it redirects to",
        )
    error = failure(message or "no details", status=status, code=code, headers=response.headers)
    hint = "; are base_url and the model's name right?" if status == 404 and error.kind == "stream" else ""
    error.message = f"HTTP {status}: {error.message}{hint}"
    return error


async def read_capped(response: Response, limit: int = READ_LIMIT) -> bytes:
    """What arrives of a body within its limits of size and time."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in response:
                body += chunk
                if len(body) >= limit:
                    break
    except (TimeoutError, NetworkError):
        pass  # the status alone says enough
    return bytes(body[:limit])


def parse_error(body: bytes) -> tuple[str, str]:
    """The message and the code of an error body: JSON of several shapes, an HTML page, or plain text."""
    text = body.decode("utf-8", "replace").strip()
    try:
        return describe_error(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        pass
    text = text[:SCANNED_LIMIT]
    if text[:512].lstrip().lower().startswith(("<!doctype", "<html", "<head", "<?xml")):
        text = re.sub(r"(?is)<(script|style)\b.*?</\1>|<[^<>]*>", " ", text)
    return " ".join(text.split()), ""


def describe_error(data: Any) -> tuple[str, str]:
    """The message and the code (or type) in a provider's decoded error object."""
    match data:
        case [first, *_]:
            return describe_error(first)
        case {"error": {**error}}:
            return describe_error(error)
        case {"error": str() as message, **rest}:
            return message, _code(rest)
        case {"message": str() as message, **rest}:
            return message, _code(rest)
        case {"detail": str() as message, **rest}:
            return message, _code(rest)
        case _:
            return msgspec.json.encode(data).decode(), ""


def _code(error: Mapping[str, Any]) -> str:
    for name in ("code", "status", "type"):
        value = error.get(name)
        if value not in (None, "", "error"):
            return str(value)
    return ""
