"""Redaction: secrets leave no trace in messages, logs, approval views or error texts."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

MARK = "[redacted]"

_SECRET_KEY = re.compile(r"passw(or)?d|passphrase|secret|token|api[-_]?key|apikey|authorization|credential|private[-_]?key|cookie", re.I)
_HARMLESS_KEY = re.compile(r"tokens$|^max_|_count$|token_type", re.I)
_SECRET_VALUE = re.compile(
    r"""
      \b(?:sk|pk|rk|xai|gsk|nvapi|hf|glpat|pplx)[-_][A-Za-z0-9_\-]{8,}       # provider keys
    | \bgh[pousr]_[A-Za-z0-9]{16,}                                        # GitHub
    | \bgithub_pat_[A-Za-z0-9_]{16,}
    | \bxox[abprs]-[A-Za-z0-9\-]{8,}                                       # Slack
    | \bAIza[A-Za-z0-9_\-]{20,}                                            # Google
    | \b(?:AKIA|ASIA)[A-Z0-9]{12,}                                         # AWS key ids
    | \beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*          # JSON web tokens
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----(?:.|\n)*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z)
    """,
    re.X,
)
_BEARER = re.compile(r"\b(bearer|basic)\s+[A-Za-z0-9._~+/=\-]{8,}", re.I)
_ASSIGNMENT = re.compile(
    r"""(?P<key>["']?[\w\-]*(?:password|passwd|secret|api[-_]?key|access[-_]?token|auth[-_]?token)["']?\s*[:=]\s*["']?)"""
    r"""(?P<value>[^\s"'&,;}]{4,})""",
    re.I,
)
_URL_PASSWORD = re.compile(r"(?P<head>\b[a-z][a-z0-9+.\-]*://[^\s/:@]*:)[^\s/@]+(?=@)", re.I)


def redact_text(text: str, *secrets: str | None) -> str:
    """Replace whatever looks like a key, and every one of the `secrets`, with a mark."""
    for secret in secrets:
        if secret and len(secret) >= 4:
            text = text.replace(secret, MARK)
    text = _SECRET_VALUE.sub(MARK, text)
    text = _BEARER.sub(rf"\1 {MARK}", text)
    text = _URL_PASSWORD.sub(rf"\g<head>{MARK}", text)
    return _ASSIGNMENT.sub(rf"\g<key>{MARK}", text)


def redact_value(value: Any) -> Any:
    """A copy of JSON data in which secret-looking keys and values are replaced with a mark."""
    return _redacted(value)


def restore_marks(edited: Any, original: Any) -> Any:
    """Put back what `redact_value` hid: wherever `edited` still shows the mark, take the original's value."""
    if edited == redact_value(original):
        return original
    if isinstance(edited, dict) and isinstance(original, dict):
        return {key: restore_marks(item, original[key]) if key in original else item for key, item in edited.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(edited, list) and isinstance(original, list) and len(edited) == len(original):  # pyright: ignore[reportUnknownArgumentType]
        return [restore_marks(item, was) for item, was in zip(edited, original, strict=True)]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return original if edited == MARK else edited


def _redacted(value: object) -> object:
    match value:
        case str():
            return redact_text(value)
        case Mapping():
            items = cast("Mapping[object, object]", value).items()
            return {key: MARK if _is_secret_key(key) and item else _redacted(item) for key, item in items}
        case list() | tuple():
            return [_redacted(item) for item in cast("Sequence[object]", value)]
        case _:
            return value


def _is_secret_key(key: object) -> bool:
    return isinstance(key, str) and bool(_SECRET_KEY.search(key)) and not _HARMLESS_KEY.search(key)
