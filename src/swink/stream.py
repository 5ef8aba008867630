"""What models say: the stream protocol, and the assembly of its events into one message.

    Start ( TextStart TextDelta* TextEnd | ThinkingStart ThinkingDelta* ThinkingEnd
          | ToolCallStart ToolCallDelta* ToolCallEnd )*  then exactly one of  Done | Error

A block's index is the number of blocks before it. Blocks may interleave. At `Done("length")` and at `Error` blocks
may still be open; anywhere else an open block is a violation.
"""

import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, cast, get_args

import msgspec
from msgspec import Struct, field

from swink.errors import ErrorKind, NetworkError, StreamError, error_for
from swink.messages import (
    AssistantMessage,
    Cost,
    LlmMessage,
    ModelSpec,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    Usage,
    clean,
)
from swink.redact import redact_value

DEEPEST = 128
"""Levels of lists and objects that a call's arguments may have."""


class Start(Struct, frozen=True, gc=False, tag="start", tag_field="type"):
    """The reply begins."""


class TextStart(Struct, frozen=True, gc=False, tag="text_start", tag_field="type"):
    """A text block opens."""

    index: int = field(name="content_index")


class TextDelta(Struct, frozen=True, gc=False, tag="text_delta", tag_field="type"):
    """More text."""

    index: int = field(name="content_index")
    text: str = field(name="delta")


class TextEnd(Struct, frozen=True, gc=False, tag="text_end", tag_field="type"):
    """A text block closes."""

    index: int = field(name="content_index")


class ThinkingStart(Struct, frozen=True, gc=False, tag="thinking_start", tag_field="type"):
    """A thinking block opens."""

    index: int = field(name="content_index")


class ThinkingDelta(Struct, frozen=True, gc=False, tag="thinking_delta", tag_field="type"):
    """More thinking."""

    index: int = field(name="content_index")
    text: str = field(name="delta")


class ThinkingEnd(Struct, frozen=True, gc=False, tag="thinking_end", tag_field="type", omit_defaults=True):
    """A thinking block closes; redacted thinking carries only its signature."""

    index: int = field(name="content_index")
    signature: str | None = None
    redacted: bool = False


class ToolCallStart(Struct, frozen=True, gc=False, tag="tool_call_start", tag_field="type"):
    """A tool call opens."""

    index: int = field(name="content_index")
    id: str
    name: str


class ToolCallDelta(Struct, frozen=True, gc=False, tag="tool_call_delta", tag_field="type"):
    """More of a call's arguments, as JSON text."""

    index: int = field(name="content_index")
    json: str = field(name="delta")


class ToolCallEnd(Struct, frozen=True, gc=False, tag="tool_call_end", tag_field="type", omit_defaults=True):
    """A tool call closes."""

    index: int = field(name="content_index")
    signature: str | None = None


class Done(Struct, frozen=True, gc=False, tag="done", tag_field="type", omit_defaults=True):
    """The reply is complete."""

    stop_reason: StopReason = "stop"
    usage: Usage = Usage()
    cost: Cost | None = None


class Error(Struct, frozen=True, gc=False, tag="error", tag_field="type", omit_defaults=True):
    """The reply failed; without a kind the wording of the message decides."""

    message: str
    kind: ErrorKind | None = None
    retry_after: float | None = None
    usage: Usage = Usage()


Delta = TextDelta | ThinkingDelta | ToolCallDelta
AssistantMessageEvent = (
    Start
    | TextStart
    | TextDelta
    | TextEnd
    | ThinkingStart
    | ThinkingDelta
    | ThinkingEnd
    | ToolCallStart
    | ToolCallDelta
    | ToolCallEnd
    | Done
    | Error
)


class Timeout(Struct, frozen=True, gc=False):
    """Seconds without content after which a stream is given up; pings and comments are not content."""

    idle: float = 120.0
    first: float = 300.0
    connect: float = 30.0


class StreamOptions(Struct, frozen=True):
    """How to ask. An adapter reports, by name and once, each option it cannot honour."""

    temperature: float | None = None
    max_tokens: int | None = None
    api_key: str | None = None
    session_id: str | None = None
    transport: Any = None
    tool_choice: str | None = None
    """None (the provider's default), "auto", "none", "required" or the name of a tool."""
    cache: bool = True
    timeout: float | Timeout | None = None
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    on_raw_payload: Callable[[Any], None] | None = None

    def __repr__(self) -> str:
        return "StreamOptions(" + ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__()) + ")"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        fields = [(name, getattr(self, name)) for name in self.__struct_fields__ if name != "api_key"]
        return [(name, redact_value(value)) for name, value in fields if value not in (None, {})]


