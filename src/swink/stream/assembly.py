"""One reply under assembly: its events become one message, and a violation of the protocol is named."""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from math import nan
from typing import Any, ClassVar, TypeGuard, TypeVar, get_args

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from swink.errors import AgentError, NetworkError, StreamError, error_for, message_of
from swink.messages import (
    AssistantMessage,
    ContentBlock,
    Cost,
    Extension,
    Media,
    ModelSpec,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    Usage,
    clean,
)
from swink.messages.jsondata import DEEPEST, is_shallow
from swink.stream.protocol import (
    UNREPORTED,
    AssistantMessageEvent,
    BlockAdded,
    Delta,
    Done,
    Error,
    PromptProgress,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    Update,
    UsageUpdate,
)

E = TypeVar("E", UsageUpdate, Done, Error, Done | Error)

_decode = msgspec.json.Decoder[Any]().decode
_MOST = 10**15
"""Tokens or dollars of one reply."""


class _Block(Struct, eq=False):
    """One block under assembly: `takes` is the delta type it accepts, `text` its text once it is closed."""

    takes: type[Delta] | None
    id: str = ""
    name: str = ""
    whole: Media | Extension | None = None
    parts: list[str] = []
    end: TextEnd | ThinkingEnd | ToolCallEnd | None = None
    text: str | None = None


