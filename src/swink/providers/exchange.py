"""One exchange with a provider: a request is sent, the answer's bytes are decoded, stream events come out.

    Start ── request built, sent, accepted ── decoder.feed(bytes)* ── decoder.end() ── terminal

Every failure on the way, from a missing key to a cut connection, ends the stream with one `Error`; nothing
but cancellation and bugs is raised. The connection is back in the pool before the terminal is yielded.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Container, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol, TypeVar, cast, runtime_checkable
from urllib.parse import urlsplit

import msgspec

from swink.errors import ModelError, NetworkError, StreamError
from swink.messages.codec import plain
from swink.messages.jsondata import MOST_BITS, clean
from swink.providers.failure import failure, parse_error, read_capped, refusal
from swink.providers.http import HttpClient, Request, Response, Unsent, client_for, timeout_for
from swink.providers.secretechoes import secrets_of, shown, without_echoes
from swink.providers.sse import BOM
from swink.stream import AssistantMessageEvent, BlockWriter, Error, Start, StreamOptions, Timeout

T = TypeVar("T")

Explain = Callable[[Response, bytes], ModelError]
DRAIN_SECONDS = 0.05
LOST = frozenset((408, 499, 502, 504, *range(520, 528)))
"""Statuses of gateways whose server may be answering all the same; any other refuses the request."""
SHOWN_BYTES = 200
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
_HISTORIES = ("messages", "input", "contents")
_REQUEST_IDS = ("x-request-id", "request-id", "x-amzn-requestid", "apim-request-id", "cf-ray")


class Again(msgspec.Struct):
    """What one more request continues the reply with: items for the history, fields for the body."""

    items: list[Any]
    fields: dict[str, Any] = {}


class Decoder(Protocol):
    """Turns the bytes of an answer into calls on a `BlockWriter`; raises a `ModelError` if it cannot."""

    def feed(self, chunk: bytes) -> None: ...
    def end(self) -> Again | None:
        """The body ended without a terminal: finish a reply that is whole, say how it continues, or raise."""
        ...


@runtime_checkable
class Forgiving(Protocol):
    """A decoder that knows refusals which are replies all the same."""

    def refused(self, body: bytes) -> bool:
        """Whether the reply could be made of what the server said."""
        ...


async def exchange(
    request: Callable[[], Awaitable[Request]],
    decoder: Callable[[BlockWriter], Decoder],
    options: StreamOptions,
    timeout: Timeout,
    *,
    client: HttpClient | None = None,
    explain: Explain | None = None,
    resume: Callable[[Again], Awaitable[Request]] | None = None,
    refused_types: tuple[str, ...] = ("text/html", "application/json"),
) -> AsyncGenerator[AssistantMessageEvent, None]:
    """Send the `request` by the adapter's `client`, and yield what `decoder` makes of the answer.

    Time limits are those of `options`, else `timeout`. `resume` builds the request that continues a reply, if
    the decoder's `end` asks for it; `explain` reads an answer of 4xx or 5xx. `refused_types` are errors.
    """
    reply = BlockWriter()
    reply.settled = True  # nothing is sent yet
    response: Response | None = None
    asked: Request | None = None
    yield Start()
    try:
        sent = asked = await request()
        decode = decoder(reply)
        while sent is not None:
            reply.settled = False
            response = await client_for(options, client).send(sent, timeout_for(options, timeout))
            if not 200 <= response.status < 300:
                reply.settled = response.status not in LOST
                await _refuse(response, asked, decode, explain)
                break
            chunks, lost = aiter(response), None
            chunk = await _beginning(chunks, response, asked, refused_types)
            while chunk is not None:
                if chunk:
                    decode.feed(chunk)
                    for event in reply.take():
                        yield event
                    if reply.terminal is not None:
                        await _drain(response)
                        break
                try:
                    chunk = await anext(chunks, None)
                except NetworkError as error:
                    chunk, lost = None, error
            again = _end(decode, lost) if reply.terminal is None else None
            await response.aclose()
            sent = await resume(again) if again is not None and resume is not None else None
    except ModelError as error:
        reply.settled = reply.settled or isinstance(error, Unsent)
        reply.fail(error)
    finally:
        if response is not None:
            await response.aclose()
    if reply.terminal is None:
        reply.fail(cut_short())
    for event in reply.take():
        yield event
    assert reply.terminal is not None
    yield _explained(reply.terminal, asked, response) if isinstance(reply.terminal, Error) else reply.terminal


class HttpAnswer(Exception):
    """What a server answered to a request that failed: the status, and the id by which its owner finds it."""

    def __init__(self, host: str, status: int, request_id: str) -> None:
        super().__init__(host, status, request_id)
        self.status = status
        self.request_id = request_id

    def __str__(self) -> str:
        named = f", request {self.args[2]}" if self.request_id else ""
        return f"HTTP {self.status} from {self.args[0]}{named}"


def _explained(error: Error, asked: Request | None, response: Response | None) -> Error:
    """The error without what the server was sent, with what can be done about it, and with its cause."""
    text = shown(error.message, secrets_of(asked) if asked is not None else ())
    if error.kind == "stream" and asked is not None and "base_url" not in text:
        text = f"{text} (change the request, or use another model)"
    cause = error.cause
    if cause is None and asked is not None and response is not None:
        ids = [response.headers[name] for name in _REQUEST_IDS if name in response.headers]
        cause = HttpAnswer(urlsplit(asked.url).netloc, response.status, shown("".join(ids[:1]), ()))
    made = Error(text, error.kind, error.retry_after, error.usage)
    vars(made)["cause"] = cause
    return made


def _end(decode: Decoder, lost: NetworkError | None) -> Again | None:
    """The end of the body: a reply that is whole stays so if the connection was lost behind it."""
    try:
        return decode.end()
    except NetworkError as error:
        raise lost or error from None


def cut_short() -> NetworkError:
    """The error for a body that ended before the reply was complete."""
    return NetworkError("the stream ended before the reply was complete")


def encode_body(body: Mapping[str, Any], extra: Mapping[str, Any] = {}) -> bytes:
    """The JSON of a request body; `extra` is merged in, and what the adapter set itself wins."""
    merged = {**extra, **body}
    try:
        return msgspec.json.encode(merged, enc_hook=plain)
    except ValueError:  # text that cannot be encoded, or an integer of thousands of digits
        return msgspec.json.encode(_clean(merged), enc_hook=plain)
    except (TypeError, NotImplementedError) as error:
        raise StreamError(f"the request is not JSON-able: {error}") from error


def merge_objects(
    extra: Mapping[str, Any],
    body: Mapping[str, Any],
    report: Callable[[str, str], None] | None = None,
    path: str = "extra.",
) -> dict[str, Any]:
    """Both, object by object, lists joined but for the history; the body wins, and `report` gets the rest."""
    result = {**extra, **body}
    for name in body.keys() & extra.keys():
        value, other = body[name], extra[name]
        if isinstance(value, dict) and isinstance(other, Mapping):
            ours, theirs = cast("dict[str, Any]", value), cast("Mapping[str, Any]", other)
            result[name] = merge_objects(theirs, ours, report, f"{path}{name}.")
        elif isinstance(value, list) and isinstance(other, list | tuple) and name not in _HISTORIES:
            items = cast("list[Any]", value)
            result[name] = [*items, *(item for item in cast("Sequence[Any]", other) if item not in items)]
        elif report is not None and other != value:
            report(f"{path}{name}", "the adapter sets it itself")
    return result


def decode_json(data: bytes) -> Any:
    """The JSON of one event, its `data`, or a `StreamError` that shows how it began."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _decode_leniently(data, error)


