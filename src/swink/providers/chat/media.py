"""Content of messages as the parts of chat completions: text, images, documents and sound, in a dialect."""

from collections.abc import Sequence
from typing import Any

from swink.errors import StreamError
from swink.messages import Audio, Base64Source, Document, Extension, Image, Text, UrlSource
from swink.providers.chat.dialect import ChatDialect
from swink.providers.convert import data_url

_FORMATS = {"mpeg": "mp3", "mp4": "m4a", "x-wav": "wav", "wave": "wav", "x-m4a": "m4a"}


def parts_of(content: Sequence[Any], dialect: ChatDialect) -> list[dict[str, Any]]:
    """The content part by part; what the server does not take is refused by name."""
    parts: list[dict[str, Any]] = []
    for block in content:
        match block:
            case Text(text):
                parts.append({"type": "text", "text": text})
            case Image(source):
                parts.append({"type": "image_url", "image_url": {"url": data_url(source)}})
            case Document():
                parts.append(_document(block, dialect))
            case Audio():
                parts.append(_audio(block, dialect))
            case Extension(name, {"type": str()} as data) if name == dialect.provider:
                parts.append(data)
            case _:
                pass  # content of another provider's
    return parts


def _document(block: Document, dialect: ChatDialect) -> dict[str, Any]:
    title = block.title or "document"
    if (text := block.text) is not None:  # which every model reads
        return {"type": "text", "text": f"{title}:\n\n{text}"}
    source = block.source
    by_url = isinstance(source, UrlSource)
    match dialect.documents:
        case "document_url":
            return {"type": "document_url", "document_url": data_url(source), "document_name": title}
        case "file_url":
            url = source.data if isinstance(source, Base64Source) else data_url(source)
            return {"type": "file_url", "file_url": {"url": url}, "file_name": title}
        case "file" if not by_url or dialect.provider == "openrouter":
            name = title if "." in title else f"{title}.pdf"
            return {"type": "file", "file": {"filename": name, "file_data": data_url(source)}}
        case "file":
            raise StreamError(
                f"{dialect.provider} takes no Document by URL in chat completions; "
                "send its bytes with Document.from_file or from_bytes"
            )
        case _:
            raise StreamError(
                f"{dialect.provider} takes no Document but text in chat completions; "
                "send the text of it, or use a provider that reads documents, such as anthropic or openai"
            )


def _audio(block: Audio, dialect: ChatDialect) -> dict[str, Any]:
    source = block.source
    match dialect.audio, source:
        case "text", Base64Source(data) | UrlSource(data):
            return {"type": "input_audio", "input_audio": data}
        case "object", Base64Source(data, media_type):
            kind = media_type.partition("/")[2].partition(";")[0]
            return {"type": "input_audio", "input_audio": {"data": data, "format": _FORMATS.get(kind, kind)}}
        case "object", _:
            advice = "send its bytes with Audio.from_file or from_bytes"
            raise StreamError(f"{dialect.provider} takes no Audio by URL; {advice}")
        case _:
            advice = "use a provider that hears, such as gemini or openai"
            raise StreamError(f"{dialect.provider} takes no Audio; {advice}")
