"""An HTTP server of the older protocol, with sessions that it can forget."""

import asyncio
import json
from types import TracebackType
from typing import Any

from tests.talkserver import TalkServer


class SessionServer:
    def __init__(self) -> None:
        self.sessions: set[str] = set()
        self.opened = 0
        self._server = TalkServer(self._serve)
        self.url = ""

    async def __aenter__(self) -> "SessionServer":
        self.url = f"http://127.0.0.1:{await self._server.start()}/mcp"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._server.stop()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        status, answer, extra = self._answer(
            head.split(" ")[0], headers.get("mcp-session-id"), json.loads(body or "{}")
        )
        data = json.dumps(answer).encode() if answer is not None else b""
        writer.write(
            f"HTTP/1.1 {status} x\r\ncontent-type: application/json\r\nconnection: close\r\n{extra}content-length: {len(data)}\r\n\r\n".encode()
            + data
        )
        await writer.drain()

    def _answer(self, verb: str, session: str | None, message: dict[str, Any]) -> tuple[int, Any, str]:
        if verb != "post":
            return 405, None, ""
        method, id = message.get("method"), message.get("id")
        if method == "initialize":
            self.opened += 1
            new = f"session-{self.opened}"
            self.sessions.add(new)
            info = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "s", "version": "0"},
            }
            return 200, {"jsonrpc": "2.0", "id": id, "result": info}, f"mcp-session-id: {new}\r\n"
        if session not in self.sessions:
            return 404, None, ""
        if id is None:
            return 202, None, ""
        tools = {"tools": [{"name": "who", "inputSchema": {"type": "object"}}]}
        said = {"content": [{"type": "text", "text": session}]}
        return 200, {"jsonrpc": "2.0", "id": id, "result": tools if method == "tools/list" else said}, ""


class KeptServer(SessionServer):
    """One that keeps its connections, and may drop them when it has read a call."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[int] = []
        """Of every call that was read to its end, how many requests its connection had carried before."""
        self.is_dying = False
        self.together = asyncio.Barrier(1)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served = 0
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
            message = json.loads(await reader.readexactly(int(headers.get("content-length", "0"))) or "{}")
            if message.get("method") == "tools/call":
                self.calls.append(served)
                if self.is_dying:
                    break
                await self.together.wait()
            verb, session = head.split(" ")[0], headers.get("mcp-session-id")
            status, answer, extra = self._answer(verb, session, message)
            data = json.dumps(answer).encode() if answer is not None else b""
            lines = f"content-type: application/json\r\n{extra}content-length: {len(data)}\r\n\r\n"
            writer.write(f"HTTP/1.1 {status} x\r\n{lines}".encode() + data)
            await writer.drain()
            served += 1
