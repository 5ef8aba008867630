"""The proxy server: shares models by token, without sharing the providers' API keys.

    app = proxy_app({"anthropic": AnthropicStreamFn()}, {"a-long-token": ["anthropic:claude-sonnet-4-6"]})

`app` runs under any ASGI server; `serve_proxy` runs it on aiohttp. The protocol is that of
`swink.providers.proxy.wire`.
"""

import asyncio
import hmac
import ssl
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from fnmatch import fnmatchcase
from hashlib import sha256

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from swink import stream
from swink.errors import InvalidInput, MisuseError, NetworkError, StreamError
from swink.messages import ModelSpec
from swink.messages.redact import redact_text
from swink.providers.proxy.wire import VERSION, WireRequest, decode_request, encode_reply
from swink.serve.admission import is_name, is_served
from swink.serve.asgi import App, Message, Receive, Send, admit, read_body, serve_app
from swink.serve.wire import Refused, error_event
from swink.stream import AssistantMessageEvent, Done, Error, LlmContext, Start, StreamFn, StreamOptions
from swink.system.aio import close
from swink.system.threads import in_thread

MAX_BODY = 32 * 1024 * 1024
BODY_SECONDS = 60.0
MOST_WAITING = 256
"""Events that may wait for a client to take them."""


def proxy_app(
    stream_fns: Mapping[str, StreamFn], tokens: Mapping[str, Iterable[str]], *, max_body: int = MAX_BODY
) -> App:
    """An ASGI application that answers `POST /v1/stream`.

    `stream_fns` maps a provider, or "provider:model" for one model, to its stream function. `tokens` maps a
    bearer token to the models it may use, as "provider:model" with `*` for any part.
    """
    if any(len(token) < 8 for token in tokens):
        raise InvalidInput("a token needs at least 8 characters; take a long random one")
    return _Proxy(stream_fns, tokens, max_body)


def serve_proxy(
    host: str,
    port: int,
    stream_fns: Mapping[str, StreamFn],
    tokens: Mapping[str, Iterable[str]],
    *,
    max_body: int = MAX_BODY,
    tls: ssl.SSLContext | None = None,
) -> AbstractAsyncContextManager[str]:
    """Serve the proxy on aiohttp while the block runs; gives the base URL for its clients."""
    return serve_app(proxy_app(stream_fns, tokens, max_body=max_body), host, port, tls=tls)


class _Job(Struct, frozen=True):
    stream_fn: StreamFn
    model: ModelSpec
    context: LlmContext
    options: StreamOptions
    version: int = VERSION
    revision: int = 0


