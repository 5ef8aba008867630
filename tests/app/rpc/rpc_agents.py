"""Agents that the tests of `swink rpc` serve: scripted ones that print, ask and wait."""

import asyncio

from swink import Agent, ToolCall, tool
from swink.testing import ScriptedModel

print("stray output of an import")


@tool
async def look() -> str:
    """Looks."""
    print("stray output of a tool")
    return "nothing"


@tool(requires_approval=True)
async def delete(path: str) -> str:
    """Deletes."""
    return f"deleted {path}"


@tool
async def wait() -> str:
    """Waits until it is cancelled."""
    await asyncio.Event().wait()
    return ""


def greeter() -> Agent:
    print("stray output of a factory")
    return Agent(
        "test:model", stream_fn=ScriptedModel([ToolCall("1", "look", {}), "Hello, world."]), tools=[look]
    )


def asker() -> Agent:
    script = ScriptedModel([ToolCall("call-1", "delete", {"path": "a"}), "Done."])
    return Agent("test:model", stream_fn=script, tools=[delete])


def waiter() -> Agent:
    script = ScriptedModel([ToolCall("1", "wait", {}), "Never."])
    return Agent("test:model", stream_fn=script, tools=[wait])


def listener() -> Agent:
    script = ScriptedModel(
        [ToolCall("call-1", "delete", {"path": "a"}), "I was steered.", "I was asked more."]
    )
    return Agent("test:model", stream_fn=script, tools=[delete])
