"""A reply of llama.cpp on its way out: its chunks as stream events, blocks numbered and closed."""

import secrets
from collections.abc import Mapping
from typing import Any, cast

from swink.local.calls import CallParser
from swink.local.thinking import Piece, ReplyParser
from swink.messages import Cost, StopReason, Usage
from swink.stream import (
    AssistantMessageEvent,
    Done,
    Error,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)

_REASONS: Mapping[str, StopReason] = {"stop": "stop", "length": "length", "tool_calls": "tool_use"}


class ChunkDecoder:
    """One reply: `take` each chunk, then `finish`. With a `CallParser` the text is one call, otherwise words and thinking."""

    def __init__(self, call: CallParser | None = None, spent: Usage = Usage()) -> None:
        self._parser = ReplyParser()
        self._call = call
        self._spent = spent
        self._count = 0
        self._open: str | None = None
        self._native: dict[int, int] = {}
        self._reason: str | None = None
        self._error: Error | None = None
        self._arguments: list[str] = []
        self.usage = spent

    @property
    def name(self) -> str | None:
        """The tool that is called, once it is known."""
        return self._call.name if self._call else None

    @property
    def arguments(self) -> str:
        """The JSON of the call's arguments so far."""
        return "".join(self._arguments)

    @property
    def call_is_complete(self) -> bool:
        """Whether the call has arrived whole."""
        return self._call is not None and self._call.complete

    def take(self, chunk: Mapping[str, Any]) -> list[AssistantMessageEvent]:
        """The events of one chunk."""
        if "error" in chunk:
            self._error = _problem(chunk["error"], self.usage)
            return []
        if "usage" in chunk:
            self.usage = self._spent + _usage(chunk["usage"])
        events: list[AssistantMessageEvent] = []
        for choice in chunk.get("choices", ()):
            self._reason = choice.get("finish_reason") or self._reason
            delta = choice.get("delta", {})
            if thought := delta.get("reasoning_content"):
                self._add(events, Piece("thinking", thought))
            if text := delta.get("content"):
                self._text(events, text)
            for part in delta.get("tool_calls") or ():
                self._native_call(events, part)
        return events

    def finish(self) -> list[AssistantMessageEvent]:
        """The rest: held-back text, the ends of open blocks, and the terminal."""
        events: list[AssistantMessageEvent] = []
        if self._error is not None:
            return [self._error]
        for piece in self._parser.finish():
            self._add(events, piece)
        if self._reason is None:
            return [*events, Error("the model stopped without an end", "stream", usage=self.usage)]
        reason = _REASONS.get(self._reason, "stop")
        if self._call is not None:
            reason = "tool_use" if self._call.complete else "length"
        self._close(events)
        if reason != "length":
            events.extend(ToolCallEnd(index) for index in self._native.values())
        if self._native and reason == "stop":
            reason = "tool_use"
        events.append(Done(reason, self.usage, Cost()))
        return events

    def _text(self, events: list[AssistantMessageEvent], text: str) -> None:
        if self._call is None:
            for piece in self._parser.feed(text):
                self._add(events, piece)
            return
        was_complete = self._call.complete
        new = self._call.feed(text)
        if self._call.name is not None and self._open is None and not self._arguments:
            self._open = "call"
            events.append(ToolCallStart(self._begin(), _call_id(), self._call.name))
        if new:
            self._arguments.append(new)
            events.append(ToolCallDelta(self._count - 1, new))
        if self._call.complete and not was_complete:
            self._open = None
            events.append(ToolCallEnd(self._count - 1))

    def _add(self, events: list[AssistantMessageEvent], piece: Piece) -> None:
        """More text or thinking, in the block that is open or a new one."""
        if self._open != piece.kind:
            if piece.kind == "text" and not piece.text.strip() and self._open is None:
                return  # blank lines before the first word
            self._close(events)
            self._open = piece.kind
            index = self._begin()
            events.append(TextStart(index) if piece.kind == "text" else ThinkingStart(index))
        index = self._count - 1
        events.append(
            TextDelta(index, piece.text) if piece.kind == "text" else ThinkingDelta(index, piece.text)
        )

    def _native_call(self, events: list[AssistantMessageEvent], part: Mapping[str, Any]) -> None:
        """A piece of a call that llama.cpp has read itself."""
        number = int(part.get("index", 0))
        function = cast("Mapping[str, Any]", part.get("function", {}))
        if number not in self._native:
            self._close(events)
            self._native[number] = self._begin()
            events.append(
                ToolCallStart(self._native[number], part.get("id") or _call_id(), function.get("name") or "")
            )
        if arguments := function.get("arguments"):
            events.append(ToolCallDelta(self._native[number], arguments))

    def _begin(self) -> int:
        self._count += 1
        return self._count - 1

    def _close(self, events: list[AssistantMessageEvent]) -> None:
        """End the text or thinking that is open; a call that is open was cut off and stays so."""
        if self._open == "text":
            events.append(TextEnd(self._count - 1))
        elif self._open == "thinking":
            events.append(ThinkingEnd(self._count - 1))
        if self._open != "call":
            self._open = None


def _problem(error: Mapping[str, Any], usage: Usage) -> Error:
    """llama.cpp's error as ours."""
    message = str(error.get("message", "llama.cpp failed"))
    if error.get("type") == "exceed_context_size_error" or "context size" in message.lower():
        return Error(
            f"the prompt is too long for the model: {message}", "context_window_exceeded", usage=usage
        )
    return Error(f"llama.cpp: {message}", "stream", usage=usage)


def _usage(usage: Mapping[str, Any]) -> Usage:
    details = cast("Mapping[str, Any]", usage.get("prompt_tokens_details") or {})
    cached = int(details.get("cached_tokens", 0))
    return Usage(int(usage.get("prompt_tokens", 0)) - cached, int(usage.get("completion_tokens", 0)), cached)


def _call_id() -> str:
    return f"call_{secrets.token_hex(6)}"
