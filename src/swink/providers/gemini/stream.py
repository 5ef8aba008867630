"""The reply of a Gemini model, decoded: every event is a whole response with the next parts of the content.

The last event has a finish reason, and the body ends. There are no block boundaries: text and thinking run on
until a part of another kind, or one with a signature, comes.
"""

import re
import uuid
from typing import Any

import msgspec
from msgspec import Struct

from swink.errors import ContentFiltered, ModelError, NetworkError, StreamError, error_for
from swink.messages import Usage
from swink.providers.exchange import cut_short, decode_json, encode_body, malformed
from swink.providers.failure import describe_error, failure, parse_error
from swink.providers.gemini.arguments import ArgumentWriter, PartialArgument
from swink.providers.gemini.body import ON_EMPTY, ON_TEXT, OWN_ID
from swink.providers.http import Response
from swink.providers.sse import SseParser
from swink.stream import BlockWriter, StreamOptions

_FILTERED = frozenset(
    {
        "SAFETY",
        "RECITATION",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
    }
    | {"IMAGE_OTHER", "MODEL_ARMOR"}
)
_STOPS = {
    "LANGUAGE": "the reply was in a language that the model does not support",
    "UNEXPECTED_TOOL_CALL": "the model called a tool although it may not",
    "TOO_MANY_TOOL_CALLS": "the model called too many tools in a row",
    "NO_IMAGE": "the model was to make an image and made none",
    "OTHER": "the provider stopped the reply without saying why",
    "FINISH_REASON_UNSPECIFIED": "the provider stopped the reply without saying why",
}
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)s")


class _FunctionCall(Struct, frozen=True, rename="camel"):
    id: str | None = None
    name: str | None = None
    args: dict[str, Any] | None = None
    partial_args: list[PartialArgument] | None = None
    will_continue: bool | None = None


class _Part(Struct, frozen=True, rename="camel"):
    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    function_call: _FunctionCall | None = None


class _Content(Struct, frozen=True):
    parts: list[_Part] | None = None


class _Candidate(Struct, frozen=True, rename="camel"):
    index: int | None = None
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None


class _PromptFeedback(Struct, frozen=True, rename="camel"):
    block_reason: str | None = None
    block_reason_message: str | None = None


class _Event(Struct, frozen=True, rename="camel"):
    candidates: list[_Candidate] | None = None
    prompt_feedback: _PromptFeedback | None = None
    usage_metadata: dict[str, Any] | None = None
    error: Any = None


