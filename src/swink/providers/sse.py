"""Event streams: the WHATWG `text/event-stream` format and newline-delimited JSON, from bytes as they arrive.

Both parsers take bytes cut anywhere, even inside a character or a line ending, and look at every byte a
bounded number of times. How much a server may send without completing an event is limited too.
"""

from msgspec import Struct

from swink.errors import StreamError

LINE_LIMIT = 16 * 1024 * 1024
QUIET_LIMIT = 4 * LINE_LIMIT
"""Bytes that a server may send without completing an event."""

BOM = b"\xef\xbb\xbf"


class ServerEvent(Struct, frozen=True, gc=False):
    """One dispatched event; its data stays UTF-8 bytes, for a JSON decoder. An empty name means "message"."""

    data: bytes
    event: str = ""
    id: str = ""


class SseParser:
    """Bytes in, events out: `for event in parser.feed(chunk)`. Only a blank line completes an event."""

    __slots__ = ("_after_cr", "_data", "_event", "_lines", "_more", "_quiet", "_started", "last_id", "retry")

    def __init__(self) -> None:
        self._lines = _Unfinished()
        self._data: bytes | None = None
        self._more: list[bytes] = []
        """The first line of an event's data, which is nearly always the only one, and those after it."""
        self._event = ""
        self._started = False
        self._after_cr = False
        self._quiet = 0
        self.last_id = ""
        self.retry: int | None = None

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that this chunk completes."""
        if self._after_cr and chunk:
            self._after_cr = False
            if chunk[:1] == b"\n":  # the second half of a CRLF that was cut in two
                chunk = chunk[1:]
        if b"\r" in chunk:
            self._after_cr = chunk[-1:] == b"\r"
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = self._lines.split(chunk)
        if lines and not self._started:
            self._started = True
            lines[0] = lines[0].removeprefix(BOM)
        events: list[ServerEvent] = []
        data = self._data
        for line in lines:
            if line[:6] == b"data: " and data is None:
                data = line[6:]
            elif line:
                self._data = data
                self._field(line)
                data = self._data
            else:
                if data is not None:
                    if self._more:
                        data = b"\n".join([data, *self._more])
                        self._more = []
                    events.append(ServerEvent(data, self._event, self.last_id))
                    data = None
                self._event = ""
        self._data = data
        self._quiet = 0 if events else self._quiet + len(chunk)
        if self._quiet > QUIET_LIMIT:
            raise StreamError(f"the server sent {self._quiet >> 20} MiB without one complete event")
        return events

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data" | b"error":
                if name == b"error":  # llama.cpp's: an error event in one line
                    self._event = "error"
                if self._data is None:
                    self._data = value
                else:
                    self._more.append(value)
            case b"event":
                self._event = value.decode("utf-8", "replace")
            case b"id":
                if b"\0" not in value:
                    self.last_id = value.decode("utf-8", "replace")
            case b"retry":
                if value.isdigit():
                    self.retry = int(value)
            case _:
                pass  # comments, whose name is empty, and unknown fields


class LineParser:
    """Newline-delimited JSON: `feed` gives complete lines, `rest` what came after the last newline."""

    __slots__ = ("_lines",)

    def __init__(self) -> None:
        self._lines = _Unfinished()

    def feed(self, chunk: bytes) -> list[bytes]:
        """The non-blank lines that this chunk completes."""
        return [line for line in map(bytes.strip, self._lines.split(chunk)) if line]

    def rest(self) -> bytes:
        """The last line, if the stream ended without its newline."""
        return b"".join(self._lines.pieces).strip()


class _Unfinished:
    """Splits chunks at newlines and keeps the pieces of the line whose end has not come yet."""

    __slots__ = ("pieces", "size")

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.size = 0

    def split(self, chunk: bytes) -> list[bytes]:
        lines = chunk.split(b"\n")
        last = lines.pop()
        if self.pieces and lines:
            self._keep(lines[0])
            lines[0] = b"".join(self.pieces)
            self.pieces = []
            self.size = 0
        if last:
            self._keep(last)
        return lines

    def _keep(self, piece: bytes) -> None:
        self.pieces.append(piece)
        self.size += len(piece)
        if self.size > LINE_LIMIT:
            raise StreamError(f"the server sent a line of more than {LINE_LIMIT >> 20} MiB")