def decode_as(decoder: "msgspec.json.Decoder[T]", data: bytes) -> T:
    """The JSON of one event in the shape it has to have, or a `StreamError` that shows how it began."""
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        raise malformed(data, error) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return convert(_decode_leniently(data, error), decoder.type, data)


def convert(value: Any, kind: type[T], data: bytes) -> T:
    """What `data` was decoded to, in the shape it has to have."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise malformed(data, error) from error


def decode_known(decoder: "msgspec.json.Decoder[T]", known: Container[str], data: bytes) -> T | None:
    """The JSON of one event, where events name their type: None for an unknown type of another shape."""
    try:
        return decode_as(decoder, data)
    except StreamError:
        if decode_as(_types, data).type in known:
            raise
        return None


def malformed(data: bytes, error: Exception) -> StreamError:
    """The error for an event that cannot be read, showing its first 200 bytes."""
    began = data[:SHOWN_BYTES].decode("utf-8", "replace")
    return StreamError(f"the provider sent a malformed event ({error}); is base_url right? {began}")


def _decode_leniently(data: bytes, error: Exception) -> Any:
    """Half a surrogate pair in an escape is invalid, but some providers send it; it becomes U+FFFD."""
    if b"\\ud" not in data.lower():
        raise malformed(data, error) from error
    try:
        return _clean(json.loads(data))
    except (ValueError, RecursionError) as again:
        raise malformed(data, again) from again


def _clean(value: Any) -> Any:
    match value:
        case str():
            return clean(value)
        case dict():
            return {_clean(key): _clean(item) for key, item in cast("dict[Any, Any]", value).items()}
        case list() | tuple():
            return [_clean(item) for item in cast("Sequence[Any]", value)]
        case int() if value.bit_length() > MOST_BITS:
            return hex(value)
        case _:
            return value


@lru_cache(64)
def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


async def _body_of(response: Response, asked: Request | None, first: bytes = b"") -> bytes:
    """What a refusal says, without what it repeats, before its markup or its escapes are removed."""
    body = first + await read_capped(response)
    secrets = secrets_of(asked) if asked is not None else ()
    return without_echoes(body.decode("utf-8", "replace"), secrets).encode("utf-8", "replace")


async def _refuse(
    response: Response, asked: Request | None, decode: Decoder, explain: Explain | None
) -> None:
    """Raise what a refusal means, unless it is a reply all the same."""
    body = await _body_of(response, asked)
    if not (isinstance(decode, Forgiving) and decode.refused(body)):
        raise (refusal if explain is None or response.status < 400 else explain)(response, body)


async def _beginning(
    chunks: AsyncIterator[bytes], response: Response, asked: Request | None, refused_types: tuple[str, ...]
) -> bytes:
    """Refuse an answer that is a page or one JSON document: the URL is wrong, or the server does not stream.

    Some servers stream under the name of JSON, so the first bytes decide, as many as it takes to tell.
    """
    first = b""
    kind = _media_type(response.headers.get("content-type", ""))
    if kind not in refused_types:
        return first
    async for chunk in chunks:
        first += chunk
        line = first.removeprefix(BOM).lstrip()
        if line.startswith(_FIELDS):
            return first
        if not any(name.startswith(line) for name in (*_FIELDS, BOM)):
            break
    if not first:
        return first
    body = await _body_of(response, asked, first)
    message, code = parse_error(body)
    if b'"error"' in body[:SHOWN_BYTES]:
        raise failure(message, code=code, headers=response.headers)
    began = message[:SHOWN_BYTES]
    raise StreamError(f"the server answered with {kind} instead of a stream; is base_url right? {began}")


async def _drain(response: Response) -> None:
    """Read the end of a body whose last event has been seen, so that the connection can be used again."""
    if getattr(response, "ended", False):  # as most have, and a timer costs more than looking
        return
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in response:
                pass
    except (TimeoutError, NetworkError):
        pass  # the connection is dropped instead


class _Typed(msgspec.Struct):
    type: str = ""


_types = msgspec.json.Decoder(_Typed)
