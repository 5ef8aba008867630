"""The answer of Bedrock's Converse API: AWS event-stream frames.

    messageStart (contentBlockStart? contentBlockDelta* contentBlockStop)* messageStop metadata

Only tool calls, results of hosted tools and images have a start. The reply is done when both messageStop and
metadata have come, in either order, or when the body ends after messageStop. What the provider's own tools do
is kept as it came.
"""

from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from swink.errors import StreamError
from swink.messages import Base64Source, Citation, Extension, Image, Usage
from swink.messages.jsondata import object_of
from swink.providers.bedrock.awserrors import frame_error, stop_error
from swink.providers.bedrock.frames import Frame, FrameParser
from swink.providers.claude import service_tier
from swink.providers.convert import web_url
from swink.providers.exchange import convert, cut_short, decode_json
from swink.stream import BlockWriter, StreamOptions

_EVENTS = frozenset(
    {"messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"}
)
_USES = {"nova_grounding": "web_search", "nova_code_interpreter": "code_execution"}


class _ToolUse(Struct, frozen=True, rename="camel"):
    tool_use_id: str
    name: str
    type: str | None = None


class _Start(Struct, frozen=True, rename="camel"):
    tool_use: _ToolUse | None = None
    tool_result: dict[str, Any] | None = None
    image: dict[str, Any] | None = None


class _Input(Struct, frozen=True):
    input: str = ""


class _Reasoning(Struct, frozen=True, rename="camel"):
    text: str | None = None
    signature: str | None = None
    redacted_content: str | None = None


class _Picture(Struct, frozen=True):
    source: dict[str, Any] | None = None


class _Delta(Struct, frozen=True, rename="camel"):
    text: str | None = None
    tool_use: _Input | None = None
    tool_result: list[dict[str, Any]] | None = None
    reasoning_content: _Reasoning | None = None
    citation: dict[str, Any] | None = None
    image: _Picture | None = None


class _Usage(Struct, frozen=True, rename="camel"):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int | None = None
    cache_write_input_tokens: int | None = None
    cache_details: list[dict[str, Any]] | None = None


class _Tier(Struct, frozen=True):
    type: str | None = None


class _Event(Struct, frozen=True, rename="camel"):
    """Any event: the fields of all of them."""

    content_block_index: int = 0
    start: _Start = _Start()
    delta: _Delta = _Delta()
    stop_reason: str | None = None
    usage: _Usage | None = None
    service_tier: _Tier | None = None


class _Block:
    """A text, a thinking and a call, as far as deltas bring them; `hosted` is of a tool the provider runs."""

    __slots__ = ("call", "format", "hosted", "image", "inputs", "redacted", "signature", "text", "thinking")

    def __init__(self) -> None:
        self.text: int | None = None
        self.thinking: int | None = None
        self.call: int | None = None
        self.signature = ""
        self.redacted: list[str] = []
        self.hosted: dict[str, Any] | None = None
        self.inputs: list[str] = []
        self.format = "png"
        self.image: list[str] = []


