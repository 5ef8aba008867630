"""Values: content blocks, messages, usage, cost and the model they came from.

A message is frozen, compares by what it says (its timestamp aside), pickles, and round-trips through JSON.
Values that cannot be part of a cycle are hidden from the garbage collector (`gc=False`): a stream makes
thousands.
"""

import time
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, cast, get_args, is_typeddict

import msgspec
from msgspec import Struct, field
from msgspec.structs import force_setattr

from swink.checks import check_type
from swink.errors import InvalidInput

T = TypeVar("T")

StopReason = Literal["stop", "length", "tool_use", "aborted", "error", "transfer"]
TurnEndReason = Literal[
    "complete", "tools_executed", "steering_interrupt", "error", "aborted", "transfer", "reasoning_only"
]
ThinkingLevel = Literal["off", "minimal", "low", "medium", "high", "extra_high"]
THINKING_LEVELS = get_args(ThinkingLevel)


class Text(Struct, frozen=True, gc=False, tag="text", tag_field="type"):
    """Plain text."""

    text: str

    def __post_init__(self) -> None:
        if type(self.text) is not str:
            check_type("Text(text)", self.text, str)


class Thinking(Struct, frozen=True, gc=False, tag="thinking", tag_field="type", omit_defaults=True):
    """Reasoning; the signature lets the provider that wrote it verify it when it is sent back."""

    text: str = field(name="thinking")
    signature: str | None = None
    redacted: bool = False


class ToolCall(Struct, frozen=True, gc=False, tag="tool_call", tag_field="type", omit_defaults=True):
    """A tool invocation; `partial_json` is set while it streams, and stays if it was cut off or malformed."""

    id: str
    name: str
    arguments: dict[str, Any] = {}
    partial_json: str | None = None
    signature: str | None = None


class Base64Source(Struct, frozen=True, gc=False, tag="base64", tag_field="type"):
    """Image bytes, inline."""

    data: str
    media_type: str = "image/png"


class UrlSource(Struct, frozen=True, gc=False, tag="url", tag_field="type"):
    """An image the provider fetches."""

    url: str


class FileSource(Struct, frozen=True, gc=False, tag="file", tag_field="type"):
    """An image on disk, read when it is sent."""

    path: str
    media_type: str | None = None


class Image(Struct, frozen=True, gc=False, tag="image", tag_field="type"):
    """An image."""

    source: Base64Source | UrlSource | FileSource

    def __post_init__(self) -> None:
        if not isinstance(self.source, Base64Source | UrlSource | FileSource):
            hint = "write Image.from_file(path), Image.from_url(url) or Image.from_bytes(data)"
            raise InvalidInput(f"an image has a source, not a {type(self.source).__name__}: {hint}")

    @classmethod
    def from_file(cls, path: str | Path) -> "Image":
        """An image on disk."""
        check_type("Image.from_file(path)", path, (str, Path))
        return cls(FileSource(str(path)))

    @classmethod
    def from_url(cls, url: str) -> "Image":
        """An image that the provider fetches."""
        if not isinstance(url, str) or not url.startswith(("http://", "https://", "data:")):
            raise InvalidInput(f"Image.from_url() takes an http, https or data URL, not {url!r:.80}")
        return cls(UrlSource(url))

    @classmethod
    def from_bytes(cls, data: bytes, media_type: str | None = None) -> "Image":
        """An image in memory; the media type of PNG, JPEG, GIF and WebP is read off their first bytes."""
        check_type("Image.from_bytes(data)", data, (bytes, bytearray, memoryview))
        found = media_type or next(
            (kind for start, kind in _SIGNATURES if bytes(data[:12]).startswith(start)), None
        )
        if found is None and bytes(data[8:12]) == b"WEBP":
            found = "image/webp"
        if found is None:
            raise InvalidInput(
                "no PNG, JPEG, GIF or WebP image; say what it is: from_bytes(data, media_type=...)"
            )
        return cls(Base64Source(b64encode(data).decode(), found))


_SIGNATURES = ((b"\x89PNG", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))


class Extension(Struct, frozen=True, tag="extension", tag_field="type"):
    """Provider- or application-specific content that the core passes through."""

    type_name: str
    data: Any = None


ContentBlock = Text | Thinking | ToolCall | Image | Extension


