"""One program instead of many calls: a model writes Python that calls the tools, and sees what it returns."""

import asyncio

from swink import Agent, ToolCall, tool
from swink.testing import ScriptedModel
from swink.tools import code_mode

STOCK = {"Lyon": 3, "Turin": 0, "Graz": 12, "Porto": 0}


@tool(read_only=True)
async def shops() -> list[str]:
    """List the shops."""
    return list(STOCK)


@tool(read_only=True)
async def stock(shop: str) -> int:
    """How many pieces a shop has."""
    return STOCK[shop]


@tool
async def order(shop: str, pieces: int) -> str:
    """Order pieces for a shop."""
    return f"ordered {pieces} for {shop}"


PROGRAM = """
import asyncio
names = shops()
counts = await asyncio.gather(*[stock(name) for name in names])
empty = [name for name, count in zip(names, counts) if count == 0]
[order(name, 10) for name in empty]
"""


async def main() -> None:
    # A scripted model, so that the example runs without a key: this is what a model would write.
    model = ScriptedModel(
        [[ToolCall("call_1", "run_code", {"code": PROGRAM})], "Turin and Porto get ten each."]
    )
    agent = Agent("test:model", stream_fn=model, tools=[code_mode([shops, stock, order])])
    result = await agent.run("Order ten pieces for every shop that has none.")
    print(result.messages[2].text)
    print(result.text)


if __name__ == "__main__":
    asyncio.run(main())
