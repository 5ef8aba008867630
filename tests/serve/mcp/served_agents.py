"""Agents that the tests serve: scripted ones, with tools that print, need approval or take their time."""

import asyncio
import os
from pathlib import Path

from msgspec import Struct

from swink import Agent, ToolCall, tool
from swink.testing import ScriptedModel

print("stray output of an import")
DELETED: list[str] = []
"""What was deleted in this process."""


class City(Struct):
    """An answer that has a type."""

    name: str
    people: int


@tool
async def look() -> str:
    """Looks."""
    print("stray output of a tool")
    return "nothing"


@tool(requires_approval=True)
async def delete(path: str) -> str:
    """Deletes."""
    DELETED.append(path)
    return f"deleted {path}"


@tool
async def wait(mark: str) -> str:
    """Waits until it is cancelled, and writes down that it began and that it ended."""
    Path(mark).write_text("began")
    try:
        await asyncio.Event().wait()
    finally:
        Path(mark).write_text("ended")
    return ""


def greeter() -> Agent:
    """Greets the world."""
    print("stray output of a factory")
    return Agent(
        "test:model", stream_fn=ScriptedModel([ToolCall("1", "look", {}), "Hello, world."]), tools=[look]
    )


def cautious() -> Agent:
    """Deletes after asking."""
    calls = [ToolCall("1", "delete", {"path": "a"}), ToolCall("2", "delete", {"path": "b"})]
    return Agent("test:model", stream_fn=ScriptedModel([calls, "Done."]), tools=[delete], name="careful one")


async def cartographer() -> Agent:
    return Agent("test:model", stream_fn=ScriptedModel(['{"name": "Oslo", "people": 700000}']), output=City)


def failing() -> Agent:
    """Has a model that has nothing to say."""
    return Agent("test:model", stream_fn=ScriptedModel([]))


def waiter() -> Agent:
    """Waits; its tool writes down in the file MARK that it began and that it ended."""
    script = ScriptedModel([ToolCall("1", "wait", {"mark": os.environ["MARK"]}), "Never."])
    return Agent("test:model", stream_fn=script, tools=[wait])
