"""A crash in the middle of a tool: the next process takes up the run, and nothing is paid twice."""

import asyncio
import os
import subprocess
import sys

from swink import Agent, ToolCall, tool
from swink.errors import SessionNotFound
from swink.memory import JsonlStore
from swink.testing import ScriptedModel

store = JsonlStore("conversations")


@tool
async def pay(invoice: int) -> str:
    """Pay an invoice."""
    print(f"paying invoice {invoice}", flush=True)
    if invoice == 2:
        os._exit(1)  # the machine loses power: did the bank get it?
    return "paid"


@tool(read_only=True)
async def account() -> str:
    """The latest payments: it only reads, so it may run again."""
    return "invoice 1, invoice 2"


script = [
    ToolCall("call_1", "pay", {"invoice": 1}),
    ToolCall("call_2", "pay", {"invoice": 2}),
    ToolCall("call_3", "account", {}),
    "Both invoices are paid.",
]


async def main() -> None:
    tools = [pay, account]
    try:
        session = await store.open("invoices")
    except SessionNotFound:
        session = await store.create(id="invoices")
        await Agent("test:scripted", stream_fn=ScriptedModel(script), tools=tools, session=session).run(
            "Pay."
        )
        return
    print(f"taking up a run with {len(session.messages)} messages", flush=True)
    agent = Agent("test:scripted", stream_fn=ScriptedModel(script[2:]), tools=tools, session=session)
    for message in (await agent.run()).messages:
        print(f"{message.role}: {message.text or 'calls a tool'}")


if "--first" not in sys.argv:
    subprocess.run([sys.executable, __file__, "--first"])  # dies in the middle
asyncio.run(main())
