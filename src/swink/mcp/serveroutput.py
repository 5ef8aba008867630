"""What a stdio server writes that is no message: broken replies on stdout, and its stderr.

Anything else on stdout is ignored; stderr is kept out of the terminal.
"""

import json
import logging
import os
import re
import threading
from collections import deque
from typing import Any, TextIO, cast

from msgspec import Struct

from swink.messages.redact import redact_text

log = logging.getLogger("swink.mcp")

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


class Stderr:
    """A pipe for a server's stderr; a thread reads it until the server and its children have closed it."""

    def __init__(self, server: str, secrets: tuple[str, ...]) -> None:
        reading, writing = os.pipe()
        self.file: TextIO = os.fdopen(writing, "w")
        self._lines: deque[str] = deque(maxlen=20)
        given, name = (reading, server, secrets), f"swink-mcp-{server}"
        self._thread = threading.Thread(target=self._read, args=given, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close our copy of the writing end; the server has its own."""
        self.file.close()

    @property
    def last_lines(self) -> str:
        self._thread.join(0.2)
        return "\n".join(self._lines)[-2_000:]

    def _read(self, reading: int, server: str, secrets: tuple[str, ...]) -> None:
        with os.fdopen(reading, "r", encoding="utf-8", errors="replace") as file:
            while line := file.readline(8_192):
                text = redact_text(line.rstrip(), *secrets)
                self._lines.append(text)
                log.debug("%s: %s", server, text)