class ConverseDecoder:
    """The frames of one message."""

    def __init__(self, reply: BlockWriter, options: StreamOptions) -> None:
        self._reply = reply
        self._raw = options.on_raw_payload
        self._parser = FrameParser()
        self._blocks: dict[int, _Block] = {}
        self._calls = 0
        self._uses = Counter[str]()
        self._stop_reason: str | None = None
        self._counted = False

    def feed(self, chunk: bytes) -> None:
        for frame in self._parser.feed(chunk):
            self._take(frame)
            if self._reply.terminal is not None:
                return

    def end(self) -> None:
        if self._stop_reason is None or self._parser.pending:
            raise cut_short()
        self._finish(self._stop_reason)

    def _take(self, frame: Frame) -> None:
        name = frame.header(":event-type")
        if frame.header(":message-type") not in ("event", ""):
            raise frame_error(frame)
        if name not in _EVENTS:
            return
        data = decode_json(frame.payload)
        if self._raw is not None:
            self._raw({name: data})
        event = convert(data, _Event, frame.payload)
        match name:
            case "contentBlockDelta":
                self._delta(self._blocks.setdefault(event.content_block_index, _Block()), event.delta)
            case "contentBlockStart":
                self._start(event.content_block_index, event.start)
            case "contentBlockStop":
                self._end(self._blocks.pop(event.content_block_index, None))
            case "messageStop":
                self._stop_reason = event.stop_reason or ""
            case "metadata":
                self._counted = True
                if event.usage is not None:
                    tier = service_tier(event.service_tier.type if event.service_tier else None)
                    self._reply.report(_usage(event.usage, {**self._uses, **tier}))
            case _:
                pass
        if self._stop_reason is not None and self._counted:
            self._finish(self._stop_reason)

    def _start(self, index: int, start: _Start) -> None:
        block = self._blocks[index] = _Block()
        call = start.tool_use
        if call is not None and call.type != "server_tool_use":  # a client's may say "tool_use"
            self._calls += 1
            block.call = self._reply.begin_call(call.tool_use_id, call.name)
        elif call is not None:
            named = {"toolUseId": call.tool_use_id, "name": call.name, "type": call.type}
            block.hosted = {"toolUse": {**named, "input": {}}}
            self._uses[_USES.get(call.name, call.name)] += 1
        elif start.tool_result is not None:
            block.hosted = {"toolResult": {**start.tool_result, "content": []}}
        elif start.image is not None:
            block.format = str(start.image.get("format", "png"))

    def _delta(self, block: _Block, delta: _Delta) -> None:
        reply = self._reply
        if delta.text:
            if block.text is None:
                block.text = reply.begin_text()
            reply.add(block.text, delta.text)
        if delta.tool_use is not None and delta.tool_use.input:
            if block.call is not None:
                reply.add(block.call, delta.tool_use.input)
            elif block.hosted is not None:
                block.inputs.append(delta.tool_use.input)
        if delta.tool_result is not None and block.hosted is not None:
            block.hosted["toolResult"]["content"] += delta.tool_result
        if delta.citation is not None:
            if block.text is None:
                block.text = reply.begin_text()
            reply.cite(block.text, _citation(delta.citation))
        if delta.image is not None and (data := (delta.image.source or {}).get("bytes")):
            block.image.append(data)
        if (reasoning := delta.reasoning_content) is not None:
            if block.thinking is None:
                block.thinking = reply.begin_thinking()
            if reasoning.text:
                reply.add(block.thinking, reasoning.text)
            block.signature += reasoning.signature or ""
            if reasoning.redacted_content:
                block.redacted.append(reasoning.redacted_content)

    def _end(self, block: _Block | None) -> None:
        if block is None:
            return
        if block.hosted is not None:
            if block.inputs:
                block.hosted["toolUse"]["input"] = decode_json("".join(block.inputs).encode())
            self._reply.add_block(Extension("bedrock", block.hosted, _describe(block.hosted)))
        if block.image:
            self._reply.add_block(Image(Base64Source(_join(block.image), f"image/{block.format}")))
        for index in (block.text, block.call):
            if index is not None and self._reply.is_open(index):
                if index == block.call and not self._reply.is_filled(index):
                    continue  # no arguments, or cut off before them: the stop reason will tell
                self._reply.end(index)
        if block.thinking is not None:
            signature = _join(block.redacted) or block.signature or None
            self._reply.end(block.thinking, signature, redacted=bool(block.redacted))

    def _finish(self, reason: str) -> None:
        self._reply.settle()
        for block in self._blocks.values():
            if block.thinking is not None:
                self._end(block)
        self._blocks.clear()
        match reason:
            case "tool_use":
                self._reply.done("tool_use")
            case "end_turn" | "stop_sequence":
                self._reply.done("tool_use" if self._calls else "stop")
            case "max_tokens":
                self._reply.done("length")
            case "malformed_tool_use" if self._calls:
                self._reply.done("tool_use")  # the arguments do not parse: the model is shown its error
            case _:
                raise stop_error(reason)


def _join(pieces: list[str]) -> str:
    """Pieces of base64, of redacted thinking or of an image, are joined as bytes."""
    if len(pieces) < 2:
        return "".join(pieces)
    try:
        return b64encode(b"".join([b64decode(piece, validate=True) for piece in pieces])).decode()
    except ValueError as error:
        raise StreamError(f"bedrock: unreadable base64: {error}") from error


def _citation(given: dict[str, Any]) -> Citation:
    """A citation of Bedrock's; its offsets are those of the source, so they stay in `data`."""
    web = object_of(object_of(given.get("location")).get("web"))
    quotes = [part.get("text", "") for part in given.get("sourceContent") or ()]
    url = web_url(web.get("url", given.get("source")))
    return Citation(url, given.get("title"), "".join(quotes) or None, data=given)


def _describe(hosted: dict[str, Any]) -> str:
    """One line for people about a tool that the provider runs."""
    match hosted:
        case {"toolUse": {"name": name, "input": {"query": str(query)}}}:
            return " ".join(f"{name}: {query}".split())[:200]
        case {"toolUse": {"name": name}}:
            return name
        case {"toolResult": {"status": "error"}}:
            return "hosted tool failed"
        case _:
            return "hosted tool: result"


def _usage(counts: _Usage, uses: Mapping[str, int]) -> Usage:
    hours = [detail for detail in counts.cache_details or () if detail.get("ttl") == "1h"]
    hour = sum(detail.get("inputTokens", 0) for detail in hours)
    return Usage(
        counts.input_tokens,
        counts.output_tokens,
        counts.cache_read_input_tokens or 0,
        counts.cache_write_input_tokens or 0,
        0,
        {**({"cache_write_1h": hour} if hour else {}), **uses},
    )
