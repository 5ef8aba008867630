"""How Google says that there is no reply, or only a part of one, as errors of their kinds."""

import re
from typing import Any

from swink.errors import ContentFiltered, ModelError, NetworkError, StreamError, error_for
from swink.providers.exchange import encode_body
from swink.providers.failure import describe_error, failure, parse_error
from swink.providers.http import Response

_FILTERED = frozenset(
    {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR"}
    | {"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "IMAGE_OTHER"}
)
_STOPS = {
    "LANGUAGE": "the reply was in a language that the model does not support",
    "UNEXPECTED_TOOL_CALL": "the model called a tool although it may not",
    "TOO_MANY_TOOL_CALLS": "the model called too many tools in a row",
    "NO_IMAGE": "the model was to make an image and made none",
    "OTHER": "the provider stopped the reply without saying why",
    "FINISH_REASON_UNSPECIFIED": "the provider stopped the reply without saying why",
}
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)s")


def explain(response: Response, body: bytes) -> ModelError:
    """The error of an answer from Google."""
    message, code = parse_error(body)
    status, headers = response.status, response.headers
    said = f"HTTP {status}: {message or 'no details'}"
    error = failure(said, status=status, code=code, headers=headers)
    if status == 404 and "models/" in message:
        error = error_for("model_retired", error.message)
    if error.retry_after is None:
        error.retry_after = _retry_delay(body)
    return error


def error_of(event: dict[str, Any]) -> ModelError:
    """The error that an event of a stream holds."""
    message, code = describe_error(event)
    error = failure(message, code=code)
    if error.retry_after is None:
        error.retry_after = _retry_delay(encode_body(event))
    return error


def stop_error(reason: str, message: str) -> ModelError:
    """The error of a reply that ended for another reason than its end or its length."""
    detail = f" {message}" if message else ""
    if reason in _FILTERED:
        return ContentFiltered(f"the provider stopped the reply: {reason}{detail}")
    if reason == "MALFORMED_RESPONSE":
        return NetworkError(f"the provider could not read the model's reply{detail}")
    return StreamError(f"{_STOPS.get(reason, 'unknown finish reason')}: {reason}{detail}")


def _retry_delay(body: bytes) -> float | None:
    """The wait that a RetryInfo detail asks for."""
    found = re.search(rb'"retryDelay"\s*:\s*"([^"]*)"', body)
    seconds = _SECONDS.fullmatch(found[1].decode("utf-8", "replace")) if found else None
    return float(seconds[1]) if seconds else None
