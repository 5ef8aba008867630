"""What adapter tests share: a loopback server that replays bytes, a client without sockets, and the reading of replies.

LoopbackServer    a real HTTP server on 127.0.0.1; `server.reply(body, chunks=…)` queues an answer, `server.requests` records
MemoryClient   the same over the HttpClient seam: fast enough to cut a fixture at every byte
read              every event of one reply, checked against the stream protocol, and the message they make
"""

import asyncio
import functools
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web
from pydantic import BaseModel, TypeAdapter
from tests.counts import MORE

from swink.errors import NetworkError, error_for
from swink.messages import AssistantMessage, LlmMessage, ModelSpec, ToolCall, UserMessage
from swink.providers.http import Request
from swink.stream import Assembly, AssistantMessageEvent, Done, Error, LlmContext, StreamOptions, Timeout

HERE = Path(__file__).parent
OWN_FIXTURES = HERE / "fixtures"
WIRE = HERE.parents[2] / "shared" / "fixtures" / "wire"
"""Recorded provider traffic, in a folder beside the checkout; tests that replay it are skipped where it is absent."""


class Tool(msgspec.Struct, frozen=True):
    """A tool as adapters see it."""

    name: str
    description: str
    parameters_schema: dict[str, Any]


WEATHER = Tool(
    "weather",
    "Current weather.",
    {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "Name of the city."}},
        "required": ["city"],
    },
)


class Recorded(msgspec.Struct):
    """A request as the server saw it; header names are lower-case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class Reply(msgspec.Struct):
    """A queued answer."""

    status: int
    headers: dict[str, str]
    chunks: list[bytes]


class LoopbackServer:
    """Replays queued answers, in order; the last one stays. Use as an async context manager."""

    def __init__(self) -> None:
        self.requests: list[Recorded] = []
        self.url = ""
        self._queue: list[Reply] = []

    def reply(
        self,
        body: bytes = b"",
        *,
        status: int = 200,
        headers: dict[str, str] | None = None,
        chunks: Sequence[bytes] | None = None,
    ) -> None:
        """Queue an answer; `chunks` are written one by one, each its own HTTP chunk."""
        self._queue.append(
            Reply(status, {"content-type": "text/event-stream", **(headers or {})}, list(chunks or [body]))
        )

    async def __aenter__(self) -> "LoopbackServer":
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.requests.append(Recorded(request.method, request.path_qs, headers, await request.read()))
        reply = self._queue.pop(0) if len(self._queue) > 1 else self._queue[0]
        response = web.StreamResponse(status=reply.status, headers=reply.headers)
        await response.prepare(request)
        for chunk in reply.chunks:
            if chunk:
                await response.write(chunk)
                await asyncio.sleep(0)
        await response.write_eof()
        return response


class MemoryResponse:
    """An answer from memory; `failure` is raised where the bytes end."""

    def __init__(
        self, status: int, headers: dict[str, str], chunks: Iterable[bytes], failure: Exception | None
    ) -> None:
        self.status = status
        self.headers = headers
        self.closed = False
        self._chunks = iter(chunks)
        self._failure = failure

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        for chunk in self._chunks:
            if chunk:
                return chunk
        if self._failure is not None:
            raise self._failure
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.closed = True


class MemoryClient:
    """A HttpClient that answers every request with the same bytes."""

    def __init__(
        self,
        body: bytes | Sequence[bytes] = b"",
        *,
        status: int = 200,
        headers: dict[str, str] | None = None,
        failure: Exception | None = None,
    ) -> None:
        self.requests: list[Request] = []
        self.responses: list[MemoryResponse] = []
        self._chunks = [body] if isinstance(body, bytes) else list(body)
        self._status = status
        self._headers = {"content-type": "text/event-stream", **(headers or {})}
        self._failure = failure

    async def send(self, request: Request, timeout: Timeout) -> MemoryResponse:
        self.requests.append(request)
        response = MemoryResponse(self._status, self._headers, self._chunks, self._failure)
        self.responses.append(response)
        return response

    async def aclose(self) -> None:
        pass

    @property
    def sent(self) -> Any:
        """The JSON body of the last request."""
        return msgspec.json.decode(self.requests[-1].body)


class Read(msgspec.Struct):
    """One reply, read to its end."""

    events: list[Any]
    message: AssistantMessage
    terminal: Done | Error

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return self.message.tool_calls


async def read(
    fn: Any,
    model: ModelSpec,
    messages: Sequence[LlmMessage] | str = "Hello",
    *,
    system: str = "",
    tools: Sequence[Any] = (),
    options: StreamOptions | None = None,
    **context: Any,
) -> Read:
    """Ask once and read the reply to its end; breaking the stream protocol raises."""
    history = [UserMessage(messages)] if isinstance(messages, str) else messages
    stream: AsyncGenerator[AssistantMessageEvent, None] = fn(
        model, LlmContext(system, history, tools, **context), options or StreamOptions()
    )
    events: list[AssistantMessageEvent] = []
    async with aclosing(stream):
        async for event in stream:
            events.append(event)
    return assemble(events, model)


def assemble(events: Sequence[AssistantMessageEvent], model: ModelSpec) -> Read:
    """The message that some events make."""
    assembly = Assembly()
    for event in events:
        assembly.feed(event)
    terminal = assembly.terminal
    assert terminal is not None, "the stream ended without a terminal"
    if isinstance(terminal, Done):
        return Read(
            list(events),
            assembly.message(model, terminal.stop_reason, usage=terminal.usage, cost=terminal.cost),
            terminal,
        )
    error = error_for(terminal.kind, terminal.message)
    return Read(list(events), assembly.message(model, "error", usage=terminal.usage, error=error), terminal)


def sse(*payloads: Any, names: bool = False) -> bytes:
    """An SSE body: JSON-able payloads, or text as it is; with `names`, each payload's type is its event name."""
    out = bytearray()
    for payload in payloads:
        data = payload if isinstance(payload, str) else msgspec.json.encode(payload).decode()
        if names and isinstance(payload, dict):
            out += f"event: {payload.get('type', '')}\n".encode()
        out += b"".join(b"data: " + line.encode() + b"\n" for line in data.split("\n")) + b"\n"
    return bytes(out)


