"""Conversations as other providers leave them: what an adapter must be able to go on with.

`foreign_history(provider, model)` holds thinking signed and unsigned, redacted thinking, parallel calls with the ids of that
provider, images in questions and results, a turn that was cut off, and one that says nothing.
"""

import asyncio
from collections.abc import Sequence

from swink.messages import (
    AssistantMessage,
    Base64Source,
    Extension,
    Image,
    LlmMessage,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)

PICTURE = Image(Base64Source("iVBORw0KGgo=", "image/png"))
IDS = {
    "anthropic": ("toolu_01A09q90qw90lq917835lq9", "toolu_01B09q90qw90lq917835lq9"),
    "openai": ("call_" + "x" * 450, "fc_1|call_2"),
    "mistral": ("aB3dE6gH9", "bB3dE6gH9"),
    "gemini": ("swink-0123456789abcdef0123", "function-call:1"),
    "bedrock": ("tooluse_kZJMlvQmRJ6eAyJE5GIl7Q", "tooluse_2"),
    "ollama": ("call_0123456789abcdef0123", "call_ü"),
}


def foreign_history(provider: str, model: str) -> list[LlmMessage]:
    first, second = IDS[provider]
    return [
        UserMessage([Text("Look at this."), PICTURE]),
        AssistantMessage(
            [
                Thinking("Let me see.", "c2lnbmVk"),
                Thinking("", "b3BhcXVl", True),
                Thinking("", "text:c2lnbmVk", True),
                Text("Two tools at once."),
                ToolCall(first, "weather", {"city": "Oslo"}, None, "Y2FsbA=="),
                ToolCall(second, "shot", {}),
            ],
            provider,
            model,
            "tool_use",
        ),
        ToolResultMessage(first, "weather", "18 °C"),
        ToolResultMessage(second, "shot", [Text("Here."), PICTURE], details={"private": True}),
        AssistantMessage([Text("")], provider, model),
        UserMessage([Text("Go on."), Extension("something", {"x": 1})]),
        AssistantMessage(
            [Thinking("cut"), ToolCall(first, "weather", {}, '{"ci')], provider, model, "aborted"
        ),
        UserMessage("Still there?"),
    ]


class Stalling:
    """A client whose answers never go on; it notes what was closed."""

    def __init__(self, status: int = 200, head: bytes = b"") -> None:
        self.status = status
        self.headers = {"content-type": "application/octet-stream"}
        self.waiting = asyncio.Event()
        self.closed = 0
        self._chunks: Sequence[bytes] = [head] if head else []

    async def send(self, request: object, timeout: object) -> "Stalling":
        return self

    def __aiter__(self) -> "Stalling":
        return self

    async def __anext__(self) -> bytes:
        if self._chunks:
            head, self._chunks = self._chunks[0], []
            return head
        self.waiting.set()
        await asyncio.Event().wait()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.closed += 1


async def cancel_while_waiting(reading, client: Stalling) -> None:
    """Cancel a reply that waits for bytes; it must stop at once and give its connection back."""
    task = asyncio.ensure_future(reading)
    async with asyncio.timeout(20):
        await client.waiting.wait()
        task.cancel()
        await asyncio.wait([task])
    assert task.cancelled()
    assert client.closed >= 1
