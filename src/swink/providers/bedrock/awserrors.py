"""What Bedrock says when it refuses: errors by name, in an answer or in a frame, and stop reasons."""

import re

import msgspec
from msgspec import Struct, field

from swink.errors import (
    ContentFiltered,
    ContextWindowOverflow,
    ErrorKind,
    ModelError,
    NetworkError,
    StreamError,
    error_for,
    is_overflow,
)
from swink.providers.bedrock.frames import Frame
from swink.providers.failure import failure, parse_error, retry_after
from swink.providers.http import Response

_WORDS: dict[ErrorKind, str] = {
    "throttled": "throttling toomanyrequests servicequotaexceeded modelnotready",
    "auth": "accessdenied unrecognizedclient expiredtoken invalidsignature incompletesignature "
    "missingauthenticationtoken",
    "network": "internalserver internalfailure modelstreamerror modeltimeout modelerror serviceunavailable",
    "model_retired": "resourcenotfound",
}
_KINDS: dict[str, ErrorKind] = {word: kind for kind, words in _WORDS.items() for word in words.split()}
_OVERFLOW = "the reply ran into the end of the context window"
_STOPS: dict[str, tuple[type[ModelError], str]] = {
    "guardrail_intervened": (ContentFiltered, "a guardrail intervened"),
    "content_filtered": (ContentFiltered, "the provider filtered the reply"),
    "model_context_window_exceeded": (ContextWindowOverflow, _OVERFLOW),
    "malformed_model_output": (NetworkError, "the provider could not read the model's reply"),
    "malformed_tool_use": (StreamError, "the model made a malformed tool call"),
}


class _Refusal(Struct, frozen=True):
    message: str = ""
    also_message: str = field(default="", name="Message")
    type: str = field(default="", name="__type")
    code: str = ""


def explain(response: Response, body: bytes) -> ModelError:
    """The error of an answer: AWS names it in a header, or in the body."""
    try:
        refusal = msgspec.json.decode(body, type=_Refusal)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        refusal = _Refusal()
    name = (response.headers.get("x-amzn-errortype") or refusal.type or refusal.code).partition(":")[0]
    message = refusal.message or refusal.also_message or parse_error(body)[0] or "no details"
    error = _error(name, f"HTTP {response.status}: " + f"{name} {message}".lstrip(), response.status)
    error.retry_after = retry_after(response.headers)
    return error


def frame_error(frame: Frame) -> ModelError:
    """The error that a frame carries: an exception of the service's, or an error of the stream itself."""
    if frame.header(":message-type") == "error":
        return _error(frame.header(":error-code"), frame.header(":error-message"), None)
    message, _ = parse_error(frame.payload)
    return _error(frame.header(":exception-type"), message, None)


def stop_error(reason: str) -> ModelError:
    """The error of a reply that ended for a reason that is no success."""
    kind, text = _STOPS.get(reason, (StreamError, f"unknown stop reason {reason!r}"))
    return kind(text)


def _error(name: str, message: str, status: int | None) -> ModelError:
    short = re.sub(r"^.*#|exception$", "", name.strip(), flags=re.I).lower()
    if short == "validation" and "model identifier is invalid" in message:
        return error_for("model_retired", message)
    if is_overflow(message) and short in ("validation", "modelstreamerror", ""):
        return ContextWindowOverflow(message)
    if kind := _KINDS.get(short):
        return error_for(kind, failure(message, status=status).message)
    return failure(message, status=status)
