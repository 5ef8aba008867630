"""The proxy of a sandbox whose network is limited to domains: on a Unix socket, its only way out.

    command ─▶ 127.0.0.1:3128 in its network ─▶ forwarder (supervisor/forward.py) ─▶ socket ─▶ here ─▶ host

It takes `CONNECT host:port` and plain `http://` requests, checks the name, and only then resolves it, because
a query can carry data out. It checks every address against private and special networks, and connects to the
address it has checked. It runs as long as one command.
"""

import asyncio
import inspect
import logging
import os
import re
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Protocol
from urllib.parse import urlsplit

from swink.system.aio import resolve
from swink.system.threads import in_thread
from swink.tools.coding.addresses import Network, Resolve, is_allowed, parse_address, resolve_host
from swink.tools.coding.domains import PORTS, Domains, canonicalize

log = logging.getLogger("swink.tools")

ApproveDomain = Callable[[str], bool | Awaitable[bool]]

MAX_HEAD = 32 << 10
"""Bytes of a request before its body."""
MAX_CONNECTIONS = 128
HEAD_TIMEOUT = 15.0
CONNECT_TIMEOUT = 20.0
IDLE_TIMEOUT = 600.0
CHUNK = 1 << 16

_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+:")


class Admission(Protocol):
    """Who decides what a command reaches: each answer is empty, or the reason of a refusal."""

    async def refuses(self, host: str, port: int) -> str:
        """Whether a canonical name and a port are refused, before anything is known of its addresses."""
        ...

    async def refuses_at(self, host: str, port: int, addresses: Sequence[str]) -> str:
        """Whether an admitted host is refused for addresses of it that are not public."""
        ...

    def notice_connection(self, host: str) -> None:
        """A connection to a host stands."""
        ...

    def notice_leaving(self, host: str) -> None:
        """A client has closed its connection before it had an answer."""
        ...


class DomainApproval:
    """Which hosts may be reached: those on the list, and those that are approved, asked about once."""

    def __init__(self, domains: Domains, approve: ApproveDomain | None) -> None:
        self._domains = domains
        self._approve = approve
        self._answers: dict[str, asyncio.Task[bool]] = {}
        self._waiting: Counter[str] = Counter()

    async def allows(self, host: str, port: int) -> bool:
        """Whether a canonical name and a port may be reached; may ask."""
        if self._domains.allows(host, port):
            return True
        if self._approve is None:
            return False
        name = host if port in PORTS else f"{host}:{port}"
        task = self._answers.get(name)
        if task is not None and task.done() and not task.cancelled():
            return task.result()
        if task is None or task.cancelled() or task.get_loop() is not asyncio.get_running_loop():
            task = self._answers[name] = asyncio.ensure_future(self._ask(self._approve, name))
        self._waiting[name] += 1
        try:
            return await asyncio.shield(task)
        finally:
            self._waiting[name] -= 1
            if not self._waiting[name] and not task.done():
                task.cancel()  # no command waits for the answer any more

    async def refuses(self, host: str, port: int) -> str:
        if await self.allows(host, port):
            return ""
        entry = host if port in PORTS else f"{host}:{port}"
        how = f"to allow it, the program adds it: net=[{entry!r}]"
        return f"{entry} is not among the domains of this sandbox; {how}"

    async def refuses_at(self, host: str, port: int, addresses: Sequence[str]) -> str:
        return f"{host} ({addresses[0]}) is not an address of the public internet, so it is not reached"

    def notice_connection(self, host: str) -> None:
        pass

    def notice_leaving(self, host: str) -> None:
        pass

    async def _ask(self, approve: ApproveDomain, name: str) -> bool:
        try:
            if inspect.iscoroutinefunction(approve):
                return await approve(name) is True
            answer = await in_thread(approve, name)  # it may wait for a person
            return await resolve(answer) is True
        except Exception:  # somebody else's code: a failure is no approval
            log.warning("approve_domain failed, so %s is not reached", name, exc_info=True)
            return False


class RequestRefused(Exception):
    """A request that is not passed on: status and reason."""

    def __init__(self, reason: str, status: str = "403 Forbidden") -> None:
        super().__init__(reason)
        self.status = status


