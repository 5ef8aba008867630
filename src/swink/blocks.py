"""Content blocks: what a message consists of.

A block is frozen and can always be written down and read back: text that cannot be encoded is cleaned where
the block is made, and an image file is read there.
"""

from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from msgspec import Struct, field
from msgspec.structs import force_setattr

from swink.checks import check_type
from swink.errors import InvalidInput
from swink.imagefiles import media_type_of, read_image
from swink.jsondata import clean
from swink.readonly import ReadOnlyDict, freeze


class Text(Struct, frozen=True, gc=False, tag="text", tag_field="type"):
    """Plain text."""

    text: str

    def __post_init__(self) -> None:
        if type(self.text) is not str or not self.text.isascii():
            tidy_texts(self, "text")


class Thinking(Struct, frozen=True, gc=False, tag="thinking", tag_field="type", omit_defaults=True):
    """Reasoning; the signature lets the provider that wrote it verify it when it is sent back."""

    text: str = field(name="thinking")
    signature: str | None = None
    redacted: bool = False

    def __post_init__(self) -> None:
        tidy_texts(self, "text", optional=("signature",))


class ToolCall(Struct, frozen=True, gc=False, tag="tool_call", tag_field="type", omit_defaults=True):
    """A tool invocation; `partial_json` is set while it streams, and stays if it was cut off or malformed.

    The arguments are JSON data that cannot be changed; `arguments.copy()` can.
    """

    id: str
    name: str
    arguments: dict[str, Any] = {}
    partial_json: str | None = None
    signature: str | None = None

    def __post_init__(self) -> None:
        if not are_tidy(self.id, self.name) or self.partial_json is not None or self.signature is not None:
            tidy_texts(self, "id", "name", optional=("partial_json", "signature"))
        if type(self.arguments) is not ReadOnlyDict:
            if type(self.arguments) is not dict:
                check_type("ToolCall(arguments)", self.arguments, Mapping)
            force_setattr(self, "arguments", freeze(self.arguments, "ToolCall(arguments)"))


class Base64Source(Struct, frozen=True, gc=False, tag="base64", tag_field="type"):
    """Image bytes, inline."""

    data: str
    media_type: str = "image/png"

    def __post_init__(self) -> None:
        tidy_texts(self, "data", "media_type")


class UrlSource(Struct, frozen=True, gc=False, tag="url", tag_field="type"):
    """An image the provider fetches."""

    url: str

    def __post_init__(self) -> None:
        tidy_texts(self, "url")


class FileSource(Struct, frozen=True, gc=False, tag="file", tag_field="type"):
    """An image on disk; it is read when a message with it is made or a tool returns it."""

    path: str
    media_type: str | None = None


class Image(Struct, frozen=True, gc=False, tag="image", tag_field="type"):
    """An image."""

    source: Base64Source | UrlSource | FileSource

    def __post_init__(self) -> None:
        if not isinstance(self.source, Base64Source | UrlSource | FileSource):
            hint = "write Image.from_file(path), Image.from_url(url) or Image.from_bytes(data)"
            raise InvalidInput(f"an image has a source, not a {type(self.source).__name__}: {hint}")

    @classmethod
    def from_file(cls, path: str | Path, media_type: str | None = None) -> "Image":
        """An image on disk, which is read now."""
        check_type("Image.from_file(path)", path, (str, Path))
        return cls(read_source(FileSource(str(path), media_type)))

    @classmethod
    def from_url(cls, url: str) -> "Image":
        """An image that the provider fetches."""
        if not isinstance(url, str) or not url.startswith(("http://", "https://", "data:")):
            raise InvalidInput(f"Image.from_url() takes an http, https or data URL, not {url!r:.80}")
        return cls(UrlSource(url))

    @classmethod
    def from_bytes(cls, data: bytes, media_type: str | None = None) -> "Image":
        """An image in memory; the media type of PNG, JPEG, GIF and WebP is read off their first bytes."""
        check_type("Image.from_bytes(data)", data, (bytes, bytearray, memoryview))
        found = media_type or media_type_of(bytes(data[:16]))
        if found is None:
            raise InvalidInput(
                "no PNG, JPEG, GIF or WebP image; say what it is: from_bytes(data, media_type=...)"
            )
        return cls(Base64Source(b64encode(data).decode(), found))


class Extension(Struct, frozen=True, tag="extension", tag_field="type"):
    """Provider- or application-specific content that the core passes through."""

    type_name: str
    data: Any = None

    def __post_init__(self) -> None:
        tidy_texts(self, "type_name")


ContentBlock = Text | Thinking | ToolCall | Image | Extension


def are_tidy(one: object, other: object) -> bool:
    """Whether two fields are text that needs no tidying, as nearly always."""
    return type(one) is str and type(other) is str and one.isascii() and other.isascii()


def tidy_texts(value: Any, *names: str, optional: tuple[str, ...] = ()) -> None:
    """Make text fields of a value such that they can be encoded; refuse what is no text."""
    for name in (*names, *optional):
        text: Any = getattr(value, name)
        if (type(text) is str and text.isascii()) or (text is None and name in optional):
            continue
        check_type(f"{type(value).__name__}({name})", text, str)
        force_setattr(value, name, clean(str.__str__(cast(str, text))))


def read_file(block: Any) -> Any:
    """The block with its image file read; a file that cannot be read is refused.

    Never for what was decoded: a message from elsewhere must not say which files are read here.
    """
    if type(block) is Image and isinstance(block.source, FileSource):
        return Image(read_source(block.source))
    return block


def read_source(source: FileSource) -> Base64Source:
    """The bytes of an image on disk."""
    data, media_type = read_image(source.path, source.media_type)
    return Base64Source(b64encode(data).decode(), media_type)
