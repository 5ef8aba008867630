"""Stream a run: text as it arrives, tools as they start and end."""

import asyncio

from swink import Agent, ToolCall, ToolContext, tool
from swink.events import MessageUpdate, ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate, TurnEnd
from swink.stream import TextDelta
from swink.testing import Pause, ScriptedModel


@tool
async def count(upto: int, ctx: ToolContext) -> int:
    """Count slowly.

    Args:
        upto: The last number.
    """
    for number in range(1, upto + 1):
        ctx.update(number)
        await asyncio.sleep(0.02)
    return upto


async def main() -> None:
    words = ["I ", Pause(0.02), "counted ", Pause(0.02), "to ", Pause(0.02), "three."]
    agent = Agent(
        "test:scripted",
        stream_fn=ScriptedModel([["Let me count. ", ToolCall("1", "count", {"upto": 3})], words]),
        tools=[count],
    )
    async with agent.stream("Count to three") as run:
        async for event in run:
            match event:
                case MessageUpdate(delta=TextDelta(text=text)):
                    print(text, end="", flush=True)
                case ToolExecutionStart(name=name, arguments=arguments):
                    print(f"\n→ {name} {arguments}", end="", flush=True)
                case ToolExecutionUpdate(update=update):
                    print(f" {update}", end="", flush=True)
                case ToolExecutionEnd(is_error=is_error):
                    print(" ✗" if is_error else " ✓")
                case TurnEnd(reason=reason):
                    print(f"\n[{reason}]" if reason == "complete" else "", flush=True)
                case _:
                    pass
        result = (await run.result()).raise_for_error()
    print(f"{result.usage.total} tokens, stopped by {result.stop_reason}")


asyncio.run(main())
