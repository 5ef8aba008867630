"""A server on loopback that leaves neither a task nor a socket behind, wherever its clients are cut off."""

import asyncio
from collections.abc import Awaitable, Callable

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class TalkServer:
    """Serves each connection by a task of its own, between `start` and `stop`."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._visits: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def start(self) -> int:
        """Listen, and give the port."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Let nobody in, and end every visit, also of those who stand in the door."""
        self._server.close()
        for _ in range(5):
            await asyncio.sleep(0)
        visits = {**self._visits}
        for visit in visits:
            visit.cancel()
        if visits:
            await asyncio.wait(visits)
        for writer in visits.values():
            writer.transport.abort()
        await asyncio.gather(*(writer.wait_closed() for writer in visits.values()), return_exceptions=True)
        await self._server.wait_closed()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # No coroutine: it is called before anything can cancel it.
        visit = asyncio.ensure_future(self._visit(reader, writer))
        self._visits[visit] = writer
        visit.add_done_callback(self._ended)

    async def _visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._talk(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client is gone
        finally:
            writer.close()

    def _ended(self, visit: asyncio.Task[None]) -> None:
        writer = self._visits.pop(visit)
        if visit.cancelled():
            writer.transport.abort()
        else:
            visit.result()
