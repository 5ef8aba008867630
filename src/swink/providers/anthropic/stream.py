"""The answer of Anthropic's Messages API: server-sent events.

    message_start (content_block_start content_block_delta* content_block_stop)* message_delta message_stop

Blocks that are not text, thinking or a tool call are the provider's own (the tools it runs, its compactions):
they are kept as they came. So is the container in which code ran. When the provider pauses a long turn, the
turn is continued with a second request, within the same reply.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from swink.errors import ContentFiltered, ContextWindowOverflow, ModelError, NetworkError, StreamError
from swink.messages import Citation, Extension, Usage
from swink.messages.jsondata import object_of
from swink.providers.anthropic.claudetools import CONTAINER, describe
from swink.providers.anthropic.eventtypes import (
    KNOWN,
    Content,
    Counts,
    Delta,
    Event,
    Message,
    events,
    sent_citation,
    usage_of,
)
from swink.providers.convert import web_url
from swink.providers.exchange import Again, cut_short, decode_json, decode_known, malformed
from swink.providers.failure import describe_error, failure
from swink.providers.sse import SseParser
from swink.stream import BlockWriter, StreamOptions

MOST_PAUSES = 16
_CALL_FIELDS = frozenset(("type", "id", "name", "input"))
_DIRECT = {"type": "direct"}


class _Block:
    """One content block: its index in the reply, and its content, in case the turn has to be continued."""

    __slots__ = ("content", "index", "open", "parts", "raw")

    def __init__(self, content: Content, raw: dict[str, Any]) -> None:
        self.content = content
        self.raw = raw
        self.index: int | None = None
        self.parts: list[str] = []
        self.open = True

    @property
    def is_own(self) -> bool:
        """Whether it is of a type that is the provider's own."""
        return self.index is None

    def as_json(self) -> dict[str, Any]:
        """The block as the API takes it back."""
        block = dict(self.raw)
        text = "".join(self.parts)
        if self.content.type in ("text", "thinking"):
            block[self.content.type] = text
        elif text:
            block["input"] = decode_json(text.encode())
        if self.content.signature:
            block["signature"] = self.content.signature
        if self.content.citations:
            block["citations"] = [sent_citation(citation) for citation in self.content.citations]
        return block


