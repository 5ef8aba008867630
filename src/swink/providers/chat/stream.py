"""The chunks of a chat-completions stream, as the many servers that speak it send them.

    {"choices": [{"delta": {…}, "finish_reason": null}]}*  {"choices": [], "usage": {…}}?  [DONE]?

After a finish reason the reply ends at `[DONE]` or where the body ends, so that the usage in between is read.
`[DONE]` alone ends it too; a body that just ends was cut off.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from swink.errors import ContentFiltered, ContextWindowOverflow, NetworkError, StreamError
from swink.messages import Audio, Base64Source, Citation, Extension, Image, UrlSource
from swink.messages.jsondata import list_of, object_of
from swink.providers.chat.details import ReasoningDetails
from swink.providers.chat.dialect import ChatDialect
from swink.providers.chat.toolcalls import CallDelta, CallReader, Function, write_failed_call
from swink.providers.chat.usage import cost_of, usage_of
from swink.providers.convert import DATA_URL
from swink.providers.exchange import cut_short, decode_as, decode_json
from swink.providers.failure import describe_error, failure, parse_error
from swink.providers.sse import SseParser
from swink.stream import BlockWriter, StreamOptions
from swink.stream.thinkingtags import ReplyParser


class _Delta(Struct):
    content: str | list[dict[str, Any]] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    refusal: str | None = None
    tool_calls: list[CallDelta] | None = None
    function_call: Function | None = None
    annotations: Any = None
    images: Any = None
    audio: Any = None
    executed_tools: Any = None


class _Choice(Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None
    index: int | None = 0
    content_filter_results: dict[str, Any] | None = None
    error: Any = None
    usage: dict[str, Any] | None = None


_SILENT = _Choice(_Delta())


class _Chunk(Struct):
    choices: list[_Choice] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None
    id: Any = None
    model: Any = None
    object: Any = None
    prompt_filter_results: list[Any] | None = None
    x_groq: dict[str, Any] | None = None
    citations: Any = None
    search_results: Any = None
    base_resp: Any = None
    service_tier: Any = None


_chunks = msgspec.json.Decoder(_Chunk)
_decode = _chunks.decode


class ChatDecoder:
    """Reads one reply; `tools` are the names of those that the model may call."""

    def __init__(
        self,
        reply: BlockWriter,
        options: StreamOptions,
        dialect: ChatDialect = ChatDialect("openai"),
        tools: Sequence[str] = (),
    ) -> None:
        self._reply = reply
        self._raw = options.on_raw_payload
        self._provider = dialect.provider
        self._tools = tools
        self._parser = SseParser()
        self._calls = CallReader(reply)
        self._may_tag = dialect.think_tags
        self._tags: ReplyParser | None = None
        self._finish_reason = ""
        self._filtered: set[str] = set()
        self._refusal: list[str] = []
        self._details: ReasoningDetails | None = None
        self._unsigned = False
        self._sources: Sequence[Any] = ()
        self._sound = bytearray()

    def feed(self, chunk: bytes) -> None:
        for event in self._parser.feed(chunk):
            data = event.data
            if data[:1] != b"{" and data.strip() == b"[DONE]":
                self._finish()
                return
            is_error = event.event == "error"
            if self._raw is not None and (not is_error or data[:1] == b"{"):
                self._raw(decode_json(data))
            if is_error:
                self._fail(data)
            else:
                try:
                    decoded = _decode(data)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    decoded = decode_as(_chunks, data)
                self._take(decoded, data)
            if self._reply.terminal is not None:
                return

    def end(self) -> None:
        """The body ended: a finish reason before that makes it a whole reply."""
        if not self._finish_reason and not self._filtered:
            raise cut_short()
        self._finish()

    def refused(self, body: bytes) -> bool:
        """Whether the refusal of a request is a call that the server could not read: then it is the reply."""
        if (said := _failed_generation(body)) is None or not self._tools:
            return False
        write_failed_call(self._reply, said, self._tools)
        return True

    def _fail(self, data: bytes) -> None:
        if (said := _failed_generation(data)) is not None and self._tools:
            write_failed_call(self._reply, said, self._tools)
            return
        message, code = parse_error(data)
        raise failure(message, code=code)

    def _take(self, chunk: _Chunk, data: bytes) -> None:
        if chunk.error is not None or chunk.object == "error":
            self._fail(data)
            return
        if chunk.id and not self._reply.response_id:
            self._reply.response_id, self._reply.response_model = chunk.id, chunk.model
        if chunk.choices:
            for choice in chunk.choices:
                if not choice.index:
                    self._choose(choice, chunk)
        if chunk.usage is not None:
            self._count(chunk.usage, chunk.service_tier)
        elif chunk.x_groq is not None and isinstance(chunk.x_groq.get("usage"), dict):
            self._count(chunk.x_groq["usage"])
        if chunk.search_results or chunk.citations:  # repeated on every chunk
            self._sources = chunk.search_results or chunk.citations
        if chunk.prompt_filter_results or chunk.base_resp:
            self._check(chunk)

    def _check(self, chunk: _Chunk) -> None:
        """What Azure and MiniMax say of the request beside the reply."""
        for result in chunk.prompt_filter_results or ():
            self._filtered |= _filtered_by(object_of(object_of(result).get("content_filter_results")))
        match chunk.base_resp:
            case {"status_code": int() as code, "status_msg": str() as message} if code:
                raise failure(message, code=str(code))
            case _:
                pass

    def _choose(self, choice: _Choice, chunk: _Chunk) -> None:
        delta = choice.delta
        if delta is not None:
            content = delta.content
            if type(content) is str and not (self._may_tag or self._unsigned) and content:
                delta.content = None
                if choice == _SILENT:  # it says nothing else, as nearly every chunk of a reply
                    self._reply.say(content)
                    return
            thought = delta.reasoning_content or delta.reasoning
            if delta.reasoning_details:
                thought = self._keep_details(delta.reasoning_details, thought)
            if thought:
                self._reply.think(thought)
            if content:
                if self._unsigned:
                    self._sign()
                if type(content) is str and not self._may_tag:
                    self._reply.say(content)
                elif isinstance(content, str):
                    self._read(content)
                else:
                    self._take_parts(content)
            if delta.refusal:
                self._refusal.append(delta.refusal)
            if delta.tool_calls or delta.function_call is not None:
                if self._may_tag:
                    self._release()
                if self._unsigned:
                    self._sign()
                for call in delta.tool_calls or ():
                    self._calls.take(call, str(chunk.id))
                if delta.function_call is not None:
                    self._calls.take(CallDelta(0, None, delta.function_call), str(chunk.id))
            if delta.annotations or delta.images or delta.audio or delta.executed_tools:
                self._take_more(delta)
        if choice.content_filter_results:
            self._filtered |= _filtered_by(choice.content_filter_results)
        if choice.error is not None:
            message, code = describe_error({"error": choice.error})
            raise failure(message, code=code)
        if choice.finish_reason:
            self._finish_reason = choice.finish_reason
        if choice.usage is not None:
            self._count(choice.usage)

    def _take_parts(self, parts: list[dict[str, Any]]) -> None:
        for part in parts:
            match part:
                case {"type": "text", "text": str() as text} if text:
                    self._reply.say(text)
                case {"type": "thinking", "thinking": [*pieces]}:
                    for piece in pieces:
                        if isinstance(text := object_of(piece).get("text"), str) and text:
                            self._reply.think(text)
                    if signature := part.get("signature"):
                        self._reply.sign(str(signature))
                case {"type": str() as kind}:  # references and the like, which go back in their place
                    self._reply.add_block(Extension(self._provider, part, kind))
                case _:
                    pass

    def _read(self, content: str, *, final: bool = False) -> None:
        """Text that may begin with thinking in tags."""
        tags = self._tags
        if tags is None:
            if content.lstrip()[:1] not in ("", "<"):
                self._may_tag = False
                self._reply.say(content)
                return
            tags = self._tags = ReplyParser(only_first=True)
        for piece in (tags.feed(content) if content else []) + (tags.finish() if final else []):
            if piece.kind == "thinking":
                self._reply.think(piece.text)
            else:
                self._reply.say(piece.text)
        if tags.settled or final:
            self._may_tag = False

    def _release(self) -> None:
        """What was held back, since it could have become a tag, is text."""
        if self._tags is not None:
            self._read("", final=True)
        self._may_tag = False

    def _keep_details(self, pieces: list[dict[str, Any]], thought: str | None) -> str | None:
        """Keep them for the way back; they are shown where nothing else says what they say."""
        if self._details is None:
            self._details = ReasoningDetails()
        self._unsigned = True
        said = self._details.add(pieces)
        return thought or said

    def _sign(self) -> None:
        assert self._details is not None
        self._reply.sign(self._details.signature())
        self._unsigned = False

    def _take_more(self, delta: _Delta) -> None:
        """What few servers send: citations, media, and what the server's own tools did."""
        for note in _objects(delta.annotations):
            match note:
                case {"type": "url_citation", "url_citation": {"url": str() as url, **cited}}:
                    self._cite(_citation(url, cited, note))
                case {"type": "file"}:
                    self._reply.add_block(Extension(self._provider, {"annotation": note}, "a file was read"))
                case _:
                    pass
        for image in _objects(delta.images):
            if isinstance(url := object_of(image.get("image_url")).get("url"), str):
                found = DATA_URL.match(url)
                source = Base64Source(url[found.end() :], found[1]) if found else UrlSource(url)
                self._reply.add_block(Image(source))
        for audio in _objects([delta.audio]):
            if isinstance(words := audio.get("transcript"), str) and words:
                self._reply.say(words)
            if isinstance(sound := audio.get("data"), str):
                self._sound += _decoded(sound)
        for tool in _objects(delta.executed_tools):
            self._reply.add_block(Extension(self._provider, {"executed_tool": tool}, _shown(tool)))
            found = list_of(object_of(tool.get("search_results")).get("results"))
            self._sources = [*self._sources, *found]

    def _cite(self, citation: Citation) -> None:
        if (index := self._reply.text) is not None:
            self._reply.cite(index, citation)

    def _finish(self) -> None:
        reason, reply = self._finish_reason, self._reply
        if self._may_tag:
            self._release()
        for source in self._sources:
            match source:
                case str():
                    self._cite(Citation(source, data=source))
                case {"url": str() as url, **cited}:
                    self._cite(_citation(url, cited, source))
                case _:
                    pass
        if self._unsigned:
            self._sign()
        if self._sound:
            reply.add_block(Audio(Base64Source(b64encode(self._sound).decode(), "audio/pcm")))
        reply.settle()
        if self._refusal:
            raise ContentFiltered("".join(self._refusal))
        if self._filtered:  # whatever the finish reason says
            reason = "content_filter"
        match reason:
            case "stop" | "eos" | "eos_token" | "stop_sequence" | "end_turn" | "":
                self._calls.check()
                reply.done("tool_use" if self._calls.any else "stop")
            case "tool_calls" | "function_call":
                self._calls.check()
                reply.done("tool_use")
            case "length" | "model_length" | "max_tokens":
                reply.done("length")
            case "content_filter" | "sensitive":
                what = f" ({', '.join(sorted(self._filtered))})" if self._filtered else ""
                raise ContentFiltered(f"the provider's content filter stopped the reply{what}")
            case "error" | "abort" | "network_error" | "insufficient_system_resource":
                raise NetworkError(f"the provider broke the reply off: {reason}")
            case "model_context_window_exceeded":
                raise ContextWindowOverflow("the reply did not fit into the context window any more")
            case _:
                raise StreamError(f"unknown finish reason {reason!r}")

    def _count(self, usage: dict[str, Any], tier: Any = None) -> None:
        self._reply.report(usage_of(usage, tier), cost_of(usage))


