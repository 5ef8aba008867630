"""Doubles that many tests share: an agent with a script, a tool, a session, and errors of unusual kinds."""

import asyncio
from typing import Any

from swink import (
    Agent,
    tool,
)
from swink.testing import EventCollector, ScriptedModel


@tool
async def echo(text: str) -> str:
    """Say it back."""
    return text


def make(script: list[Any], **options: Any) -> tuple[Agent, EventCollector]:
    agent = Agent("test:m", stream_fn=ScriptedModel(script), **options)
    seen = EventCollector()
    agent.subscribe(seen)
    return agent, seen


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ZeroDivisionError


class Odd(BaseException):
    pass


class Kept:
    """A session in memory."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.state: dict[str, Any] = {}

    async def append(self, messages: Any) -> None:
        await asyncio.sleep(0)
        self.messages.extend(messages)
