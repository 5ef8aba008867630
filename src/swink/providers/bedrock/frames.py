"""AWS event-stream frames, decoded as their bytes arrive.

    total length u32 | headers length u32 | crc of these eight bytes u32 | headers | payload | crc of all u32

A header is: name length u8, name, value type u8, value. All numbers are big-endian.
"""

import struct
from binascii import crc32
from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

from swink.errors import NetworkError

MAX_HEADERS = 128 * 1024
MAX_FRAME = 24 * 1024 * 1024 + MAX_HEADERS + 16

HeaderValue: TypeAlias = str | int | bool | bytes

_PRELUDE = struct.Struct(">III")
_U32 = struct.Struct(">I")
_FORMS = {2: ">b", 3: ">h", 4: ">i", 5: ">q", 8: ">q"}
_NUMBERS = {kind: struct.Struct(form) for kind, form in _FORMS.items()}
_TRUE, _FALSE, _BYTES, _STRING, _UUID = 0, 1, 6, 7, 9


class Frame(Struct, frozen=True):
    """One message of the stream."""

    headers: dict[str, HeaderValue]
    payload: bytes

    def header(self, name: str) -> str:
        """A header as text, empty where it is missing."""
        value = self.headers.get(name, "")
        return value if isinstance(value, str) else ""


class FrameParser:
    """Bytes cut anywhere in, whole frames out; a frame that fails a check raises `NetworkError`.

    Every byte is copied and summed a bounded number of times, however small the chunks.
    """

    __slots__ = ("_buffer", "_headers_length", "_total")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._total = 0
        self._headers_length = 0

    @property
    def pending(self) -> bool:
        """Whether part of a frame has arrived: a stream that ends now was cut."""
        return bool(self._buffer)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that these bytes complete; those before a bad one are given out before it raises."""
        buffer = self._buffer
        buffer += data
        start = 0
        try:
            while self._total or self._read_prelude(start):
                end = start + self._total
                if len(buffer) < end:
                    return
                frame = self._read_frame(start, end)
                start = end
                self._total = 0
                yield frame
        finally:
            if start:
                del buffer[:start]

    def _read_prelude(self, start: int) -> bool:
        if len(self._buffer) - start < 12:
            return False
        total, headers_length, checksum = _PRELUDE.unpack_from(self._buffer, start)
        if crc32(self._buffer[start : start + 8]) != checksum:
            raise NetworkError("event stream: the checksum of a frame's prelude does not match")
        if total > MAX_FRAME or headers_length > MAX_HEADERS or headers_length + 16 > total:
            size = f"{total} bytes, {headers_length} of them headers"
            raise NetworkError(f"event stream: a frame announces {size}")
        self._total, self._headers_length = total, headers_length
        return True

    def _read_frame(self, start: int, end: int) -> Frame:
        frame = bytes(memoryview(self._buffer)[start:end])
        if crc32(frame[:-4]) != _U32.unpack_from(frame, len(frame) - 4)[0]:
            raise NetworkError("event stream: the checksum of a frame does not match")
        headers_end = 12 + self._headers_length
        return Frame(_read_headers(frame, headers_end), frame[headers_end:-4])


def _read_headers(frame: bytes, end: int) -> dict[str, HeaderValue]:
    headers: dict[str, HeaderValue] = {}
    at = 12
    try:
        while at < end:
            name_end = at + 1 + frame[at]
            name = frame[at + 1 : name_end].decode()
            if name in headers:
                raise NetworkError(f"event stream: header {name!r} comes twice in one frame")
            headers[name], at = _read_value(frame, name_end)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise NetworkError(f"event stream: unreadable headers: {error}") from error
    if at != end:
        raise NetworkError("event stream: the headers of a frame overrun their length")
    return headers


def _read_value(frame: bytes, at: int) -> tuple[HeaderValue, int]:
    kind = frame[at]
    at += 1
    if kind in (_STRING, _BYTES):
        length = int.from_bytes(frame[at : at + 2], "big")
        raw = frame[at + 2 : at + 2 + length]
        return (raw.decode() if kind == _STRING else raw), at + 2 + length
    if kind in (_TRUE, _FALSE):
        return kind == _TRUE, at
    if kind == _UUID:
        return frame[at : at + 16], at + 16
    number = _NUMBERS.get(kind)
    if number is None:
        raise NetworkError(f"event stream: unknown header value type {kind}")
    return number.unpack_from(frame, at)[0], at + number.size
