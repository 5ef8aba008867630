"""What a provider's failure means: status, code and wording → a typed error."""

import asyncio
import re
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from swink.errors import ErrorKind, ModelError, NetworkError, classify, error_for, is_overflow
from swink.providers.http import Response

READ_LIMIT = 64 * 1024
SCANNED_LIMIT = 8 * 1024
BODY_SECONDS = 10.0

_WORDS: dict[ErrorKind, str] = {
    "context_window_exceeded": "context_length_exceeded context_window_exceeded request_too_large "
    "model_context_window_exceeded string_above_max_length exceed_context_size_error",
    "throttled": "rate_limit_error rate_limit_reached_error rate_limited rate_limit_exceeded "
    "too_many_requests resource_exhausted",
    "auth": "authentication_error invalid_authentication_error permission_error invalid_api_key",
    "content_filtered": "content_filter content_policy_violation responsibleaipolicyviolation "
    "image_content_policy_violation misalignment_policy_violation bio_policy cyber_policy moderation_blocked "
    "data_inspection_failed datainspectionfailed",
    "model_retired": "model_not_found model_not_available model_not_supported model_decommissioned "
    "deploymentnotfound invalid_model",
    "network": "overloaded_error api_error timeout_error server_error vector_store_timeout unavailable "
    "internal_server_error service_unavailable engine_overloaded engine_overloaded_error deadline_exceeded "
    "overloaded",
}
"""The codes and types of errors by what they mean."""
_CODES: dict[str, ErrorKind] = {word: kind for kind, words in _WORDS.items() for word in words.split()}
_BILLING_CODES = frozenset(
    {
        "insufficient_quota", "billing_error", "billing_hard_limit_reached", "exceeded_current_quota_error",
        "arrearage",
    }
)  # fmt: skip
_BILLING = re.compile(
    "credit balance is too low|insufficient[_ ]quota|insufficient credits|insufficient balance"
    "|reached your specified api usage limits"
)
_FILTERED = re.compile(
    "content management policy|content[_ ]filter|content policy|violates usage guidelines|usage policy"
    "|input was flagged|content exists risk|considered high risk|inappropriate content"
    "|limited access to this content for safety"
)
_BAD_KEY = re.compile("api key not valid|invalid api key|incorrect api key|api_key_invalid")
_PLAIN = frozenset({"invalid_request_error", "invalid_argument", "bad_request", "badrequesterror"})
_GONE = re.compile(
    r"model\b.{0,200}?(?:not exist|not found|not available|no longer|deprecated|decommissioned|retired"
    r"|end of (?:its )?life|shut ?down|as legacy)"
    r"|(?:invalid|unknown|unsupported|no such) model|^model: |not found the model|not a valid model"
    r"|no endpoints found for|model identifier is invalid",
    re.I | re.S,
)


def failure(
    message: str, *, status: int | None = None, code: str = "", headers: Mapping[str, str] | None = None
) -> ModelError:
    """The typed error for what a provider said; `exchange` makes its text fit to be shown.

    Args:
        message: what the provider said
        status: of the answer
        code: its own words for the kind of error
        headers: of the answer; they may say when to try again
    """
    text = message[:SCANNED_LIMIT]
    return error_for(kind_of(status, code, text), text, retry_after=retry_after(headers or {}))


def kind_of(status: int | None, code: str, message: str) -> ErrorKind:
    """The error kind of a status, the words of `code` (in a stream one may be a status), and the wording."""
    text = message.lower()
    words = code.lower().split()
    if status is None:
        status = next((int(word) for word in words if word.isdigit() and 400 <= int(word) < 600), None)
    kind: ErrorKind | None = next((_CODES[word] for word in words if word in _CODES), None)
    if status == 402 or _BILLING_CODES.intersection(words) or _BILLING.search(text):
        return "auth"
    if status in (429, 498) or (kind == "throttled" and status != 413):
        return "throttled"
    is_overlong = kind == "context_window_exceeded" or is_overflow(message)
    if status == 413 or (status not in (401, 403) and is_overlong):
        return "context_window_exceeded"
    if kind == "content_filtered" or ((status is None or status < 500) and _FILTERED.search(text)):
        return "content_filtered"
    if status in (401, 403) or (status in (None, 400) and (kind == "auth" or _BAD_KEY.search(text))):
        return "auth"
    if status in (None, 400, 404, 410) and (kind == "model_retired" or _GONE.search(message)):
        return "model_retired"
    if status is None:
        # Nothing but words: an error inside a stream, or of a server that answers with 200.
        if kind is not None or _PLAIN.intersection(words):
            return kind or "stream"
        return classify(message).kind
    if status in (408, 409, 425, 499) or status >= 500:
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
        where = "set base_url to the address it redirects to"
        return error_for("stream", f"HTTP {status}: the server redirects; {where}")
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
    """The message in a provider's decoded error object, and its codes and types in one text."""
    match data:
        case [first, *_]:
            return describe_error(first)
        case {"error": {**error}}:
            return describe_error(error)
        case {"error": str() as message, **rest}:
            return message, _codes(rest)
        case {"message": str() as message, "metadata": {"raw": str() as raw}, **rest} if raw:
            return f"{message}: {raw}", _codes(rest)  # a router tells what another provider said
        case {"message": str() as message, **rest} | {"detail": str() as message, **rest}:
            return message, _codes(rest)
        case _:
            return msgspec.json.encode(data).decode(), ""


def _codes(error: Mapping[str, Any]) -> str:
    values = [error.get(name) for name in ("code", "status", "type")]
    return " ".join(dict.fromkeys(str(value) for value in values if value not in (None, "", "error")))
