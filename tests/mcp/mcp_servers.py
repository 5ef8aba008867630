"""Servers for the MCP tests, real processes all of them, and agents that call their tools."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from swink import Agent, ToolCall
from swink.mcp import McpServers, StdioServer
from swink.testing import ScriptedModel, history_problems

HERE = Path(__file__).parent


def bare(how: str = "plain", name: str = "bare", **options: Any) -> StdioServer:
    return StdioServer(
        name, sys.executable, [str(HERE / "bare_server.py"), how], **{"requires_approval": False, **options}
    )


def sdk(name: str = "sdk", **options: Any) -> StdioServer:
    return StdioServer(
        name, sys.executable, [str(HERE / "sdk_server.py")], **{"requires_approval": False, **options}
    )


@contextmanager
def http_server(port: int = 0) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    process = subprocess.Popen(
        [sys.executable, str(HERE / "sdk_server.py"), "http", str(port)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline()), process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()


def call(name: str, number: int = 1, **arguments: Any) -> ToolCall:
    return ToolCall(f"call_{number}", name, arguments)


def agent_of(servers: McpServers, *replies: Any, **options: Any) -> Agent:
    return Agent("test:model", stream_fn=ScriptedModel(replies), tools=servers.tools, **options)


async def results(servers: McpServers, *calls: ToolCall, **options: Any) -> list[Any]:
    agent = agent_of(servers, list(calls), "done", **options)
    await agent.run("Go.")
    assert not history_problems(agent.messages)
    return [message for message in agent.messages if message.role == "tool_result"]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def leftovers() -> list[str]:
    return [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("swink-mcp")]


def rich(version: str = "2025-11-25", *said: str, name: str = "rich", **options: Any) -> StdioServer:
    arguments = [str(HERE / "rich_server.py"), version, *said]
    return StdioServer(name, sys.executable, arguments, **{"requires_approval": False, **options})