class ToolSpec(Protocol):
    """What a model is told about a tool."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters_schema(self) -> dict[str, Any]: ...


class LlmContext(Struct, frozen=True):
    """What a model is asked: a snapshot that later turns never change."""

    system_prompt: str
    messages: Sequence[LlmMessage]
    tools: Sequence[ToolSpec] = ()


class StreamFn(Protocol):
    """Ask a model for one reply, yielding it as it arrives.

    Yield `Start`, then blocks, then exactly one `Done` or `Error`; or raise an `AgentError`. Cancellation is
    asyncio's: release connections in `finally`.
    """

    def __call__(
        self, model: ModelSpec, context: LlmContext, options: StreamOptions
    ) -> AsyncIterator[AssistantMessageEvent]: ...


class _Block:
    """One block under assembly; `takes` is the delta type it accepts, `text` its whole text once it is closed."""

    __slots__ = ("append", "end", "id", "name", "parts", "takes", "text")

    def __init__(self, takes: type[Delta], id: str = "", name: str = "") -> None:
        self.takes = takes
        self.parts: list[str] = []
        self.append = self.parts.append
        self.id = id
        self.name = name
        self.end: ThinkingEnd | ToolCallEnd | None = None
        self.text: str | None = None


class Assembly:
    """One reply under assembly: `feed` it events, ask it for the `message` so far.

    A violation of the protocol raises a `StreamError` that names it.
    """

    __slots__ = ("_blocks", "_open", "_started", "began", "terminal")

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._open: dict[int, _Block] = {}
        self._started = False
        self.terminal: Done | Error | None = None
        self.began = time.time()

    @property
    def has_content(self) -> bool:
        """Whether any block has arrived."""
        return bool(self._blocks)

    @property
    def size(self) -> int:
        """How much content has arrived, counted in blocks and deltas."""
        return len(self._blocks) + sum(len(block.parts) for block in self._blocks)

    def feed(self, event: AssistantMessageEvent) -> bool:
        """Take one event; True if it is a delta to show."""
        kind: Any = type(event)
        if kind is TextDelta or kind is ThinkingDelta or kind is ToolCallDelta:
            delta: Any = event
            block = self._open.get(delta.index)
            if block is None or block.takes is not kind:
                raise self._misplaced(delta)
            block.append(delta.text if kind is not ToolCallDelta else delta.json)
            return True
        if self.terminal is not None:
            raise StreamError(f"stream protocol: {_name(event)} after {_name(self.terminal)}")
        act = _ACTIONS.get(kind)
        if act is None:
            raise StreamError(f"stream protocol: {kind.__name__} is not a stream event")
        act(self, event)
        return False

    def message(
        self,
        model: ModelSpec,
        stop_reason: StopReason,
        *,
        usage: Usage,
        cost: Cost | None = None,
        error: Exception | None = None,
    ) -> AssistantMessage:
        """The message as it stands; calls that did not close keep what arrived of them in `partial_json`."""
        return AssistantMessage(
            tuple([content for block in self._blocks if (content := _content(block)) is not None]),
            model.provider,
            model.model_id,
            stop_reason,
            usage,
            cost,
            None if error is None else str(error),
            None if error is None else getattr(error, "kind", "stream"),
            self.began,
        )

    def _start(self, event: Start) -> None:
        if self._started:
            raise StreamError("stream protocol: a second start")
        self._started = True

    def _open_block(self, event: TextStart | ThinkingStart | ToolCallStart) -> None:
        if not self._started:
            raise StreamError(f"stream protocol: {_name(event)} before start")
        if event.index != len(self._blocks):
            raise StreamError(
                f"stream protocol: {_name(event)} opens block {event.index}, expected {len(self._blocks)}"
            )
        if type(event) is not ToolCallStart:
            block = _Block(TextDelta if type(event) is TextStart else ThinkingDelta)
        elif isinstance(event.id, str) and isinstance(event.name, str):
            block = _Block(ToolCallDelta, event.id, event.name)
        else:
            raise StreamError("stream protocol: tool_call_start without an id and a name")
        self._blocks.append(block)
        self._open[event.index] = block

    def _close_block(self, event: TextEnd | ThinkingEnd | ToolCallEnd) -> None:
        block = self._open.get(event.index)
        if block is None or block.takes is not _TAKES[type(event)]:
            raise self._misplaced(event)
        try:
            block.text = "".join(block.parts)
        except TypeError:
            raise StreamError(f"stream protocol: a delta of block {event.index} is not text") from None
        del self._open[event.index]
        if not isinstance(event, TextEnd):
            block.end = event

    def _terminate(self, event: Done | Error) -> None:
        if not self._started:
            raise StreamError(f"stream protocol: {_name(event)} before start")
        if problem := _malformed(event):
            raise StreamError(f"stream protocol: {_name(event)} with {problem}")
        if self._open and isinstance(event, Done) and event.stop_reason != "length":
            raise StreamError(f"stream protocol: done with block {min(self._open)} still open")
        self.terminal = event

    def _misplaced(self, event: Any) -> StreamError:
        if self.terminal is not None:
            return StreamError(f"stream protocol: {_name(event)} after {_name(self.terminal)}")
        return StreamError(
            f"stream protocol: {_name(event)} for block {event.index}, which is not open for it"
        )


_TAKES: dict[type, type[Delta]] = {TextEnd: TextDelta, ThinkingEnd: ThinkingDelta, ToolCallEnd: ToolCallDelta}
_ACTIONS: dict[type, Callable[[Assembly, Any], None]] = {
    Start: Assembly._start,
    TextStart: Assembly._open_block,
    ThinkingStart: Assembly._open_block,
    ToolCallStart: Assembly._open_block,
    TextEnd: Assembly._close_block,
    ThinkingEnd: Assembly._close_block,
    ToolCallEnd: Assembly._close_block,
    Done: Assembly._terminate,
    Error: Assembly._terminate,
}


def _malformed(event: Done | Error) -> str | None:
    """What a terminal event carries that it must not, or None."""
    if not isinstance(event.usage, Usage):
        return f"usage {event.usage!r}"
    if isinstance(event, Done):
        if event.cost is not None and not isinstance(event.cost, Cost):
            return f"cost {event.cost!r}"
        return None if event.stop_reason in _STOP_REASONS else f"stop reason {event.stop_reason!r}"
    if not isinstance(event.message, str):
        return f"message {event.message!r}"
    if event.retry_after is not None and not isinstance(event.retry_after, int | float):
        return f"retry_after {event.retry_after!r}"
    return None


async def accumulate(stream: AsyncIterator[AssistantMessageEvent], model: ModelSpec) -> AssistantMessage:
    """The whole reply of a stream as one message; an error event is a message with `stop_reason="error"`."""
    assembly = Assembly()
    async for event in stream:
        assembly.feed(event)
    match assembly.terminal:
        case Done(stop_reason, usage, cost):
            return assembly.message(model, stop_reason, usage=usage, cost=cost)
        case Error(message, kind, retry_after, usage):
            return assembly.message(
                model,
                "error",
                usage=usage,
                error=error_for(kind, message, model=str(model), retry_after=retry_after),
            )
        case None:
            raise NetworkError("the stream ended without a terminal event", model=str(model))


def parse_arguments(text: str) -> dict[str, Any] | None:
    """A call's arguments from their JSON text: `{}` for nothing at all, None for what is not a JSON object, or is nested too deeply."""
    if not text.strip():
        return {}
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
    if not isinstance(value, dict) or (
        text.count("[") + text.count("{") > DEEPEST and not _is_shallow(value)
    ):
        return None
    return cast("dict[str, Any]", value)


