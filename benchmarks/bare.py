"""The floor: a hand-written agent loop on dicts, as little as can be."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import work

TOOLS = {"noop": work.noop, "slow": work.slow}


def history(count: int) -> list[dict[str, Any]]:
    return [
        {"role": "user" if number % 2 == 0 else "assistant", "content": f"message {number}"}
        for number in range(count)
    ]


async def model() -> AsyncIterator[dict[str, Any]]:
    kind, items = await work.next_step()
    if kind == "text":
        for text in items:
            yield {"type": "text_delta", "delta": text}
    else:
        for id, name, arguments in items:
            yield {"type": "tool_call", "id": id, "name": name, "arguments": arguments}


async def loop(messages: list[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    while True:
        text: list[str] = []
        calls: list[dict[str, Any]] = []
        async for event in model():
            if event["type"] == "text_delta":
                text.append(event["delta"])
            else:
                calls.append(event)
            yield event
        messages.append({"role": "assistant", "content": "".join(text), "tool_calls": calls})
        if not calls:
            return
        results = await asyncio.gather(
            *[TOOLS[call["name"]](**json.loads(call["arguments"])) for call in calls]
        )
        messages.extend(
            {"role": "tool", "id": call["id"], "content": result}
            for call, result in zip(calls, results, strict=True)
        )


async def run(old: Any) -> int:
    count = 0
    async for event in loop([*(old or ()), {"role": "user", "content": "go"}]):
        count += event["type"] == "text_delta"
    return count
