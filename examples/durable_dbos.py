"""A run as a workflow of DBOS: its process dies in the middle, and the next one finishes it by itself."""

import asyncio
import os
import subprocess
import sys

from dbos import DBOS

from swink import Agent, ToolCall, ToolResultMessage, tool
from swink.memory import Session, SqliteStore
from swink.memory.dbos import DurableAgent
from swink.stream import LlmContext
from swink.testing import ScriptedModel


@tool
async def book(room: str) -> str:
    """Book a room."""
    print(f"booking {room}", flush=True)
    if "--first" in sys.argv:
        os._exit(1)  # after the effect, before anybody knows of it
    return "booked"


def answer(context: LlmContext) -> ToolCall | str:
    """A model that goes by the conversation, whichever process asks it."""
    last = context.messages[-1]
    return last.text if isinstance(last, ToolResultMessage) else ToolCall("1", "book", {"room": "Aurora"})


def make_agent(session: Session) -> Agent:
    return Agent("test:scripted", stream_fn=ScriptedModel([answer] * 2), tools=[book], session=session)


async def main() -> None:
    durable = DurableAgent(make_agent, SqliteStore("sessions.db"), name="booking")
    DBOS(
        config={
            "name": "hotel",
            "system_database_url": "sqlite:///engine.sqlite",  # or postgresql://…
            "log_level": "CRITICAL",
        }
    )
    DBOS.launch()  # takes up what was interrupted
    result = await durable.run("guest-17", "Book the room Aurora.")
    print(result.text)
    DBOS.destroy()


if "--first" not in sys.argv:
    subprocess.run([sys.executable, __file__, "--first"])  # dies in the middle
asyncio.run(main())
