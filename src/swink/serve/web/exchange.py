"""One exchange: a request that was let in, and its answer, which is whole or a stream."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from swink.messages.jsondata import encode
from swink.serve.asgi import Message, Receive, Send, cut_off, read_body
from swink.serve.hosting import Caller, ServeLimits
from swink.serve.web.request import WebRequest
from swink.serve.wire import Refused
from swink.system.threads import in_thread

log = logging.getLogger("swink.serve")

AT_ONCE = 100_000
"""Bytes of JSON that are read on the event loop."""
SAFE: tuple[tuple[bytes, bytes], ...] = ((b"x-content-type-options", b"nosniff"),)
"""Headers of every answer."""


class ClientGone(Exception):
    """The client has left, or does not read: nothing more can be sent to it."""


class Exchange:
    """One request and its answer."""

    def __init__(
        self,
        request: WebRequest,
        caller: Caller,
        path: Mapping[str, str],
        limits: ServeLimits,
        scope: Message,
        receive: Receive,
        send: Send,
        *,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        self.request = request
        self.caller = caller
        self.path = path
        """What stands in the places that the route's path names."""
        self.gone = False
        """Whether the client has left."""
        self.has_begun = False
        """Whether a part of the answer was sent."""
        self._limits = limits
        self._scope = scope
        self._receive = receive
        self._send = send
        self._headers = (*SAFE, *headers)
        self._watching: asyncio.Task[None] | None = None
        self._is_streaming = False

    @property
    def method(self) -> str:
        return self.request.method

    @property
    def query(self) -> Mapping[str, str]:
        """What stands behind the question mark; of several values of a name, the last."""
        return self.request.query

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the request, by their names in small letters."""
        return self.request.headers

    async def body(self) -> bytes:
        """The body; `Refused` if it is too large or too late."""
        announced = self.headers.get("content-length", "")
        most = self._limits.body
        if announced.isascii() and announced.isdigit() and int(announced) > most:
            raise Refused(413, f"the request is larger than {most} bytes")
        body = await read_body(self._receive, most, self._limits.body_seconds)
        if body is None:
            self.gone = True
            raise ClientGone
        return body

    async def json(self, type: Any = Any) -> Any:
        """The body, which is JSON of this type; `Refused` if it is not. No body is an empty object."""
        body = await self.body()
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json" and (body or kind):
            raise Refused(415, "send JSON, with the header Content-Type: application/json")
        try:
            if len(body) > AT_ONCE:
                return await in_thread(msgspec.json.decode, body, type=type)
            return msgspec.json.decode(body or b"{}", type=type)
        except msgspec.ValidationError as error:
            raise Refused(422, f"the request has another form: {error}") from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Refused(400, f"the request is no JSON: {error}") from None

    async def send_json(self, status: int, value: Any, headers: Mapping[str, str] = {}) -> None:
        """Answer with a value as JSON."""
        await self.send(status, encode(value), "application/json", headers)

    async def send(self, status: int, body: bytes, kind: str, headers: Mapping[str, str] = {}) -> None:
        """Answer with a whole body of this content type."""
        head = {"content-type": kind, "content-length": str(len(body)), "cache-control": "no-store"}
        await self._begin(status, {**head, **{name.lower(): value for name, value in headers.items()}})
        await self._write(body, is_last=True)

    async def stream(
        self, status: int = 200, kind: str = "text/event-stream", headers: Mapping[str, str] = {}
    ) -> "StreamWriter":
        """Begin an answer that is sent piece by piece; it ends when the route returns.

        If the client leaves, the route is cancelled where it waits.
        """
        head = {"content-type": kind, "cache-control": "no-store", "x-accel-buffering": "no"}
        await self._begin(status, {**head, **{name.lower(): value for name, value in headers.items()}})
        self._is_streaming = True
        self.watch()
        return StreamWriter(self._write)

    def watch(self) -> None:
        """Cancel the route where it waits if the client leaves; the body has been read."""
        if self._watching is None:
            current = asyncio.current_task()
            assert current is not None
            self._watching = asyncio.create_task(self._watch(current), name="swink-watch-client")

    async def end(self) -> None:
        """End a stream in good order."""
        if self._is_streaming and not self.gone:
            await self._write(b"", is_last=True)

    async def close(self) -> None:
        """Watch the client no longer."""
        if (watching := self._watching) is not None:
            watching.cancel()
            await asyncio.wait([watching])

    async def _begin(self, status: int, headers: Mapping[str, str]) -> None:
        pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        self.has_begun = True
        await self._send(
            {"type": "http.response.start", "status": status, "headers": [*pairs, *self._headers]}
        )

    async def _write(self, data: bytes, is_last: bool = False) -> None:
        if self.gone:
            raise ClientGone
        message = {"type": "http.response.body", "body": data, "more_body": not is_last}
        try:
            async with asyncio.timeout(self._limits.send_seconds):
                await self._send(message)
        except TimeoutError:
            self.gone = True
            cut_off(self._scope)
            raise ClientGone from None
        except OSError:
            self.gone = True
            raise ClientGone from None

    async def _watch(self, answering: "asyncio.Task[Any]") -> None:
        with suppress(OSError):
            while (await self._receive())["type"] != "http.disconnect":
                pass
        self.gone = True
        answering.cancel()


class StreamWriter:
    """Sends a stream piece by piece; a reader that does not take it in time is cut off."""

    def __init__(self, write: Any) -> None:
        self._write = write

    async def write(self, data: bytes) -> None:
        """Send some bytes; `ClientGone` if nobody takes them."""
        await self._write(data)
