"""What every provider's request needs of a history, whichever provider wrote it.

await prepare(messages)      calls and results paired, image files read, nothing empty left
CallIds(shape)               tool call ids in the shape the target accepts, the same in every request
is_own(message, model)       whether the thinking in a message may be sent back to this model
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, cast

import msgspec

from swink.blocks import read_source
from swink.engine.history import Snapshot
from swink.errors import InvalidInput, StreamError
from swink.messages import (
    AssistantMessage,
    Base64Source,
    ContentBlock,
    FileSource,
    Image,
    LlmMessage,
    ModelSpec,
    Text,
    ToolCall,
    ToolResultMessage,
    UrlSource,
)
from swink.stream import ToolSpec
from swink.threads import in_thread

NO_OUTPUT = "(no output)"
INTERRUPTED = "error: no result; the call was interrupted"

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
DATA_URL = re.compile(r"data:([\w.+/-]+);base64,")
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


async def prepare(messages: Sequence[LlmMessage], model: ModelSpec | None = None) -> list[LlmMessage]:
    """The history as a provider takes it: each call has its result, images are loaded, no text is blank."""
    prepared: list[LlmMessage] = []
    takes_images = model is None or model.capabilities is None or model.capabilities.images
    # A snapshot of a history is paired already; anything else is somebody's own list.
    paired = isinstance(messages, Snapshot)
    for message in cast("Iterable[LlmMessage]", messages) if paired else pair_results(messages):
        if _is_ready(message):
            prepared.append(message)
            continue
        content = message.content
        if any(type(block) is Image for block in content):
            if not takes_images:
                raise StreamError(f"{model} takes no images")
            content = tuple([await _load(block) for block in content])
        content = tuple(
            [_with_valid_name(block) for block in content if type(block) is not Text or block.text.strip()]
        )
        if isinstance(message, ToolResultMessage):
            name = valid_name(message.tool_name)
            prepared.append(msgspec.structs.replace(message, content=content, tool_name=name))
        elif content:
            prepared.append(msgspec.structs.replace(message, content=content))
    return prepared


def _is_ready(message: LlmMessage) -> bool:
    """Whether a message can be sent unchanged, as most can; checked for the whole history on every turn."""
    for block in message.content:
        if (
            type(block) is Image
            or (type(block) is Text and not block.text.strip())
            or (type(block) is ToolCall and not _is_name(block.name))
        ):
            return False
    return _is_name(message.tool_name) if isinstance(message, ToolResultMessage) else bool(message.content)


def _with_valid_name(block: Any) -> Any:
    return msgspec.structs.replace(block, name=valid_name(block.name)) if type(block) is ToolCall else block


@lru_cache(1024)
def _is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def pair_results(messages: Iterable[LlmMessage]) -> list[LlmMessage]:
    """The history with one result for every call, right after it and in call order.

    Results that are missing are made up, those without a call are left out.
    """
    result: list[LlmMessage] = []
    calls: Sequence[ToolCall] = ()
    given: list[ToolResultMessage] = []
    for message in messages:
        if isinstance(message, ToolResultMessage):
            given.append(message)
            continue
        result += _in_call_order(calls, given)
        result.append(message)
        calls, given = message.tool_calls if isinstance(message, AssistantMessage) else (), []
    return result + _in_call_order(calls, given)


class Turns:
    """Turns of a conversation that must begin with the user and alternate."""

    def __init__(self, opening: dict[str, Any]) -> None:
        self.items: list[dict[str, Any]] = []
        self._opening = opening

    def add(self, role: str, content: list[dict[str, Any]]) -> None:
        """Add content to the last turn if it is the same role's, else as a new turn, unless it is empty."""
        if not content:
            return
        if not self.items and role == "assistant":
            self.items.append({"role": "user", "content": [self._opening]})
        if self.items and self.items[-1]["role"] == role:
            self.items[-1]["content"] += content
        else:
            self.items.append({"role": role, "content": content})


def is_own(message: AssistantMessage, model: ModelSpec) -> bool:
    """Whether this model wrote the message, so that its thinking and signatures mean something to it."""
    return message.provider == model.provider and message.model == model.model_id


