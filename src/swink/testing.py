"""Test doubles that ship with the library: a scripted model, a chaotic one, and a collector of events."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Struct

from swink.conformance import check_stream_fn as check_stream_fn
from swink.engine.history import violations
from swink.events import AgentEvent
from swink.messages import ModelSpec, StopReason, Text, Thinking, ToolCall, Usage
from swink.stream import (
    AssistantMessageEvent,
    BlockWriter,
    Delta,
    Done,
    Error,
    LlmContext,
    Start,
    StreamFn,
    StreamOptions,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)

T = TypeVar("T")

Piece = Any
"""A str (one text delta), a ToolCall, Thinking or Text, a Pause, a stream event, or an exception to raise there."""


class Pause(Struct, frozen=True):
    """In a script: wait this many seconds."""

    seconds: float


class ScriptedModel:
    """A stream function that replays replies: strings, tool calls, thinking, lists of these, exceptions, raw events.

    Every context it was asked with is in `calls`. A reply may also be a function of the context.
    """

    def __init__(self, replies: Iterable[Any], *, usage: Usage = Usage(input=1, output=1)) -> None:
        self._replies = list(replies)
        self._usage = usage
        self._next = 0
        self.calls: list[LlmContext] = []
        self.models: list[ModelSpec] = []
        self.options: list[StreamOptions] = []

    async def __call__(
        self, model: ModelSpec, context: LlmContext, options: StreamOptions
    ) -> AsyncIterator[AssistantMessageEvent]:
        self.calls.append(context)
        self.models.append(model)
        self.options.append(options)
        if self._next >= len(self._replies):
            raise AssertionError(
                f"the script has {len(self._replies)} replies, but the model was asked once more"
            )
        reply = self._replies[self._next]
        self._next += 1
        if callable(reply) and not isinstance(reply, type):
            reply = reply(context)
        for item in script(reply, self._usage):
            if isinstance(item, BaseException):
                raise item
            if isinstance(item, Pause):
                await asyncio.sleep(item.seconds)
            else:
                yield item
                await asyncio.sleep(0)


class ChaosModel:
    """Wraps a stream function and disturbs it at chosen points.

    `disturb(request, event)` gets the number of the request and of the event in it, both from 0, and returns None
    (leave it), seconds (a delay before the event), "disconnect" (the stream just ends), "malformed" (a protocol
    violation), "error" (a retryable error), "cancel" (the running task is cancelled), or an exception to raise.
    """

    def __init__(
        self, stream_fn: StreamFn, disturb: Callable[[int, int], float | str | BaseException | None]
    ) -> None:
        self._stream_fn = stream_fn
        self._disturb = disturb
        self.requests = 0

    async def __call__(
        self, model: ModelSpec, context: LlmContext, options: StreamOptions
    ) -> AsyncIterator[AssistantMessageEvent]:
        request = self.requests
        self.requests += 1
        stream = self._stream_fn(model, context, options)
        number = 0
        try:
            async for event in stream:
                match self._disturb(request, number):
                    case "disconnect":
                        return
                    case "malformed":
                        yield TextDelta(997, "malformed")
                    case "error":
                        if number == 0:
                            yield Start()
                        yield Error("chaos", "network")
                        return
                    case "cancel":
                        task = asyncio.current_task()
                        assert task is not None
                        task.cancel()
                        await asyncio.sleep(0)
                    case BaseException() as error:
                        raise error
                    case float() | int() as seconds:
                        await asyncio.sleep(seconds)
                    case _:
                        pass
                yield event
                number += 1
        finally:
            if (aclose := getattr(stream, "aclose", None)) is not None:
                await aclose()


class EventCollector:
    """A subscriber that keeps every event: `agent.subscribe(collector)`."""

    def __init__(self) -> None:
        self.events: list[AgentEvent] = []

    def __call__(self, event: AgentEvent) -> None:
        self.events.append(event)

    def of(self, kind: type[T]) -> list[T]:
        """The events of one type."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def names(self) -> list[str]:
        """The names of the events, in order."""
        return [type(event).__name__ for event in self.events]

    def check(self) -> None:
        """Assert that every start has exactly one end, properly nested."""
        problems = nesting_problems(self.events)
        assert not problems, "\n".join(problems)