class _Proxy:
    def __init__(
        self, stream_fns: Mapping[str, StreamFn], tokens: Mapping[str, Iterable[str]], max_body: int
    ) -> None:
        self._stream_fns = dict(stream_fns)
        self._tokens = [(sha256(token.encode()).digest(), tuple(models)) for token, models in tokens.items()]
        self._max_body = max_body

    def __repr__(self) -> str:
        return f"proxy_app({sorted(self._stream_fns)}, {len(self._tokens)} tokens)"

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:
            raise MisuseError(f"the proxy answers HTTP only, not {scope['type']}")

    async def _answer(self, scope: Message, receive: Receive, send: Send) -> None:
        try:
            job = await self._accept(scope, receive)
        except Refused as refused:
            await _refuse(send, refused)
        else:
            if job is not None:
                await _stream_until_gone(job, receive, send)

    async def _accept(self, scope: Message, receive: Receive) -> _Job | None:
        """The job that a request asks for; None if the client left before its request was complete."""
        if scope["path"] != "/v1/stream":
            raise Refused(404, "the proxy answers POST /v1/stream only")
        if scope["method"] != "POST":
            raise Refused(405, "the proxy answers POST /v1/stream only")
        pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        headers = {name.lower(): value for name, value in pairs}
        allowed = self._models_of(headers.get("authorization", ""))
        if allowed is None:
            raise Refused(401, "unknown token")
        admit(scope)
        announced = headers.get("content-length", "")
        if announced.isascii() and announced.isdigit() and int(announced) > self._max_body:
            raise Refused(413, f"the request is larger than {self._max_body} bytes")
        body = await read_body(receive, self._max_body, BODY_SECONDS)
        return None if body is None else await self._job(body, allowed)

    def _models_of(self, authorization: str) -> tuple[str, ...] | None:
        scheme, _, token = authorization.partition(" ")
        given = sha256(token.strip().encode("utf-8", "replace")).digest()
        found: tuple[str, ...] | None = None
        # All of them, so that the time taken says nothing about the token.
        for digest, models in self._tokens:
            if hmac.compare_digest(digest, given):
                found = models
        return found if scheme.lower() == "bearer" else None

    async def _job(self, body: bytes, allowed: tuple[str, ...]) -> _Job:
        try:
            request = await in_thread(decode_request, body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Refused(400, f"not a proxy request: {error}") from None
        except StreamError as error:
            raise Refused(400, str(error)) from None
        if request.version > VERSION:
            raise Refused(400, f"this proxy speaks version {VERSION} of the protocol, not {request.version}")
        model = self._model(request)
        listed = str(model) in allowed or str(model) in self._stream_fns
        if not listed and not is_name(model):
            raise Refused(400, "that is not the name of a model")
        if not any(fnmatchcase(str(model), pattern) for pattern in allowed):
            raise Refused(403, f"this token may not use {model}")
        stream_fn = self._stream_fns.get(str(model)) or self._stream_fns.get(model.provider)
        if stream_fn is None or not await is_served(stream_fn, model, listed):
            raise Refused(404, f"no such model here: {model}")
        try:
            options = StreamOptions(**asdict(request.options))
        except InvalidInput as error:
            raise Refused(400, str(error)) from None
        context = LlmContext(request.system, request.messages, request.tools, request.hosted, request.output)
        native: Callable[[ModelSpec, LlmContext], bool] | None = getattr(stream_fn, "native_output", None)
        if context.output is not None and (native is None or not native(model, context)):
            raise Refused(400, f"{model} takes no output schema; ask for the answer as a tool call")
        return _Job(stream_fn, model, context, options, request.version, request.revision)

    def _model(self, request: WireRequest) -> ModelSpec:
        """The model asked for; version 1 may leave the provider out where there is only one."""
        if isinstance(request.model, str):
            providers = {key.partition(":")[0] for key in self._stream_fns}
            provider, colon, model_id = request.model.partition(":")
            if colon and provider in providers:
                return ModelSpec(provider, model_id)
            if len(providers) != 1:
                raise Refused(400, "name the model as provider:model")
            return ModelSpec(providers.pop(), request.model)
        named = request.model
        return ModelSpec(named.provider, named.model_id, named.thinking_level, named.thinking_budgets)


async def _stream_until_gone(job: _Job, receive: Receive, send: Send) -> None:
    """Send the reply; a client that disconnects cancels the stream function."""
    reply = asyncio.ensure_future(_send_reply(job, send))
    gone = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait((reply, gone), return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        reply.cancel()
        await asyncio.wait((reply, gone))
    if not reply.cancelled():
        reply.result()


async def _send_reply(job: _Job, send: Send) -> None:
    headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
    headers.append((b"x-accel-buffering", b"no"))
    outbox = _Outbox()
    filling = asyncio.ensure_future(outbox.fill(_events(job)))
    try:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        while not outbox.ended:
            body = await outbox.take()
            complete = outbox.ended and filling.exception() is None
            await send({"type": "http.response.body", "body": body, "more_body": not complete})
        filling.result()
    except ConnectionError:
        pass  # the client went away between two events
    finally:
        filling.cancel()
        await asyncio.wait((filling,))


class _Outbox:
    """Events on their way to a client: those that are ready together go out in one write."""

    def __init__(self) -> None:
        self.ended = False
        self._lines: list[bytes] = []
        self._over = False
        self._filled = asyncio.Event()
        self._emptied = asyncio.Event()

    async def fill(self, events: AsyncGenerator[AssistantMessageEvent, None]) -> None:
        """Put all events in, no more than `MOST_WAITING` ahead of the client."""
        lines, filled = self._lines, self._filled
        try:
            async with aclosing(events):
                async for event in events:
                    lines.append(encode_reply(event))
                    filled.set()
                    if len(lines) >= MOST_WAITING:
                        self._emptied.clear()
                        await self._emptied.wait()
        finally:
            self._over = True
            filled.set()

    async def take(self) -> bytes:
        """What is there, as soon as there is anything; `ended` once nothing follows."""
        await self._filled.wait()
        self._filled.clear()
        data = b"".join(self._lines)
        self._lines.clear()
        self._emptied.set()
        self.ended = self._over
        return data


async def _events(job: _Job) -> AsyncGenerator[AssistantMessageEvent, None]:
    """The stream function's events, ended by a terminal whatever it does; its own secrets stay here."""
    started = False
    events = job.stream_fn(job.model, job.context, job.options)
    try:
        async for event in events:
            if not started and not isinstance(event, Start):
                yield Start()
            started = True
            if isinstance(event, stream.UsageUpdate | stream.PromptProgress) and job.version == 1:
                continue  # version 1 has no such event
            if isinstance(event, stream.BlockAdded) and job.revision == 0:
                yield stream.ThinkingStart(event.index)  # an empty thought: later blocks keep their numbers
                event = stream.ThinkingEnd(event.index)
            if isinstance(event, Error):
                event = replace(event, message=redact_text(event.message))
            yield event
            if isinstance(event, Done | Error):
                return
        failure: Exception = NetworkError("the stream ended before the reply was complete")
    except Exception as error:
        # A stream function is the application's code.
        failure = error
    finally:
        await close(events)
    if not started:
        yield Start()
    end = error_event(failure, job.model)
    yield replace(end, message=redact_text(end.message))


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _refuse(send: Send, refused: Refused) -> None:
    body = msgspec.json.encode({"error": {"message": str(refused)}})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if refused.status in (408, 413):
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def _live(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": message["type"] + ".complete"})
        if message["type"] == "lifespan.shutdown":
            return
