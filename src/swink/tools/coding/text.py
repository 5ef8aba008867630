"""Text in files: which encoding it is in, and bytes that are no text at all."""

import codecs
import hashlib
import os
from typing import IO

from msgspec import Struct

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_BINARIES = (
    (b"%PDF-", "a PDF document"), (b"PK\x03\x04", "a zip archive (or an office document, jar or wheel)"),
    (b"\x1f\x8b", "gzip data"), (b"\x7fELF", "an ELF program or library"), (b"\xfd7zXZ", "xz data"),
    (b"BZh", "bzip2 data"), (b"\x28\xb5\x2f\xfd", "zstd data"), (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"SQLite format 3\0", "an SQLite database"), (b"\xca\xfe\xba\xbe", "Java bytecode or a Mach-O binary"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O binary"), (b"MZ", "a Windows program"), (b"\0asm", "WebAssembly"),
    (b"OggS", "Ogg audio or video"), (b"ID3", "MP3 audio"), (b"\x00\x00\x01\x00", "an icon"),
    (b"wOFF", "a font"), (b"wOF2", "a font"),
)  # fmt: skip
SAMPLE = 8192


class Encoding(Struct, frozen=True):
    """How a file's text is written: every byte survives decoding and encoding again."""

    name: str = "utf-8"
    bom: bytes = b""

    def decode(self, data: bytes) -> str:
        """The text; bytes that do not belong to the encoding become lone surrogates."""
        return data[len(self.bom) :].decode(self.name, self.errors)

    def encode(self, text: str) -> bytes:
        """The bytes again; raises `UnicodeEncodeError` for a character the encoding lacks."""
        return self.bom + text.encode(self.name, self.errors)

    @property
    def errors(self) -> str:
        """Python's name for how odd bytes are kept."""
        return "surrogatepass" if self.name.startswith(("utf-16", "utf-32")) else "surrogateescape"

    def __str__(self) -> str:
        return f"{self.name} with a byte order mark" if self.bom else self.name


def detect(data: bytes) -> Encoding | None:
    """The encoding of some text; None if the data is binary."""
    for bom, name in _BOMS:
        if data.startswith(bom):
            return Encoding(name, bom) if _decodes(data[len(bom) :], name) else Encoding()
    if wide := _wide(data[:SAMPLE]):
        return Encoding(wide) if _decodes(data, wide) else None
    if b"\0" in data[:SAMPLE] or any(data.startswith(magic) for magic, _ in _BINARIES[:8]):
        return None
    if _decodes(data, "utf-8"):
        return Encoding()
    # With some valid multi-byte characters it is damaged UTF-8; with none, most likely cp1252.
    some = data.decode("utf-8", "ignore")
    return Encoding() if any(char > "\x7f" for char in some) else Encoding("cp1252")


def read_past_holes(file: IO[bytes], size: int) -> bytes:
    """The next bytes of a file, skipping holes, which hold no data and may be larger than any disk."""
    at = file.tell()
    data = file.read(size)
    if not data or data.count(0) < len(data) or not hasattr(os, "SEEK_DATA"):
        return data
    try:
        start = os.lseek(file.fileno(), at, os.SEEK_DATA)
    except OSError:
        return b""  # no data up to the end
    if start < at + len(data):
        return data
    file.seek(start)
    return file.read(size)


def detect_image(data: bytes) -> str | None:
    """The media type of an image a model can look at."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _IMAGES if data.startswith(magic)), None)


def describe_binary(data: bytes) -> str:
    """What some binary data is, as far as its first bytes tell."""
    if image := detect_image(data):
        return f"an image ({image})"
    return next((kind for magic, kind in _BINARIES if data.startswith(magic)), "binary data")


def make_printable(text: str) -> str:
    """Text as it can be shown and sent: bytes that were no text become replacement characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def hash_content(data: bytes) -> str:
    """What identifies the content of a file in a conversation."""
    return hashlib.sha256(data).hexdigest()[:16]


def _decodes(data: bytes, name: str) -> bool:
    try:
        data.decode(name, "surrogatepass" if name.startswith("utf-16") else "strict")
    except UnicodeDecodeError:
        return False
    return True


def _wide(sample: bytes) -> str | None:
    """UTF-16 without a mark: half of the bytes of mostly Latin text are NUL, all on one side."""
    if len(sample) < 8 or b"\0" not in sample:
        return None
    pairs = len(sample) // 2
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if odd > pairs * 0.7 and even < pairs * 0.05:
        return "utf-16-le"
    if even > pairs * 0.7 and odd < pairs * 0.05:
        return "utf-16-be"
    return None
