"""A worker of a served agent, in a process of its own: `worker.py STORE SECONDS DIRECTORY`.

`STORE` is an expression; a claim lasts so many seconds. What really happened is in the directory: each request and
each start of a tool is a line of the file `log`. A reply waits behind a "|" until there is a file `go`, and so does the
tool. The address is the one line of standard output.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from swink import Agent, ToolCall, tool
from swink.memory import PostgresStore, SqliteStore, Store
from swink.messages import ToolResultMessage
from swink.serve.agentapp import agent_app
from swink.serve.asgi import serve_app
from swink.serve.hosting import ServeLimits
from swink.stream import TextDelta
from swink.testing import ScriptedModel

STORE, SECONDS, DIRECTORY = sys.argv[1], float(sys.argv[2]), Path(sys.argv[3])
LOG = os.open(DIRECTORY / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def note(line: str) -> None:
    os.write(LOG, f"{line}\n".encode())


async def gate() -> None:
    while not (DIRECTORY / "go").exists():
        await asyncio.sleep(0.01)


@tool
async def count(what: str) -> str:
    """Count something."""
    note(f"count {what}")
    await gate()
    return f"counted {what}"


async def reply(model: Any, context: Any, options: Any) -> AsyncIterator[Any]:
    """Says what the last prompt has: `say a b|c` word by word, `count x` with a call of the tool."""
    last = context.messages[-1]
    note(f"ask {last.text}")
    match last:
        case ToolResultMessage():
            said: Any = ["all ", "done"]
        case _ if last.text.startswith("count "):
            said = ToolCall(f"call-{len(context.messages)}", "count", {"what": last.text[6:]})
        case _:
            said = [f"{word} " for word in last.text.split()[1:]]
    async for event in ScriptedModel([said])(model, context, options):
        yield event
        if isinstance(event, TextDelta) and "|" in event.text:
            await gate()


async def main() -> None:
    store: Store = eval(STORE, {"SqliteStore": SqliteStore, "PostgresStore": PostgresStore})
    limits = ServeLimits(lease_seconds=SECONDS)
    app = agent_app(
        lambda request: Agent("test:m", stream_fn=reply, tools=[count]), store=store, limits=limits
    )
    async with serve_app(app) as url:
        print(url, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)  # until the test closes it
        await app.aclose()
    await store.aclose()


if __name__ == "__main__":
    asyncio.run(main())
