"""The chunks of llama.cpp's reply, decoded into stream events; and a look at the first token of one."""

import math
import secrets
from collections.abc import Iterable, Mapping
from typing import Any, cast

from swink.local.callgrammar import CallParser
from swink.local.repetition import Repetition
from swink.messages import Cost, StopReason, Usage
from swink.stream import UNREPORTED, AssistantMessageEvent, BlockWriter, Done, Error, PromptProgress
from swink.stream.thinkingtags import Piece, ReplyParser

_REASONS: Mapping[str, StopReason] = {"stop": "stop", "length": "length", "tool_calls": "tool_use"}

_NO_GRAMMAR = (
    "the model wrote no tool call: llama.cpp makes no grammar of the schemas of the tools; "
    "SWINK_LOCAL_VERBOSE=1 shows why"
)


class ChunkDecoder:
    """One reply: `take_chunk` each chunk until it is `stuck`, then `finish`.

    With a `CallParser` the reply is one tool call; if `or_words`, only if it begins like one. Without a
    parser it is text and thinking. `fresh` tokens of the prompt were read just before, for this reply.
    """

    def __init__(
        self,
        call: CallParser | None = None,
        spent: Usage = Usage(),
        *,
        or_words: bool = False,
        fresh: int = 0,
    ) -> None:
        self._writer = BlockWriter(spent + UNREPORTED)
        self._parser = ReplyParser()
        self._call = call
        self._or_words = or_words
        self._call_block: int | None = None
        self._native: dict[int, int] = {}
        self._spent = spent
        self._fresh = fresh
        self._reason: str | None = None
        self._error: Error | None = None
        self._watched: dict[str, Repetition] = {}
        self._read = self._cached = self.written = 0
        self.said = ""
        """The text so far."""
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
    def is_call(self) -> bool:
        """Whether the reply has begun like a call."""
        return self._call is not None and not self._or_words

    @property
    def call_is_complete(self) -> bool:
        return self._call is not None and self._call.complete

    @property
    def stuck(self) -> str | None:
        """What goes round in circles: "text", "thinking" or "arguments"."""
        return next((kind for kind, watch in self._watched.items() if watch.looping), None)

    def go_on(self) -> None:
        """Another attempt follows, which continues the text."""
        # The next attempt reads the prompt again, and its length is the size of the context: count it once.
        self._spent += Usage(output=self.written)
        self._fresh += self._read - self._cached
        self._read = self._cached = self.written = 0
        self._parser = ReplyParser()
        self._watched = {"text": Repetition()}
        self._watched["text"].feed(self.said)
        self._watched["text"].finish()

    def take_chunk(self, chunk: Mapping[str, Any]) -> list[AssistantMessageEvent]:
        """The events of one chunk."""
        if "error" in chunk:
            self._error = _error_of(chunk["error"], self.usage)
            return []
        match chunk.get("prompt_progress"):
            case {"processed": int() as done, "total": int() as total, **rest}:
                self._read, self._cached = total, int(rest.get("cache", 0))
                self._writer.read(min(done, total), total)
            case _:
                pass
        if "usage" in chunk:
            self._writer.report(self._spent + _usage_of(chunk["usage"], self._fresh), Cost())
        for choice in chunk.get("choices", ()):
            self._reason = choice.get("finish_reason") or self._reason
            delta = choice.get("delta", {})
            if thought := delta.get("reasoning_content"):
                self._add([Piece("thinking", thought)])
            if text := delta.get("content"):
                self._take_text(text)
            for part in delta.get("tool_calls") or ():
                self._add_native_call(part)
            self.written += any(delta.get(key) for key in ("content", "reasoning_content", "tool_calls"))
        return self._writer.take()

    def finish(self) -> list[AssistantMessageEvent]:
        """The rest: held-back text, the ends of open blocks, and the terminal."""
        terminal = self._error
        if terminal is None:
            if self.stuck:
                used = {"prompt_tokens": self._read, "completion_tokens": self.written}
                details = {"prompt_tokens_details": {"cached_tokens": self._cached}}
                self._writer.report(self._spent + _usage_of({**used, **details}, self._fresh), Cost())
                self._reason = "stop"
            self._add(self._parser.finish())
            self._release()
            terminal = self._terminal()
        self._writer.finish(terminal)
        return [*self._writer.take(), terminal]

    def _take_text(self, text: str) -> None:
        if self._or_words:  # the first character decides
            text = text.lstrip()
            if not text:
                return
            if text[0] != "{":
                self._call = None
            self._or_words = False
        if self._call is None:
            self._add(self._parser.feed(text))
        else:
            self._add_to_call(self._call, text)

    def _add(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            if piece.kind not in self._watched:
                self._release()
            self._show_text(piece.kind, self._watch(piece.kind, piece.text))

    def _release(self) -> None:
        """Show what was held back as a possible repetition, and was none."""
        for kind in ("thinking", "text"):
            if watch := self._watched.pop(kind, None):
                self._show_text(kind, watch.finish())

    def _show_text(self, kind: str, text: str) -> None:
        if not text:
            return
        if kind == "thinking":
            self._writer.think(text)
        elif text.strip() or self._writer.current is not None:  # no blank lines before the first word
            self._writer.say(text)
            self.said += text

    def _watch(self, kind: str, text: str) -> str:
        return self._watched.setdefault(kind, Repetition()).feed(text)

    def _add_to_call(self, call: CallParser, text: str) -> None:
        if call.complete:
            return
        arguments = call.feed(text)
        if call.name is not None and self._call_block is None:
            self._call_block = self._writer.begin_call(_call_id(), call.name)
        if self._call_block is not None and arguments:
            self.arguments += arguments
            self._watch("arguments", arguments)
            self._writer.add(self._call_block, arguments)
            if call.complete:
                self._writer.end(self._call_block)

    def _add_native_call(self, part: Mapping[str, Any]) -> None:
        """A piece of a call that llama.cpp has parsed itself."""
        number = int(part.get("index", 0))
        function = cast("Mapping[str, Any]", part.get("function", {}))
        if number not in self._native:
            call_id = part.get("id") or _call_id()
            self._native[number] = self._writer.begin_call(call_id, function.get("name") or "")
        if arguments := function.get("arguments"):
            self._watch("arguments", arguments)
            self._writer.add(self._native[number], arguments)

    def _terminal(self) -> Done | Error:
        if self._reason is None:
            return Error("llama.cpp ended the reply without a reason", "stream", usage=self.usage)
        reason = _REASONS.get(self._reason, "stop")
        if self._call is not None:
            if self._call.name is None and reason == "stop" and not self._or_words:
                return Error(_NO_GRAMMAR, "stream", usage=self.usage)
            reason = "tool_use" if self._call.complete else "length"
        elif self._native:
            reason = "length" if self.stuck else "tool_use" if reason == "stop" else reason
        return Done(reason, self.usage, Cost())


def _error_of(error: Mapping[str, Any], usage: Usage) -> Error:
    text = str(error.get("message", "llama.cpp failed"))
    if error.get("type") == "exceed_context_size_error" or "context size" in text.lower():
        return Error(f"the prompt is too long for the model: {text}", "context_window_exceeded", usage=usage)
    return Error(f"llama.cpp: {text}", "stream", usage=usage)


def _usage_of(usage: Mapping[str, Any], fresh: int = 0) -> Usage:
    details = cast("Mapping[str, Any]", usage.get("prompt_tokens_details") or {})
    cached = max(0, int(details.get("cached_tokens", 0)) - fresh)
    return Usage(int(usage.get("prompt_tokens", 0)) - cached, int(usage.get("completion_tokens", 0)), cached)


def _call_id() -> str:
    return f"call_{secrets.token_hex(6)}"


FIRST_TOKEN: Mapping[str, Any] = {"max_tokens": 1, "logprobs": True, "top_logprobs": 3000}
"""What turns a request into a look at its first token."""


class FirstToken:
    """The chunks of such a request."""

    stuck = None

    def __init__(self) -> None:
        self.call_likelihood = -math.inf
        """The logarithm of the probability that the reply begins with a brace."""
        self.fresh = 0
        """How many tokens of the prompt were read, and will not be read again."""

    def take_chunk(self, chunk: Mapping[str, Any]) -> list[AssistantMessageEvent]:
        match chunk:
            case {"prompt_progress": {"processed": int() as done, "total": int() as total, **rest}}:
                self.fresh = total - int(rest.get("cache", 0))
                return [PromptProgress(min(done, total), total)]
            case {"choices": [{"logprobs": {"content": [{"top_logprobs": tokens}, *_]}}, *_]}:
                listed = cast("list[dict[str, Any]]", tokens)
                likely = [math.exp(one["logprob"]) for one in listed if one["token"].startswith("{")]
                self.call_likelihood = math.log(sum(likely)) if likely else -math.inf
            case _:
                pass
        return []
