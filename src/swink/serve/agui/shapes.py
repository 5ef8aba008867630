"""Messages and their parts as AG-UI writes them, and the parts that clients send."""

from collections.abc import Sequence
from typing import Any

from swink.messages import (
    AssistantMessage,
    Audio,
    Base64Source,
    ContentBlock,
    Document,
    Image,
    Media,
    Message,
    Text,
    Thinking,
    ToolResultMessage,
    UrlSource,
    UserMessage,
    text_of,
)
from swink.messages.jsondata import encode
from swink.serve.toldhistory import media_of
from swink.serve.wire import Refused, fields

_MEDIA = {Image: "image", Audio: "audio", Document: "document"}


def parts_of(content: Sequence[ContentBlock]) -> str | list[dict[str, Any]]:
    """Content as AG-UI has it: text if it is that alone, else a list of parts."""
    media = [part for block in content if (part := _part(block)) is not None]
    if all(part["type"] == "text" for part in media):
        return text_of(content)
    return media


def media_part(block: Media) -> dict[str, Any] | None:
    """An image, sound or document as a part; None for a file that is named alone."""
    match block.source:
        case Base64Source(data=data, media_type=media_type):
            source = {"type": "data", "value": data, "mimeType": media_type}
        case UrlSource(url=url):
            source = {"type": "url", "value": url}
        case _:
            return None
    return {"type": _MEDIA[type(block)], "source": source}


def messages_of(messages: Sequence[tuple[str, Message]]) -> list[dict[str, Any]]:
    """Stored messages, each with its id, as AG-UI has them."""
    return [each for id, message in messages for each in _messages(id, message)]


def reasoning_id(id: str, index: int) -> str:
    """The id of the thinking block at an index of the reply with this id."""
    return f"{id}-thinking-{index}"


def result_id(call_id: str) -> str:
    """The id of the message that holds the result of a call."""
    return f"{call_id}-result"


def block_of(part: Any, where: str) -> Text | Media:
    """The block that a part of a client's message is; raises `Refused` for what an agent cannot be given."""
    match part:
        case {"type": "text", "text": str(text)}:
            return Text(text)
        case {"type": "image" | "audio" | "document" as kind, "source": source}:
            return _media(kind, fields(source), where)
        case {"type": "binary", "mimeType": str(kind)}:
            data, url = part.get("data"), part.get("url")
            found = f"data:{kind};base64,{data}" if isinstance(data, str) else url
            if isinstance(found, str):
                return media_of(found, kind, where, part.get("filename"))
            raise Refused(400, f"{where} names a stored file, and none are here; send its data")
        case {"type": str(kind)}:
            raise Refused(
                400, f"{where} has a part of type {kind[:40]!r}; text, images, sound and documents are taken"
            )
        case _:
            raise Refused(400, f"{where} has a part that is no object with a type")


def _media(kind: str, source: Any, where: str) -> Media:
    match source:
        case {"type": "data", "value": str(data), "mimeType": str(media_type)}:
            return media_of(f"data:{media_type};base64,{data}", _kind(kind, media_type), where)
        case {"type": "url", "value": str(url)}:
            return media_of(url, _kind(kind, source.get("mimeType")), where)
        case _:
            raise Refused(400, f"{where} has a file that is neither data nor a URL; send its data")


def _kind(kind: str, media_type: Any) -> str:
    """The media type, or one that says what the part is said to be."""
    wanted = "application" if kind == "document" else kind
    if isinstance(media_type, str) and (kind == "document" or media_type.startswith(f"{kind}/")):
        return media_type
    return f"{wanted}/*"


def _part(block: ContentBlock) -> dict[str, Any] | None:
    match block:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Image() | Audio() | Document():
            return media_part(block)
        case _:
            return None


def _messages(id: str, message: Message) -> list[dict[str, Any]]:
    match message:
        case UserMessage(content=content):
            return [{"id": id, "role": "user", "content": parts_of(content)}]
        case ToolResultMessage(tool_call_id=call_id, content=content, is_error=is_error):
            result = {"id": result_id(call_id), "role": "tool", "toolCallId": call_id}
            error = {"error": text_of(content)} if is_error else {}
            return [{**result, "content": parts_of(content), **error}]
        case AssistantMessage():
            return _reply(id, message)
        case _:
            return []


def _reply(id: str, message: AssistantMessage) -> list[dict[str, Any]]:
    thoughts = [
        {"id": reasoning_id(id, index), "role": "reasoning", "content": block.text}
        for index, block in enumerate(message.content)
        if isinstance(block, Thinking) and block.text
    ]
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": encode(call.arguments).decode()},
        }
        for call in message.tool_calls
    ]
    if not message.text and not calls:
        return thoughts
    said = {"content": message.text} if message.text else {}
    return [*thoughts, {"id": id, "role": "assistant", **said, **({"toolCalls": calls} if calls else {})}]
