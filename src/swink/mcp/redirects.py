"""Where a browser comes back to after a login: a listener on this machine that waits for one redirect."""

import asyncio
import secrets
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

from swink.mcp.serverconfig import McpError
from swink.system.aio import mark_exception_seen

_PATH = "/callback"
_MOST_BYTES = 16_384
_PATIENCE = 10.0
_FAREWELL = 1.0
_PAGE = "<!doctype html><meta charset=utf-8><title>swink</title><p>{}</p>"


class LoginFailed(McpError):
    """Nobody logged in, or the authorisation server refused it."""


class Redirect(Struct, frozen=True):
    """What came back; `issuer` is who says so, where it says."""

    code: str
    state: str
    issuer: str | None = None

    def __repr__(self) -> str:
        return "Redirect()"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return []


class Listener:
    """Listens on a port of this machine from the start of a login to its end.

    The browser is sent to the authorisation server with `uri` and the state that is `expect`ed.
    """

    def __init__(self, port: int = 0) -> None:
        self._wanted = port
        self._server: asyncio.Server | None = None
        self._state = ""
        self._found: asyncio.Future[Redirect] = asyncio.get_running_loop().create_future()
        self._found.add_done_callback(mark_exception_seen)
        self._visits: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "Listener":
        place = "127.0.0.1", self._wanted
        try:
            self._server = await asyncio.start_server(self._visited, *place, limit=_MOST_BYTES)
        except OSError as error:
            raise LoginFailed(f"port {self._wanted} is taken ({error.strerror})") from error
        return self

    async def __aexit__(self, *failure: object) -> None:
        assert self._server is not None
        self._server.close()
        if self._visits and self._found.done():
            await asyncio.wait(self._visits, timeout=_FAREWELL)  # the browser is still shown how it ended
        for visit in self._visits:
            visit.cancel()
        self._found.cancel()

    @property
    def port(self) -> int:
        """The port it listens on."""
        assert self._server is not None
        return self._server.sockets[0].getsockname()[1]

    @property
    def uri(self) -> str:
        """Where the browser is to come back to."""
        return f"http://127.0.0.1:{self.port}{_PATH}"

    def expect(self, state: str) -> None:
        """Take what comes back with this state; anything else is turned away."""
        self._state = state

    async def redirect(self) -> Redirect:
        return await self._found

    async def _visited(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visit = asyncio.current_task()
        assert visit is not None
        if self._server is not None and not self._server.is_serving():  # it came in the last moment
            writer.close()
            return
        self._visits.add(visit)
        try:
            async with asyncio.timeout(_PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
                status, text = self._judge(head.split(b"\r\n", 1)[0].decode("latin-1"))
                page = _PAGE.format(text).encode()
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nConnection: close\r\n"
                    f"Cache-Control: no-store\r\nContent-Length: {len(page)}\r\n\r\n".encode()
                    + page
                )
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # not the browser that is waited for
        except asyncio.CancelledError:
            pass  # the listener is closed; Python 3.11 reports a visit that ends so as an error
        finally:
            self._visits.discard(visit)
            writer.close()

    def _judge(self, line: str) -> tuple[str, str]:
        """Judge one visit by the first line of its request."""
        words = line.split(" ")
        parts = urlsplit(words[1] if len(words) == 3 and words[0] == "GET" else "")
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        state = query.get("state", "")
        is_ours = secrets.compare_digest(state.encode(), self._state.encode())
        if parts.path != _PATH or not self._state or not is_ours:
            return "404 Not Found", "There is nothing here."
        if self._found.done():
            return "200 OK", "This login has ended. You may close this window."
        if not (code := query.get("code")):
            reason = query.get("error", "it sent no code")[:200]
            self._found.set_exception(LoginFailed(f"the login was refused: {reason}"))
            return "200 OK", "The login was refused. You may close this window."
        self._found.set_result(Redirect(code, state, query.get("iss")))
        return "200 OK", "You are logged in. You may close this window and go back to swink."
