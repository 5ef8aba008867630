"""Messages: what users, models and tools said.

A message is frozen, compares by what it says (its timestamp aside), pickles, and round-trips through JSON.
Values that cannot be part of a cycle are hidden from the garbage collector (`gc=False`): a stream makes
thousands.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, cast, get_args, is_typeddict

import msgspec
from msgspec import Struct, field
from msgspec.structs import force_setattr

from swink.errors import InvalidInput
from swink.messages.blocks import (
    Audio,
    ContentBlock,
    Document,
    Extension,
    Image,
    Media,
    Text,
    Thinking,
    ToolCall,
    tidy_texts,
)
from swink.messages.modelspec import Cost, Usage

T = TypeVar("T")

StopReason = Literal["stop", "length", "tool_use", "aborted", "error", "transfer"]
TurnEndReason = Literal[
    "complete",
    "tools_executed",
    "steering_interrupt",
    "approval",
    "error",
    "aborted",
    "transfer",
    "reasoning_only",
]
_STOP_REASONS = frozenset(get_args(StopReason))


class _Content(Struct, frozen=True):
    """Common ground of what has content: it is a tuple of blocks, whatever was given."""

    takes: ClassVar[frozenset[type]] = frozenset({Text, Image, Document, Audio, Extension})

    def __post_init__(self: Any) -> None:
        content: tuple[Any, ...] = self.content
        if type(content) is tuple:
            for block in content:
                if type(block) not in self.takes:
                    break
            else:
                return
        force_setattr(self, "content", content := as_blocks(content))
        for block in content:
            if type(block) not in self.takes:
                taken = "text, images, documents, audio and extensions"
                raise InvalidInput(f"a {type(self).__name__} takes {taken}, not a {type(block).__name__}")

    @property
    def text(self: Any) -> str:
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
    """What the user said; a `str` is accepted as content.

    Args:
        timestamp: when, in seconds since 1970
    """

    content: tuple[Text | Media | Extension, ...]
    timestamp: float = field(default_factory=time.time)
    role: ClassVar[str] = "user"

    if TYPE_CHECKING:

        def __init__(
            self,
            content: str | Text | Media | Extension | Iterable[str | Text | Media | Extension],
            timestamp: float = ...,
        ) -> None: ...


class AssistantMessage(_Message, frozen=True, gc=False, eq=False, tag="assistant", tag_field="role"):
    """What the model said; a `str` is accepted as content.

    Args:
        provider: who was asked
        stop_reason: how the reply ended: "stop", "tool_use", "length", "error" or "aborted"
        usage: its tokens
        cost: what it cost; None if that is unknown
        error_message: what went wrong
        error_kind: the kind of that
        timestamp: when, in seconds since 1970
    """

    takes: ClassVar[frozenset[type]] = frozenset(get_args(ContentBlock))
    content: tuple[ContentBlock, ...]
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

    def __post_init__(self) -> None:
        _Content.__post_init__(self)
        provider, model = self.provider, self.model
        is_tidy = type(provider) is type(model) is str and (provider + model).isascii()
        if not is_tidy or self.error_message is not None:
            tidy_texts(self, "provider", "model", optional=("error_message", "error_kind"))
        if self.stop_reason not in _STOP_REASONS:
            reasons = ", ".join(map(repr, get_args(StopReason)))
            raise InvalidInput(f"stop_reason is {reasons}, not {self.stop_reason!r}")

    @property
    def thinking(self) -> str:
        """What was thought, as one text."""
        return "".join(block.text for block in self.content if isinstance(block, Thinking))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls in it, in order."""
        calls: tuple[ToolCall, ...] = ()
        for block in self.content:
            if type(block) is ToolCall:
                calls += (block,)
        return calls

    @property
    def failed(self) -> bool:
        """Whether the reply is what remained of an error or an abort."""
        return self.stop_reason == "error" or self.stop_reason == "aborted"


