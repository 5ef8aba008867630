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
MOST_TOLD = 50_000
"""Characters of an error, or of a part of a traceback, that are told."""
_MARGIN = 10_000
"""Characters of a secret that begins before the end of them."""
_MOST_SENT = 100
_sent: dict[str, None] = {}
"""The keys that this process has sent to a server: they are taken out of what is saved."""
_long: tuple[str, ...] = ()

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
    return _marked(text, secret_spans(text))


def _marked(text: str, spans: Sequence[tuple[int, int]]) -> str:
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
    """An exception's type and message, without secrets; of a message that is far too long, its beginning."""
    return _redacted_start(f"{type(error).__name__}: {message_of(error)}")


def describe_traceback(error: BaseException) -> str:
    """The traceback of an exception, without secrets, for a log."""
    return "".join([_redacted_start(clean(part)) for part in _in_parts(error)]).rstrip()


def _in_parts(error: BaseException) -> list[str]:
    """A traceback as one text; a part of it that is far too long, such as a message, is one by itself."""
    parts = [""]
    for part in traceback.format_exception(error):
        if len(parts[-1]) + len(part) > MOST_TOLD:
            parts.append("")
        parts[-1] += part
    return parts


def _redacted_start(text: str) -> str:
    """The text without secrets, or as much of it as can be looked through on an event loop."""
    if len(text) <= MOST_TOLD:
        return redact_text(text)
    start = text[: MOST_TOLD + _MARGIN]
    spans = [span for span in secret_spans(start) if span[0] < MOST_TOLD]
    end = max(MOST_TOLD, spans[-1][1]) if spans else MOST_TOLD
    return f"{_marked(start[:end], spans)} [… {len(text) - end} more characters]"


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
    global _long
    if key not in _sent:
        _sent[key] = None
        while len(_sent) > _MOST_SENT:
            _sent.pop(next(iter(_sent)), None)
        while True:
            made = tuple(_sent)
            _long = tuple([key for key in made if len(key) >= LONG_KEY])
            if tuple(_sent) == made:  # else another thread has held one meanwhile
                break


def sent_keys() -> tuple[str, ...]:
    """The keys, as far as they are long enough to be found."""
    return _long