def _failed_generation(data: bytes) -> str | None:
    """What a model said that its server could not read as a call."""
    if b"failed_generation" not in data:
        return None
    try:
        error = object_of(object_of(msgspec.json.decode(data)).get("error"))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    said = error.get("failed_generation")
    is_said = error.get("code") == "tool_use_failed" and isinstance(said, str)
    return said or str(error.get("message", "")) if is_said else None


def _objects(value: Any) -> list[dict[str, Any]]:
    """The objects in a list of a server's, whatever else is in it."""
    return [item for item in list_of(value) if isinstance(item, dict)]


def _citation(url: str, cited: Mapping[str, Any], data: Any) -> Citation:
    def of(kind: type, *names: str) -> Any:
        return next((value for name in names if isinstance(value := cited.get(name), kind)), None)

    quote = of(str, "content", "snippet")
    return Citation(url, of(str, "title"), quote, of(int, "start_index"), of(int, "end_index"), data)


def _decoded(data: str) -> bytes:
    try:
        return b64decode(data)
    except ValueError:
        return b""


def _shown(tool: Mapping[str, Any]) -> str:
    """One line for people about what the server's own tool did."""
    return " ".join(f"{tool.get('type', 'tool')}: {tool.get('arguments', '')}".split())[:120]


def _filtered_by(results: Mapping[str, Any]) -> set[str]:
    """The filters that have cut something, of all that have an opinion."""
    return {name for name, result in results.items() if object_of(result).get("filtered") is True}
