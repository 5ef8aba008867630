"""Calling a tool as the loop does, without a loop."""

import asyncio
from typing import Any

from swink.messages import ToolResult
from swink.tools import Tool, ToolContext, ToolError, as_result
from swink.tools.coding.process import HeadAndTail, Launch, Limits, build_shell_argv, run
from swink.tools.coding.sandbox import Sandbox


def named(tools: list[Tool], name: str) -> Tool:
    return next(tool for tool in tools if tool.name == name)


async def call(
    tool: Tool, updates: list[Any] | None = None, state: dict[str, Any] | None = None, **arguments: Any
) -> ToolResult:
    """The tool's result; a ToolError is raised, not turned into one."""
    ctx = ToolContext("call", tool.name, state, None if updates is None else updates.append)
    return as_result(await tool.execute("call", arguments, ctx))


async def complaint(tool: Tool, **arguments: Any) -> str:
    """The text of the ToolError that a call must raise."""
    try:
        result = await call(tool, **arguments)
    except ToolError as error:
        return str(error)
    raise AssertionError(f"the call went through: {result.text}")


async def shell(box: Sandbox, command: str, limits: Limits | None = None) -> tuple[int, str]:
    """Exit code and output of a shell command in a sandbox."""
    output = HeadAndTail(200_000)
    launch: Launch = await box.launch(build_shell_argv(command), limits=limits or Limits(wall=20))
    ending = await run(launch, output.add)
    return ending.code, output.text()


async def eventually(condition: Any, seconds: float = 60.0) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)
