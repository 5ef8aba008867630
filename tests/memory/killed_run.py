"""A run with a tool that counts, killed before every step of it in turn, and continued by another process.

`killed_run.py DIRECTORY jsonl|sqlite STRIDE` prints, for every step, what was counted, what is wrong with the history
of the session, and the results in it. The processes are forked from this one, which has imported everything.
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from swink import Agent, ToolCall, tool
from swink.errors import SessionNotFound
from swink.memory import JsonlStore, SqliteStore, Store
from swink.messages import ToolResultMessage
from swink.testing import ScriptedModel, history_problems

ROOT, KIND, STRIDE = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])


def main() -> None:
    outcomes: list[Any] = []
    step = 0
    while forked(step, die=True) is None:
        _, problems, results = forked(step, die=False) or (0, ["the second process died"], {})
        counted = ROOT / f"counted-{step}"
        names = counted.read_text().split() if counted.exists() else []
        outcomes.append([step, names, problems, results])
        step += STRIDE
    print(json.dumps(outcomes))


def forked(step: int, *, die: bool) -> Any:
    """A run in a child: what it returned, or None if it was killed."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.write(write, json.dumps(asyncio.run(run(step, die=die))).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code in (0, -signal.SIGKILL), code
    return json.loads(said) if code == 0 else None


async def run(step: int, *, die: bool) -> Any:
    """The first run, killed at its step of that number; or the one that continues what it left."""
    passed = 0

    def pass_by(*_: object) -> None:
        nonlocal passed
        if die and passed == step:
            os.kill(os.getpid(), signal.SIGKILL)
        passed += 1

    @tool
    async def count(name: str) -> str:
        """Count."""
        pass_by()
        descriptor = os.open(ROOT / f"counted-{step}", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, f"{name}\n".encode())
        os.close(descriptor)
        pass_by()
        return f"counted {name}"

    store: Store = JsonlStore(ROOT / "sessions") if KIND == "jsonl" else SqliteStore(ROOT / "sessions.db")
    id = f"run-{step}"
    try:
        session = await (store.create(id=id) if die else store.open(id))
    except SessionNotFound:
        return passed, [], {}
    calls = [ToolCall(name, "count", {"name": name}) for name in ("a", "b")]
    script: list[Any] = [calls, [ToolCall("c", "count", {"name": "c"})], "done"]
    agent = Agent(
        "test:m", stream_fn=ScriptedModel(script if die else ["resumed"]), tools=[count], session=session
    )
    agent.subscribe(pass_by)
    await agent.run("go" if die else "and now?")
    await store.aclose()
    results = {
        message.tool_call_id: message.text
        for message in session.messages
        if isinstance(message, ToolResultMessage)
    }
    return passed, history_problems(session.messages), results


if __name__ == "__main__":
    main()
