"""What every provider's request needs of a history, whichever provider wrote it."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, cast, get_args

import msgspec

from swink.errors import StreamError
from swink.messages import (
    CALL_TOOL,
    AssistantMessage,
    Audio,
    Base64Source,
    ContentBlock,
    Document,
    Image,
    LlmMessage,
    Media,
    ModelSpec,
    NamedFile,
    Text,
    ToolCall,
    ToolResultMessage,
    UrlSource,
)
from swink.messages.blocks import SENT_URLS
from swink.messages.history import Snapshot, paired
from swink.messages.providertools import HostedTool, ProviderTool, WebSearch
from swink.stream import ToolSpec

NO_OUTPUT = "(no output)"
INTERRUPTED = "error: no result; the call was interrupted"

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
DATA_URL = re.compile(r"data:([\w.+/-]+);base64,")
_MEDIA = frozenset(get_args(Media))
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def prepare(messages: Iterable[LlmMessage], model: ModelSpec) -> list[LlmMessage]:
    """The `messages` of a paired history as the `model` takes them: no file is named, no text is blank."""
    prepared: list[LlmMessage] = []
    redirected: set[str] = set()
    for message in messages:
        if redirected and isinstance(message, ToolResultMessage) and message.tool_call_id in redirected:
            message = msgspec.structs.replace(message, tool_name=CALL_TOOL)  # as the model called it
        elif redirected and isinstance(message, AssistantMessage):
            redirected -= {call.id for call in message.tool_calls}  # some models use ids again
        if _is_ready(message):
            prepared.append(message)
            continue
        content = message.content
        if any(isinstance(block, Media) for block in content):
            content = tuple([_sendable(block) for block in content])
            _check_capable(content, model)
        signed = message.role == "assistant" and cast(AssistantMessage, message).provider == model.provider
        kept = [
            msgspec.structs.replace(block, name=valid_name(block.name)) if type(block) is ToolCall else block
            for block in content
            if type(block) is not Text or block.text.strip() or (signed and block.signature is not None)
        ]
        content = tuple(kept)
        redirected |= {block.id for block in content if type(block) is ToolCall and block.name == CALL_TOOL}
        if isinstance(message, ToolResultMessage):
            name = valid_name(message.tool_name)
            prepared.append(msgspec.structs.replace(message, content=content, tool_name=name))
        elif content:
            prepared.append(msgspec.structs.replace(message, content=content))
    return prepared


def paired_messages(messages: Sequence[LlmMessage]) -> Sequence[LlmMessage]:
    """A history with one result for every call; a snapshot has them, a caller's own list may not."""
    if isinstance(messages, Snapshot):
        return messages
    return cast("list[LlmMessage]", paired(messages, missing=INTERRUPTED, lenient=True))


def _check_capable(content: Iterable[Any], model: ModelSpec) -> None:
    """Refuse what the model is known not to take."""
    can = model.capabilities
    if can is None:
        return
    for block in content:
        if type(block) is Image and not can.images:
            raise StreamError(f"{model} takes no images; use another model, or leave them out")
        if type(block) is Audio and can.audio is False:
            raise StreamError(f"{model} takes no audio; use another model, or leave it out")
        if type(block) is Document and can.documents is False and block.text is None:
            raise StreamError(f"{model} takes no documents but text; use another model, or send their text")


def _is_ready(message: LlmMessage) -> bool:
    """Whether a message can be sent unchanged, as most can."""
    for block in message.content:
        if type(block) is Text:
            if not block.text or block.text.isspace():
                return False
        elif type(block) in _MEDIA or (type(block) is ToolCall and not _is_plain_call(block)):
            return False
    return _is_name(message.tool_name) if type(message) is ToolResultMessage else bool(message.content)


def _is_plain_call(call: ToolCall) -> bool:
    return call.name != CALL_TOOL and _is_name(call.name)


@lru_cache(1024)
def _is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


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

    Args:
        shape: a regular expression of the ids that fit
        length: characters of an id that is made
        prefix: how such an id begins
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


def cache_key(session_id: str) -> str:
    """The key under which a session's prompts are cached; OpenAI refuses more than 64 characters."""
    if len(session_id) <= 64:
        return session_id
    return hashlib.sha256(session_id.encode("utf-8", "replace")).hexdigest()


def input_schema(tool: ToolSpec) -> dict[str, Any]:
    """A tool's schema with the `type` and `properties` that providers insist on, as a new object."""
    return {"type": "object", "properties": {}, **tool.parameters_schema}


def is_deferred(tool: ToolSpec) -> bool:
    """Whether a provider that searches tools itself is to load it only when it is found."""
    return getattr(tool, "deferred", False) is True


def function_tool(tool: ToolSpec) -> dict[str, Any]:
    """A tool in the words of OpenAI's chat completions, which others speak too."""
    function = {"name": tool.name, "description": tool.description, "parameters": input_schema(tool)}
    return {"type": "function", "function": function}


def named(tool: HostedTool) -> str:
    """The kind of a hosted tool, and whose it is where a provider describes it."""
    whose = f" of {tool.provider}" if isinstance(tool, ProviderTool) else ""
    return f"{type(tool).__name__}{whose}"


def place_of(tool: WebSearch) -> dict[str, str]:
    """What is known of the place for which the web is searched."""
    names = ("country", "region", "city", "timezone")
    return {name: value for name in names if (value := getattr(tool.location, name, None))}


def joined_text(content: Iterable[ContentBlock]) -> str:
    """The text blocks of `content` on lines of their own."""
    return "\n".join(block.text for block in content if type(block) is Text)


def data_url(source: Base64Source | UrlSource | NamedFile) -> str:
    """An image as a URL: its own, or its bytes."""
    match source:
        case UrlSource(url):
            return url
        case Base64Source(data, media_type):
            return f"data:{media_type};base64,{data}"
        case NamedFile(path):
            raise StreamError(f"image {path} was not read")


def web_url(source: object) -> str | None:
    """What a citation names as its source, if it is an address of the web."""
    return source if isinstance(source, str) and source.startswith(("http://", "https://")) else None


def valid_name(name: str) -> str:
    """The name, or one that providers accept: a model may call a tool by a name it made up."""
    return name if _is_name(name) else re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "unknown"


def _sendable(block: Any) -> Any:
    """The block as a provider gets it: what stands for a file of this machine becomes a note.

    A history may come from elsewhere, and must not choose what is read here, by us or by a local server.
    """
    if not isinstance(block, Media):
        return block
    kind = type(block).__name__
    match block.source:
        case NamedFile(path):
            how = f"make it with {kind}.from_file(path)"
            return Text(f"[{kind.lower()} not shown: {path} is a name in a saved message, not read; {how}]")
        case UrlSource(url) if found := DATA_URL.match(url):
            return msgspec.structs.replace(block, source=Base64Source(url[found.end() :], found[1]))
        case UrlSource(url) if not url.lower().startswith(SENT_URLS):
            return Text(f"[{kind.lower()} not shown: {url:.200} is no http, https or data URL]")
        case _:
            return block