class Usage(Struct, frozen=True, gc=False, omit_defaults=True):
    """Tokens. The four categories are disjoint; `total` is their sum unless the provider reports another.

    `unknown`: a provider never said how many there were in all, so the figures are the least it can be.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    total: int = 0
    extra: dict[str, int] = {}
    unknown: bool = False

    def __post_init__(self) -> None:
        if not self.total:
            force_setattr(self, "total", self.input + self.output + self.cache_read + self.cache_write)

    def __add__(self, other: "Usage") -> "Usage":
        extra = self.extra
        if other.extra:
            extra = {key: extra.get(key, 0) + other.extra.get(key, 0) for key in {**extra, **other.extra}}
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.total + other.total,
            extra,
            self.unknown or other.unknown,
        )


class Cost(Struct, frozen=True, gc=False, omit_defaults=True):
    """Money, in the categories of `Usage`; `total` is their sum unless the provider reports another."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    total: float = 0.0

    def __post_init__(self) -> None:
        if not self.total:
            force_setattr(self, "total", self.input + self.output + self.cache_read + self.cache_write)

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.total + other.total,
        )


class Price(Struct, frozen=True, gc=False):
    """Currency per million tokens."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float | None = None
    cache_write: float | None = None

    def cost(self, usage: Usage) -> Cost:
        """What `usage` costs; a cache without a price of its own is charged as input."""
        million = 1_000_000
        return Cost(
            usage.input * self.input / million,
            usage.output * self.output / million,
            usage.cache_read * (self.input if self.cache_read is None else self.cache_read) / million,
            usage.cache_write * (self.input if self.cache_write is None else self.cache_write) / million,
        )


class Capabilities(Struct, frozen=True, gc=False):
    """What a model can take; None on a `ModelSpec` means: do not gate."""

    tools: bool = True
    images: bool = True
    thinking: bool = True
    structured_output: bool = True


class ModelSpec(Struct, frozen=True, gc=False, omit_defaults=True):
    """Which model, and how hard it should think."""

    provider: str
    model_id: str
    thinking_level: ThinkingLevel = "off"
    thinking_budgets: dict[str, int] = {}
    capabilities: Capabilities | None = None
    context_window: int | None = None
    max_output: int | None = None
    price: Price | None = None

    def __post_init__(self) -> None:
        if self.thinking_level not in THINKING_LEVELS:
            levels = ", ".join(map(repr, THINKING_LEVELS))
            raise InvalidInput(f"thinking_level is {levels}, not {self.thinking_level!r}")

    def __str__(self) -> str:
        return f"{self.provider}:{self.model_id}"


class _Content(Struct, frozen=True):
    """Common ground of what has content: it is a tuple of blocks, whatever was given."""

    def __post_init__(self: Any) -> None:
        content: tuple[Any, ...] = self.content
        if type(content) is not tuple or str in map(type, content):
            force_setattr(self, "content", as_blocks(content))

    @property
    def text(self: Any) -> str:
        """The text blocks, joined."""
        return text_of(self.content)


class _Message(_Content, frozen=True):
    """Common ground of messages: equality that looks at everything but the clock."""

    role: ClassVar[str]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(
            getattr(self, name) == getattr(other, name)
            for name in self.__struct_fields__
            if name != "timestamp"
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        # Text alone: equal data may differ in spelling (1 and 1.0, the order of keys).
        values = [getattr(self, name) for name in self.__struct_fields__]
        return hash(
            (
                type(self),
                text_of(getattr(self, "content", ())),
                *[value for value in values if type(value) is str],
            )
        )


class UserMessage(_Message, frozen=True, gc=False, eq=False, tag="user", tag_field="role"):
    """What the user said; a `str` is accepted as content."""

    content: tuple[Text | Image | Extension, ...]
    timestamp: float = field(default_factory=time.time)
    role: ClassVar[str] = "user"

    if TYPE_CHECKING:

        def __init__(
            self,
            content: str | Text | Image | Extension | Iterable[str | Text | Image | Extension],
            timestamp: float = ...,
        ) -> None: ...


class AssistantMessage(_Message, frozen=True, gc=False, eq=False, tag="assistant", tag_field="role"):
    """What the model said; a `str` is accepted as content."""

    content: tuple[Text | Thinking | ToolCall | Image | Extension, ...]
    provider: str = ""
    model: str = ""
    stop_reason: StopReason = "stop"
    usage: Usage = Usage()
    cost: Cost | None = None
    error_message: str | None = None
    error_kind: str | None = None
    timestamp: float = field(default_factory=time.time)
    role: ClassVar[str] = "assistant"

    if TYPE_CHECKING:

        def __init__(
            self,
            content: str | ContentBlock | Iterable[str | ContentBlock],
            provider: str = ...,
            model: str = ...,
            stop_reason: StopReason = ...,
            usage: Usage = ...,
            cost: Cost | None = ...,
            error_message: str | None = ...,
            error_kind: str | None = ...,
            timestamp: float = ...,
        ) -> None: ...

    @property
    def thinking(self) -> str:
        """The thinking blocks, joined."""
        return "".join(block.text for block in self.content if isinstance(block, Thinking))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls, in order."""
        return tuple([block for block in self.content if type(block) is ToolCall])

    @property
    def failed(self) -> bool:
        """Whether the reply is what remained of an error or an abort."""
        return self.stop_reason == "error" or self.stop_reason == "aborted"