class Assembly(Struct, eq=False, kw_only=True):
    """One reply under assembly: `feed` it events, ask it for the `message` so far.

    A violation of the protocol raises a `StreamError` that names it.
    """

    _blocks: list[_Block] = []
    _open: dict[int, _Block] = {}
    _writing: float = nan
    """The index of the open text block that was opened last; without one it equals nothing."""
    _add: Callable[[str], None] | None = None
    _started: bool = False
    prompt_read: int = 0
    """Tokens of the prompt that the model has read, as far as it says so."""
    report: UsageUpdate | None = None
    """The last report of what is used, before the end."""
    terminal: Done | Error | None = None
    """The event that ended the reply."""
    began: float = field(default_factory=time.time)
    """When the request was made, in seconds since 1970."""
    first: float | None = None
    """When the first block began to arrive."""

    @property
    def has_content(self) -> bool:
        """Whether any block has arrived."""
        return bool(self._blocks)

    @property
    def size(self) -> int:
        """How much content has arrived, counted in deltas, calls and signatures; what is empty is none."""
        return sum([sum(map(bool, block.parts)) + _has_more(block) for block in self._blocks])

    def spent(self, error: AgentError | None = None) -> tuple[Usage, Cost | None]:
        """What it has used, as far as anybody said, and the cost where the stream gave one.

        A reply that is not complete may have used more than was reported last, and how much is unknown; one
        that was refused with this error has used nothing.
        """
        end, report = self.terminal, self.report
        cost = end.cost if type(end) is Done else None
        usage = UNREPORTED if end is None else end.usage
        if report is not None:
            cost = report.cost if cost is None else cost
            if usage.unknown and usage.total <= report.usage.total:
                usage = report.usage
                if not usage.unknown and type(end) is not Done:
                    usage = replace(usage, unknown=True)
        elif usage.unknown and error is not None and error.kind in _REFUSALS and not self._blocks:
            return Usage(), Cost()
        return usage, cost

    def feed(self, event: AssistantMessageEvent) -> TypeGuard[Update]:
        """Take one event; True if there is something to show: a delta, the name of a tool, a whole block."""
        kind: Any = type(event)
        if kind is TextDelta:
            text: Any = event
            if text.index == self._writing:  # nearly every event of a long reply
                add: Any = self._add  # in two steps: a call of an attribute that is no method is slow
                add(text.text)
                return True
        if kind in self._actions:
            if self.terminal is not None:
                raise StreamError(f"stream protocol: {_name(event)} after {_name(self.terminal)}")
            if not self._started and kind not in _TAKES:
                raise StreamError(f"stream protocol: {_name(event)} before start")
            self._actions[kind](self, event)
            return kind is ToolCallStart or kind is BlockAdded
        if kind is TextDelta or kind is ThinkingDelta or kind is ToolCallDelta:
            delta: Any = event
            try:
                block = self._open[delta.index]
            except (KeyError, TypeError):
                raise self._misplaced(delta) from None
            if block.takes is not kind:
                raise self._misplaced(delta)
            block.parts.append(delta.text if kind is not ToolCallDelta else delta.json)
            return True
        if self.terminal is not None:
            raise StreamError(f"stream protocol: {_name(event)} after {_name(self.terminal)}")
        if kind is not Start:
            raise StreamError(f"stream protocol: {kind.__name__} is not a stream event")
        if self._started:
            raise StreamError("stream protocol: a second start")
        self._started = True
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
        """The message as it stands; calls that did not close keep what arrived of them in `partial_json`.

        Args:
            model: the model that was asked
            stop_reason: how the reply ended
            usage: its tokens
            cost: what it cost
            error: what went wrong
        """
        content: tuple[ContentBlock, ...] = ()
        for block in self._blocks:
            if (made := _content(block)) is not None:
                content += (made,)
        return AssistantMessage(
            content,
            model.provider,
            model.model_id,
            stop_reason,
            usage,
            cost,
            None if error is None else message_of(error),
            None if error is None else getattr(error, "kind", "stream"),
            self.began,
        )

    def argument_parts(self, index: int, name: str) -> Sequence[str]:
        """What has arrived of the JSON arguments of the call at `index`; nothing if it is no call of the tool
        `name`.
        """
        block = self._blocks[index] if index < len(self._blocks) else None
        return block.parts if block is not None and block.name == name else ()

    def text_parts(self, index: int) -> Sequence[str]:
        """What has arrived of the text block at `index`; nothing if it is none."""
        block = self._blocks[index] if index < len(self._blocks) else None
        return block.parts if block is not None and block.takes is TextDelta else ()

    def _open_block(self, event: TextStart | ThinkingStart | ToolCallStart) -> None:
        if event.index != len(self._blocks):
            raise StreamError(
                f"stream protocol: {_name(event)} opens block {event.index}, expected {len(self._blocks)}"
            )
        if type(event) is not ToolCallStart:
            block = _Block(TextDelta if type(event) is TextStart else ThinkingDelta)
            if type(event) is TextStart:
                self._writing, self._add = event.index, block.parts.append
        elif type(event.id) is type(event.name) is str or _are_texts(event.id, event.name):
            block = _Block(ToolCallDelta, event.id, event.name)
        else:
            raise StreamError("stream protocol: tool_call_start without an id and a name")
        if not self._blocks:
            self.first = time.time()
        self._blocks.append(block)
        self._open[event.index] = block

    def _close_block(self, event: TextEnd | ThinkingEnd | ToolCallEnd) -> None:
        try:
            block = self._open[event.index]
        except KeyError:
            raise self._misplaced(event) from None
        if block.takes is not _TAKES[type(event)]:
            raise self._misplaced(event)
        try:
            block.text = "".join(block.parts)
        except TypeError:
            raise StreamError(f"stream protocol: a delta of block {event.index} is not text") from None
        del self._open[event.index]
        if event.index == self._writing:
            self._writing = nan
        block.end = event

    def _add_block(self, event: BlockAdded) -> None:
        if event.index != len(self._blocks):
            raise StreamError(
                f"stream protocol: {_name(event)} adds block {event.index}, expected {len(self._blocks)}"
            )
        if not isinstance(event.block, Media | Extension):
            raise StreamError(f"stream protocol: {_name(event)} with {type(event.block).__name__}")
        if not self._blocks:
            self.first = time.time()
        self._blocks.append(_Block(None, whole=event.block))

    def _read(self, event: PromptProgress) -> None:
        if type(event.done) is not int or type(event.total) is not int or not 0 <= event.done <= event.total:
            raise StreamError(f"stream protocol: {_name(event)} of {event.done!r} of {event.total!r} tokens")
        self.prompt_read = max(self.prompt_read, event.done)

    def _report(self, event: UsageUpdate) -> None:
        self.report = _checked(event)

    def _terminate(self, event: Done | Error) -> None:
        checked = _checked(event)
        if self._open and type(event) is Done and event.stop_reason != "length":
            raise StreamError(f"stream protocol: done with block {min(self._open)} still open")
        self.terminal = checked
        self._open.clear()  # nothing comes after it
        self._writing = nan

    def _misplaced(self, event: Any) -> StreamError:
        if self.terminal is not None:
            return StreamError(f"stream protocol: {_name(event)} after {_name(self.terminal)}")
        return StreamError(
            f"stream protocol: {_name(event)} for block {event.index}, which is not open for it"
        )

    _actions: ClassVar[dict[type, Any]] = {
        TextStart: _open_block,
        ThinkingStart: _open_block,
        ToolCallStart: _open_block,
        TextEnd: _close_block,
        ThinkingEnd: _close_block,
        ToolCallEnd: _close_block,
        BlockAdded: _add_block,
        PromptProgress: _read,
        UsageUpdate: _report,
        Done: _terminate,
        Error: _terminate,
    }
    """What is done with an event that is no delta: a table, because it is faster than a `match`."""


