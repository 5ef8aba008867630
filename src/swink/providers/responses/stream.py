"""The events of a response as the Responses API streams them.

    response.created (output_item.added (….delta)* output_item.done)* response.completed | incomplete | failed

A message is text, one block for each of its parts; a reasoning item is thinking, a function call a tool call.
Any other item is kept as it came, an image that it holds as a block of its own. What an item has besides its
content (its id, the phase of a message) is the signature of its block, and goes back with it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from swink.errors import ContentFiltered, StreamError
from swink.messages import Base64Source, Citation, Extension, Image
from swink.messages.jsondata import list_of, object_of
from swink.providers.chat.usage import cost_of
from swink.providers.exchange import cut_short, decode_json, decode_known
from swink.providers.failure import describe_error, failure
from swink.providers.responses.toolnotes import shown
from swink.providers.responses.usage import usage_of, use_of
from swink.providers.sse import SseParser
from swink.stream import BlockWriter, StreamOptions, parse_arguments

ITEMS = "openai-responses"
"""The name of the extensions that hold output items, whichever server sent them."""

_MEDIA_TYPES = {"svg": "image/svg+xml"}


class _Response(Struct):
    id: Any = None
    model: Any = None
    status: str | None = None
    usage: dict[str, Any] | None = None
    tool_usage: Any = None
    service_tier: Any = None
    incomplete_details: dict[str, Any] | None = None
    error: Any = None


class _Event(Struct):
    """Any event of the stream; errors from other servers have no type."""

    type: str = ""
    output_index: int | None = None
    content_index: int | None = None
    item_id: str | None = None
    delta: str | None = None
    item: Any = None
    annotation: Any = None
    response: _Response | None = None
    error: Any = None


_Key = int | str
_Place = tuple[_Key, int]
"""An item and one of its parts."""

_events = msgspec.json.Decoder(_Event)
_KNOWN = frozenset(
    {
        "response.output_item.added", "response.output_item.done", "response.output_text.delta",
        "response.refusal.delta", "response.reasoning_summary_part.added", "response.reasoning_text.delta",
        "response.reasoning_summary_text.delta", "response.function_call_arguments.delta",
        "response.completed", "response.incomplete", "response.failed", "error",
    }
)  # fmt: skip


class ResponsesDecoder:
    """Reads the events of one response into a `BlockWriter`."""

    def __init__(self, reply: BlockWriter, options: StreamOptions) -> None:
        self._reply = reply
        self._raw = options.on_raw_payload
        self._parser = SseParser()
        self._types: dict[_Key, str] = {}
        self._blocks: dict[_Place, int] = {}
        self._came: dict[_Place, list[str]] = {}
        self._annotations: dict[_Place, list[Any]] = {}
        self._ended: set[_Key] = set()
        self._uses: dict[str, int] = {}
        self._calls = False
        self._refusal: list[str] = []

    def feed(self, chunk: bytes) -> None:
        for event in self._parser.feed(chunk):
            if event.data.strip() == b"[DONE]":
                continue
            if self._raw is not None:
                self._raw(decode_json(event.data))
            decoded = decode_known(_events, _KNOWN, event.data)
            if decoded is not None:
                self._take(decoded, event.data)
            if self._reply.terminal is not None:
                return

    def end(self) -> None:
        raise cut_short()

    def _take(self, event: _Event, data: bytes) -> None:
        if (response := event.response) is not None:
            self._reply.response_id, self._reply.response_model = response.id, response.model
        match event.type:
            case "response.output_text.delta":
                self._add(event, event.content_index or 0)
            case "response.reasoning_text.delta" | "response.reasoning_summary_text.delta":
                self._add(event, 0)
            case "response.function_call_arguments.delta":
                self._add(event, 0)
            case "response.reasoning_summary_part.added":
                self._separate(event)
            case "response.refusal.delta":
                self._refusal.append(event.delta or "")
            case "response.output_text.annotation.added":
                place = _key(event), event.content_index or 0
                self._annotations.setdefault(place, []).append(event.annotation)
            case "response.output_item.added":
                self._begin(_key(event), object_of(event.item))
            case "response.output_item.done":
                self._finish_item(_key(event), object_of(event.item))
            case "response.completed" | "response.incomplete" | "response.failed":
                if not self._types:
                    self._take_whole(data)
                self._finish(event.response or _Response())
            case _ if event.type == "error" or event.error:
                message, code = describe_error(decode_json(data))
                raise failure(message, code=code)
            case _ if event.response is not None and event.response.usage is not None:
                self._report(event.response)
            case _:
                pass  # progress reports, and types that newer servers may send

    def _begin(self, key: _Key, item: Mapping[str, Any]) -> None:
        named = item.get("type")
        kind = self._types[key] = named if isinstance(named, str) else ""
        match kind:
            case "message":
                self._blocks[key, 0] = self._reply.begin_text()
            case "reasoning":
                self._blocks[key, 0] = self._reply.begin_thinking()
            case "function_call":
                name, id = item.get("name"), item.get("call_id") or item.get("id") or ""
                if not (isinstance(name, str) and name and isinstance(id, str)):
                    raise StreamError("the provider sent a tool call without a name")
                self._calls = True
                self._blocks[key, 0] = self._reply.begin_call(id, name)
            case _:
                pass  # it is kept when it is whole

    def _add(self, event: _Event, part: int) -> None:
        key = _key(event)
        index = self._blocks.get((key, part))
        if index is None:
            if key not in self._types:
                raise StreamError(f"the provider sent {event.type} for an item that never began")
            if self._types[key] != "message":
                return
            index = self._blocks[key, part] = self._reply.begin_text()
        if event.delta and self._reply.is_open(index):
            self._reply.add(index, event.delta)
            self._came.setdefault((key, part), []).append(event.delta)

    def _separate(self, event: _Event) -> None:
        """A blank line between the parts of a summary."""
        index = self._blocks.get((_key(event), 0))
        if index is not None and self._reply.is_open(index) and self._reply.is_filled(index):
            self._reply.add(index, "\n\n")

    def _finish_item(self, key: _Key, item: Mapping[str, Any]) -> None:
        if key in self._ended or not item:
            return
        if key not in self._types:
            self._begin(key, item)
        self._ended.add(key)
        match self._types[key]:
            case "message":
                self._finish_message(key, item)
            case "reasoning":
                index = self._blocks[key, 0]
                self._fill(index, "\n\n".join(_texts(item.get("summary")) or _texts(item.get("content"))))
                self._reply.end(index, _reasoning(item))
            case "function_call":
                self._finish_call(self._blocks[key, 0], item)
            case _:
                self._keep(item)

    def _finish_message(self, key: _Key, item: Mapping[str, Any]) -> None:
        signature = _rest(item, ("type", "role", "content"))
        given: Any = item.get("content")
        parts = list_of(given) if not isinstance(given, str) else [{"text": given}]
        places = self._places(key, _texts(parts))
        for part in parts:
            match part:
                case {"text": str() as text}:
                    place = next(places)
                    if place not in self._blocks:
                        self._blocks[place] = self._reply.begin_text()
                    self._fill(self._blocks[place], text)
                    if notes := list_of(part.get("annotations")):
                        self._annotations[place] = notes
                case {"refusal": str() as refusal} if not self._refusal:
                    self._refusal.append(refusal)
                case _:
                    pass
        for place, index in self._blocks.items():
            if place[0] == key and self._reply.is_open(index):
                noted = map(object_of, self._annotations.get(place, ()))
                cited = [_citation(note) for note in noted if note]
                filled = self._reply.is_filled(index)
                self._reply.end(index, signature if filled else None, citations=cited)

    def _places(self, key: _Key, texts: list[str]) -> Iterator[_Place]:
        """Where each text of a finished message came: some servers number parts otherwise than deltas."""
        came = {place: "".join(said) for place, said in self._came.items() if place[0] == key}
        all_came = came and (len(came) == len(texts) or "".join(came.values()) == "".join(texts))
        left = dict(came)
        for at, text in enumerate(texts):
            same = next((place for place, said in left.items() if said == text), None)
            place = (key, at) if (key, at) in came or not all_came else next(iter(left or came))
            yield place if same is None else same
            left.pop(place if same is None else same, None)

    def _finish_call(self, index: int, item: Mapping[str, Any]) -> None:
        given: Any = item.get("arguments")
        arguments = given if isinstance(given, str) else msgspec.json.encode(given or {}).decode()
        if given:
            self._fill(index, arguments)
        signature = _rest(item, ("type", "call_id", "name", "arguments"), _as_written(arguments))
        if item.get("status") == "incomplete" or not self._reply.is_filled(index):
            # It is cut off, or called with nothing: how the response ends will tell.
            if signature is not None:
                self._reply.sign(signature, index)
            return
        self._reply.end(index, signature)

    def _fill(self, index: int, text: str) -> None:
        """The text of an item that came without deltas."""
        if text and not self._reply.is_filled(index):
            self._reply.add(index, text)

    def _keep(self, item: Mapping[str, Any]) -> None:
        if (use := use_of(item)) is not None:
            self._uses[use] = self._uses.get(use, 0) + 1
        match item:
            case {"type": "image_generation_call", "result": str() as drawn} if drawn:
                bare = {name: value for name, value in item.items() if name != "result"}
                self._reply.add_block(Extension(ITEMS, bare, shown(item)))
                form = str(item.get("output_format") or "png")
                media_type = _MEDIA_TYPES.get(form, f"image/{form}")
                self._reply.add_block(Image(Base64Source(drawn, media_type)))
            case _:
                self._reply.add_block(Extension(ITEMS, item, shown(item)))

    def _take_whole(self, data: bytes) -> None:
        """The items of a server that sends them in its last event alone."""
        response = object_of(object_of(decode_json(data)).get("response"))
        for at, item in enumerate(list_of(response.get("output"))):
            self._finish_item(at, object_of(item))

    def _report(self, response: _Response) -> None:
        spent = response.usage or {}
        usage = usage_of(spent, self._uses, response.tool_usage, response.service_tier)
        self._reply.report(usage, cost_of(spent))

    def _finish(self, response: _Response) -> None:
        if response.usage is not None:
            self._report(response)
        self._reply.settle()
        if self._refusal:
            raise ContentFiltered("".join(self._refusal))
        reason = (response.incomplete_details or {}).get("reason")
        match response.status, reason:
            case (("completed" | None), _):
                self._reply.done("tool_use" if self._calls else "stop")
            case "incomplete", "max_output_tokens" | "max_messages":
                self._reply.done("length")
            case "incomplete", "content_filter":
                raise ContentFiltered("the provider's content filter stopped the reply")
            case "failed", _:
                message, code = describe_error({"error": response.error or "the response failed"})
                raise failure(message, code=code)
            case status, _:
                raise StreamError(f"unknown end of a response: {status}, {reason}")


def _key(event: _Event) -> _Key:
    if event.output_index is not None:
        return event.output_index
    id = event.item_id or object_of(event.item).get("id")
    return id if isinstance(id, str) else ""


def _texts(parts: Any) -> list[str]:
    return [text for part in list_of(parts) if isinstance(text := object_of(part).get("text"), str)]


def _citation(note: Mapping[str, Any]) -> Citation:
    """An annotation of a text; a file is named by its title."""

    def of(kind: type, *names: str) -> Any:
        found = (note.get(name) for name in names)
        return next((value for value in found if type(value) is kind), None)

    return Citation(
        of(str, "url"),
        of(str, "title", "filename"),
        start=of(int, "start_index"),
        end=of(int, "end_index"),
        data=note,
    )


def _reasoning(item: Mapping[str, Any]) -> str | None:
    """A reasoning item as it has to go back; without any content it is an id that nobody knows."""
    return _rest(item, ()) if item.get("encrypted_content") or item.get("content") else None


def _rest(item: Mapping[str, Any], modelled: tuple[str, ...], more: Mapping[str, Any] = {}) -> str | None:
    """The fields of an item that a block has no place for, as the block's signature."""
    rest = {name: value for name, value in item.items() if name not in modelled and value is not None}
    rest |= more
    return msgspec.json.encode(rest).decode() if rest else None


def _as_written(arguments: str) -> dict[str, str]:
    """The arguments as the model spaced them, if it did not write them as compactly as we would."""
    parsed = parse_arguments(arguments)
    if parsed is None or not arguments or msgspec.json.encode(parsed) == arguments.encode():
        return {}
    return {"arguments": arguments}
