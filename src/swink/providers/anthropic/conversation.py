"""A history in the words of the Messages API: turns that alternate, the user's first.

Tool results join the user's message that follows them. What Claude made goes back as it came: its thinking to
the model that thought it, its citations and the blocks of its hosted tools to the provider that made them.
"""

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from swink.errors import StreamError
from swink.messages import (
    AssistantMessage,
    Audio,
    Base64Source,
    Citation,
    Document,
    Extension,
    Image,
    LlmMessage,
    ModelSpec,
    Text,
    Thinking,
    ToolCall,
    UrlSource,
)
from swink.providers.anthropic.claudetools import CONTAINER
from swink.providers.anthropic.claudetoolsearch import found_tools
from swink.providers.anthropic.eventtypes import sent_citation
from swink.providers.claude import claude_version
from swink.providers.convert import NO_OUTPUT, CallIds, Turns, is_own

_USES = ("server_tool_use", "mcp_tool_use")


class ClaudeConversation:
    """The turns of a conversation, converted message by message."""

    def __init__(self, model: ModelSpec) -> None:
        self._model = model
        # Others with this API may sign nothing, and some refuse a call without the thinking before it.
        self._signs = claude_version(model.model_id) > (0, 0)
        self._ids = CallIds(r"[a-zA-Z0-9_-]{1,64}", 30, "toolu_")
        self._turns = Turns({"type": "text", "text": "(continued)"})
        self.items: list[Any] = self._turns.items
        self.container: dict[str, Any] | None = None
        """Where the code of the last reply ran that ran any."""
        self.references: set[str] = set()
        """The tools that searches of the provider's have found."""
        self.thoughtless: bool | None = None
        """Whether the replies to the last user message began without a thought; None before the first."""

    def add(self, message: LlmMessage) -> None:
        if isinstance(message, AssistantMessage):
            blocks = self._assistant(message)
            if blocks and self.thoughtless is None:
                self.thoughtless = blocks[0]["type"] not in ("thinking", "redacted_thinking")
            self._turns.add("assistant", blocks)
        elif message.role == "user":
            self.thoughtless = None
            self._turns.add("user", _user_blocks(message.content))
        else:
            self._turns.add("user", [self._result(message)])

    def _result(self, message: Any) -> dict[str, Any]:
        content = _user_blocks(message.content) or [{"type": "text", "text": NO_OUTPUT}]
        id = self._ids.result(message.tool_call_id)
        block = {"type": "tool_result", "tool_use_id": id, "content": content}
        return {**block, "is_error": True} if message.is_error else block

    def _assistant(self, message: AssistantMessage) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        mine = is_own(message, self._model)
        # Vertex AI serves other models beside Claude, in other words.
        alike = (claude_version(message.model) > (0, 0)) == self._signs
        ours = alike and message.provider == self._model.provider
        for block in message.content:
            match block:
                case Text(text) if not text.strip():
                    pass  # signed by another model
                case Text(text, citations):
                    blocks.append({"type": "text", "text": text, **(_citations(citations) if ours else {})})
                case ToolCall(id, name, arguments):
                    id = self._ids.call(id, own=mine)
                    call = {"type": "tool_use", "id": id, "name": name, "input": arguments}
                    blocks.append({**_more(block.signature), **call} if ours else call)
                case Thinking(_, str() as data, True) if mine:
                    blocks.append({"type": "redacted_thinking", "data": data})
                case Thinking(text, str() as signature) if mine:
                    blocks.append({"type": "thinking", "thinking": text, "signature": signature})
                case Thinking(text, None) if mine and not self._signs:
                    blocks.append({"type": "thinking", "thinking": text, "signature": ""})
                case Extension("anthropic", {"type": type} as data) if ours and type == CONTAINER:
                    self.container = cast("dict[str, Any]", data)
                case Extension("anthropic", {"type": str()} as data) if ours:
                    blocks.append(cast("dict[str, Any]", data))
                    self.references |= found_tools(blocks[-1])
                case _:
                    pass  # thinking that was cut off, and what another model or provider made
        if message.stop_reason in ("error", "aborted", "length"):
            blocks = _without_open_uses(blocks)
        while blocks and blocks[-1]["type"] in ("thinking", "redacted_thinking"):
            blocks.pop()  # a message may not end in thinking: that turn was cut off before it said anything
        return blocks


def _user_blocks(content: Sequence[Any]) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for block in content:
        match block:
            case Text(text):
                blocks.append({"type": "text", "text": text})
            case Image(Base64Source(data, media_type)):
                source = {"type": "base64", "media_type": media_type, "data": data}
                blocks.append({"type": "image", "source": source})
            case Image(UrlSource(url)):
                blocks.append({"type": "image", "source": {"type": "url", "url": url}})
            case Document(_, title):
                document = {"type": "document", "source": _document(block)}
                blocks.append({**document, "title": title} if title else document)
            case Audio():
                raise StreamError("Claude takes no audio: send a transcript, or use a model that hears")
            case Extension("anthropic", data):
                blocks.append(data)
            case _:
                pass  # content of another provider's
    return blocks


def _document(document: Document) -> dict[str, Any]:
    match document.source:
        case UrlSource(url):
            return {"type": "url", "url": url}
        case Base64Source(data, "application/pdf" as media_type):
            return {"type": "base64", "media_type": media_type, "data": data}
        case source if (text := document.text) is not None:
            return {"type": "text", "media_type": "text/plain", "data": text}
        case source:
            kind = source.media_type or "a file that was not read"
            advice = "convert it, or send its text"
            raise StreamError(f"Claude takes PDF and text documents, not {kind}: {advice}")


def _citations(citations: Sequence[Citation]) -> dict[str, Any]:
    """Citations as the API takes them back."""
    given = [cast("dict[str, Any]", citation.data) for citation in citations if citation.data is not None]
    return {"citations": [sent_citation(data) for data in given]} if given else {}


def _more(signature: str | None) -> dict[str, Any]:
    """What a call had beside its arguments when it came."""
    return msgspec.json.decode(signature) if signature is not None and signature.startswith("{") else {}


def _without_open_uses(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The blocks of a reply that was cut off, without hosted calls whose result never came."""
    answered = {block.get("tool_use_id") for block in blocks}
    return [block for block in blocks if block["type"] not in _USES or block.get("id") in answered]
