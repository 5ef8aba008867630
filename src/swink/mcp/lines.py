"""Lines of a stdio server that are no messages: which call a broken reply was meant for.

Anything else on the server's stdout is chatter, and does no harm.
"""

import json
import re
from typing import Any, cast

from msgspec import Struct

_ID = re.compile(r'"id"\s*:\s*(-?\d+|"(?:[^"\\]|\\.)*")')
_BODY = re.compile(r'"(?:result|error)"\s*:')


class BrokenReply(Struct, frozen=True):
    """A reply that cannot be read; `call_id` is None if not even its id can."""

    call_id: int | str | None
    reason: str


def broken_reply(error: Exception) -> BrokenReply | None:
    """What the SDK could not read, if it was a reply; bytes that are no UTF-8 are lone surrogates in it."""
    details: Any = getattr(error, "errors", list[Any])()
    # What is wrong with a field is told of the field alone; that a reply is no request, of the whole reply.
    whole = [detail for detail in details if detail.get("type") == "missing"]
    line: Any = next((detail.get("input") for detail in whole or details), None)
    if isinstance(line, dict):
        return _misshapen(cast("dict[str, Any]", line))
    line = line.lstrip("\ufeff \t") if isinstance(line, str) else ""
    if not line.startswith("{"):
        return None
    text = line.encode("utf-8", "replace").decode()
    what = "no valid UTF-8" if text != line else "no valid JSON"
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError):
        head = text[: found.start()] if (found := _BODY.search(text)) else text
        given = _ID.search(head)
        return BrokenReply(json.loads(given[1]) if given else None, f"its reply is {what}")
    return _misshapen(data, what)


def _misshapen(data: dict[str, Any], what: str = "no message of the protocol") -> BrokenReply | None:
    if "method" in data:
        return None
    call_id = data.get("id")
    known = isinstance(call_id, int | str) and not isinstance(call_id, bool)
    return BrokenReply(call_id if known else None, f"its reply is {what}")
