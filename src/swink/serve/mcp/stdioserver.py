"""A tool server on standard input and output: one client, until its input ends."""

from collections.abc import AsyncGenerator
from contextlib import nullcontext

from swink.serve.mcp.toolserver import ToolServer
from swink.system.linepipes import LinePipes, claimed_descriptors


async def serve_stdio(tools: ToolServer, descriptors: tuple[int, int] | None = None) -> None:
    """Serve the client at the other end of standard input and output.

    A program that prints while it is imported claims them before that, with
    `swink.system.linepipes.claimed_descriptors`, and gives them here; else they are claimed now.
    """
    with claimed_descriptors() if descriptors is None else nullcontext(descriptors) as claimed:
        pipes = LinePipes(*claimed)
        try:
            async with tools.sdk.stdio_server(_Input(pipes), _Output(pipes)) as (received, sent):
                await tools.server.run(received, sent, tools.server.create_initialization_options())
        finally:
            pipes.hurry()
            try:
                await tools.aclose()
            finally:
                await pipes.aclose()


class _Input:
    """Lines as the SDK reads them."""

    def __init__(self, pipes: LinePipes) -> None:
        self._pipes = pipes

    async def __aiter__(self) -> AsyncGenerator[str, None]:
        async for line in self._pipes.lines():
            # A line that is too long is answered like any other that is no message.
            yield "" if line is None else line.decode("utf-8", "replace")


class _Output:
    """Where the SDK writes texts, each of them a whole line."""

    def __init__(self, pipes: LinePipes) -> None:
        self._pipes = pipes

    async def write(self, text: str) -> None:
        self._pipes.send(text.encode().removesuffix(b"\n"))
        await self._pipes.drained()

    async def flush(self) -> None:
        """Nothing is to be done: lines are written as soon as they can be."""
