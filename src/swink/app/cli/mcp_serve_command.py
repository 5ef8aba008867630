"""`swink mcp serve`: an agent of a program as a tool for MCP clients."""

import argparse
import asyncio
import os
import sys
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, cast

from swink.app.cli.terminal import say
from swink.errors import MisuseError
from swink.stream.urls import is_loopback
from swink.system.interrupts import interruptible
from swink.system.linepipes import claimed_descriptors
from swink.system.loading import load_object
from swink.system.threads import run_to_end

if TYPE_CHECKING:
    from swink.serve.mcp import ToolServer
    from swink.serve.mcp.agenttool import Factory

_TOKEN = "SWINK_SERVE_TOKEN"


def serve_command(arguments: argparse.Namespace) -> int:
    """Serve the agent on standard input and output, or over HTTP, until a signal or the client ends it."""
    if not arguments.http and (arguments.host is not None or arguments.port is not None):
        raise MisuseError("--host and --port are for --http; without it the server has one client, on stdin")
    token = os.environ.get(_TOKEN, "").strip() or None
    host = arguments.host or "127.0.0.1"
    if arguments.http and token is None and not is_loopback(host):
        remedy = f"set {_TOKEN} to a token that clients must send"
        raise MisuseError(f"serving on {host} lets the whole network use the agent; {remedy}")
    if arguments.http:
        return run_to_end(_until_signal(_serve_http(arguments, host, token)))
    if sys.stdin.isatty():
        say(
            "a client starts swink mcp serve and talks to it on standard input and output",
            "dim",
        )
    with claimed_descriptors() as descriptors:
        return run_to_end(_until_signal(_serve_stdio(arguments, descriptors)))


async def _until_signal(serving: Coroutine[Any, Any, None]) -> int:
    task = asyncio.create_task(serving)
    with interruptible(task.cancel):
        await asyncio.wait((task,))
    if not task.cancelled():
        task.result()
    return 0


async def _serve_stdio(arguments: argparse.Namespace, descriptors: tuple[int, int]) -> None:
    from swink.serve.mcp import serve_stdio

    await serve_stdio(await _open(arguments), descriptors)


async def _serve_http(arguments: argparse.Namespace, host: str, token: str | None) -> None:
    from swink.serve.mcp import serve_http

    server = await _open(arguments)
    async with serve_http(server, host, arguments.port or 0, token) as url:
        print(url, flush=True)
        say(f"serving{f' to holders of {_TOKEN}' if token else ''}; Ctrl-C stops it")
        if not is_loopback(host):
            remedy = "put a reverse proxy with https in front"
            say(f"the token and what is said travel in clear text; {remedy}", "warning")
        await asyncio.Event().wait()


async def _open(arguments: argparse.Namespace) -> "ToolServer":
    """The server of one tool; the program's module is imported here, when nothing it prints does harm."""
    from swink.serve.mcp import AgentTool, ToolServer

    factory = load_object(arguments.factory, "swink mcp serve")
    if not callable(factory):
        wrong = f"is {type(factory).__name__}, not a function without arguments that makes an agent"
        raise MisuseError(f"swink mcp serve {arguments.factory} {wrong}")
    tool = await AgentTool.open(cast("Factory", factory), arguments.name, arguments.description)
    return await ToolServer.open(tool.served.name, [tool.served])