def cut(data: bytes, size: int) -> list[bytes]:
    """Bytes in pieces of one size."""
    return [data[at : at + size] for at in range(0, len(data), size)]


def recorded(provider: str) -> list[Path]:
    """The recorded streams of one provider; none where the folder is absent."""
    return sorted((WIRE / provider).glob("*.chunks.txt"))


def own_fixtures(provider: str) -> list[Path]:
    """The project's own streams for one provider: raw bodies, exactly as a server would send them."""
    return sorted((OWN_FIXTURES / provider).glob("*.txt"))


def framed(path: Path, *, names: bool = False, done: bool = False) -> bytes:
    """The body of a recorded stream: one SSE event per line of the file."""
    lines = [line for line in path.read_text("utf-8").splitlines() if line.strip()]
    payloads = [msgspec.json.decode(line) if names else line for line in lines]
    return sse(*payloads, names=names) + (sse("[DONE]") if done else b"")


async def check_any_cut(fn: Any, model: ModelSpec, body: bytes) -> None:
    """The same events come out however the bytes are cut; every day long bodies are cut in two ways only."""
    whole = (await read(fn, model, options=StreamOptions(http=MemoryClient(body)))).events
    for size in (1, 2, 3, 5, 17, 64, 1000) if MORE or len(body) < 3000 else (3, 64):
        events = (await read(fn, model, options=StreamOptions(http=MemoryClient(cut(body, size))))).events
        assert events == whole, f"in pieces of {size} bytes"


async def check_truncation(fn: Any, model: ModelSpec, body: bytes, step: int = 1) -> None:
    """A body that ends early, cleanly or not, is a network error, or the whole reply where its end was already clear."""
    whole = await read(fn, model, options=StreamOptions(http=MemoryClient(body)))
    for at in cut_places(body, step):
        for failure in (None, NetworkError("connection lost")):
            client = MemoryClient(body[:at], failure=failure)
            result = await read(fn, model, options=StreamOptions(http=client))
            assert client.responses[0].closed
            if isinstance(result.terminal, Error) and result.terminal.kind == "network":
                continue
            assert type(result.terminal) is type(whole.terminal), f"cut at {at}: {result.terminal}"
            assert result.message.content == whole.message.content, f"cut at {at}"


def cut_places(body: bytes, step: int = 1) -> list[int]:
    """Where to cut a body: around the end of every event, and some bytes apart; everywhere in `make test-more`."""
    if MORE:
        return list(range(0, len(body), step))
    ends = [found.start() for found in re.finditer(rb"\n+|.{13}:event-type", body, re.S)]
    around = {at + offset for at in ends[:: max(1, len(ends) // 10)] + ends[-4:] for offset in (0, 1, 2)}
    return sorted(at for at in {*around, *range(0, len(body), 251 * step), len(body) - 1} if at < len(body))


def check_types(expected: Any, body: Any) -> None:
    """A request body has only fields that the SDK's request types know, each of the type they say."""
    assert read_as(expected, body) == body


def read_as(expected: Any, body: Any) -> Any:
    """What the types of an SDK take of a request body."""
    return _consumed(_adapter(expected).validate_python(body))


@functools.cache
def _adapter(expected: Any) -> TypeAdapter[Any]:
    return TypeAdapter(expected)


def _consumed(value: Any) -> Any:
    """pydantic validates iterables when they are read, so they have to be read."""
    match value:
        case dict():
            return {key: _consumed(item) for key, item in value.items()}
        case str() | bytes() | int() | float() | None:
            return value
        case BaseModel():  # a block of a reply, which some requests take as well
            return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
        case _:
            return [_consumed(item) for item in value]
