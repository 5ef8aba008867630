"""The same work on pydantic-ai."""

from collections.abc import AsyncIterator
from typing import Any

import work
from pydantic_ai import Agent, UsageLimits
from pydantic_ai.messages import PartDeltaEvent, PartStartEvent
from pydantic_ai.models.function import DeltaToolCall, FunctionModel


async def model(messages: Any, info: Any) -> AsyncIterator[Any]:
    kind, items = await work.next_step()
    if kind == "text":
        for text in items:
            yield text
        return
    for index, (id, name, written) in enumerate(items):
        yield {index: DeltaToolCall(name=name, tool_call_id=id)}
        yield {index: DeltaToolCall(json_args=written)}


agent = Agent(FunctionModel(stream_function=model), tools=[work.noop, work.slow])


async def run(old: Any) -> int:
    count = 0
    async with agent.run_stream_events("go", usage_limits=UsageLimits(request_limit=None)) as events:
        async for event in events:
            count += type(event) in (PartDeltaEvent, PartStartEvent)
    return count