class ToolResultMessage(_Message, frozen=True, eq=False, tag="tool_result", tag_field="role"):
    """What a tool gave back; `details` are for people and logs and never reach a model.

    Args:
        tool_call_id: the call that it answers
        tool_name: its tool
        is_error: whether it failed
        timestamp: when, in seconds since 1970
    """

    tool_call_id: str
    tool_name: str
    content: tuple[Text | Media | Extension, ...] = ()
    is_error: bool = False
    details: Any = None
    timestamp: float = field(default_factory=time.time)
    role: ClassVar[str] = "tool_result"

    if TYPE_CHECKING:

        def __init__(
            self,
            tool_call_id: str,
            tool_name: str,
            content: str | Text | Media | Extension | Iterable[str | Text | Media | Extension] = ...,
            is_error: bool = ...,
            details: Any = ...,
            timestamp: float = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        _Content.__post_init__(self)
        id, name = self.tool_call_id, self.tool_name
        if not (type(id) is type(name) is str and (id + name).isascii()):
            tidy_texts(self, "tool_call_id", "tool_name")


class CustomMessage(_Message, frozen=True, eq=False, tag="custom", tag_field="role"):
    """A message of the application's own; kept in order, shown to subscribers, not sent to models by default.

    `data` is any JSON-able value, or an instance of the class registered for `kind` with `register_custom`.

    Args:
        timestamp: when, in seconds since 1970
    """

    kind: str
    data: Any = None
    timestamp: float = field(default_factory=time.time)
    role: ClassVar[str] = "custom"
    content: ClassVar[tuple[ContentBlock, ...]] = ()

    def __post_init__(self) -> None:
        tidy_texts(self, "kind")
        cls = _custom_types.get(self.kind)
        if cls is not None and (is_typeddict(cls) or not isinstance(self.data, cls)):
            force_setattr(self, "data", msgspec.convert(self.data, cls))


LlmMessage = UserMessage | AssistantMessage | ToolResultMessage
Message = LlmMessage | CustomMessage
Input = str | Message | ContentBlock | Sequence[Message | ContentBlock | str]

_custom_types: dict[str, type] = {}


USER_NOTE = "\n\nnote from the user on this call: "
"""How a text of a result begins that is the user's and not the tool's."""


class ToolResult(_Content, frozen=True):
    """What a tool returns when text alone is not enough.

    Args:
        details: data for people and logs, which no model sees
        is_error: whether the model is told that it failed
    """

    content: tuple[Text | Media | Extension, ...] = ()
    details: Any = None
    is_error: bool = False

    if TYPE_CHECKING:

        def __init__(
            self,
            content: str | Text | Media | Extension | Iterable[str | Text | Media | Extension] = ...,
            details: Any = ...,
            is_error: bool = ...,
        ) -> None: ...


def register_custom(kind: str, cls: type[T]) -> type[T]:
    """Decode the data of custom messages of this kind into `cls` (a Struct, dataclass or TypedDict)."""
    _custom_types[kind] = cls
    return cls


def as_blocks(content: Any) -> tuple[Any, ...]:
    """The `content` as a tuple of blocks; an empty string is no block at all."""
    if isinstance(content, str):
        return (Text(content),) if content else ()
    if isinstance(content, ContentBlock):
        return (content,)
    blocks = tuple(
        [Text(item) if isinstance(item, str) else item for item in _items(content, "content") if item != ""]
    )
    for block in blocks:
        if not isinstance(block, ContentBlock):
            raise InvalidInput(
                f"content takes a str, or a list of text and content blocks, not {type(block).__name__}"
            )
    return blocks


def as_messages(value: Input) -> tuple[Message, ...]:
    """The `value` that a caller may pass as input, as messages: loose text and blocks become one user
    message.
    """
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
        elif isinstance(item, str | Text | Media | Extension):
            loose.append(item)
        else:
            kind = type(item).__name__
            raise InvalidInput(
                f"input takes a str, a message, or a list of messages, text, images and documents, not {kind}"
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
