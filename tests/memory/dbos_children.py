"""A warm process that forks children with a durable agent, so that a test can kill them.

A line on standard input starts a child: `{"engine": url, "sessions": place, "log": path, "name": text}`. It
launches the engine, asks for the run "job" and writes what the model said in the end to `<log>.<name>`.
A line `{"program": text, "directory": path}` runs a program there, with its output in the file `output`.
What its tools do among `"hang": [texts]` does not return before there is a file `<log>.free`.
"""

import asyncio
import json
import os
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

from dbos import DBOS

from swink import Agent, ToolCall, ToolResultMessage, tool
from swink.memory import Session, SqliteStore, Store
from swink.memory.dbos import DurableAgent
from swink.testing import ScriptedModel


def store_at(place: str) -> Store:
    if place.startswith("postgresql"):
        from swink.memory import PostgresStore

        return PostgresStore(place)
    return SqliteStore(place)


def run(program: str, directory: str) -> None:
    os.chdir(directory)
    for output in (1, 2):
        os.dup2(os.open("output", os.O_WRONLY | os.O_CREAT | os.O_APPEND), output)
    warnings.simplefilter("error")
    exec(compile(program, "program.py", "exec"), {"__name__": "__main__"})
    sys.stdout.flush()


def main(order: dict[str, Any]) -> None:
    log = Path(order["log"])

    async def act(text: str) -> None:
        with log.open("a") as file:
            file.write(text + "\n")
        while text in order["hang"] and not log.with_suffix(".free").exists():
            await asyncio.sleep(0.01)

    @tool
    async def pay(what: str) -> str:
        """Pay something; never twice."""
        await act(f"pay {what}")
        return f"paid {what}"

    @tool(read_only=True)
    async def look(what: str) -> str:
        """Look at something, as often as you like."""
        await act(f"look {what}")
        return f"saw {what}"

    def answer(context: Any) -> Any:
        results = [message for message in context.messages if isinstance(message, ToolResultMessage)]
        match len(results):
            case 0:
                return ToolCall("1", "pay", {"what": "gas"})
            case 1:
                return [ToolCall("2", "pay", {"what": "rent"}), ToolCall("3", "look", {"what": "bill"})]
            case _:
                return "; ".join(result.text for result in results)

    def make_agent(session: Session) -> Agent:
        return Agent("test:m", stream_fn=ScriptedModel([answer] * 9), tools=[pay, look], session=session)

    durable = DurableAgent(make_agent, store_at(order["sessions"]))
    DBOS(
        config={
            "name": "swink-test",
            "system_database_url": order["engine"],
            "application_version": "1",
            "log_level": "CRITICAL",
        }
    )
    DBOS.launch()
    log.with_suffix(".ready").touch()
    result = asyncio.run(durable.run("job", "Pay the bills."))
    log.with_suffix(f".{order['name']}").write_text(result.text)


if __name__ == "__main__":
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            print(os.waitstatus_to_exitcode(os.waitpid(order["wait"], 0)[1]), flush=True)
            continue
        if (child := os.fork()) == 0:
            code = 1
            try:
                run(**order) if "program" in order else main(order)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        print(child, flush=True)
