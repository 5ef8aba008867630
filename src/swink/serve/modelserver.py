"""A local model for other programs: the OpenAI and Anthropic protocols in front of `LocalStreamFn`.

    async with serve_model("smollm2-135m") as served:
        client = openai.AsyncOpenAI(base_url=served.openai_base_url, api_key="none")

Tools, structured output, the repetition guard and the queue are those of `local:` itself. A client that
disconnects stops its reply. Without an `api_key`, programs on this machine may ask, and no web page.
"""

import hmac
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from swink.errors import MisuseError
from swink.local import DEFAULT_MODEL, LocalStreamFn, State
from swink.messages import AssistantMessage, ModelSpec, Usage
from swink.serve.admission import check_json, check_visitor
from swink.serve.anthropicwire import AnthropicWire
from swink.serve.asgi import Message, Receive, Send, admit, read_body, serve_app
from swink.serve.openaiwire import OpenAIWire
from swink.serve.wire import Refused, ServedRequest, error_event
from swink.stream import Assembly, AssistantMessageEvent, Done, Error, Start, StreamFn, UsageUpdate
from swink.stream.urls import is_loopback
from swink.system.aio import close

_STATUS = {"context_window_exceeded": 400, "auth": 401, "rate_limit": 429}


class ServedModel(Struct, frozen=True):
    """A model that is being served."""

    address: str
    name: str

    @property
    def openai_base_url(self) -> str:
        """The base URL for an OpenAI client."""
        return f"{self.address}/v1"

    @property
    def anthropic_base_url(self) -> str:
        """The base URL for an Anthropic client."""
        return self.address


class ServedProtocol(Protocol):
    """One protocol: what its requests ask for, and how it writes replies."""

    def read_request(self, body: Any) -> ServedRequest: ...
    def start_reply(self, model: str, asked: ServedRequest) -> list[bytes]: ...
    def write_event(self, event: AssistantMessageEvent) -> list[bytes]: ...
    def whole_reply(self, model: str, message: AssistantMessage) -> dict[str, Any]: ...
    def failure(self, status: int, message: str, kind: str | None) -> dict[str, Any]: ...


@asynccontextmanager
async def serve_model(
    model_id: str = DEFAULT_MODEL,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    api_key: str | None = None,
    context: int | None = None,
    threads: int | None = None,
    parallel: int = 2,
    progress: Callable[[State], None] | None = None,
) -> AsyncGenerator[ServedModel, None]:
    """Load a model and serve it; port 0 takes a free one, any address but loopback needs an `api_key`.

    Args:
        model_id: a local model, by its name
        host: the address to listen on
        port: the port
        api_key: what clients send as a bearer token
        context: tokens of a conversation
        threads: how many write
        parallel: conversations at the same time
        progress: told each state of downloading and loading
    """
    _check_key(host, api_key)
    stream_fn = LocalStreamFn(context=context, threads=threads, parallel=parallel, progress=progress)
    await stream_fn.ready(model_id)
    async with serve_stream_fn(stream_fn, ModelSpec("local", model_id), host, port, api_key) as served:
        yield served


@asynccontextmanager
async def serve_stream_fn(
    stream_fn: StreamFn, model: ModelSpec, host: str = "127.0.0.1", port: int = 0, api_key: str | None = None
) -> AsyncGenerator[ServedModel, None]:
    """Serve one model of a stream function while the block runs; `api_key` as for `serve_model`."""
    _check_key(host, api_key)
    try:
        async with serve_app(_App(stream_fn, model, api_key), host, port) as url:
            yield ServedModel(url, model.model_id)
    except OSError as error:
        raise MisuseError(f"{host}:{port} cannot be served: {error.strerror or error}") from error


def _check_key(host: str, api_key: str | None) -> None:
    if not api_key and not is_loopback(host):
        remedy = "give an api_key, or serve on 127.0.0.1"
        raise MisuseError(f"serving on {host} lets the whole network use the model; {remedy}")


class _App:
    def __init__(self, stream_fn: StreamFn, model: ModelSpec, api_key: str | None) -> None:
        self._stream_fn = stream_fn
        self._model = model
        self._key = api_key.encode() if api_key else None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        path = str(scope["path"])
        wire: ServedProtocol = AnthropicWire() if path.startswith("/v1/messages") else OpenAIWire()
        try:
            self._check(scope)
            admit(scope)
            if (scope["method"], path) == ("GET", "/v1/models"):
                entry = {"id": self._model.model_id, "object": "model", "created": 0, "owned_by": "local"}
                await _send_json(send, 200, {"object": "list", "data": [entry]})
                return
            if (scope["method"], path) not in (("POST", "/v1/chat/completions"), ("POST", "/v1/messages")):
                known = "POST /v1/chat/completions, POST /v1/messages and GET /v1/models"
                raise Refused(404, f"here are {known}, not {scope['method']} {path}")
            check_json(scope["headers"])
            asked = wire.read_request(await _body(receive))
            await self._answer(wire, asked, send)
        except Refused as refused:
            said = wire.failure(refused.status, str(refused), "invalid_request_error")
            await _send_json(send, refused.status, said)
        except ConnectionError:
            return  # the client went away between two events

    def _check(self, scope: Message) -> None:
        if self._key is None:
            check_visitor(scope["headers"], scope["scheme"])
            return
        headers = dict(scope["headers"])
        given = headers.get(b"x-api-key") or headers.get(b"authorization", b"").partition(b" ")[2]
        if not hmac.compare_digest(given.strip(), self._key):
            raise Refused(401, "the key is missing or wrong")

    async def _answer(self, wire: ServedProtocol, asked: ServedRequest, send: Send) -> None:
        is_started = False
        assembly = Assembly()
        async with aclosing(self._events(asked)) as events:
            async for event in events:
                if isinstance(event, Error) and not is_started:
                    status = _STATUS.get(event.kind or "", 500)
                    await _send_json(send, status, wire.failure(status, event.message, event.kind))
                    return
                assembly.feed(event)
                if not asked.stream or isinstance(event, Start | UsageUpdate):
                    continue
                if not is_started:
                    is_started = True
                    await _start_response(send, 200, b"text/event-stream")
                    await _write(send, wire.start_reply(self._model.model_id, asked))
                await _write(send, wire.write_event(event))
        if asked.stream:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        else:
            done = assembly.terminal
            reason = done.stop_reason if isinstance(done, Done) else "error"
            message = assembly.message(self._model, reason, usage=done.usage if done else Usage())
            await _send_json(send, 200, wire.whole_reply(self._model.model_id, message))

    async def _events(self, asked: ServedRequest) -> AsyncGenerator[AssistantMessageEvent, None]:
        """The events of the reply, ended by a terminal whatever happens."""
        stream = self._stream_fn(self._model, asked.context, asked.options)
        try:
            async for event in stream:
                yield event
        except Exception as error:
            # A stream function is the application's code.
            yield error_event(error, self._model)
        finally:
            await close(stream)


async def _body(receive: Receive) -> Any:
    body = await read_body(receive, 32 << 20, 60.0)
    if body is None:
        raise ConnectionResetError
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(400, f"the request is not JSON: {error}") from None


async def _start_response(send: Send, status: int, kind: bytes) -> None:
    headers = [(b"content-type", kind), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def _write(send: Send, lines: list[bytes]) -> None:
    if lines:
        await send({"type": "http.response.body", "body": b"".join(lines), "more_body": True})


async def _send_json(send: Send, status: int, value: dict[str, Any]) -> None:
    await _start_response(send, status, b"application/json")
    await send({"type": "http.response.body", "body": msgspec.json.encode(value), "more_body": False})
