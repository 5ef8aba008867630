"""Images, documents and sound on disk: read whole when a message is made, so that the conversation does not
depend on the file later."""

import os
import stat
from pathlib import Path
from typing import Literal

from swink.errors import InvalidInput

LARGEST = 50_000_000
"""Bytes of a file; no provider takes as much."""

Kind = Literal["image", "document", "audio"]

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_AUDIO = (
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\xff\xf2", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
)
_TEXTS = {
    "application/json": "text/plain",
    "application/xml": "text/xml",
    "application/javascript": "text/plain",
    "application/x-sh": "text/plain",
}
"""Text under the name of an application; providers take it as text alone."""


def read_media(path: str, kind: Kind, media_type: str | None = None) -> tuple[bytes, str]:
    """The bytes of a file on disk, with the media type that they show rather than the name suggests."""
    data = _read(path, kind)
    found = media_type or kind_of_bytes(data, kind) or _guess(path, kind)
    if found is None and kind == "document" and is_text(data):
        found = "text/plain"
    if found is None:
        raise InvalidInput(f"{path} is no {kind} that can be recognised; give its media_type")
    return data, found


def kind_of_bytes(data: bytes, kind: Kind) -> str | None:
    """What the bytes of an image, a document or a sound say it is, or None."""
    if kind == "image":
        return media_type_of(data[:16])
    if kind == "audio":
        if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
            return "audio/wav"
        if data[4:8] == b"ftyp":
            return "audio/mp4"
        return next((name for signature, name in _AUDIO if data.startswith(signature)), None)
    if data[:1024].lstrip().startswith(b"%PDF-"):
        return "application/pdf"
    return None


def media_type_of(start: bytes) -> str | None:
    """What the first bytes of an image say it is: PNG, JPEG, GIF or WebP, or None."""
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for signature, kind in _SIGNATURES if start.startswith(signature)), None)


def is_text(data: bytes) -> bool:
    """Whether bytes are text in UTF-8."""
    if b"\0" in data:
        return False
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _read(path: str, kind: str) -> bytes:
    try:
        # Opening a pipe waits for the other end, unless told not to.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(Path(path).expanduser(), flags)
        try:
            return _read_file(descriptor)
        finally:
            os.close(descriptor)
    except (OSError, RuntimeError, ValueError) as error:
        said = (error.strerror if isinstance(error, OSError) else None) or error
        raise InvalidInput(f"cannot read {kind} {path}: {said}") from error


def _read_file(descriptor: int) -> bytes:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("it is not a file")
    with open(descriptor, "rb", closefd=False) as file:
        data = file.read(LARGEST + 1)  # a file of /proc may be longer than it says
    if len(data) > LARGEST:
        raise ValueError(f"it has more than {LARGEST:,} bytes")
    return data


def _guess(path: str, kind: Kind) -> str | None:
    import mimetypes  # only files need it, and it takes 60 kB

    guessed = mimetypes.guess_type(Path(path).name)[0]
    if guessed is None:
        return None
    if kind != "document":
        return guessed if guessed.startswith(f"{kind}/") else None
    return None if guessed.startswith(("image/", "audio/", "video/")) else _TEXTS.get(guessed, guessed)
