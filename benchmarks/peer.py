"""The same work on swink."""

from collections.abc import AsyncIterator
from typing import Any

import work

from swink import Agent, AssistantMessage, Usage, UserMessage
from swink.events import MessageUpdate
from swink.stream import Done, Start, TextDelta, TextEnd, TextStart, ToolCallDelta, ToolCallEnd, ToolCallStart


def history(count: int) -> list[Any]:
    return [
        UserMessage(f"message {number}") if number % 2 == 0 else AssistantMessage(f"message {number}")
        for number in range(count)
    ]


async def model(model: Any, context: Any, options: Any) -> AsyncIterator[Any]:
    kind, items = await work.next_step()
    yield Start()
    if kind == "text":
        yield TextStart(0)
        for text in items:
            yield TextDelta(0, text)
        yield TextEnd(0)
        yield Done("stop", Usage(input=1, output=len(items)))
    else:
        for index, (id, name, arguments) in enumerate(items):
            yield ToolCallStart(index, id, name)
            yield ToolCallDelta(index, arguments)
            yield ToolCallEnd(index)
        yield Done("tool_use", Usage(input=1, output=1))


async def run(old: Any) -> int:
    agent = Agent("test:script", stream_fn=model, tools=[work.noop, work.slow], messages=old or ())
    count = 0
    async with agent.stream("go") as stream:
        async for event in stream:
            count += type(event) is MessageUpdate and type(event.delta) is TextDelta
    return count