class CallIds:
    """Tool call ids in the shape a target accepts: its own and those that fit stay, others become a hash.

    A foreign id that a later turn uses again becomes a new one, since targets want them unique in a
    conversation.
    """

    def __init__(self, shape: str, length: int, prefix: str = "") -> None:
        self._shape = re.compile(shape)
        self._length = length
        self._prefix = prefix
        self._waiting: dict[str, list[str]] = {}
        self._taken: set[str] = set()

    def call(self, id: str, *, own: bool = False) -> str:
        """The id of a new call; its `own` goes back to a target as it came."""
        mapped = id if own or _fits(self._shape, id) else self._hash(id)
        salt = 0
        while mapped in self._taken and not own:
            salt += 1
            mapped = self._hash(f"{id}\0{salt}")
        self._taken.add(mapped)
        self._waiting.setdefault(id, []).append(mapped)
        return mapped

    def result(self, id: str) -> str:
        """The id of the call that a result belongs to: the oldest of that id without one."""
        waiting = self._waiting.get(id)
        if not waiting:
            self.call(id)
            waiting = self._waiting[id]
        return waiting.pop(0)

    def _hash(self, text: str) -> str:
        number = int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest())
        digits: list[str] = []
        while len(self._prefix) + len(digits) < self._length:
            number, digit = divmod(number, len(_ALPHABET))
            digits.append(_ALPHABET[digit])
        return self._prefix + "".join(digits)


@lru_cache(4096)
def _fits(shape: re.Pattern[str], id: str) -> bool:
    return shape.fullmatch(id) is not None


def input_schema(tool: ToolSpec) -> dict[str, Any]:
    """A tool's schema with the `type` and `properties` that providers insist on, as a new object."""
    return {"type": "object", "properties": {}, **tool.parameters_schema}


def joined_text(content: Iterable[ContentBlock]) -> str:
    """The text blocks on lines of their own."""
    return "\n".join(block.text for block in content if type(block) is Text)


def data_url(source: Base64Source | UrlSource | FileSource) -> str:
    """An image as a URL: its own, or its bytes."""
    match source:
        case UrlSource(url):
            return url
        case Base64Source(data, media_type):
            return f"data:{media_type};base64,{data}"
        case FileSource(path):
            raise StreamError(f"image {path} was not read")


def _in_call_order(
    calls: Sequence[ToolCall], results: Sequence[ToolResultMessage]
) -> list[ToolResultMessage]:
    if not calls or _matches(calls, results):
        return list(results) if calls else []
    left = list(results)
    ordered: list[ToolResultMessage] = []
    for call in calls:
        at = next((at for at, result in enumerate(left) if result.tool_call_id == call.id), None)
        found = _missing_result(call) if at is None else left.pop(at)
        # Some targets match by name, which not every history has.
        ordered.append(
            found if found.tool_name == call.name else msgspec.structs.replace(found, tool_name=call.name)
        )
    return ordered


def _matches(calls: Sequence[ToolCall], results: Sequence[ToolResultMessage]) -> bool:
    return [(call.id, call.name) for call in calls] == [
        (result.tool_call_id, result.tool_name) for result in results
    ]


def valid_name(name: str) -> str:
    """The name, or one that providers accept: a model may call a tool by a name it made up."""
    return name if _is_name(name) else re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "unknown"


def _missing_result(call: ToolCall) -> ToolResultMessage:
    return ToolResultMessage(call.id, call.name, (Text(INTERRUPTED),), True)


async def load_file(block: Any) -> Any:
    """The block with its image file read; one that is gone becomes a note, and the conversation goes on."""
    if not isinstance(block, Image) or not isinstance(block.source, FileSource):
        return block
    try:
        return Image(await in_thread(read_source, block.source))
    except InvalidInput as error:
        return Text(f"[image not shown: {error}]")


async def _load(block: Any) -> Any:
    match block:
        case Image(UrlSource(url)) if found := DATA_URL.match(url):
            return Image(Base64Source(url[found.end() :], found[1]))
        case _:
            return await load_file(block)
