"""Content blocks: what a message consists of.

A block is frozen and can always be written down and read back: text that cannot be encoded is cleaned where
the block is made, and a file is read there. What was decoded must not say which files are read here: it never
holds a `FileSource`, which alone is read.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from pathlib import Path
from types import NoneType
from typing import Any, cast

from msgspec import DecodeError, Struct, field, json
from msgspec.structs import force_setattr, replace

from swink.errors import InvalidInput
from swink.messages.checks import check_type
from swink.messages.jsondata import clean
from swink.messages.mediafiles import Kind, is_text, kind_of_bytes, read_media
from swink.messages.readonly import ReadOnlyDict, freeze


class Citation(Struct, frozen=True, omit_defaults=True):
    """Where a text comes from: a page or a document, the words quoted of it, and the part that they support.

    `start` and `end` count characters of the text; `data` is the provider's own object, which goes back to it
    unchanged.

    Args:
        url: the page
        title: of the page or document
        quote: the words
    """

    url: str | None = None
    title: str | None = None
    quote: str | None = None
    start: int | None = None
    end: int | None = None
    data: Any = None

    def __post_init__(self) -> None:
        tidy_texts(self, optional=("url", "title", "quote"))
        for name in ("start", "end"):
            check_type(f"Citation({name})", getattr(self, name), (int, NoneType))


class Text(Struct, frozen=True, gc=False, tag="text", tag_field="type", omit_defaults=True):
    """Plain text; `signature` is what its provider wants back with it, for the provider alone.

    Args:
        citations: where it comes from
    """

    text: str
    citations: tuple[Citation, ...] = ()
    signature: str | None = None

    def __post_init__(self) -> None:
        if type(self.text) is not str or not self.text.isascii() or self.signature is not None:
            tidy_texts(self, "text", optional=("signature",))
        if self.citations != ():
            check_type("Text(citations)", self.citations, (tuple, list))
            for cited in self.citations:
                check_type("Text(citations)", cited, Citation)
            force_setattr(self, "citations", tuple(self.citations))


class Thinking(Struct, frozen=True, gc=False, tag="thinking", tag_field="type", omit_defaults=True):
    """Reasoning; the signature lets the provider that wrote it verify it when it is sent back.

    Args:
        text: what was thought
        redacted: whether the provider keeps it to itself
    """

    text: str = field(name="thinking")
    signature: str | None = None
    redacted: bool = False

    def __post_init__(self) -> None:
        tidy_texts(self, "text", optional=("signature",))


CALL_TOOL = "call_tool"
"""The name of the tool by which a model calls one that it was not told of in advance."""


class ToolCall(Struct, frozen=True, gc=False, tag="tool_call", tag_field="type", omit_defaults=True):
    """A tool invocation; `partial_json` is set while it streams, and stays if it was cut off or malformed.

    The arguments are JSON data that cannot be changed; `arguments.copy()` can.

    Args:
        id: what its result refers to
        name: the tool
        signature: what the provider wants back with it
    """

    id: str
    name: str
    arguments: dict[str, Any] = {}
    partial_json: str | None = None
    signature: str | None = None

    def __post_init__(self) -> None:
        id, name = self.id, self.name
        is_tidy = type(id) is type(name) is str and (id + name).isascii()
        if not is_tidy or self.partial_json is not None or self.signature is not None:
            tidy_texts(self, "id", "name", optional=("partial_json", "signature"))
        if type(self.arguments) is not ReadOnlyDict:
            if type(self.arguments) is not dict:
                check_type("ToolCall(arguments)", self.arguments, Mapping)
            force_setattr(self, "arguments", freeze(self.arguments, "ToolCall(arguments)"))

    @property
    def resolved(self) -> "ToolCall":
        """The call that it makes: `call_tool` names another tool, and has the arguments for it."""
        return _named_call(self) if self.name == CALL_TOOL and self.partial_json is None else self


class Base64Source(Struct, frozen=True, gc=False, tag="base64", tag_field="type"):
    """The bytes themselves, as base64, and their media type.

    Args:
        data: the base64
        media_type: what it is
    """

    data: str
    media_type: str = "image/png"

    def __post_init__(self) -> None:
        tidy_texts(self, "data", "media_type")


class UrlSource(Struct, frozen=True, gc=False, tag="url", tag_field="type"):
    """A URL that the provider fetches by itself.

    Args:
        url: the address
    """

    url: str

    def __post_init__(self) -> None:
        tidy_texts(self, "url")


class NamedFile(Struct, frozen=True, gc=False, tag="file", tag_field="type"):
    """A file that a saved message names; it is never read, and a model gets a note in its place.

    Args:
        path: the file
        media_type: what it was
    """

    path: str
    media_type: str | None = None


class FileSource(NamedFile, frozen=True, gc=False, tag="file", tag_field="type"):
    """A file on disk, which is read when a block is made of it.

    Args:
        path: the file
        media_type: what it is, if its content does not say
    """


Source = Base64Source | UrlSource | NamedFile
SENT_URLS = ("http://", "https://", "data:", "gs://", "s3://")
"""What the URL of a block begins with; a server on this machine may read a `file:` URL from its disk."""


class Image(Struct, frozen=True, gc=False, tag="image", tag_field="type"):
    """An image for the model to look at, from a file, a URL or bytes.

    Args:
        source: where the image is
    """

    source: Source

    def __post_init__(self) -> None:
        _settle_source(self, self.source)

    @classmethod
    def from_file(cls, path: str | Path, media_type: str | None = None) -> "Image":
        """An image on disk at `path`, which is read now; the `media_type` is known by its first bytes."""
        return cls(_file(cls, path, media_type))

    @classmethod
    def from_url(cls, url: str) -> "Image":
        """An image at `url` that the provider fetches."""
        return cls(_url(cls, url))

    @classmethod
    def from_bytes(cls, data: bytes, media_type: str | None = None) -> "Image":
        """An image as `data`; the `media_type` of PNG, JPEG, GIF and WebP is read off their first bytes."""
        return cls(_bytes(cls, data, media_type, "PNG, JPEG, GIF or WebP image"))


class Document(Struct, frozen=True, gc=False, tag="document", tag_field="type", omit_defaults=True):
    """A document, such as a PDF or a text; the title is what a model may call it.

    Args:
        source: where the document is
    """

    source: Source
    title: str | None = None

    def __post_init__(self) -> None:
        _settle_source(self, self.source)
        tidy_texts(self, optional=("title",))

    @classmethod
    def from_file(
        cls, path: str | Path, media_type: str | None = None, *, title: str | None = None
    ) -> "Document":
        """A document on disk at `path`, which is read now; the file's name is its `title`.

        Args:
            media_type: what it is, if its content does not say
        """
        return cls(_file(cls, path, media_type), Path(path).name if title is None else title)

    @classmethod
    def from_url(cls, url: str, *, title: str | None = None) -> "Document":
        """A document at `url` that the provider fetches, with a `title`."""
        return cls(_url(cls, url), title)

    @classmethod
    def from_bytes(
        cls, data: bytes, media_type: str | None = None, *, title: str | None = None
    ) -> "Document":
        """A document as `data`, with a `title`; PDF is known by its first bytes, UTF-8 is text
        (`media_type`).
        """
        if media_type is None and isinstance(data, bytes | bytearray | memoryview):
            is_plain = kind_of_bytes(bytes(data[:1024]), "document") is None and is_text(bytes(data))
            media_type = "text/plain" if is_plain else None
        return cls(_bytes(cls, data, media_type, "PDF or text"), title)

    @property
    def text(self) -> str | None:
        """The text of a document that is text; None for any other."""
        source = self.source
        if not isinstance(source, Base64Source) or not source.media_type.startswith("text/"):
            return None
        try:
            return clean(b64decode(source.data).decode("utf-8", "replace"))
        except ValueError:
            return None

    def with_texts(self, change: Callable[[str], str]) -> "Document":
        """The document with its text and its title put through `change`; itself where that leaves both as
        they are.
        """
        text, title = self.text, self.title and change(self.title)
        if text is not None and (changed := change(text)) != text:
            kind = cast(Base64Source, self.source).media_type.partition(";")[0]
            return Document.from_bytes(changed.encode(), kind, title=title)
        return self if title == self.title else replace(self, title=title)


class Audio(Struct, frozen=True, gc=False, tag="audio", tag_field="type"):
    """Sound for the model to listen to, from a file, a URL or bytes.

    Args:
        source: where the sound is
    """

    source: Source

    def __post_init__(self) -> None:
        _settle_source(self, self.source)

    @classmethod
    def from_file(cls, path: str | Path, media_type: str | None = None) -> "Audio":
        """Sound on disk at `path`, which is read now; the `media_type` is known by its first bytes."""
        return cls(_file(cls, path, media_type))

    @classmethod
    def from_url(cls, url: str) -> "Audio":
        """Sound at `url` that the provider fetches."""
        return cls(_url(cls, url))

    @classmethod
    def from_bytes(cls, data: bytes, media_type: str | None = None) -> "Audio":
        """Sound as `data`; the `media_type` of WAV, MP3, FLAC, OGG and MP4 is known by their first bytes."""
        return cls(_bytes(cls, data, media_type, "WAV, MP3, FLAC, OGG or MP4 sound"))


class Extension(Struct, frozen=True, tag="extension", tag_field="type", omit_defaults=True):
    """Provider- or application-specific content that the core passes through.

    A provider's own block goes back to that provider, unchanged; `shown` says in a line what it is.

    Args:
        type_name: what kind of content it is
        data: the content, as JSON
    """

    type_name: str
    data: Any = None
    shown: str = ""

    def __post_init__(self) -> None:
        tidy_texts(self, "type_name", "shown")


Media = Image | Document | Audio
ContentBlock = Text | Thinking | ToolCall | Image | Document | Audio | Extension
_KINDS: dict[type, Kind] = {Image: "image", Document: "document", Audio: "audio"}


def _named_call(call: ToolCall) -> ToolCall:
    """The call that `call_tool` asks for; itself if it names no other tool. Some models write JSON twice."""
    given: Any = call.arguments.get("arguments", {})
    if isinstance(given, str):
        try:
            given = json.decode(given)
        except (DecodeError, RecursionError):
            return call
    name = call.arguments.get("name")
    is_whole = call.arguments.keys() <= {"name", "arguments"} and isinstance(given, Mapping)
    if not is_whole or not isinstance(name, str) or name in ("", CALL_TOOL):
        return call
    try:
        return replace(call, name=name, arguments=dict(cast("Mapping[str, Any]", given)))
    except InvalidInput:  # too many levels, in text that was no JSON until now
        return call


def _file(cls: type, path: object, media_type: str | None) -> Base64Source:
    check_type(f"{cls.__name__}.from_file(path)", path, (str, Path))
    return _read(FileSource(str(path), media_type), _KINDS[cls])


def _read(source: FileSource, kind: Kind) -> Base64Source:
    data, media_type = read_media(source.path, kind, source.media_type)
    return Base64Source(b64encode(data).decode(), media_type)


def _url(cls: type, url: object) -> UrlSource:
    if not isinstance(url, str) or not url.startswith(SENT_URLS):
        raise InvalidInput(f"{cls.__name__}.from_url() takes an http, https or data URL, not {url!r:.80}")
    return UrlSource(url)


def _bytes(cls: type, data: Any, media_type: str | None, known: str) -> Base64Source:
    check_type(f"{cls.__name__}.from_bytes(data)", data, (bytes, bytearray, memoryview))
    found = media_type or kind_of_bytes(bytes(data[:1024]), _KINDS[cls])
    if found is None:
        raise InvalidInput(f"no {known}; say what it is: from_bytes(data, media_type=...)")
    return Base64Source(b64encode(data).decode(), found)


def _settle_source(block: Any, source: object) -> None:
    if isinstance(source, FileSource):
        force_setattr(block, "source", _read(source, _KINDS[type(block)]))
    elif not isinstance(source, Source):
        name = type(block).__name__
        hint = f"write {name}.from_file(path), {name}.from_url(url) or {name}.from_bytes(data)"
        what = {"Image": "an image", "Document": "a document"}.get(name, "audio")
        raise InvalidInput(f"{what} has a source, not a {type(source).__name__}: {hint}")


def tidy_texts(value: Any, *names: str, optional: tuple[str, ...] = ()) -> None:
    """Make text fields of a value such that they can be encoded; refuse what is no text."""
    for name in (*names, *optional):
        text: Any = getattr(value, name)
        if (type(text) is str and text.isascii()) or (text is None and name in optional):
            continue
        check_type(f"{type(value).__name__}({name})", text, str)
        force_setattr(value, name, clean(str.__str__(cast(str, text))))
