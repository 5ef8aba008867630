"""Redaction: text and values without secrets, for logs, error messages, cassettes and approval views."""

import re
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, cast

from swink.errors import message_of
from swink.messages.jsondata import clean

MARK = "[redacted]"
LONG_KEY = 12
"""Characters of a key that can be told from an ordinary word; a made-up key of a local server may be one."""
_MOST_SENT = 100
_sent: dict[str, None] = {}
"""The keys that this process has sent to a server: they are taken out of what is saved."""

_SECRET_KEY = re.compile(
    r"passw(or)?d|passphrase|secret|token|api[-_]?key|apikey|authorization|credential|private[-_]?key|cookie",
    re.I,
)
_COUNT_KEY = re.compile(r"tokens$|^max_|_count$", re.I)


def redact_text(text: str, *secrets: str | None) -> str:
    """Replace whatever looks like a key, and every one of the `secrets`, with a mark."""
    for secret in secrets:
        if secret and len(secret) >= 4:
            text = text.replace(secret, MARK)
    spans = secret_spans(text)
    if not spans:
        return text
    parts: list[str] = []
    end = 0
    for start, stop in spans:
        parts += (text[end:start], MARK)
        end = stop
    return "".join([*parts, text[end:]])


def secret_spans(text: str) -> list[tuple[int, int]]:
    """The parts of a text that `redact_text` replaces: in order, without overlaps."""
    # Not at the top: compiling their patterns takes 10 ms, and many programs have nothing to redact.
    from swink.messages.redact.commandsecrets import find_options
    from swink.messages.redact.keyformats import find_formats
    from swink.messages.redact.namedsecrets import find_named

    spans: list[tuple[int, int]] = []
    for start, stop in sorted([*find_formats(text), *find_named(text), *find_options(text)]):
        if spans and start < spans[-1][1]:
            spans[-1] = spans[-1][0], max(stop, spans[-1][1])
        else:
            spans.append((start, stop))
    return [span for span in spans if text[span[0] : span[1]] != MARK]


def describe_error(error: BaseException) -> str:
    """An exception's type and message, without secrets."""
    return redact_text(f"{type(error).__name__}: {message_of(error)}")


def describe_traceback(error: BaseException) -> str:
    """The traceback of an exception, without secrets, for a log."""
    return redact_text(clean("".join(traceback.format_exception(error)).rstrip()))


def redact_value(value: Any) -> Any:
    """A copy of JSON data with a mark in place of secrets: by the name of their key, or by their look."""
    match value:
        case str():
            return redact_text(value)
        case Mapping():
            items = cast("Mapping[object, object]", value).items()
            return {
                key: MARK if item and _is_secret(key, item) else redact_value(item) for key, item in items
            }
        case list() | tuple():
            return [redact_value(item) for item in cast("Sequence[object]", value)]
        case _:
            return value


def redact_texts(value: Any) -> Any:
    """A copy of JSON data without secrets in its texts, whatever their keys are named, as in a schema."""
    match value:
        case str():
            return redact_text(value)
        case Mapping():
            return {key: redact_texts(item) for key, item in cast("Mapping[Any, Any]", value).items()}
        case list() | tuple():
            return [redact_texts(item) for item in cast("Sequence[Any]", value)]
        case _:
            return value


def _is_secret(key: object, value: object) -> bool:
    if not isinstance(key, str) or not _SECRET_KEY.search(key) or key.lower() == "token_type":
        return False
    return not (isinstance(value, int | float) and _COUNT_KEY.search(key))


def hold(key: str) -> None:
    """Remember a key; only the last ones are, where every user brings one."""
    if key not in _sent:
        _sent[key] = None
        while len(_sent) > _MOST_SENT:
            _sent.pop(next(iter(_sent)), None)


def sent_keys() -> list[str]:
    """The keys, as far as they are long enough to be found."""
    return [key for key in list(_sent) if len(key) >= LONG_KEY]
