"""An MCP server that wants a login, and its authorisation server, in one; `odd` replaces single answers."""

import asyncio
import base64
import hashlib
import json
import urllib.request
from contextlib import suppress
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from session_server import SessionServer
from tests.talkserver import TalkServer

Answer = tuple[int, dict[str, str], Any]


class OAuthServer:
    def __init__(self, **odd: Answer) -> None:
        self.odd = odd
        self.mcp = SessionServer()
        self.scope = "read"
        self.lifetime = 3600
        self.tokens: set[str] = set()
        self.refreshable: set[str] = set()
        self.codes: dict[str, dict[str, str]] = {}
        self.asked: list[str] = []
        """The paths asked for, and the grants given."""
        self.authorised: list[dict[str, str]] = []
        self.mute = ""
        self.slow = asyncio.Event()
        self.slow.set()
        self._server = TalkServer(self._serve)

    async def __aenter__(self) -> "OAuthServer":
        self.base = f"http://127.0.0.1:{await self._server.start()}"
        self.url = f"{self.base}/mcp"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._server.stop()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, target, _ = head.split("\r\n")[0].split(" ")
        headers = {
            name.lower(): value
            for name, _, value in (line.partition(": ") for line in head.split("\r\n")[1:] if line)
        }
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        status, extra, answer = await self._answer(method, urlsplit(target), headers, body)
        data = answer if isinstance(answer, bytes) else b"" if answer is None else json.dumps(answer).encode()
        extra = {"content-type": "application/json", "connection": "close", **extra}
        lines = "".join(f"{name}: {value}\r\n" for name, value in extra.items())
        writer.write(f"HTTP/1.1 {status} x\r\n{lines}content-length: {len(data)}\r\n\r\n".encode() + data)
        await writer.drain()

    async def _answer(self, method: str, target: Any, headers: dict[str, str], body: bytes) -> Answer:
        self.asked.append(target.path)
        if target.path == self.mute:
            await asyncio.sleep(600)
        query = {name: values[0] for name, values in parse_qs(target.query or body.decode("latin-1")).items()}
        match target.path:
            case "/mcp":
                return await self._speak(method, headers, body)
            case "/.well-known/oauth-protected-resource/mcp":
                found = {"resource": self.url, "authorization_servers": [self.base]}
                return self.odd.get("resource") or (200, {}, found)
            case "/.well-known/oauth-authorization-server":
                return self.odd.get("metadata") or (200, {}, self.metadata())
            case "/register":
                client = {**json.loads(body), "client_id": "client-1", "client_secret": "s3cret-of-client"}
                client["token_endpoint_auth_method"] = "client_secret_basic"
                return self.odd.get("register") or (201, {}, client)
            case "/authorize":
                return self.odd.get("authorize") or self._authorise(query)
            case "/token":
                return self.odd.get("token") or self._give(query)
            case _:
                return 404, {}, None

    def metadata(self, **other: Any) -> dict[str, Any]:
        return {
            "issuer": self.base,
            "authorization_endpoint": f"{self.base}/authorize",
            "token_endpoint": f"{self.base}/token",
            "registration_endpoint": f"{self.base}/register",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            **other,
        }

    async def _speak(self, method: str, headers: dict[str, str], body: bytes) -> Answer:
        token = headers.get("authorization", "").removeprefix("Bearer ")
        if token not in self.tokens:
            place = f'resource_metadata="{self.base}/.well-known/oauth-protected-resource/mcp"'
            said = f'Bearer {place}, scope="{self.scope}"'
            return self.odd.get("refusal") or (401, {"www-authenticate": said}, None)
        message = json.loads(body or b"{}")
        if message.get("method") == "tools/call":
            await self.slow.wait()
        if message.get("method") == "tools/call" and "call" in self.odd:
            return self.odd["call"]
        status, answer, extra = self.mcp._answer(method.lower(), headers.get("mcp-session-id"), message)
        name, _, value = extra.strip().partition(": ")
        return status, {name: value} if name else {}, answer

    def _authorise(self, query: dict[str, str]) -> Answer:
        self.authorised.append(query)
        code = f"code-{len(self.authorised)}"
        self.codes[code] = query
        back = urlencode({"code": code, "state": query["state"]})
        return 302, {"location": f"{query['redirect_uri']}?{back}"}, None

    def _give(self, query: dict[str, str]) -> Answer:
        self.asked.append(query["grant_type"])
        if query["grant_type"] == "refresh_token":
            if query["refresh_token"] not in self.refreshable:
                return 400, {}, {"error": "invalid_grant"}
            self.refreshable.discard(query["refresh_token"])
        else:
            asked = self.codes.pop(query["code"])
            proof = base64.urlsafe_b64encode(hashlib.sha256(query["code_verifier"].encode()).digest())
            assert proof.decode().rstrip("=") == asked["code_challenge"]
            assert asked.get("resource") == query.get("resource")
        number = len(self.asked)
        token, refresh = f"token-{number}-of-the-server", f"refresh-{number}-of-the-server"
        self.tokens.add(token)
        self.refreshable.add(refresh)
        given = {"access_token": token, "token_type": "bearer", "refresh_token": refresh}
        return 200, {}, {**given, "expires_in": self.lifetime}


class Person:
    """Logs in at once, in a browser."""

    def __init__(self) -> None:
        self.urls: list[str] = []

    async def __call__(self, server: str, url: str) -> None:
        self.urls.append(url)
        asyncio.get_running_loop().run_in_executor(None, browse, url)


def browse(url: str) -> None:
    with suppress(OSError):  # nobody is there any more
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=10).read()
