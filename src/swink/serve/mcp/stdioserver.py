"""A tool server on standard input and output: one client, until its input ends."""

from collections.abc import AsyncGenerator

from swink.serve.mcp.toolserver import ToolServer
from swink.system.standardlines import StandardLines


async def serve_stdio(tools: ToolServer, streams: StandardLines) -> None:
    """Serve the client at the other end of the streams, which `swink.system.standardlines.claim_lines` gives.

    They are claimed before anything else is imported or made, so that nothing else is ever written there.
    """
    try:
        async with tools.sdk.stdio_server(_Input(streams), _Output(streams)) as (received, sent):
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
        """Nothing is held back."""
