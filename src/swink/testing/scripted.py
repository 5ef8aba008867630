"""ScriptedModel: a model that says what a test wrote down for it."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any, cast

import msgspec
from msgspec import Struct

from swink.errors import InvalidInput
from swink.messages.blocks import Audio, Document, Extension, Image, Text, Thinking, ToolCall
from swink.messages.checks import check_list
from swink.messages.message import StopReason
from swink.messages.modelspec import ModelSpec, Usage
from swink.stream import (
    AssistantMessageEvent,
    BlockWriter,
    Delta,
    Done,
    Error,
    LlmContext,
    PromptProgress,
    Start,
    StreamOptions,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    UsageUpdate,
)

Piece = Any
"""A str (one text delta), a content block, a Pause, a stream event, or an exception to raise."""


class Pause(Struct, frozen=True):
    """In a script: wait this many seconds."""

    seconds: float


class ScriptedModel:
    """A stream function that replays replies.

    A reply is a string, a content block, an exception, a stream event, a list of these, or a function of the
    context that returns one. Every context it was asked with is in `calls`.

    Args:
        replies: what it says, one for each request
        usage: the tokens that each reply reports
    """

    def __init__(self, replies: Iterable[Any], *, usage: Usage = Usage(input=1, output=1)) -> None:
        self._replies = list(check_list("ScriptedModel(replies)", replies, "replies"))
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
            count = "1 reply" if len(self._replies) == 1 else f"{len(self._replies)} replies"
            raise AssertionError(f"the script has {count}, but the model was asked once more: add a reply")
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


def script(reply: Any, usage: Usage = Usage()) -> Iterable[AssistantMessageEvent | Pause | BaseException]:
    """A `reply` of a script as stream events, with its `usage`."""
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
            case Text(text, citations, signature):
                index = writer.begin_text()
                for cited in citations:
                    writer.cite(index, cited)
                _write_block(writer, index, text, signature)
            case Thinking(text, signature, redacted):
                _write_block(writer, writer.begin_thinking(), text, signature, redacted)
            case ToolCall(id, name, arguments, partial, signature):
                stop_reason = "tool_use"
                json = msgspec.json.encode(arguments).decode() if partial is None else partial
                _write_block(writer, writer.begin_call(id, name), json, signature)
            case Image() | Document() | Audio() | Extension():
                writer.add_block(piece)
            case UsageUpdate(usage, cost):
                writer.report(usage, cost)
            case Done() | Error():
                writer.finish(piece)
                break
            case PromptProgress() | Pause() | BaseException():
                yield piece
            case _:
                known = "str, content blocks, Pause, stream events or exceptions"
                raise InvalidInput(f"a script holds {known}, not {type(piece).__name__}")
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


def deltas(events: Iterable[AssistantMessageEvent]) -> list[Delta]:
    """The deltas among some stream events."""
    return [event for event in events if isinstance(event, TextDelta | ThinkingDelta | ToolCallDelta)]
