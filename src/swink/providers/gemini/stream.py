"""The reply of a Gemini model, decoded: every event is a whole response with the next parts of the content.

The last event has a finish reason, and the body ends. There are no block boundaries: text and thinking run on
until a part of another kind, or one with a signature, comes. What is neither text, thinking, a call nor media
is kept as it came and goes back so.
"""

import uuid
from typing import Any

from msgspec import Struct

from swink.errors import ContentFiltered
from swink.messages import Audio, Base64Source, Extension, Image
from swink.providers.chat.toolcalls import write_failed_call
from swink.providers.exchange import convert, cut_short, decode_json, encode_body
from swink.providers.gemini.arguments import ArgumentWriter, PartialArgument
from swink.providers.gemini.conversation import MEDIA_PART, OWN_ID
from swink.providers.gemini.endings import error_of, stop_error
from swink.providers.gemini.grounding import Grounding
from swink.providers.gemini.usage import usage_of
from swink.providers.sse import SseParser
from swink.stream import BlockWriter, StreamOptions


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
    parts: list[dict[str, Any]] | None = None


class _Candidate(Struct, frozen=True, rename="camel"):
    index: int | None = None
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    grounding_metadata: dict[str, Any] | None = None
    url_context_metadata: dict[str, Any] | None = None
    citation_metadata: dict[str, Any] | None = None


class _PromptFeedback(Struct, frozen=True, rename="camel"):
    block_reason: str | None = None
    block_reason_message: str | None = None


class _Event(Struct, frozen=True, rename="camel"):
    candidates: list[_Candidate] | None = None
    prompt_feedback: _PromptFeedback | None = None
    usage_metadata: dict[str, Any] | None = None
    response_id: Any = None
    model_version: Any = None
    error: Any = None