def _is_shallow(value: Any) -> bool:
    """Whether everybody who copies, checks or shows the value recursively can do so."""
    layer: list[Any] = [value]
    for _ in range(DEEPEST):
        layer = [item for outer in layer for item in _items(outer)]
        if not layer:
            return True
    return False


def _items(value: Any) -> Iterable[Any]:
    match value:
        case dict():
            return cast("dict[str, Any]", value).values()
        case list():
            return cast("list[Any]", value)
        case _:
            return ()


def encode_event(event: AssistantMessageEvent) -> bytes:
    """A stream event as JSON."""
    return msgspec.json.encode(event)


def decode_event(data: bytes | str) -> AssistantMessageEvent:
    """A stream event from JSON; an unknown type is an error that names it."""
    return _decoder.decode(data)


def _content(block: _Block) -> Text | Thinking | ToolCall | None:
    """What arrived of the block; None for text without a word in it, which providers refuse to be sent."""
    text = (
        "".join([part for part in block.parts if isinstance(part, str)]) if block.text is None else block.text
    )
    if not text.isascii():
        text = clean(text)
    if block.takes is TextDelta:
        return Text(text) if text else None
    if block.takes is ThinkingDelta:
        end = block.end
        return Thinking(text, end.signature, end.redacted) if isinstance(end, ThinkingEnd) else Thinking(text)
    signature = block.end.signature if block.end is not None else None
    arguments = parse_arguments(text) if block.end is not None else None
    if arguments is None:
        return ToolCall(block.id, block.name, {}, text, signature)
    return ToolCall(block.id, block.name, arguments, None, signature)


def _name(event: Any) -> str:
    return str(event.__struct_config__.tag) if type(event) in _KINDS else type(event).__name__


_KINDS = frozenset(get_args(AssistantMessageEvent))
_STOP_REASONS = frozenset(get_args(StopReason))
_decoder: msgspec.json.Decoder[AssistantMessageEvent] = msgspec.json.Decoder(AssistantMessageEvent)