class Egress:
    """The proxy of one command; an asynchronous context manager."""

    def __init__(
        self,
        path: str,
        admission: Admission,
        networks: Sequence[Network] = (),
        resolve: Resolve | None = None,
    ) -> None:
        self._path = path
        self._admission = admission
        self._networks = networks
        self._resolve = resolve or resolve_host
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "Egress":
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._listener.setblocking(False)
            self._listener.bind(self._path)
            os.chmod(self._path, 0o600)
            self._listener.listen(MAX_CONNECTIONS)
        except BaseException:
            self._listener.close()
            raise
        asyncio.get_running_loop().add_reader(self._listener, self._accept)
        return self

    async def __aexit__(self, *_: object) -> None:
        asyncio.get_running_loop().remove_reader(self._listener)
        self._listener.close()
        with suppress(FileNotFoundError):
            os.unlink(self._path)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _accept(self) -> None:
        # asyncio's `sock_accept` and servers lose a connection that arrives while they are cancelled.
        try:
            inside, _ = self._listener.accept()
        except OSError:
            return
        if len(self._tasks) >= MAX_CONNECTIONS:
            inside.close()
            return
        inside.setblocking(False)
        task = asyncio.ensure_future(self._serve(inside))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # Closed here too, because a task that is cancelled before its first step never takes it.
        task.add_done_callback(lambda _: inside.close())

    async def _serve(self, inside: socket.socket) -> None:
        writer: asyncio.StreamWriter | None = None
        outside: asyncio.StreamWriter | None = None
        try:
            reader, writer = await asyncio.open_unix_connection(sock=inside, limit=MAX_HEAD)
            try:
                host, port, first = _parse_request(await _read_head(reader))
                server, outside = await self._connect(reader, host, port)
            except RequestRefused as refusal:
                writer.write(_build_answer(refusal.status, str(refusal)))
                await _drain(writer)
                return
            if first:
                outside.write(first)
            else:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            async with asyncio.TaskGroup() as group:
                group.create_task(_copy(reader, outside))
                group.create_task(_copy(server, writer))
        except* (OSError, asyncio.IncompleteReadError):
            pass  # one side is gone or silent; the command sees its connection closed
        finally:
            for side in (writer, outside):
                if side is not None:
                    side.transport.abort()

    async def _connect(
        self, client: asyncio.StreamReader, host: str, port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        name = canonicalize(host)
        if name is None:
            reason = f"{host[:300]!r} is no domain name; addresses are not reached from this sandbox"
            raise RequestRefused(reason)
        if refusal := await self._admission.refuses(name, port):
            raise RequestRefused(refusal)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                found = list(await self._resolve(name, port))
            await self._check(name, port, found)
            if client.at_eof():  # it did not wait for a person's answer
                self._admission.notice_leaving(name)
                raise OSError("the client is gone")
            async with asyncio.timeout(CONNECT_TIMEOUT):
                connection = await _open_first(name, found, port)
        except (OSError, TimeoutError) as error:
            reason = f"{name}:{port} cannot be reached: {error or 'no answer in time'}"
            raise RequestRefused(reason, "502 Bad Gateway") from error
        self._admission.notice_connection(name)
        return connection

    async def _check(self, name: str, port: int, found: Sequence[str]) -> None:
        """Refuse a host one of whose addresses is neither public nor admitted."""
        others: list[str] = []
        for text in found:
            address = parse_address(text)
            if address is None or not is_allowed(address, self._networks):
                others.append(text)
        if others and (refusal := await self._admission.refuses_at(name, port, others)):
            raise RequestRefused(refusal)


async def _open_first(
    name: str, addresses: Sequence[str], port: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    trouble: OSError | None = None
    for text in addresses:
        try:
            return await asyncio.open_connection(text, port, limit=CHUNK)
        except OSError as error:
            trouble = error
    raise trouble or OSError(f"{name} has no address")


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    try:
        async with asyncio.timeout(HEAD_TIMEOUT):
            return await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        reason = f"a request has at most {MAX_HEAD:,} bytes before its body"
        raise RequestRefused(reason, "431 Request Header Fields Too Large") from None
    except TimeoutError:
        reason = f"a request is complete within {HEAD_TIMEOUT:g} s"
        raise RequestRefused(reason, "408 Request Timeout") from None


def _parse_request(head: bytes) -> tuple[str, int, bytes]:
    """Host and port of a request, and the bytes to pass on: none of a CONNECT, else the request."""
    lines = head.decode("latin-1").split("\r\n")
    method, _, rest = lines[0].partition(" ")
    target, _, version = rest.rpartition(" ")
    if not version.startswith("HTTP/1.") or any(
        line[:1] in (" ", "\t") or "\n" in line or "\r" in line for line in lines
    ):
        reason = "this is an HTTP proxy; requests look like CONNECT host:443 HTTP/1.1"
        raise RequestRefused(reason, "400 Bad Request")
    try:
        parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if not host or "@" in parts.netloc or any(char in target for char in " \t\\"):
        raise RequestRefused("the request names no host that is understood", "400 Bad Request")
    if method == "CONNECT":
        return host, port or 443, b""
    if parts.scheme != "http":
        raise RequestRefused("only http:// goes here in plain; for https:// use CONNECT", "400 Bad Request")
    if not all(_HEADER.match(line) for line in lines[1:] if line):
        # `Host : x` would be a header to some servers.
        raise RequestRefused("a header is a name, a colon and a value", "400 Bad Request")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    dropped = ("host:", "connection:", "keep-alive:", "proxy-", "upgrade:")
    kept = [line for line in lines[1:] if line and not line.lower().startswith(dropped)]
    # The server gets the name that was checked as its Host; a connection carries one request.
    first = [f"{method} {path} HTTP/1.1", f"Host: {parts.netloc}", "Connection: close"]
    sent = "\r\n".join([*first, *kept, "", ""])
    return host, port or 80, sent.encode("latin-1")


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on what comes until its end; a side that is silent for long ends both."""
    while True:
        async with asyncio.timeout(IDLE_TIMEOUT):
            data = await reader.read(CHUNK)
            if not data:
                break
            writer.write(data)
            await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


async def _drain(writer: asyncio.StreamWriter) -> None:
    async with asyncio.timeout(HEAD_TIMEOUT):
        await writer.drain()
        writer.close()
        await writer.wait_closed()


def _build_answer(status: str, reason: str) -> bytes:
    body = f"{reason}\n".encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
