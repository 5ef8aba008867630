"""Redaction: secrets leave no trace in messages, logs, approval views or error texts."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

MARK = "[redacted]"

_SECRET_KEY = re.compile(r"passw(or)?d|passphrase|secret|token|api[-_]?key|apikey|authorization|credential|private[-_]?key|cookie", re.I)
_COUNT_KEY = re.compile(r"tokens$|^max_|_count$", re.I)
# No pattern may start anew at every character of one long word: long text takes linear time.
_SECRET_VALUE = re.compile(
    r"""
      \b(?:sk|pk|rk|xai|gsk|nvapi|hf|glpat|pplx)[-_][A-Za-z0-9_\-]{8,}       # provider keys
    | \bgh[pousr]_[A-Za-z0-9]{16,}                                        # GitHub
    | \bgithub_pat_[A-Za-z0-9_]{16,}
    | \bxox[abprs]-[A-Za-z0-9\-]{8,}                                       # Slack
    | \bAIza[A-Za-z0-9_\-]{20,}                                            # Google
    | \b(?:AKIA|ASIA)[A-Z0-9]{12,}                                         # AWS key ids
    | (?<![\w\-])eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*  # JSON web tokens
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----(?:.|\n)*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z)
    """,
    re.X,
)
_SCHEME = re.compile(r"\b((?i:bearer)|(?i:basic)(?=\s+\S*[A-Z0-9=]))\s+[A-Za-z0-9._~+/=\-]{8,}")
_ASSIGNMENT = re.compile(
    r"""
    (?P<key>
      (?: (?<![\w\-])[\w\-]*(?:passw(?:or)?d|secret|api[-_]?key|(?:access|auth|id|refresh|session)[-_]?token|authorization)\\?["']?
        | ["']token\\?["']
      )
      \s*[:=]\s*(?P<quote>\\?["'])?
    )
    (?(quote)(?:(?!(?P=quote))(?:\\.|[^\n]))+ | (?:(?:bearer|basic|token|digest)\s+)?[^\s"'&,;}]{4,})
    """,
    re.I | re.X,
)
_URL_PASSWORD = re.compile(r"(?P<head>\b[a-z][a-z0-9+.\-]{0,30}://[^\s/:@]*:)[^\s/@]+(?=@)", re.I)


def redact_text(text: str, *secrets: str | None) -> str:
    """Replace whatever looks like a key, and every one of the `secrets`, with a mark."""
    for secret in secrets:
        if secret and len(secret) >= 4:
            text = text.replace(secret, MARK)
    text = _SECRET_VALUE.sub(MARK, text)
    text = _SCHEME.sub(rf"\1 {MARK}", text)
    text = _URL_PASSWORD.sub(rf"\g<head>{MARK}", text)
    return _ASSIGNMENT.sub(rf"\g<key>{MARK}", text)


def told(error: BaseException) -> str:
    """An exception in words, without secrets; even saying what went wrong may go wrong."""
    try:
        text = str(error)
    except Exception:
        # Somebody else's `__str__`.
        text = "(it cannot say)"
    return redact_text(f"{type(error).__name__}: {text}")


def redact_value(value: Any) -> Any:
    """A copy of JSON data in which secret-looking keys and values are replaced with a mark."""
    return _redacted(value)


def _redacted(value: object) -> object:
    match value:
        case str():
            return redact_text(value)
        case Mapping():
            items = cast("Mapping[object, object]", value).items()
            return {key: MARK if item and _is_secret(key, item) else _redacted(item) for key, item in items}
        case list() | tuple():
            return [_redacted(item) for item in cast("Sequence[object]", value)]
        case _:
            return value


def _is_secret(key: object, value: object) -> bool:
    if not isinstance(key, str) or not _SECRET_KEY.search(key) or key.lower() == "token_type":
        return False
    return not (isinstance(value, int | float) and _COUNT_KEY.search(key))
