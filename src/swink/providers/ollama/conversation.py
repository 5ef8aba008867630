"""A history as Ollama's messages, each converted once, in order.

Pictures that tools returned follow their results in a message of the user's, which is always the last: a
further result of the batch goes before it.
"""

from collections.abc import Sequence
from typing import Any

from swink.errors import StreamError
from swink.messages import (
    AssistantMessage,
    Audio,
    Base64Source,
    Document,
    Image,
    LlmMessage,
    ModelSpec,
    Text,
    ToolCall,
    ToolResultMessage,
)
from swink.providers.convert import NO_OUTPUT, is_own
from swink.providers.exchange import encode_body

OWN_ID = "swink-"
"""The prefix of ids that this adapter gives to calls without one; they are not sent to the server."""


class OllamaConversation:
    """The messages of one conversation; the system prompt is not among them."""

    def __init__(self, model: ModelSpec) -> None:
        self.items: list[dict[str, Any]] = []
        self.characters = 0
        """How long it is; images aside."""
        self._model = model
        self._pictures: list[str] = []
        self._named: set[str] = set()

    def add(self, message: LlmMessage) -> None:
        match message:
            case ToolResultMessage():
                if self._pictures:
                    self.items.pop()
                self._put(self._result(message))
                self._pictures += _images(message.content)
                if self._pictures:
                    text = "(images from the tool results above)"
                    self.items.append({"role": "user", "content": text, "images": self._pictures})
                return
            case AssistantMessage():
                self._put(self._assistant(message))
            case _:
                asked: dict[str, Any] = {"role": "user", "content": _text(message.content)}
                if images := _images(message.content):
                    asked["images"] = images
                self._put(asked)
        self._pictures = []

    def _put(self, message: dict[str, Any]) -> None:
        calls = message.get("tool_calls")
        if message["content"] or calls or message.get("images"):
            self.items.append(message)
            self.characters += len(message["content"]) + len(message.get("thinking", ""))
            self.characters += len(encode_body({"tool_calls": calls})) if calls else 0

    def _result(self, message: ToolResultMessage) -> dict[str, Any]:
        text = _text(message.content) or NO_OUTPUT
        if message.is_error and not text.lower().startswith("error"):
            text = f"error: {text}"
        result = {"role": "tool", "tool_name": message.tool_name, "content": text}
        if message.tool_call_id in self._named:
            result["tool_call_id"] = message.tool_call_id
        return result

    def _assistant(self, message: AssistantMessage) -> dict[str, Any]:
        own = is_own(message, self._model)
        said: dict[str, Any] = {"role": "assistant", "content": _text(message.content)}
        if message.thinking and own:
            said["thinking"] = message.thinking
        if calls := [self._call(call, message.provider) for call in message.tool_calls]:
            said["tool_calls"] = calls
        return said

    def _call(self, call: ToolCall, provider: str) -> dict[str, Any]:
        """A call; the id goes back to the kind of server that gave it one."""
        sent: dict[str, Any] = {"function": {"name": call.name, "arguments": call.arguments}}
        if provider != self._model.provider or call.id.startswith(OWN_ID):
            return sent
        self._named.add(call.id)
        return {"id": call.id, **sent}


def _text(content: Sequence[Any]) -> str:
    """The text on lines of its own, that of documents included."""
    lines: list[str] = []
    for block in content:
        match block:
            case Text(text):
                lines.append(text)
            case Document(title=title):
                if (text := block.text) is None:
                    raise StreamError(
                        "ollama takes documents of plain text only; send the text of a PDF, its pages as "
                        "images, or use another provider"
                    )
                lines.append(f"{title}:\n{text}" if title else text)
            case Audio():
                raise StreamError("ollama takes no audio; send its words as text, or use another provider")
            case _:
                pass
    return "\n".join(lines)


def _images(content: Sequence[Any]) -> list[str]:
    images: list[str] = []
    for block in content:
        if isinstance(block, Image):
            if not isinstance(block.source, Base64Source):
                raise StreamError("ollama takes images as bytes or files; it fetches none from the web")
            images.append(block.source.data)
    return images
