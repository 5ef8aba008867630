"""A history in the words of Bedrock's Converse API: turns that alternate, the user's first.

Tool results join the user's message that follows them. What a model made goes back to it as it came: its
thinking, its citations and the blocks of hosted tools. Other models of Bedrock's know none of them.
"""

import re
from collections.abc import Sequence
from typing import Any

from swink.errors import StreamError
from swink.messages import (
    AssistantMessage,
    Audio,
    Base64Source,
    Document,
    Extension,
    Image,
    LlmMessage,
    ModelSpec,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UrlSource,
)
from swink.providers.convert import NO_OUTPUT, CallIds, Turns, is_own

_OFFICE = "application/vnd.openxmlformats-officedocument"
_SOUNDS = ("mp3", "wav", "aac", "flac", "ogg", "opus", "mp4", "m4a", "webm")
_FORMATS: dict[type, dict[str, str]] = {
    Image: {f"image/{name}": name for name in ("png", "jpeg", "gif", "webp")} | {"image/jpg": "jpeg"},
    Document: {
        "application/pdf": "pdf",
        "text/csv": "csv",
        "application/msword": "doc",
        f"{_OFFICE}.wordprocessingml.document": "docx",
        "application/vnd.ms-excel": "xls",
        f"{_OFFICE}.spreadsheetml.sheet": "xlsx",
        "text/html": "html",
        "text/markdown": "md",
        "text/plain": "txt",
    },
    Audio: {"audio/mpeg": "mp3", "audio/x-wav": "wav"} | {f"audio/{name}": name for name in _SOUNDS},
}
_NAME = re.compile(r"[^a-zA-Z0-9()\[\] -]+")


class ConverseConversation:
    """The turns of a conversation, converted message by message."""

    def __init__(self, model: ModelSpec) -> None:
        self._model = model
        # Bedrock takes dots and colons too, but Claude on it does not.
        self._ids = CallIds(r"[a-zA-Z0-9_-]{1,64}", 30, "tooluse_")
        self._turns = Turns({"text": "(continued)"})
        self._names: set[str] = set()
        self.items: list[Any] = self._turns.items
        self.called: dict[str, None] = {}
        """The names of the tools that were called."""
        self.thoughtless: bool | None = None
        """Whether the replies to the last user message began without a thought; None before the first."""

    def add(self, message: LlmMessage) -> None:
        match message:
            case AssistantMessage():
                blocks = self._assistant(message)
                if blocks and self.thoughtless is None:
                    self.thoughtless = "reasoningContent" not in blocks[0]
                self._turns.add("assistant", blocks)
            case ToolResultMessage():
                self._turns.add("user", [self._result(message)])
            case _:
                self.thoughtless = None
                blocks = self._user_blocks(message.content)
                kinds = {kind for block in blocks for kind in block}
                if "document" in kinds and "text" not in kinds:
                    blocks.append({"text": "(see the document)"})  # Bedrock takes none without a text
                self._turns.add("user", blocks)

    def _result(self, message: ToolResultMessage) -> dict[str, Any]:
        content = self._user_blocks(message.content) or [{"text": NO_OUTPUT}]
        if any("audio" in block for block in content):
            raise StreamError("bedrock takes no audio in tool results: return a transcript")
        status = "error" if message.is_error else "success"
        id = self._ids.result(message.tool_call_id)
        return {"toolResult": {"toolUseId": id, "content": content, "status": status}}

    def _assistant(self, message: AssistantMessage) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        mine = is_own(message, self._model)
        for block in message.content:
            match block:
                case Text(text, citations):
                    cited = [given.data for given in citations if mine and given.data is not None]
                    content = {"content": [{"text": text}], "citations": cited}
                    blocks.append({"citationsContent": content} if cited else {"text": text})
                case ToolCall(id, name, arguments):
                    call = {"toolUseId": self._ids.call(id, own=mine), "name": name, "input": arguments}
                    self.called[name] = None
                    blocks.append({"toolUse": call})
                case Thinking(_, str() as data, True) if mine:
                    blocks.append({"reasoningContent": {"redactedContent": data}})
                case Thinking(text, str() as signature) if mine:
                    reasoning = {"text": text, "signature": signature}
                    blocks.append({"reasoningContent": {"reasoningText": reasoning}})
                case Image() if mine:
                    blocks.append({"image": _media(block)})
                case Extension("bedrock", data) if mine:
                    blocks.append(data)
                case _:
                    pass  # unsigned thinking, and what another model or provider made
        if message.stop_reason in ("error", "aborted", "length"):
            blocks = _without_open_uses(blocks)
        while blocks and "reasoningContent" in blocks[-1]:
            blocks.pop()  # a message may not end in thinking: that turn was cut off before it said anything
        return blocks

    def _user_blocks(self, content: Sequence[Any]) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        for block in content:
            match block:
                case Text(text):
                    blocks.append({"text": text})
                case Image():
                    blocks.append({"image": _media(block)})
                case Document():
                    blocks.append({"document": {"name": self._name(block.title), **_media(block)}})
                case Audio():
                    blocks.append({"audio": _media(block)})
                case Extension("bedrock", data):
                    blocks.append(data)
                case _:
                    pass  # content of another provider's
        return blocks

    def _name(self, title: str | None) -> str:
        """A name of the characters that Bedrock takes, one that no other document of the request has."""
        plain = " ".join(_NAME.sub(" ", title or "").split())[:190] or "document"
        name, number = plain, 1
        while name in self._names:
            number += 1
            name = f"{plain} ({number})"
        self._names.add(name)
        return name


def _media(block: Image | Document | Audio) -> dict[str, Any]:
    formats, kind = _FORMATS[type(block)], type(block).__name__.lower()
    match block.source:
        case Base64Source(data, media_type) if media_type in formats or (
            kind == "document" and media_type.startswith("text/")
        ):
            return {"format": formats.get(media_type, "txt"), "source": {"bytes": data}}
        case UrlSource(url) if url.startswith("s3://"):
            ending = url.rpartition(".")[2].lower()
            form = "jpeg" if kind == "image" and ending == "jpg" else ending
            return {"format": form, "source": {"s3Location": {"uri": url}}}
        case _ if kind == "audio":
            names = ", ".join(sorted({*formats.values()}))
            raise StreamError(f"bedrock takes audio as bytes, files or s3:// URLs, in {names}")
        case Base64Source(_, media_type) if kind == "image":
            raise StreamError(f"bedrock takes PNG, JPEG, GIF and WebP images, not {media_type}")
        case Base64Source(_, media_type):
            known = "PDF, CSV, Word, Excel, HTML, Markdown and text documents"
            raise StreamError(f"bedrock takes {known}, not {media_type}: convert it, or send its text")
        case _:
            what = f"{kind}s as bytes, files or s3:// URLs"
            raise StreamError(f"bedrock takes {what}; it fetches none from the web")


def _without_open_uses(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The blocks of a reply that was cut off, without hosted calls whose result never came."""
    answered = {block["toolResult"].get("toolUseId") for block in blocks if "toolResult" in block}
    return [
        block
        for block in blocks
        if (call := block.get("toolUse")) is None or "type" not in call or call["toolUseId"] in answered
    ]
