"""Ten minutes of mixed faults; fails if memory, open files, tasks or threads grow.

python benchmarks/soak.py [--seconds 600]

A server on loopback answers, calls tools, refuses, sends rubbish, breaks off and hangs; tools raise, hang or
return much; runs are aborted, cancelled and left to their deadlines; every agent keeps a session.
"""

import argparse
import asyncio
import gc
import json
import logging
import os
import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from swink import Agent, ExponentialBackoff, StreamOptions, Timeout, tool
from swink.errors import AgentError
from swink.memory import JsonlStore
from swink.providers.openai import OpenAIStreamFn

AT_ONCE = 8
FAULTS = ("text", "text", "call", "call", "refuse", "throttle", "broken", "rubbish", "cut", "close", "hang")


@tool
async def act(how: str) -> Any:
    """Do it."""
    if how == "raise":
        raise ValueError("x" * 10_000)
    if how == "hang":
        await asyncio.sleep(600)
    return list(range(3_000)) if how == "much" else how


def _chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return (
        b"data: "
        + json.dumps({"id": "c", "object": "chat.completion.chunk", "choices": [choice]}).encode()
        + b"\n\n"
    )


def _call() -> bytes:
    how = random.choice(("raise", "hang", "much", "say"))
    function = {"name": "act", "arguments": json.dumps({"how": how})}
    call = {"index": 0, "id": f"call_{random.random()}", "type": "function", "function": function}
    return _chunk({"tool_calls": [call]}) + _chunk({}, "tool_calls") + b"data: [DONE]\n\n"


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
        )
        await reader.readexactly(length)
        fault = random.choice(FAULTS)
        status = {"refuse": b"400 Bad", "throttle": b"429 Slow", "broken": b"500 Broken"}.get(
            fault, b"200 OK"
        )
        body = {
            "text": _chunk({"content": "Hello."}) + _chunk({}, "stop") + b"data: [DONE]\n\n",
            "call": _call(),
            "rubbish": os.urandom(5_000),
            "cut": _chunk({"content": "Hel"}),
            "hang": _chunk({"content": "Hel"}),
        }.get(fault, b'{"error":{"message":"no"}}')
        if fault != "close":
            writer.write(
                b"HTTP/1.1 "
                + status
                + b"\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
                + body
            )
            await writer.drain()
        if fault == "hang":
            await reader.read()
    except (OSError, asyncio.IncompleteReadError):
        pass  # the client has gone
    finally:
        writer.close()


async def _converse(store: JsonlStore, fn: Any) -> str:
    """One short conversation; returns how it ended."""
    session = await store.create()
    retry, options = (
        ExponentialBackoff(max_attempts=2, base_delay=0.01),
        StreamOptions(timeout=Timeout(first=1, idle=1)),
    )
    agent = Agent("openai:gpt-5", stream_fn=fn, tools=[act], session=session, retry=retry, options=options)
    ending = "none"
    for _ in range(3):
        run = asyncio.ensure_future(agent.run("go", deadline=random.choice((0.2, 1.0, 3.0))))
        chance = random.random()
        if chance < 0.3:
            await asyncio.sleep(chance / 10)
            agent.abort() if chance < 0.2 else run.cancel()
        try:
            ending = (await run).stop_reason
        except (AgentError, asyncio.CancelledError) as error:
            ending = type(error).__name__
    await store.delete(session.id)
    return ending


def _figures() -> dict[str, int]:
    gc.collect()
    kilobytes = next(
        int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines() if "VmRSS" in line
    )
    return {
        "memory, MB": kilobytes // 1024,
        "open files": len(os.listdir("/proc/self/fd")),
        "tasks": len(asyncio.all_tasks()),
        "threads": threading.active_count(),
    }


async def _soak(seconds: float) -> int:
    endings: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        server = await asyncio.start_server(_serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        fn = OpenAIStreamFn(base_url=f"http://127.0.0.1:{port}/v1", api_key="soak-key-0123456789")
        store = JsonlStore(folder)

        async def work(until: float) -> None:
            while time.monotonic() < until:
                ending = await _converse(store, fn)
                endings[ending] = endings.get(ending, 0) + 1

        async def phase(length: float) -> dict[str, int]:
            until = time.monotonic() + length
            await asyncio.gather(*(work(until) for _ in range(AT_ONCE)))
            await asyncio.sleep(7)  # idle threads end after five seconds
            return _figures()

        before = await phase(seconds / 4)
        after = await phase(seconds)
        await fn.aclose()
        server.close()
    allowed = {"memory, MB": before["memory, MB"] // 5 + 10, "open files": 5, "tasks": 2, "threads": 4}
    grown = [name for name in before if after[name] > before[name] + allowed[name]]
    for name in before:
        print(
            f"{name:12} {before[name]:6} at the start {after[name]:6} at the end{'  GROWN' * (name in grown)}"
        )
    print(
        "conversations that ended with:",
        ", ".join(f"{name} {count}" for name, count in sorted(endings.items())),
    )
    return bool(grown)


def main() -> int:
    """Print the figures at the start and at the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    logging.disable(logging.WARNING)
    random.seed(24)
    return asyncio.run(_soak(parser.parse_args().seconds))


if __name__ == "__main__":
    sys.exit(main())
