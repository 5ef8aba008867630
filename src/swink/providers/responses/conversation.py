"""A conversation as the input items of the Responses API.

Nothing is stored by the provider: the whole history goes along. What a model wrote goes back to that model
item by item, as it came: reasoning as the encrypted items that it wrote, each right before what it led to,
messages with their ids and phases, and what the provider's own tools did. Another model gets the text.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

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
    UserMessage,
)
from swink.providers.convert import NO_OUTPUT, CallIds, data_url, is_own, joined_text
from swink.providers.exchange import encode_body
from swink.providers.responses.dialect import ResponsesDialect
from swink.providers.responses.stream import ITEMS
from swink.providers.responses.toolspaces import without_open_search
from swink.stream import parse_arguments

_DRAWN = "The image that you made:"
_UNANSWERED = "error: nobody ran this call"


class ResponsesConversation:
    """The items so far; one message after the other is added."""

    def __init__(self, model: ModelSpec, dialect: ResponsesDialect) -> None:
        self.items: list[dict[str, Any]] = []
        self._model = model
        self._dialect = dialect
        self._ids = CallIds(r"[a-zA-Z0-9_-]{1,64}", 29, "call_")
        self._waiting: dict[str, dict[str, Any]] = {}
        """What to answer calls that only an application can run, if it does not."""
        self._callers: dict[str, dict[str, Any]] = {}
        """The programs of the model's that made a call, which want its result."""

    def add(self, message: LlmMessage) -> None:
        """Add what a message becomes."""
        match message:
            case UserMessage():
                self._add_user(message)
            case AssistantMessage():
                self._answer()
                self.items += self._items_of(message)
            case ToolResultMessage():
                self._answer()
                id = self._ids.result(message.tool_call_id)
                result = {"type": "function_call_output", "call_id": id, "output": self._output(message)}
                self.items.append({**result, **self._callers.pop(id, {})})

    def _add_user(self, message: UserMessage) -> None:
        own = [item for block in message.content if (item := _item(block)) is not None]
        for item in own:
            self._waiting.pop(_answered(item), None)
        self.items += own
        self._answer()
        if content := self._parts(message.content):
            self.items.append({"role": "user", "content": content})

    def _answer(self) -> None:
        self.items += self._waiting.values()
        self._waiting.clear()

    def _items_of(self, message: AssistantMessage) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        images: list[dict[str, Any]] = []
        own = is_own(message, self._model)
        # An item is refused without the reasoning that led to it, unless nothing tells that there was any.
        nameless = own and any(_is_lost(block) for block in message.content)
        for block in message.content:
            match block:
                case Text(text, citations, signature):
                    rest = _decoded(signature) if own else {}
                    notes: list[Any] = [cited.data for cited in citations if own and cited.data]
                    part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": notes}
                    if items and rest.get("id") is not None and items[-1].get("id") == rest["id"]:
                        items[-1]["content"].append(part)
                        continue
                    if nameless or not isinstance(rest.get("id"), str):
                        rest = {**rest, "id": f"msg_{len(self.items) + len(items)}"}
                    # An output item may follow reasoning; not every server knows the short form.
                    said = {"type": "message", "role": "assistant", "status": "completed", **rest}
                    items.append({**said, "content": [part]})
                case ToolCall():
                    rest = _decoded(block.signature) if own else {}
                    if nameless:
                        rest.pop("id", None)
                    id = self._ids.call(block.id, own=own)
                    if "caller" in rest:
                        self._callers[id] = {"caller": rest["caller"]}
                    items.append(_call(block, id, rest))
                case Thinking(_, str() as signature) if own:
                    if not _is_lost(block):
                        items.append(_decoded(signature))
                case Extension(type_name, data) if own and type_name == ITEMS and isinstance(data, dict):
                    self._add_item(cast("dict[str, Any]", data), items)
                case Image(source) if own and items and items[-1].get("type") == "image_generation_call":
                    if isinstance(source, Base64Source):
                        items[-1]["result"] = source.data
                case Image():
                    images.append(_image(block))
                case _:
                    pass  # thinking, or a block, of another provider's
        if message.stop_reason in ("error", "aborted", "length"):
            items = without_open_search(items)
        while items and items[-1].get("type") == "reasoning":
            items.pop()  # it led to nothing, and the API wants what it led to
        if images:
            items.append({"role": "user", "content": [{"type": "input_text", "text": _DRAWN}, *images]})
        return items

    def _add_item(self, item: dict[str, Any], items: list[dict[str, Any]]) -> None:
        if item.get("type") == "image_generation_call" and self._dialect.stores_images:
            # OpenAI refuses the item where nothing is stored; its image goes back as an input.
            if items and items[-1].get("type") == "reasoning":
                items.pop()
            return
        items.append(dict(item))
        self._waiting.pop(_answered(item), None)
        if self._dialect.client_tools and (answer := _refusal(item)) is not None:
            self._waiting[_answered(answer)] = answer

    def _output(self, message: ToolResultMessage) -> Any:
        if all(type(block) is Text for block in message.content):
            return joined_text(message.content) or NO_OUTPUT
        return self._parts(message.content) or NO_OUTPUT

    def _parts(self, content: Sequence[Any]) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = []
        for block in content:
            match block:
                case Text(text):
                    parts.append({"type": "input_text", "text": text})
                case Image():
                    parts.append(_image(block))
                case Document():
                    parts.append(_file(block))
                case Audio():
                    raise StreamError(
                        f"{self._dialect.provider} takes no audio; send it to a chat model that hears, "
                        "such as openai:gpt-audio, or send its words"
                    )
                case Extension(type_name, {"type": str() as kind} as part) if type_name == ITEMS:
                    if kind.startswith("input_"):
                        parts.append(cast("dict[str, Any]", part))
                case _:
                    pass  # content of another provider's
        return parts


