"""AWS event-stream frames for tests: the encoding that the adapter decodes."""

import json
import struct
from binascii import crc32
from pathlib import Path


def encode_header(name: str, value: object) -> bytes:
    head = bytes([len(name.encode())]) + name.encode()
    match value:
        case bool():
            return head + (b"\x00" if value else b"\x01")
        case str():
            return head + b"\x07" + struct.pack(">H", len(value.encode())) + value.encode()
        case bytes():
            return head + b"\x06" + struct.pack(">H", len(value)) + value
        case int():
            return head + b"\x05" + struct.pack(">q", value)
    raise TypeError(value)


def encode_frame(headers: dict[str, object], payload: bytes) -> bytes:
    encoded = b"".join(encode_header(name, value) for name, value in headers.items())
    prelude = struct.pack(">II", 16 + len(encoded) + len(payload), len(encoded))
    prelude += struct.pack(">I", crc32(prelude))
    body = prelude + encoded + payload
    return body + struct.pack(">I", crc32(body))


def event_frame(name: str, data: object) -> bytes:
    """An event as Bedrock sends it."""
    headers = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    return encode_frame(
        headers, data if isinstance(data, bytes) else json.dumps(data, ensure_ascii=False).encode()
    )


def exception_frame(name: str, message: str) -> bytes:
    headers = {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"}
    return encode_frame(headers, json.dumps({"message": message}).encode())


def framed_events(path: Path) -> bytes:
    """The frames of a file with one `{"eventName": {…}}` per line."""
    events = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    return b"".join(event_frame(name, data) for event in events for name, data in event.items())