class MessagesDecoder:
    """The events of one message; a paused turn goes on with the content so far, in the same container."""

    def __init__(self, reply: BlockWriter, options: StreamOptions) -> None:
        self._reply = reply
        self._raw = options.on_raw_payload
        self._compacts = "compaction" in options.extra
        self._earlier: list[dict[str, Any]] = []
        self._container: dict[str, Any] | None = None
        self._spent = Usage()
        self._calls = False
        self._pauses = 0
        self._begin()

    def _begin(self) -> None:
        """Get ready for an answer: the first one, or that to a continued turn."""
        self._parser = SseParser()
        self._blocks: dict[int, _Block] = {}
        self._content: list[_Block] = []
        self._counts = Counts()
        self._ending = Delta()
        self._paused = False

    def feed(self, chunk: bytes) -> None:
        for event in self._parser.feed(chunk):
            if self._raw is not None:
                self._raw(decode_json(event.data))
            if event.event == "error":  # the data of some servers does not say so itself
                raise _failure(event.data)
            decoded = decode_known(events, KNOWN, event.data)
            if decoded is not None:
                self._take(decoded, event.data)
            if self._reply.terminal is not None:
                return

    def end(self) -> Again | None:
        if not self._paused:
            if self._ending.stop_reason is None:
                raise cut_short()
            self._stop(self._ending)  # a gateway that leaves out the last event has sent the whole reply
            if not self._paused:
                return None
        self._pauses += 1
        if self._pauses > MOST_PAUSES:
            raise StreamError(f"the provider paused the turn more than {MOST_PAUSES} times")
        whole = [block.as_json() for block in self._content if block.index is not None or not block.open]
        self._earlier += [block for block in whole if block["type"] != "text" or block["text"].strip()]
        self._spent = self._reply.usage
        self._begin()
        fields = {"container": self._container["id"]} if self._container is not None else {}
        return Again([{"role": "assistant", "content": self._earlier}] if self._earlier else [], fields)

    def _take(self, event: Event, data: bytes) -> None:
        match event:
            case Event("content_block_delta", index, Delta() as delta) if index in self._blocks:
                self._delta(self._blocks[index], delta)
            case Event("content_block_start", index, content_block=dict() as content):
                self._start(index, content, data)
            case Event("content_block_stop", index) if index in self._blocks:
                self._end(self._blocks[index])
            case Event("message_start", message=Message() as message):
                self._open(message, data)
            case Event("message_delta", delta=Delta() as delta, usage=usage):
                self._ending = delta
                self._place(delta.container)
                self._count(usage)
            case Event("message_stop"):
                self._stop(self._ending)
            case Event(type, error=error) if type == "error" or error:
                raise _failure(data)
            case Event(type) if type in KNOWN:
                raise malformed(data, ValueError(f"{type} out of place"))
            case _:
                pass  # pings, and types that newer servers may send

    def _open(self, message: Message, data: bytes) -> None:
        if self._blocks:
            raise NetworkError("the provider began a second reply inside the first")
        self._reply.response_id, self._reply.response_model = message.id, message.model
        self._place(message.container)
        given = message.content or []
        blocks = [{"type": "text", "text": given}] if isinstance(given, str) else given
        for index, content in enumerate(blocks):
            self._start(index, content, data)
        if message.stop_reason is not None:
            self._ending = Delta(stop_reason=message.stop_reason, stop_details=message.stop_details)
        self._count(message.usage)

    def _place(self, container: Any) -> None:
        """Code ran in this container."""
        if isinstance(object_of(container).get("id"), str):
            self._container = container

    def _start(self, key: int, raw: dict[str, Any], data: bytes) -> None:
        if (stale := self._blocks.get(key)) is not None:
            self._end(stale)
        try:
            content = msgspec.convert(raw, Content)
        except msgspec.ValidationError as error:
            if raw.get("type") in ("text", "thinking", "redacted_thinking", "tool_use"):
                raise malformed(data, error) from error
            content = Content(str(raw.get("type")))
        block = self._blocks[key] = _Block(content, raw)
        self._content.append(block)
        match content.type:
            case "text":
                block.index = self._reply.begin_text()
                self._add(block, content.text)
                for citation in content.citations or ():
                    self._reply.cite(block.index, as_citation(citation))
            case "thinking":
                block.index = self._reply.begin_thinking()
                self._add(block, content.thinking)
            case "redacted_thinking":
                block.index = self._reply.begin_thinking()
            case "tool_use":
                self._calls = True
                block.index = self._reply.begin_call(content.id or "", content.name or "")
            case _:
                pass  # the provider's own: it goes out when it is whole

    def _delta(self, block: _Block, delta: Delta) -> None:
        match delta.type:
            case "text_delta" if block.is_own:
                block.raw["text"] = str(block.raw.get("text") or "") + delta.text
            case "text_delta":
                self._add(block, delta.text)
            case "input_json_delta":
                self._add(block, delta.partial_json)
            case "thinking_delta" if not block.is_own:
                self._add(block, delta.thinking)
            case "signature_delta":
                block.content.signature = delta.signature
            case "citations_delta" if isinstance(delta.citation, dict) and block.index is not None:
                block.content.citations = [*(block.content.citations or ()), delta.citation]
                if self._reply.is_open(block.index):
                    self._reply.cite(block.index, as_citation(delta.citation))
            case "compaction_delta":
                block.raw["content"] = delta.content
                if delta.encrypted_content is not None:
                    block.raw["encrypted_content"] = delta.encrypted_content
            case _:
                pass  # types that newer servers may send

    def _add(self, block: _Block, text: str | None) -> None:
        if text:
            block.parts.append(text)
            if block.index is not None and self._reply.is_open(block.index):
                self._reply.add(block.index, text)

    def _end(self, block: _Block) -> None:
        index, content = block.index, block.content
        if index is None:
            if block.open:
                block.open = False
                whole = block.as_json()
                self._reply.add_block(Extension("anthropic", whole, describe(whole)))
            return
        if not self._reply.is_open(index):
            return
        match content.type:
            case "tool_use":
                if not block.parts and not content.input:
                    return  # no arguments, or cut off before them: the stop reason will tell
                if not block.parts:
                    self._reply.add(index, msgspec.json.encode(content.input).decode())
                self._reply.end(index, _call_signature(block.raw))
            case "redacted_thinking":
                self._reply.end(index, content.data, redacted=True)
            case "thinking":
                self._reply.end(index, content.signature or None)
            case _:
                self._reply.end(index)

    def _count(self, counts: Counts | None) -> None:
        """A later total replaces an earlier one."""
        if counts is not None:
            given = msgspec.structs.asdict(counts).items()
            later = {name: value for name, value in given if value is not None}
            self._counts = msgspec.structs.replace(self._counts, **later)
            self._reply.report(self._spent + usage_of(self._counts))

    def _stop(self, ending: Delta) -> None:
        for block in self._content:
            if block.index is not None or not block.parts:  # else cut off in the middle
                self._end(block)
        self._reply.settle()
        if ending.stop_reason == "pause_turn" or (ending.stop_reason == "compaction" and not self._compacts):
            self._paused = True
            return
        if self._container is not None:
            self._reply.add_block(Extension("anthropic", {"type": CONTAINER, **self._container}))
        match ending.stop_reason:
            case "tool_use":
                self._reply.done("tool_use")
            case "end_turn" | "stop_sequence" | "compaction":
                self._reply.done("tool_use" if self._calls else "stop")
            case "max_tokens":
                self._reply.done("length")
            case "refusal":
                raise ContentFiltered(_explanation(ending.stop_details))
            case "model_context_window_exceeded":
                raise ContextWindowOverflow("the reply ran into the end of the context window")
            case None:
                raise NetworkError("the reply ended without a stop reason")
            case reason:
                raise StreamError(f"unknown stop reason {reason!r}")


def _explanation(details: Any) -> str:
    text = object_of(details).get("explanation")
    return text if isinstance(text, str) and text else "the model refused to answer"


def as_citation(given: Mapping[str, Any]) -> Citation:
    """A citation of Anthropic's; its offsets are those of the source, so they stay in `data`."""
    title, quote = given.get("title") or given.get("document_title"), given.get("cited_text")
    title, quote = (said if isinstance(said, str) else None for said in (title, quote))
    return Citation(web_url(given.get("url") or given.get("source")), title, quote, data=dict(given))


def _call_signature(raw: dict[str, Any]) -> str | None:
    """What a call has beside its arguments, such as the code that made it: it goes back with the call."""
    more = {name: value for name, value in raw.items() if name not in _CALL_FIELDS and value is not None}
    if more.get("caller") == _DIRECT:
        del more["caller"]
    return msgspec.json.encode(more).decode() if more else None


def _failure(data: bytes) -> ModelError:
    message, code = describe_error(decode_json(data))
    return failure(message, code=code)
