"""A history as the messages of chat completions, each converted once, in order.

Tool results and replies carry text only in most dialects, so their images and documents follow in one user
message after the whole batch. That message is always the last: a further result of the batch goes before it.
"""

from typing import Any

import msgspec

from swink.messages import (
    AssistantMessage,
    Extension,
    Image,
    LlmMessage,
    ModelSpec,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from swink.messages.jsondata import object_of
from swink.providers.chat.dialect import ChatDialect
from swink.providers.chat.media import parts_of
from swink.providers.convert import NO_OUTPUT, CallIds, is_own
from swink.providers.exchange import encode_body

_PAD = {"role": "assistant", "content": "OK."}


class ChatConversation:
    """The messages of one conversation; the system prompt is not among them."""

    def __init__(self, model: ModelSpec, dialect: ChatDialect) -> None:
        self.items: list[dict[str, Any]] = []
        self._model = model
        self._dialect = dialect
        self._ids = CallIds(*dialect.call_ids)
        self._media: list[dict[str, Any]] = []
        self._has_called = False

    def add(self, message: LlmMessage) -> None:
        match message:
            case ToolResultMessage():
                if self._media:
                    self.items.pop()
                    if self.items[-1] is _PAD:
                        self.items.pop()
                self.items.append(self._result(message))
            case AssistantMessage():
                self._media = []
                if (turn := self._assistant(message)) is not None:
                    self._put(turn)
            case UserMessage():
                self._media = []
                self._has_called = False
                self._pad()
                if parts := parts_of(message.content, self._dialect):
                    is_plain = len(parts) == 1 and parts[0]["type"] == "text"
                    self._put({"role": "user", "content": parts[0]["text"] if is_plain else parts})
        if self._media:
            self._pad()
            self.items.append({"role": "user", "content": self._media})

    def _pad(self) -> None:
        """Where the server wants it, the assistant speaks between a result and the user."""
        if self._dialect.pads_after_results and self.items and self.items[-1]["role"] == "tool":
            self.items.append(_PAD)

    def _put(self, turn: dict[str, Any]) -> None:
        """The next turn; it joins the last one of its role where the server wants them to alternate."""
        if self._dialect.alternates:
            last = self.items[-1]["role"] if self.items else "assistant"
            if turn["role"] == last and not self.items:
                self.items.append({"role": "user", "content": "(continued)"})
            elif turn["role"] == last and not self.items[-1].get("tool_calls"):
                content = _joined(self.items.pop()["content"], turn["content"])
                turn = {**turn, "content": content}
        self.items.append(turn)

    def _assistant(self, message: AssistantMessage) -> dict[str, Any] | None:
        own = is_own(message, self._model)
        kept = own or (message.provider == self._model.provider and not self._dialect.routes)
        text = "".join([block.text for block in message.content if type(block) is Text])
        calls = [
            _call(block, self._ids.call(block.id, own=kept), own=own)
            for block in message.content
            if type(block) is ToolCall
        ]
        turn: dict[str, Any] = {"role": "assistant", "content": text or None}
        if calls:
            turn["tool_calls"] = calls
            self._has_called = True
        if images := [block for block in message.content if type(block) is Image]:
            pictures = parts_of(images, self._dialect)
            if own and self._dialect.provider == "openrouter":
                turn["images"] = pictures
            else:
                self._media = [{"type": "text", "text": "Image of the reply:"}, *pictures]
        if own and self._dialect.provider == "openrouter" and (notes := _annotations(message)):
            turn["annotations"] = notes
        if not text and not calls and "images" not in turn:
            return None
        if self._dialect.replay:
            self._replay(turn, message, own=own)
        return turn

    def _replay(self, turn: dict[str, Any], message: AssistantMessage, *, own: bool) -> None:
        """Give a turn the thinking that the server wants back."""
        thoughts = [block for block in message.content if type(block) is Thinking] if own else []
        match self._dialect.replay:
            case "reasoning_content" | "reasoning" as field if thoughts or (
                self._has_called and self._dialect.misses_thinking
            ):
                turn[field] = "".join(block.text for block in thoughts)
            case "tags" if said := "".join(block.text for block in thoughts).strip("\n"):
                turn["content"] = f"<think>\n{said}\n</think>\n\n{turn['content'] or ''}"
            case "reasoning_details" if signed := [block.signature for block in thoughts if block.signature]:
                turn["reasoning_details"] = _decoded(signed[-1], list)  # each holds those before it
            case "reasoning_details" if thoughts:
                turn["reasoning"] = "".join(block.text for block in thoughts)
            case "parts" if own and any(type(block) in (Thinking, Extension) for block in message.content):
                turn["content"] = [part for block in message.content for part in self._parts(block)]
            case _:
                pass

    def _parts(self, block: Any) -> list[dict[str, Any]]:
        if type(block) is not Thinking or not block.text:
            return parts_of([block], self._dialect)
        part = {"type": "thinking", "thinking": [{"type": "text", "text": block.text}]}
        return [{**part, "signature": block.signature} if block.signature else part]

    def _result(self, message: ToolResultMessage) -> dict[str, Any]:
        id = self._ids.result(message.tool_call_id)
        if len(message.content) == 1 and isinstance(only := message.content[0], Text):
            return {"role": "tool", "tool_call_id": id, "content": only.text}
        parts = parts_of(message.content, self._dialect)
        media = [part for part in parts if part["type"] != "text"]
        if self._dialect.result_media and media:
            return {"role": "tool", "tool_call_id": id, "content": parts}
        texts = [part["text"] for part in parts if part["type"] == "text"]
        if media:
            kind = "Image" if all(part["type"] == "image_url" for part in media) else "File"
            title = {"type": "text", "text": f"{kind} from the result of {message.tool_name}:"}
            self._media = [*self._media, title, *media]
            texts = texts or [f"({'an image' if kind == 'Image' else 'a file'} follows)"]
        return {"role": "tool", "tool_call_id": id, "content": "\n".join(texts) or NO_OUTPUT}


def _call(call: ToolCall, id: str, *, own: bool) -> dict[str, Any]:
    try:
        arguments = _encode(call.arguments).decode()
    except (UnicodeEncodeError, TypeError, NotImplementedError):
        arguments = encode_body(call.arguments).decode()
    function = {"name": call.name, "arguments": arguments}
    made: dict[str, Any] = {"id": id, "type": "function", "function": function}
    if own and call.signature and (beside := _decoded(call.signature, dict)):
        made["extra_content"] = beside
    return made


_encode = msgspec.json.Encoder().encode


def _decoded(signature: str, kind: type[list[Any]] | type[dict[str, Any]]) -> Any:
    """What a signature holds; nothing, where it is not one that was made here."""
    try:
        return msgspec.json.decode(signature, type=kind)
    except (msgspec.DecodeError, UnicodeError):
        return kind()


def _annotations(message: AssistantMessage) -> list[Any]:
    """What a router has read of files, so that it need not read them again."""
    own = [block for block in message.content if type(block) is Extension]
    found = [object_of(block.data) for block in own if block.type_name == message.provider]
    return [data["annotation"] for data in found if "annotation" in data]


def _joined(one: Any, other: Any) -> Any:
    """The contents of two messages as that of one."""
    if isinstance(one, str) and isinstance(other, str):
        return f"{one}\n\n{other}"
    contents = [[{"type": "text", "text": said}] if isinstance(said, str) else said for said in (one, other)]
    return [part for content in contents for part in content or ()]
