"""What a server writes to stderr: kept out of the terminal, the last lines kept for error messages."""

import logging
import os
import threading
from collections import deque
from typing import TextIO

from swink.messages.redact import redact_text

log = logging.getLogger("swink.mcp")


class Stderr:
    """A pipe for a server's stderr; a thread reads it until the server and its children have closed it."""

    def __init__(self, server: str, secrets: tuple[str, ...]) -> None:
        reading, writing = os.pipe()
        self.file: TextIO = os.fdopen(writing, "w")
        self._lines: deque[str] = deque(maxlen=20)
        self._thread = threading.Thread(
            target=self._read, args=(reading, server, secrets), name=f"swink-mcp-{server}", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Close our copy of the writing end; the server has its own."""
        self.file.close()

    @property
    def last_lines(self) -> str:
        """The last lines, redacted."""
        self._thread.join(0.2)
        return "\n".join(self._lines)[-2_000:]

    def _read(self, reading: int, server: str, secrets: tuple[str, ...]) -> None:
        with os.fdopen(reading, "r", encoding="utf-8", errors="replace") as file:
            while line := file.readline(8_192):
                text = redact_text(line.rstrip(), *secrets)
                self._lines.append(text)
                log.debug("%s: %s", server, text)
