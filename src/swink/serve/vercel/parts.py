"""Parts of UI messages: files and texts, and the outputs of calls."""

from collections.abc import Sequence
from typing import Any

from swink.messages import (
    Audio,
    Base64Source,
    ContentBlock,
    Document,
    Image,
    Media,
    Text,
    UrlSource,
    text_of,
)

_ANY = {Image: "image/*", Audio: "audio/*", Document: "application/octet-stream"}


def file_part(block: Media) -> dict[str, Any] | None:
    """An image, sound or document as a file; None for one that is named alone."""
    match block.source:
        case Base64Source(data=data, media_type=media_type):
            return {"type": "file", "url": f"data:{media_type};base64,{data}", "mediaType": media_type}
        case UrlSource(url=url):
            return {"type": "file", "url": url, "mediaType": _ANY[type(block)]}
        case _:
            return None


def parts_of(content: Sequence[ContentBlock]) -> list[dict[str, Any]]:
    """The texts and files of some content."""
    parts: list[dict[str, Any]] = []
    for block in content:
        match block:
            case Text(text=text):
                parts.append({"type": "text", "text": text})
            case Image() | Audio() | Document():
                part = file_part(block)
                parts += [] if part is None else [part]
            case _:
                pass
    return parts


def output_of(call_id: str, content: Sequence[ContentBlock], is_error: bool) -> dict[str, Any]:
    """The output of a call: its text, or its parts where there are others."""
    if is_error:
        text = text_of(content) or "the tool failed and said nothing"
        return {"type": "tool-output-error", "toolCallId": call_id, "errorText": text, "dynamic": True}
    parts = parts_of(content)
    output = parts if any(part["type"] == "file" for part in parts) else text_of(content)
    return {"type": "tool-output-available", "toolCallId": call_id, "output": output, "dynamic": True}