def script(reply: Any, usage: Usage = Usage()) -> Iterable[AssistantMessageEvent | Pause | BaseException]:
    """A reply of a script as stream events."""
    pieces: list[Piece] = list(cast("Iterable[Any]", reply)) if isinstance(reply, list | tuple) else [reply]
    if any(isinstance(piece, Start) for piece in pieces):
        yield from pieces
        return
    if len(pieces) == 1 and isinstance(pieces[0], BaseException):
        yield pieces[0]
        return
    yield Start()
    writer = BlockWriter(usage)
    stop_reason: StopReason = "stop"
    for piece in pieces:
        match piece:
            case str():
                writer.say(piece)
            case Text(text):
                _write_block(writer, writer.begin_text(), text)
            case Thinking(text, signature, redacted):
                _write_block(writer, writer.begin_thinking(), text, signature, redacted)
            case ToolCall(id, name, arguments, partial, signature):
                stop_reason = "tool_use"
                json = msgspec.json.encode(arguments).decode() if partial is None else partial
                _write_block(writer, writer.begin_call(id, name), json, signature)
            case Done() | Error():
                writer.finish(piece)
                break
            case Pause() | BaseException():
                yield piece
            case _:
                raise TypeError(
                    "a script holds str, ToolCall, Thinking, Pause, stream events or exceptions, "
                    f"not {type(piece).__name__}"
                )
        yield from writer.take()
    else:
        writer.done(stop_reason)
    yield from writer.take()
    assert writer.terminal is not None
    yield writer.terminal


def _write_block(
    writer: BlockWriter, index: int, text: str, signature: str | None = None, redacted: bool = False
) -> None:
    if text:
        writer.add(index, text)
    writer.end(index, signature, redacted=redacted)


def history_problems(messages: Sequence[Any]) -> list[str]:
    """Every break of the pairing of tool calls and results, in words."""
    return violations(messages)


def nesting_problems(events: Sequence[AgentEvent]) -> list[str]:
    """Every start without its end, end without its start, and event outside its parent, in words."""
    problems: list[str] = []
    stack: list[str] = []
    running: set[str] = set()
    settled: set[str] = set()
    parents = {"Agent": [], "Turn": ["Agent"], "Message": ["Agent", "Turn"]}
    for number, event in enumerate(events):
        name = type(event).__name__
        kind = name.removesuffix("Start").removesuffix("End")
        if name in ("AgentStart", "TurnStart", "MessageStart"):
            if (stack[-1:] or [""])[0] not in (parents[kind] or [""]):
                problems.append(f"event {number}: {name} inside {stack}")
            stack.append(kind)
            if name == "TurnStart":
                settled = set()
        elif name in ("AgentEnd", "TurnEnd", "MessageEnd"):
            if not stack or stack.pop() != kind:
                problems.append(f"event {number}: {name} does not close what is open")
            if kind == "Turn" and running:
                problems.append(f"event {number}: turn ends while {sorted(running)} run")
        elif name.startswith("ToolExecution"):
            problems.extend(_tool_problems(number, name, cast(Any, event).call_id, running, settled))
        if "Agent" not in stack and name != "AgentEnd" and name not in ("ContextCompacted", "CustomEvent"):
            problems.append(f"event {number}: {name} outside a run")
    return problems + [f"{kind} never ends" for kind in stack]


def _tool_problems(number: int, name: str, call_id: str, running: set[str], settled: set[str]) -> list[str]:
    if name == "ToolExecutionStart":
        running.add(call_id)
    elif name == "ToolExecutionUpdate":
        return [] if call_id in running else [f"event {number}: update of {call_id}, which does not run"]
    else:
        running.discard(call_id)
        if call_id in settled:
            return [f"event {number}: {call_id} ends twice"]
        settled.add(call_id)
    return []


def deltas(events: Iterable[AssistantMessageEvent]) -> list[Delta]:
    """The deltas among some stream events."""
    return [event for event in events if isinstance(event, TextDelta | ThinkingDelta | ToolCallDelta)]
