"""The chunks of llama.cpp's reply, decoded into stream events."""

import secrets
from collections.abc import Iterable, Mapping
from typing import Any, cast

from swink.local.calls import CallParser
from swink.messages import Cost, StopReason, Usage
from swink.stream import UNREPORTED, AssistantMessageEvent, BlockWriter, Done, Error
from swink.stream.thinking import Piece, ReplyParser

_REASONS: Mapping[str, StopReason] = {"stop": "stop", "length": "length", "tool_calls": "tool_use"}


class ChunkDecoder:
    """One reply: `take` each chunk, then `finish`.

    With a `CallParser` the text of the reply is one tool call, otherwise it is text and thinking.
    """

    def __init__(self, call: CallParser | None = None, spent: Usage = Usage()) -> None:
        self._writer = BlockWriter(spent + UNREPORTED)
        self._parser = ReplyParser()
        self._call = call
        self._call_block: int | None = None
        self._native: dict[int, int] = {}
        self._spent = spent
        self._reason: str | None = None
        self._error: Error | None = None
        self.arguments = ""
        """The JSON of the call's arguments so far."""

    @property
    def usage(self) -> Usage:
        """What was spent so far, on earlier attempts too."""
        return self._writer.usage

    @property
    def name(self) -> str | None:
        """The tool that is called, once it is known."""
        return self._call.name if self._call else None

    @property
    def call_is_complete(self) -> bool:
        """Whether the call has arrived whole."""
        return self._call is not None and self._call.complete

    def take(self, chunk: Mapping[str, Any]) -> list[AssistantMessageEvent]:
        """The events of one chunk."""
        if "error" in chunk:
            self._error = _error_of(chunk["error"], self.usage)
            return []
        match chunk.get("prompt_progress"):
            case {"processed": int() as done, "total": int() as total}:
                self._writer.read(min(done, total), total)
            case _:
                pass
        if "usage" in chunk:
            self._writer.report(self._spent + _usage_of(chunk["usage"]), Cost())
        for choice in chunk.get("choices", ()):
            self._reason = choice.get("finish_reason") or self._reason
            delta = choice.get("delta", {})
            if thought := delta.get("reasoning_content"):
                self._writer.think(thought)
            if text := delta.get("content"):
                if self._call is None:
                    self._add(self._parser.feed(text))
                else:
                    self._add_to_call(self._call, text)
            for part in delta.get("tool_calls") or ():
                self._add_native_call(part)
        return self._writer.take()

    def finish(self) -> list[AssistantMessageEvent]:
        """The rest: held-back text, the ends of open blocks, and the terminal."""
        terminal = self._error
        if terminal is None:
            self._add(self._parser.finish())
            terminal = self._terminal()
        self._writer.finish(terminal)
        return [*self._writer.take(), terminal]

    def _add(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            if piece.kind == "thinking":
                self._writer.think(piece.text)
            elif (
                piece.text.strip() or self._writer.current is not None
            ):  # no blank lines before the first word
                self._writer.say(piece.text)

    def _add_to_call(self, call: CallParser, text: str) -> None:
        if call.complete:
            return
        arguments = call.feed(text)
        if call.name is not None and self._call_block is None:
            self._call_block = self._writer.begin_call(_call_id(), call.name)
        if self._call_block is not None and arguments:
            self.arguments += arguments
            self._writer.add(self._call_block, arguments)
            if call.complete:
                self._writer.end(self._call_block)

    def _add_native_call(self, part: Mapping[str, Any]) -> None:
        """A piece of a call that llama.cpp has parsed itself."""
        number = int(part.get("index", 0))
        function = cast("Mapping[str, Any]", part.get("function", {}))
        if number not in self._native:
            self._native[number] = self._writer.begin_call(
                part.get("id") or _call_id(), function.get("name") or ""
            )
        if arguments := function.get("arguments"):
            self._writer.add(self._native[number], arguments)

    def _terminal(self) -> Done | Error:
        if self._reason is None:
            return Error("llama.cpp ended the reply without a reason", "stream", usage=self.usage)
        reason = _REASONS.get(self._reason, "stop")
        if self._call is not None:
            reason = "tool_use" if self._call.complete else "length"
        elif self._native and reason == "stop":
            reason = "tool_use"
        return Done(reason, self.usage, Cost())


def _error_of(error: Mapping[str, Any], usage: Usage) -> Error:
    """llama.cpp's error as ours."""
    message = str(error.get("message", "llama.cpp failed"))
    if error.get("type") == "exceed_context_size_error" or "context size" in message.lower():
        return Error(
            f"the prompt is too long for the model: {message}", "context_window_exceeded", usage=usage
        )
    return Error(f"llama.cpp: {message}", "stream", usage=usage)


def _usage_of(usage: Mapping[str, Any]) -> Usage:
    details = cast("Mapping[str, Any]", usage.get("prompt_tokens_details") or {})
    cached = int(details.get("cached_tokens", 0))
    return Usage(int(usage.get("prompt_tokens", 0)) - cached, int(usage.get("completion_tokens", 0)), cached)


def _call_id() -> str:
    return f"call_{secrets.token_hex(6)}"
