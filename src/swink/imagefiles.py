"""Image files: read whole when a message is made, so that the conversation does not depend on them later."""

import mimetypes
import os
import stat
from pathlib import Path

from swink.errors import InvalidInput

LARGEST = 50_000_000
"""Bytes of an image file; no provider takes as much."""

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def read_image(path: str, media_type: str | None = None) -> tuple[bytes, str]:
    """The bytes of an image on disk, with the media type that they show rather than the name suggests."""
    data = _read(path)
    found = media_type or media_type_of(data[:16]) or _guess(path)
    if found is None:
        raise InvalidInput(f"{path} is not an image that can be recognised; give its media_type")
    return data, found


def media_type_of(start: bytes) -> str | None:
    """What the first bytes of an image say it is: PNG, JPEG, GIF or WebP, or None."""
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for signature, kind in _SIGNATURES if start.startswith(signature)), None)


def _read(path: str) -> bytes:
    try:
        # Whoever opens a pipe waits for the other end, unless told not to.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(Path(path).expanduser(), flags)
        try:
            return _read_file(descriptor)
        finally:
            os.close(descriptor)
    except (OSError, RuntimeError, ValueError) as error:
        said = (error.strerror if isinstance(error, OSError) else None) or error
        raise InvalidInput(f"cannot read image {path}: {said}") from error


def _read_file(descriptor: int) -> bytes:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("it is not a file")
    with open(descriptor, "rb", closefd=False) as file:
        data = file.read(LARGEST + 1)  # a file of /proc may be longer than it says
    if len(data) > LARGEST:
        raise ValueError(f"it has more than {LARGEST:,} bytes")
    return data


def _guess(path: str) -> str | None:
    guessed = mimetypes.guess_type(Path(path).name)[0]
    return guessed if guessed is not None and guessed.startswith("image/") else None