class ToolResultMessage(_Message, frozen=True, eq=False, tag="tool_result", tag_field="role"):
    """What a tool gave back; `details` are for people and logs and never reach a model."""

    tool_call_id: str
    tool_name: str
    content: tuple[Text | Image | Extension, ...] = ()
    is_error: bool = False
    details: Any = None
    timestamp: float = field(default_factory=time.time)
    role: ClassVar[str] = "tool_result"

    if TYPE_CHECKING:

        def __init__(
            self,
            tool_call_id: str,
            tool_name: str,
            content: str | Text | Image | Extension | Iterable[str | Text | Image | Extension] = ...,
            is_error: bool = ...,
            details: Any = ...,
            timestamp: float = ...,
        ) -> None: ...


class CustomMessage(_Message, frozen=True, eq=False, tag="custom", tag_field="role"):
    """A message of the application's own; kept in order, shown to subscribers, not sent to models by default.

    `data` is any JSON-able value, or an instance of the class registered for `kind` with `register_custom`.
    """

    kind: str
    data: Any = None
    timestamp: float = field(default_factory=time.time)
    role: ClassVar[str] = "custom"
    content: ClassVar[tuple[ContentBlock, ...]] = ()

    def __post_init__(self) -> None:
        cls = _custom_types.get(self.kind)
        if cls is not None and (is_typeddict(cls) or not isinstance(self.data, cls)):
            force_setattr(self, "data", msgspec.convert(self.data, cls))


LlmMessage = UserMessage | AssistantMessage | ToolResultMessage
Message = LlmMessage | CustomMessage
Input = str | Message | ContentBlock | Sequence[Message | ContentBlock | str]

_custom_types: dict[str, type] = {}


class ToolResult(_Content, frozen=True):
    """What a tool returns when text alone is not enough."""

    content: tuple[Text | Image | Extension, ...] = ()
    details: Any = None
    is_error: bool = False

    if TYPE_CHECKING:

        def __init__(
            self,
            content: str | Text | Image | Extension | Iterable[str | Text | Image | Extension] = ...,
            details: Any = ...,
            is_error: bool = ...,
        ) -> None: ...


def register_custom(kind: str, cls: type[T]) -> type[T]:
    """Decode the data of custom messages of this kind into `cls` (a Struct, dataclass or TypedDict)."""
    _custom_types[kind] = cls
    return cls


def as_blocks(content: Any) -> tuple[Any, ...]:
    """Content as a tuple of blocks; an empty string is no block at all."""
    if isinstance(content, str):
        return (Text(clean(content)),) if content else ()
    if isinstance(content, ContentBlock):
        return (content,)
    blocks = tuple(
        [
            Text(clean(item)) if isinstance(item, str) else item
            for item in _items(content, "content")
            if item != ""
        ]
    )
    for block in blocks:
        if not isinstance(block, ContentBlock):
            raise InvalidInput(
                f"content takes a str, or a list of text and content blocks, not {type(block).__name__}"
            )
    return blocks


def as_messages(value: Input) -> tuple[Message, ...]:
    """What a caller may pass as input, as messages: loose text and blocks become one user message."""
    if type(value) is str:
        return (UserMessage(as_blocks(value)),)
    if isinstance(value, Message):
        return (value,)
    messages: list[Message] = []
    loose: list[Any] = []
    for item in [value] if isinstance(value, str | ContentBlock) else _items(value, "input"):
        if isinstance(item, Message):
            if loose:
                messages.append(UserMessage(as_blocks(loose)))
                loose = []
            messages.append(item)
        elif isinstance(item, str | Text | Image | Extension):
            loose.append(item)
        else:
            kind = type(item).__name__
            raise InvalidInput(
                f"input takes a str, a message, or a list of messages, text and images, not {kind}"
            )
    if loose:
        messages.append(UserMessage(as_blocks(loose)))
    return tuple(messages)


def _items(value: object, what: str) -> Iterable[Any]:
    if not isinstance(value, Iterable) or isinstance(value, Mapping | bytes | bytearray):
        kind = type(cast(object, value)).__name__
        raise InvalidInput(
            f"{what} takes a str, a message, or a list of messages, text and blocks, not {kind}"
        )
    return cast("Iterable[Any]", value)


def text_of(content: Sequence[ContentBlock]) -> str:
    """The text blocks of some content, joined."""
    if len(content) == 1 and isinstance(block := content[0], Text):
        return block.text
    return "".join([block.text for block in content if type(block) is Text])


def clean(text: str) -> str:
    """The text without lone surrogates, which no JSON encoder takes; a pair of halves is joined."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
