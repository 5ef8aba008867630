"""A tool server on standard input and output: one client, until its input ends."""

from collections.abc import AsyncGenerator
from contextlib import nullcontext

from swink.serve.mcp.toolserver import ToolServer
from swink.system.standardlines import StandardLines, claim_lines


async def serve_stdio(tools: ToolServer, streams: StandardLines | None = None) -> None:
    """Serve the client at the other end of standard input and output.

    A program that prints while it is imported claims them before that, with
    `swink.system.standardlines.claim_lines`, and gives them here; else they are claimed now.
    """
    with claim_lines() if streams is None else nullcontext(streams) as claimed:
        try:
            async with tools.sdk.stdio_server(_Input(claimed), _Output(claimed)) as (received, sent):
                await tools.server.run(received, sent, tools.server.create_initialization_options())
        finally:
            await tools.aclose()


class _Input:
    """Lines as the SDK reads them."""

    def __init__(self, streams: StandardLines) -> None:
        self._streams = streams

    async def __aiter__(self) -> AsyncGenerator[str, None]:
        async for line in self._streams.lines():
            # A line that is too long is answered like any other that is no message.
            yield "" if line is None else line.decode("utf-8", "replace")


class _Output:
    """Where the SDK writes texts, each of them a whole line."""

    def __init__(self, streams: StandardLines) -> None:
        self._streams = streams

    async def write(self, text: str) -> None:
        await self._streams.write(text.encode())

    async def flush(self) -> None:
        """Nothing is to be done: each write is whole."""