class GeminiDecoder:
    """The parts of one candidate.

    With `grounded`, texts stay open to the end, because what they cite comes last; `by_query` counts searches
    by the query.
    """

    def __init__(
        self,
        reply: BlockWriter,
        options: StreamOptions,
        tools: list[str],
        *,
        grounded: bool = False,
        by_query: bool = True,
    ) -> None:
        self._reply = reply
        self._raw = options.on_raw_payload
        self._tools = tools
        self._grounded = grounded
        self._by_query = by_query
        self._parser = SseParser()
        self._call: _Call | None = None
        self._calls = 0
        self._texts: dict[int, list[str]] = {}
        self._text: int | None = None
        self._counts: dict[str, Any] = {}
        self._executions = 0
        self._grounding = Grounding()
        self._finish: _Candidate | None = None

    def feed(self, chunk: bytes) -> None:
        for event in self._parser.feed(chunk):
            data = decode_json(event.data)
            if self._raw is not None:
                self._raw(data)
            decoded = convert(data, _Event, event.data)
            if decoded.error is not None:
                raise error_of(data)
            self._take(decoded, event.data)

    def end(self) -> None:
        if self._finish is None:
            raise cut_short()
        self._cite()
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
                self._end_call()
                write_failed_call(self._reply, message, self._tools, OWN_ID)
            case reason:
                raise stop_error(reason or "", message)

    def _take(self, event: _Event, data: bytes) -> None:
        if event.response_id:
            self._reply.response_id, self._reply.response_model = event.response_id, event.model_version
        if event.usage_metadata:
            self._counts |= {name: value for name, value in event.usage_metadata.items() if value is not None}
            self._report()
        if (feedback := event.prompt_feedback) is not None and feedback.block_reason:
            self._reply.settle()
            why = f"{feedback.block_reason} {feedback.block_reason_message or ''}".rstrip()
            raise ContentFiltered(f"the provider blocked the prompt: {why}")
        for candidate in event.candidates or ():
            if candidate.index:
                continue  # `extra` may ask for several; a reply is one
            for part in (candidate.content and candidate.content.parts) or ():
                self._part(part, convert(part, _Part, data))
            self._grounding.take(
                groundingMetadata=candidate.grounding_metadata,
                urlContextMetadata=candidate.url_context_metadata,
                citationMetadata=candidate.citation_metadata,
            )
            if candidate.finish_reason:
                self._finish = candidate

    def _part(self, raw: dict[str, Any], part: _Part) -> None:
        signature = part.thought_signature or None
        if part.function_call is not None:
            self._leave_text()
            self._function_call(part.function_call, signature)
        elif part.text is None and raw.keys() - {"text", "thought", "thoughtSignature"}:
            self._end_call()
            self._leave_text()
            self._whole(raw)
        elif not part.text and signature is None:
            pass
        elif part.thought:
            self._end_call()
            self._leave_text()
            self._think(part.text or "", signature)
        elif part.text:
            self._end_call()
            self._say(part.text, signature)
        else:
            # No text carries it, and it must not move to another part.
            self._end_call()
            self._leave_text()
            self._reply.add_block(Extension("gemini", {"text": "", "thoughtSignature": signature}))

    def _say(self, text: str, signature: str | None) -> None:
        """Text joins the block that is open; a signed part is a block of its own."""
        if self._text is None or signature is not None:
            self._leave_text()
            self._text = self._reply.begin_text()
            self._texts[self._text] = []
        self._texts[self._text].append(text)
        self._reply.add(self._text, text)
        if signature is not None:
            self._reply.sign(signature, self._text)
            self._leave_text()

    def _leave_text(self) -> None:
        """What follows is another block."""
        if self._text is not None and not self._grounded:
            self._reply.end(self._text)
        self._text = None

    def _think(self, text: str, signature: str | None) -> None:
        if signature is None:
            self._reply.think(text)
            return
        index = self._reply.begin_thinking()
        if text:
            self._reply.add(index, text)
        self._reply.end(index, signature)

    def _whole(self, part: dict[str, Any]) -> None:
        """Media become blocks; anything else is kept as it came."""
        match part:
            case {"inlineData": {"data": str() as data, "mimeType": str() as media_type}} if not part.get(
                "thought"
            ) and media_type.startswith(("image/", "audio/")):
                if rest := {name: value for name, value in part.items() if name != "inlineData"}:
                    self._reply.add_block(Extension("gemini", {MEDIA_PART: rest}))
                block = Image if media_type.startswith("image/") else Audio
                if data:
                    self._reply.add_block(block(Base64Source(data, media_type)))
            case _:
                self._executions += "executableCode" in part
                self._reply.add_block(Extension("gemini", part, _shown(part)))

    def _cite(self) -> None:
        """The texts end with what they cite, as far as they are open."""
        texts = {index: "".join(parts) for index, parts in self._texts.items()}
        indices = list(texts)
        for number, citation in self._grounding.citations(list(texts.values())):
            if self._reply.is_open(indices[number]):
                self._reply.cite(indices[number], citation)
        for index in indices:
            if self._reply.is_open(index):
                self._reply.end(index)
        for block in self._grounding.blocks():
            self._reply.add_block(block)
        self._report()

    def _report(self) -> None:
        uses = self._grounding.uses(by_query=self._by_query)
        if self._executions:
            uses["code_execution"] = self._executions
        if self._counts or uses:
            self._reply.report(usage_of(self._counts, uses))

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
                self._reply.add(index, encode_body(call.args or {}).decode())
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


def _shown(part: dict[str, Any]) -> str:
    """One line for people about what a hosted tool did."""
    match part:
        case {"executableCode": {"code": str() as code}}:
            return f"code: {' '.join(code.split())[:120]}"
        case {"codeExecutionResult": {"outcome": outcome, **more}}:
            said = str(outcome).removeprefix("OUTCOME_").lower()
            output = " ".join(str(more.get("output") or "").split())[:120]
            return f"code execution, {said}: {output}".rstrip(": ")
        case {"toolCall": {"toolType": kind, **more}}:
            arguments = encode_body({"args": more.get("args") or {}}).decode()[8:-1]
            return f"{_tool_name(kind)}: {arguments[:120]}"
        case {"toolResponse": {"toolType": kind}}:
            return f"{_tool_name(kind)}: done"
        case _:
            return ", ".join(sorted(part.keys() - {"thoughtSignature", "thought"}))


def _tool_name(kind: object) -> str:
    return str(kind).removesuffix("_WEB").replace("_", " ").lower()


class _Call:
    """A call whose arguments are streamed."""

    __slots__ = ("index", "signature", "writer")

    def __init__(self, index: int) -> None:
        self.index = index
        self.signature: str | None = None
        self.writer = ArgumentWriter()