def _item(block: Any) -> dict[str, Any] | None:
    """An item that an application put into a user message: the output of a computer, an approval."""
    match block:
        case Extension(type_name, {"type": str() as kind} as item) if type_name == ITEMS:
            return None if kind.startswith("input_") else cast("dict[str, Any]", item)
        case _:
            return None


def _answered(item: Mapping[str, Any]) -> str:
    """The call, or the request for approval, that an item answers."""
    if item.get("type") == "local_shell_call_output":
        return str(item.get("id"))
    return str(item.get("approval_request_id") or item.get("call_id"))


def _refusal(item: Mapping[str, Any]) -> dict[str, Any] | None:
    """What says that a call, which waits for its result from here, was not run; None for any other item."""
    match item:
        case {"type": "custom_tool_call", "call_id": id}:
            return {"type": "custom_tool_call_output", "call_id": id, "output": _UNANSWERED}
        case {"type": "apply_patch_call", "call_id": id}:
            failed = {"status": "failed", "output": _UNANSWERED}
            return {"type": "apply_patch_call_output", "call_id": id, **failed}
        case {"type": "shell_call", "call_id": id}:
            outcome = {"type": "exit", "exit_code": 1}
            output = [{"stdout": "", "stderr": _UNANSWERED, "outcome": outcome}]
            return {"type": "shell_call_output", "call_id": id, "output": output}
        case {"type": "local_shell_call", "call_id": id}:
            return {"type": "local_shell_call_output", "id": id, "output": _UNANSWERED}
        case {"type": "tool_search_call", "execution": "client", "call_id": id}:
            return {"type": "tool_search_output", "call_id": id, "execution": "client", "tools": []}
        case {"type": "mcp_approval_request", "id": id}:
            return {"type": "mcp_approval_response", "approval_request_id": id, "approve": False}
        case _:
            return None


def _decoded(signature: str | None) -> dict[str, Any]:
    """What a block's signature holds; nothing if it is none of ours."""
    try:
        return msgspec.json.decode(signature or "{}", type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError):
        return {}


def _is_lost(block: Any) -> bool:
    """Whether a block is reasoning that cannot go back."""
    if not isinstance(block, Thinking):
        return False
    item = _decoded(block.signature)
    return item.get("type") != "reasoning" or not (item.get("encrypted_content") or item.get("content"))


def _call(call: ToolCall, id: str, rest: dict[str, Any]) -> dict[str, Any]:
    written = rest.pop("arguments", None)
    if not isinstance(written, str) or parse_arguments(written) != call.arguments:
        written = encode_body(call.arguments).decode()
    return {"type": "function_call", "call_id": id, "name": call.name, "arguments": written, **rest}


def _image(image: Image) -> dict[str, Any]:
    return {"type": "input_image", "image_url": data_url(image.source), "detail": "auto"}


def _file(document: Document) -> dict[str, Any]:
    """A document: text as text, which every server reads, any other as a file."""
    title = document.title or "document"
    if (text := document.text) is not None:
        return {"type": "input_text", "text": f"{title}:\n\n{text}"}
    if isinstance(document.source, UrlSource) and not document.source.url.startswith("data:"):
        return {"type": "input_file", "file_url": document.source.url}
    name = title if "." in title else f"{title}.pdf"
    return {"type": "input_file", "filename": name, "file_data": data_url(document.source)}
