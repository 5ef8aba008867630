"""A server written with the SDK's own API: over stdio, or over HTTP on a free port that it prints."""

import asyncio
import os
import socket
import sys
from pathlib import Path

import uvicorn
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("test")
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
)


@server.tool()
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@server.tool()
def echo(text: str) -> str:
    """Says it back."""
    return text


@server.tool()
def picture() -> Image:
    """Draws."""
    return Image(data=PIXEL, format="png")


@server.tool()
def fail(text: str) -> str:
    """Fails."""
    raise ToolError(text)


@server.tool()
def environment() -> list[str]:
    """Names of the environment."""
    return sorted(os.environ)


@server.tool()
async def slow(seconds: float, mark: str, ctx: Context) -> str:
    """Takes its time, and writes down if it is cancelled."""
    await ctx.report_progress(1, 2, "half way")
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        Path(mark).write_text("cancelled")
        raise
    return "done"


@server.tool()
def crash() -> str:
    """Dies."""
    os._exit(3)


def main() -> None:
    if not sys.argv[1:]:
        server.run()
        return
    listening = socket.create_server(("127.0.0.1", int(sys.argv[2])))
    print(listening.getsockname()[1], flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="error")
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
