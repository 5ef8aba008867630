"""A loopback server that misbehaves: one function talks to every connection, byte by byte.

    async with FaultServer(answering(503)) as server: ...

It records what was asked, and knows which connections are still open, so that a test can say that none was leaked.
"""

import asyncio
import gzip
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress

from adapters import AdapterCase

Talk = Callable[["Connection"], Awaitable[None]]


class Connection:
    """One connection with one request on it, already read."""

    def __init__(self, writer: asyncio.StreamWriter, request: bytes) -> None:
        self.request = request
        self._writer = writer

    async def send(self, data: bytes) -> None:
        """Write bytes, and wait until the client takes more."""
        self._writer.write(data)
        await self._writer.drain()

    async def head(self, status: int = 200, media_type: str = "text/event-stream", **headers: str) -> None:
        """The head of an answer with a chunked body."""
        lines = [f"HTTP/1.1 {status} X", f"content-type: {media_type}", "transfer-encoding: chunked"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.send("\r\n".join([*lines, "", ""]).encode())

    async def chunk(self, data: bytes) -> None:
        """One HTTP chunk."""
        await self.send(b"%x\r\n%s\r\n" % (len(data), data))

    async def end(self) -> None:
        """The end of a chunked body."""
        await self.send(b"0\r\n\r\n")

    def close(self) -> None:
        """Drop the connection the polite way: the client gets an end."""
        self._writer.close()

    def reset(self) -> None:
        """Drop the connection the hard way: the client gets a reset, not an end."""
        self._writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        self._writer.transport.abort()


class FaultServer:
    """Serves while its block runs; `asked` is set by the first request, `open` counts connections not yet closed."""

    def __init__(self, talk: Talk, *, tls: ssl.SSLContext | None = None) -> None:
        self._talk = talk
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()
        self.requests: list[bytes] = []
        self.connections = 0
        self.open = 0
        self.sent = 0
        self.asked = asyncio.Event()

    async def __aenter__(self) -> "FaultServer":
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._server.wait_closed()

    async def all_closed(self, seconds: float = 60.0) -> None:
        """Wait until the client has let go of every connection."""
        async with asyncio.timeout(seconds):
            while self.open:
                await asyncio.sleep(0.005)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.connections += 1
        self.open += 1
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
                while True:
                    connection = Connection(writer, await _request(reader))
                    self.requests.append(connection.request)
                    self.asked.set()
                    await self._until_gone(reader, connection)
        except asyncio.CancelledError:
            pass  # the test is over
        finally:
            self.open -= 1
            writer.transport.abort()
            # A handler that only aborts would leave the protocol's own waiter unfinished.
            with suppress(ConnectionError, ssl.SSLError, asyncio.CancelledError, TimeoutError):
                await writer.wait_closed()

    async def _until_gone(self, reader: asyncio.StreamReader, connection: Connection) -> None:
        """Talk, but no longer than the client listens."""
        talking = asyncio.ensure_future(self._talk(connection))
        gone = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait((talking, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            both = [task for task in (talking, gone) if not task.done()]
            for task in both:
                task.cancel()
            if both:
                await asyncio.wait(both)
            if gone.done() and not gone.cancelled():
                gone.exception()
        if not talking.cancelled():
            talking.result()
        if not gone.cancelled():
            raise ConnectionError("the client is gone")


async def _request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    lengths = [
        int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
    ]
    return head + (await reader.readexactly(lengths[0]) if lengths else b"")


async def _forever() -> None:
    await asyncio.Event().wait()


# --- what a server may do --------------------------------------------------------------------------------------------


async def silent(connection: Connection) -> None:
    """Take the request and never answer."""
    await _forever()


def answering(status: int, body: bytes = b"", media_type: str = "application/json", **headers: str) -> Talk:
    """A whole answer."""

    async def talk(connection: Connection) -> None:
        await connection.head(status, media_type, **headers)
        if body:
            await connection.chunk(body)
        await connection.end()

    return talk


def replying(adapter: AdapterCase) -> Talk:
    """What a healthy provider says."""
    return answering(200, b"".join(adapter.text), adapter.media_type)


def pinging(adapter: AdapterCase) -> Talk:
    """Signs of life for ever, and never any content."""

    async def talk(connection: Connection) -> None:
        await connection.head(200, adapter.media_type)
        while True:
            await connection.chunk(adapter.ping)
            await asyncio.sleep(0.01)

    return talk


def stalling(adapter: AdapterCase) -> Talk:
    """Some content, half an event, and then nothing more."""

    async def talk(connection: Connection) -> None:
        await connection.head(200, adapter.media_type)
        await connection.chunk(adapter.within_next())
        await _forever()

    return talk


def stalling_in_a_refusal(connection: Connection) -> Awaitable[None]:
    """A bad status whose body never ends."""

    async def talk() -> None:
        await connection.head(500, "application/json")
        await connection.chunk(b'{"error": ')
        await _forever()

    return talk()


def resetting(adapter: AdapterCase) -> Talk:
    """Some content, and then a reset."""

    async def talk(connection: Connection) -> None:
        await connection.head(200, adapter.media_type)
        await connection.chunk(adapter.within_next())
        await asyncio.sleep(0.02)  # a reset discards what was not read yet
        connection.reset()

    return talk


def hanging_up(adapter: AdapterCase, at: int, how: str) -> Talk:
    """A healthy provider that drops the connection at one of its requests, counted from 0, instead of answering."""
    requests = 0

    async def talk(connection: Connection) -> None:
        nonlocal requests
        requests += 1
        if requests - 1 == at:
            getattr(connection, how)()
        else:
            await replying(adapter)(connection)

    return talk


def dropping(adapter: AdapterCase, how: str) -> Talk:
    """A provider that drops the connection after the last event, before the end of the body."""

    async def talk(connection: Connection) -> None:
        await connection.head(200, adapter.media_type)
        await connection.chunk(b"".join(adapter.text))
        await asyncio.sleep(0.01)  # a reset takes with it what was not read yet
        getattr(connection, how)()

    return talk


def flooding(server: list[FaultServer], media_type: str, megabytes: int = 100, status: int = 200) -> Talk:
    """One line that does not end; the server counts how much of it was taken."""

    async def talk(connection: Connection) -> None:
        await connection.head(status, media_type)
        block = b"data: " + b"a" * (2**18 - 6)
        for _ in range(megabytes * 4):
            await connection.chunk(block)
            server[0].sent += len(block)
            block = block.replace(b"data: ", b"aaaaaa")
        await connection.end()

    return talk


def bomb(megabytes: int = 100) -> bytes:
    """Few bytes that decompress into many."""
    return gzip.compress(b"data: " + bytes(megabytes * 2**20), 6)
