"""The reply of an Ollama server, decoded: newline-delimited JSON.

Every line carries the next piece of the message; tool calls come whole; the last line says `done`, why, and
the counts.
"""

import logging
import uuid
from typing import Any

import msgspec
from msgspec import Struct

from swink.errors import StreamError
from swink.messages import Usage
from swink.providers.exchange import convert, cut_short, decode_json, encode_body
from swink.providers.failure import failure, parse_error
from swink.providers.ollama.conversation import OWN_ID
from swink.providers.sse import LineParser
from swink.stream import BlockWriter, StreamOptions

FAR_BELOW = 0.7
"""The share of the estimate below which a reported prompt must have been cut."""

logger = logging.getLogger("swink.providers")


class _Function(Struct, frozen=True):
    name: str
    arguments: dict[str, Any] | str | None = None


class _Call(Struct, frozen=True):
    function: _Function
    id: str | None = None


class _Message(Struct, frozen=True):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[_Call] | None = None


class _Line(Struct, frozen=True):
    message: _Message = _Message()
    model: Any = None
    done: bool | None = None
    done_reason: str | None = None
    prompt_eval_count: int | None = None
    eval_count: int | None = None
    error: str | dict[str, Any] | None = None


class OllamaDecoder:
    """The lines of one reply."""

    def __init__(self, reply: BlockWriter, options: StreamOptions, estimate: int) -> None:
        self._reply = reply
        self._raw = options.on_raw_payload
        self._estimate = estimate
        self._parser = LineParser()
        self._calls = 0

    def feed(self, chunk: bytes) -> None:
        for line in self._parser.feed(chunk):
            self._line(line)
            if self._reply.terminal is not None:
                return

    def end(self) -> None:
        rest = self._parser.rest()
        try:
            msgspec.json.decode(rest)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise cut_short() from None
        self._line(rest)
        if self._reply.terminal is None:
            raise cut_short()

    def _line(self, data: bytes) -> None:
        decoded = decode_json(data)
        if self._raw is not None:
            self._raw(decoded)
        line = convert(decoded, _Line, data)
        if line.error is not None:
            raise failure(parse_error(data)[0])
        self._reply.response_model = line.model
        message = line.message
        if message.thinking:
            self._reply.think(message.thinking)
        if message.content:
            self._reply.say(message.content)
        for call in message.tool_calls or ():
            self._call(call)
        if line.done:
            self._finish(line)
        elif line.prompt_eval_count is not None:
            self._reply.report(Usage(line.prompt_eval_count, line.eval_count or 0))

    def _call(self, call: _Call) -> None:
        self._calls += 1
        index = self._reply.begin_call(call.id or OWN_ID + uuid.uuid4().hex[:20], call.function.name)
        arguments = call.function.arguments or {}
        text = arguments if isinstance(arguments, str) else encode_body(arguments).decode()
        self._reply.add(index, text)
        self._reply.end(index)

    def _finish(self, line: _Line) -> None:
        read, written = line.prompt_eval_count or 0, line.eval_count or 0
        extra: dict[str, int] = {}
        if 0 < read < FAR_BELOW * self._estimate:
            extra["prompt_missing"] = self._estimate - read
            logger.warning(
                "ollama: the server read %d tokens of a prompt of about %d: it cut the beginning off, "
                "system prompt and tools included; pass a larger num_ctx, or raise the limit of the server",
                read,
                self._estimate,
            )
        if line.prompt_eval_count is not None or line.eval_count is not None:
            self._reply.report(Usage(read, written, extra=extra))
        self._reply.settle()
        match line.done_reason:
            case "stop" | "tool_calls" | None | "":
                self._reply.done("tool_use" if self._calls else "stop")
            case "length":
                self._reply.done("length")
            case "load" | "unload":
                did = f"nothing but {line.done_reason} the model"
                raise StreamError(f"the server did {did}: it was asked nothing")
            case reason:
                raise StreamError(f"unknown done reason {reason!r}")
