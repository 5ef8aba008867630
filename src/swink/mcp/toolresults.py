"""Results of MCP tools as results of ours, with nothing in them that would break a request to a provider."""

import base64
import binascii
from typing import Any

import msgspec

from swink.messages import Base64Source, Image, Text, ToolResult, clean

_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


def as_tool_result(result: Any) -> ToolResult:
    """A `CallToolResult` as ours; structured content goes to details, and is the text if there is none."""
    blocks = tuple(as_block(block) for block in result.content)
    structured = result.structured_content
    if structured is not None and not any(_says_something(block) for block in blocks):
        blocks = (*blocks, Text(clean(msgspec.json.encode(structured).decode())))
    details = None if structured is None else {"structured": structured}
    return ToolResult(blocks, details, bool(result.is_error))


def _says_something(block: Text | Image) -> bool:
    return isinstance(block, Image) or bool(block.text)


def as_block(block: Any) -> Text | Image:
    """A content block of the protocol as one that providers take."""
    match block.type:
        case "text":
            return Text(clean(block.text))
        case "image":
            return _image(block.data, block.mime_type)
        case "resource":
            return resource_block(block.resource)
        case "resource_link":
            about = ", ".join(filter(None, [block.mime_type, block.description]))
            return Text(clean(f"[resource {block.name}: {block.uri}{f' ({about})' if about else ''}]"))
        case "audio":
            return Text(clean(f"[audio: {block.mime_type}, {_size(block.data)} bytes, not shown]"))
        case kind:
            return Text(f"[{kind}: not shown]")


def resource_block(resource: Any) -> Text | Image:
    """The content of a resource, after a line that names it."""
    if (text := getattr(resource, "text", None)) is not None:
        return Text(clean(f"[resource {resource.uri}]\n{text}"))
    if resource.mime_type in _IMAGES:
        return _image(resource.blob, resource.mime_type)
    what = resource.mime_type or "binary"
    return Text(clean(f"[resource {resource.uri}: {what}, {_size(resource.blob)} bytes, not shown]"))


def _size(data: str) -> int:
    """About how many bytes a text in base64 stands for."""
    return len(data.rstrip("=")) * 3 // 4


def _image(data: str, media_type: str) -> Text | Image:
    """The image, if providers accept it: a bad one would stay in the history and fail every later request."""
    try:
        size = len(base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        return Text("[image: not valid base64, not shown]")
    if media_type not in _IMAGES or not size:
        return Text(f"[image: {media_type}, {size} bytes, not shown]")
    return Image(Base64Source(data, media_type))