def _are_texts(*values: Any) -> bool:
    return all(isinstance(value, str) for value in values)


def _has_more(block: _Block) -> bool:
    """Whether a block has content besides its text."""
    return block.takes in (ToolCallDelta, None) or (block.end is not None and bool(block.end.signature))


_TAKES: dict[type, type[Delta]] = {TextEnd: TextDelta, ThinkingEnd: ThinkingDelta, ToolCallEnd: ToolCallDelta}


def _checked(event: E) -> E:
    """The event without figures that nobody can have used or owe: they are unknown.

    What it must not carry is refused.
    """
    given: Any = event
    if type(event.usage) is not Usage:
        raise _carries(event, f"usage {event.usage!r}")
    cost: Any = None if type(event) is Error else given.cost
    if type(event) is Error:
        if not isinstance(given.message, str):
            raise _carries(event, f"message {given.message!r}")
        if given.retry_after is not None and not isinstance(given.retry_after, int | float):
            raise _carries(event, f"retry_after {given.retry_after!r}")
    elif cost is not None and not isinstance(cost, Cost):
        raise _carries(event, f"cost {cost!r}")
    elif type(event) is Done and given.stop_reason not in _STOP_REASONS:
        raise _carries(event, f"stop reason {given.stop_reason!r}")
    usage = event.usage
    counts = usage.input, usage.output, usage.cache_read, usage.cache_write, usage.total
    for count in (*counts, *usage.extra.values()) if usage.extra else counts:
        if type(count) is not int or not 0 <= count <= _MOST:
            extra = {name: count for name, count in usage.extra.items() if _is_count(count)}
            kept = [count if _is_count(count) else 0 for count in counts[:4]]
            event = _replaced(event, usage=Usage(*kept, extra=extra, unknown=True))
            break
    if cost is not None and not 0 <= cost.total <= _MOST:
        event = _replaced(event, cost=None)
    return event


def _carries(event: Any, what: str) -> StreamError:
    return StreamError(f"stream protocol: {_name(event)} with {what}")


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= _MOST


def _replaced(event: E, **fields: Any) -> E:
    made = replace(event, **fields)
    if isinstance(event, Error):
        vars(made).update(vars(event))  # its cause
    return made


async def accumulate(stream: AsyncIterator[AssistantMessageEvent], model: ModelSpec) -> AssistantMessage:
    """The whole reply of a stream of `model` as one message; an error event has `stop_reason="error"`."""
    assembly = Assembly()
    async for event in stream:
        assembly.feed(event)
    match assembly.terminal:
        case Done(stop_reason):
            usage, cost = assembly.spent()
            return assembly.message(model, stop_reason, usage=usage, cost=cost)
        case Error(message, kind, retry_after):
            error = error_for(kind, message, model=str(model), retry_after=retry_after)
            usage, cost = assembly.spent(error)
            return assembly.message(model, "error", usage=usage, cost=cost, error=error)
        case None:
            raise NetworkError("the stream ended without a terminal event", model=str(model))


def parse_arguments(text: str) -> dict[str, Any] | None:
    """A call's arguments from their JSON text; `{}` if there is none.

    None for what is not a JSON object, or is nested too deeply.
    """
    try:
        value = _decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None if text.strip() else {}
    given: object = value
    if type(given) is not dict or (len(text) > 2 * DEEPEST and _is_deep(text, value)):
        return None
    return value


def _is_deep(text: str, value: Any) -> bool:
    return text.count("[") + text.count("{") > DEEPEST and not is_shallow(value)


def _content(block: _Block) -> ContentBlock | None:
    """What arrived of the block; None for text without a word in it, which providers refuse to be sent."""
    if block.whole is not None:
        return block.whole
    text = (
        "".join([part for part in block.parts if isinstance(part, str)]) if block.text is None else block.text
    )
    if not text.isascii():
        text = clean(text)
    if block.takes is TextDelta:
        end = block.end
        if isinstance(end, TextEnd) and (end.signature is not None or end.citations):
            return Text(text, end.citations, end.signature)
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


_REFUSALS = frozenset(
    ("auth", "throttled", "model_retired", "context_window_exceeded", "cache_miss", "misuse")
)
"""Kinds of errors that come before anything is generated, unless there is content."""
_KINDS = frozenset(get_args(AssistantMessageEvent))
_STOP_REASONS = frozenset(get_args(StopReason))