class GeminiDecoder:
    """The parts of one candidate."""

    def __init__(self, reply: BlockWriter, options: StreamOptions, tools: list[str]) -> None:
        self._reply = reply
        self._raw = options.on_raw_payload
        self._tools = tools
        self._parser = SseParser()
        self._call: _Call | None = None
        self._calls = 0
        self._counts: dict[str, int] = {}
        self._finish: _Candidate | None = None

    def feed(self, chunk: bytes) -> None:
        for event in self._parser.feed(chunk):
            data = decode_json(event.data)
            if self._raw is not None:
                self._raw(data)
            try:
                decoded = msgspec.convert(data, _Event)
            except msgspec.ValidationError as error:
                raise malformed(event.data, error) from error
            if decoded.error is not None:
                raise _error_of(data)
            self._take(decoded)

    def end(self) -> None:
        if self._finish is None:
            raise cut_short()
        self._reply.settle()
        message = self._finish.finish_message or ""
        match self._finish.finish_reason:
            case "STOP":
                self._end_call()
                self._reply.done("tool_use" if self._calls else "stop")
            case "FUNCTION_CALL" if self._calls:  # other servers that speak Gemini's protocol
                self._end_call()
                self._reply.done("tool_use")
            case "MAX_TOKENS" | "CONTINUATION":
                self._reply.done("length")
            case "MALFORMED_FUNCTION_CALL":
                self._repair(message)
            case reason:
                raise _stop_error(reason or "", message)

    def _take(self, event: _Event) -> None:
        if event.usage_metadata:
            self._counts.update(
                {name: value for name, value in event.usage_metadata.items() if type(value) is int}
            )
            self._reply.report(_usage(self._counts))
        if (feedback := event.prompt_feedback) is not None and feedback.block_reason:
            self._reply.settle()
            why = f"{feedback.block_reason} {feedback.block_reason_message or ''}".rstrip()
            raise ContentFiltered(f"the provider blocked the prompt: {why}")
        for candidate in event.candidates or ():
            if candidate.index:
                continue  # `extra` may ask for several; a reply is one
            for part in (candidate.content and candidate.content.parts) or ():
                self._part(part)
            if candidate.finish_reason:
                self._finish = candidate

    def _part(self, part: _Part) -> None:
        signature = part.thought_signature or None
        if part.function_call is not None:
            self._function_call(part.function_call, signature)
        elif part.text is None:
            pass  # the provider's own tools, and media, for which a reply has no block
        elif signature is not None:
            self._end_call()
            self._write_signed(part.text, signature, bool(part.thought))
        elif part.text:
            self._end_call()
            write = self._reply.think if part.thought else self._reply.say
            write(part.text)

    def _write_signed(self, text: str, signature: str, thought: bool) -> None:
        """A signed part is a block of its own; a text's signature goes into redacted thinking before it."""
        index = self._reply.begin_thinking()
        if not thought:
            self._reply.end(index, (ON_TEXT if text else ON_EMPTY) + signature, redacted=True)
            if text:
                self._reply.say(text)
                self._reply.end_current()
            return
        if text:
            self._reply.add(index, text)
        self._reply.end(index, signature)

    def _end_call(self) -> None:
        """End the call whose arguments are streamed, if there is one."""
        if self._call is not None:
            call, self._call = self._call, None
            self._reply.add(call.index, call.writer.finish())
            self._reply.end(call.index, call.signature)

    def _function_call(self, call: _FunctionCall, signature: str | None) -> None:
        """A whole call, or a piece of a streamed one: the first piece has the name, the last is empty."""
        if call.name:
            self._end_call()
            self._calls += 1
            index = self._reply.begin_call(call.id or OWN_ID + uuid.uuid4().hex[:20], call.name)
            if not call.will_continue:
                self._reply.add(index, encode_body(call.args or {}, {}).decode())
                self._reply.end(index, signature)
                return
            self._call = _Call(index)
        if self._call is None:
            return
        self._call.signature = self._call.signature or signature
        for piece in call.partial_args or ():
            self._reply.add(self._call.index, self._call.writer.write(piece))
        if not call.will_continue:
            self._end_call()

    def _repair(self, message: str) -> None:
        """An unreadable call goes out with what it said as arguments, so that the model sees its error.

        It is a call of the tool that it names first; one that names none is of the first tool there is.
        """
        if not self._tools:
            raise StreamError(f"the model made a malformed function call: {message}".rstrip(": "))
        named = [(found.start(), name) for name in self._tools if (found := _word(name).search(message))]
        self._end_call()
        name = min(named)[1] if named else self._tools[0]
        index = self._reply.begin_call(OWN_ID + uuid.uuid4().hex[:20], name)
        self._reply.add(index, message or "malformed function call")
        self._reply.end(index)
        self._reply.done("tool_use")


def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")


class _Call:
    """A call whose arguments are streamed."""

    __slots__ = ("index", "signature", "writer")

    def __init__(self, index: int) -> None:
        self.index = index
        self.signature: str | None = None
        self.writer = ArgumentWriter()


def _stop_error(reason: str, message: str) -> ModelError:
    detail = f" {message}" if message else ""
    if reason in _FILTERED:
        return ContentFiltered(f"the provider stopped the reply: {reason}{detail}")
    if reason == "MALFORMED_RESPONSE":
        return NetworkError(f"the provider could not read the model's reply{detail}")
    return StreamError(f"{_STOPS.get(reason, 'unknown finish reason')}: {reason}{detail}")


def _usage(counts: dict[str, int]) -> Usage:
    cached, thoughts = counts.get("cachedContentTokenCount", 0), counts.get("thoughtsTokenCount", 0)
    asked = counts.get("promptTokenCount", 0) + counts.get("toolUsePromptTokenCount", 0)
    return Usage(
        max(0, asked - cached),
        counts.get("candidatesTokenCount", 0) + thoughts,
        cached,
        0,
        0,
        {"reasoning": thoughts} if thoughts else {},
    )


def explain(response: Response, body: bytes) -> ModelError:
    """The error of an answer from Google."""
    message, code = parse_error(body)
    status = response.status
    error = failure(
        f"HTTP {status}: {message or 'no details'}", status=status, code=code, headers=response.headers
    )
    if status == 404 and "models/" in message:
        error = error_for("model_retired", error.message)
    if error.retry_after is None:
        error.retry_after = _retry_delay(body)
    return error


def _error_of(event: dict[str, Any]) -> ModelError:
    message, code = describe_error(event)
    error = failure(message, code=code)
    if error.retry_after is None:
        error.retry_after = _retry_delay(encode_body(event, {}))
    return error


def _retry_delay(body: bytes) -> float | None:
    """The wait that a RetryInfo detail asks for."""
    found = re.search(rb'"retryDelay"\s*:\s*"([^"]*)"', body)
    seconds = _SECONDS.fullmatch(found[1].decode("utf-8", "replace")) if found else None
    return float(seconds[1]) if seconds else None
