"""The two ways to a server: the process of a stdio server, and what watches what goes to and fro."""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from swink.mcp.probing import ProtocolProbe
from swink.mcp.sdk import Sdk
from swink.mcp.serverconfig import StdioServer, own_directory
from swink.mcp.serveroutput import broken_reply
from swink.mcp.taskrequests import make_room
from swink.system.programs import environment, find_program, passed_over
from swink.system.writable import is_writable_by_model

log = logging.getLogger("swink.mcp")


@asynccontextmanager
async def watched(
    transport: Any, ended: asyncio.Event, sdk: Sdk, probe: ProtocolProbe | None
) -> AsyncGenerator[tuple[Any, Any]]:
    """A transport that sets an event when the server has closed its end; `probe` sees what goes through."""
    async with transport as (read, write):
        reading = _WatchedStream(read, ended, sdk, probe)
        if probe is None:
            yield reading, write
            return
        try:
            yield reading, _ProbedStream(write, probe)
        finally:
            await probe.close()


class _ProbedStream:
    """The writing end of a transport, with a probe that sees what is sent."""

    def __init__(self, stream: Any, probe: ProtocolProbe) -> None:
        self._stream = stream
        self._probe = probe

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def send(self, item: Any) -> None:
        self._probe.saw_sent(item)
        await self._stream.send(item)

    async def __aenter__(self) -> "_ProbedStream":
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *failure: Any) -> Any:
        return await self._stream.__aexit__(*failure)


class _WatchedStream:
    """The reading end of a transport; a reply that cannot be read is an error of the call it was for."""

    def __init__(self, stream: Any, ended: asyncio.Event, sdk: Sdk, probe: ProtocolProbe | None) -> None:
        self._stream = stream
        self._ended = ended
        self._sdk = sdk
        self._probe = probe

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> "_WatchedStream":
        return self

    async def __anext__(self) -> Any:
        while True:
            try:
                reading = anext(self._stream) if self._probe is None else self._probe.read(self._stream)
                item = await reading
            except StopAsyncIteration:
                self._ended.set()
                raise
            if not isinstance(item, Exception):
                make_room(item)
                return item
            broken = broken_reply(item)
            if broken is None:
                continue  # chatter; the SDK would start a task for each line
            if broken.call_id is None:  # any call under way may wait for it: a new connection is needed
                log.warning("an MCP server is left: %s", broken.reason)
                self._ended.set()
                raise StopAsyncIteration
            return self._sdk.error_reply(broken.call_id, broken.reason)

    async def __aenter__(self) -> "_WatchedStream":
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *failure: Any) -> Any:
        return await self._stream.__aexit__(*failure)


def parameters_of(server: StdioServer, sdk: Sdk) -> Any:
    """How to start the server; its environment is PATH and what is configured, nothing else of ours."""
    env = environment({"PATH": os.environ.get("PATH", os.defpath), **server.env})
    directory = _directory(server)
    command = _command(server, directory, env.get("PATH", ""))
    if os.name != "posix":
        return sdk.parameters(command, list(server.args), env, directory)
    # The SDK adds HOME and others to what it is given; env(1) takes them out again before the server starts.
    unwanted = [f"-u{name}" for name in sdk.inherited if name not in env]
    starter = find_program("env") or "/usr/bin/env"
    return sdk.parameters(starter, [*unwanted, command, *server.args], env, directory)


def _directory(server: StdioServer) -> str:
    """Where the server starts: programs obey files of their directory, so no model may write there."""
    directory = os.path.abspath(server.cwd or ".")
    if server.cwd is None and is_writable_by_model(directory):
        directory = own_directory(server.name)
    if directory == own_directory(server.name):
        os.makedirs(directory, 0o700, exist_ok=True)
    return directory


def _command(server: StdioServer, directory: str, path: str) -> str:
    if os.path.dirname(server.command):
        return os.path.join(directory, os.path.expanduser(server.command))
    found = find_program(server.command, path)
    if found is None:
        other = passed_over(server.command)
        hint = f" ({other} is not used, because the model can write it: give its whole path)" if other else ""
        raise FileNotFoundError(f"there is no command {server.command!r} in its PATH{hint}")
    return found
