"""What a served agent costs beside a bare ASGI application that sends the same bytes on the same server.

    python benchmarks/serve.py [--quick] [--rounds 5]

The server is uvicorn. `ready` is a run whose deltas are all there, `paced` are 20 runs whose deltas come 50 a
second: CPU of the server for each event, through the native door and of the bare application. `idle` is what
1,000 streams without events take of the server's memory if all read one run, `runs` if each has a run of its
own. `together` are 200 runs of 200 deltas at once: the slowest client's wait over the median.
"""

import argparse
import asyncio
import gc
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PACE = 50
PACED_RUNS = 20
LIMITS = {"ready": "3", "paced": "3", "idle": "2", "runs": "", "together": "2"}

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a tenth of the work")
    parser.add_argument("--server", choices=["swink", "bare"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.server:
        asyncio.run(serve(options.server, Path(options.folder)))
        return
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(Path(folder), 10 if options.quick else 1, options.rounds))


async def measure(folder: Path, part: int, rounds: int) -> None:
    """All figures, each of both applications in turn."""
    print("| work | swink | bare | ratio | limit |")
    print("|---|---:|---:|---:|---:|")
    for name, deltas, runs in (("ready", 20_000 // part, 1), ("paced", 500 // part, PACED_RUNS)):
        with server("swink", folder) as swink:
            sent = await (await Client(swink).run(f"{name} {deltas}")).read()
            (folder / "sent").write_bytes(sent)
            count = sent.count(b"\nid:") + sent.startswith(b"id:")
            with server("bare", folder) as bare:
                costs = [
                    (await spending(swink, f"{name} {deltas}", runs), await spending(bare, name, runs))
                    for _ in range(rounds + 1)
                ][1:]
        ours, theirs = (statistics.median(cost[at] for cost in costs) / count / runs * 1e6 for at in (0, 1))
        show(f"{name}: CPU of an event, µs", name, ours, theirs)
    idle = 1_000 // part
    for name, runs in (("idle", 1), ("runs", idle)):
        with server("swink", folder) as swink, server("bare", folder) as bare:
            ours, theirs = await memory(swink, idle, runs), await memory(bare, idle, runs)
            show(f"{name}: memory of {idle:,} streams, kB each", name, ours, theirs)
    with server("swink", folder) as swink, server("bare", folder) as bare:
        waits = await together(swink, 200 // part, "together 200")
        await together(bare, 1, "ready")
    show("together: slowest and median wait, s", "together", max(waits), statistics.median(waits))


def show(what: str, name: str, ours: float, theirs: float) -> None:
    """One row of the table."""
    print(f"| {what} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.2f} | {LIMITS[name]} |", flush=True)


# The client


class Client:
    """Asks one of both applications over sockets, with as little work as can be."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def send(self, method: str, path: str, body: Any = None) -> Stream:
        """A request that is on its way."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        data = b"" if body is None else json.dumps(body).encode()
        kind = f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n" if data else ""
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nConnection: close\r\n{kind}\r\n"
        writer.write(head.encode() + data)
        return reader, writer

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of an answer."""
        answer = await Answer(*await self.send(method, path, body)).read()
        return json.loads(answer)

    async def run(self, input: str) -> "Answer":
        """The events of a new run."""
        return Answer(*await self.send("GET", await self.start(input)))

    async def start(self, input: str) -> str:
        """The path of the events of a new run."""
        conversation = (await self.ask("POST", "/conversations", {}))["id"]
        run = (await self.ask("POST", f"/conversations/{conversation}/runs", {"input": input}))["run_id"]
        return f"/conversations/{conversation}/runs/{run}/events"


class Answer:
    """An answer as it arrives."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def head(self) -> bytes:
        """Its head, once it is there."""
        return await self._reader.readuntil(b"\r\n\r\n")

    async def read(self) -> bytes:
        """The whole body, without what HTTP puts between."""
        head = await self.head()
        assert head.split()[1] in (b"200", b"201", b"202"), head
        body = bytearray()
        if b"chunked" in head.lower():
            while size := int(await self._reader.readline(), 16):
                body += (await self._reader.readexactly(size + 2))[:-2]
        else:
            body += await self._reader.read()
        self._writer.close()
        return bytes(body)

    async def drain(self) -> None:
        """Read to the end and keep nothing."""
        while await self._reader.read(1 << 18):
            pass
        self._writer.close()

    def leave(self) -> None:
        """Go away before the end."""
        self._writer.close()


async def spending(port: int, input: str, runs: int) -> float:
    """CPU seconds of the server while that many clients read the events of a run each."""
    client = Client(port)
    before = (await client.ask("GET", "/spent"))["cpu"]
    answers = await asyncio.gather(*(client.run(input) for _ in range(runs)))
    await asyncio.gather(*(answer.drain() for answer in answers))
    return (await client.ask("GET", "/spent"))["cpu"] - before


async def memory(port: int, streams: int, runs: int) -> float:
    """What one stream without events takes of the server's memory, in kB, if they read that many runs."""
    client = Client(port)
    for answer in [await client.run("idle 0") for _ in range(20)]:
        await answer.head()
        answer.leave()
    before = (await client.ask("GET", "/spent"))["kB"]
    paths = [await client.start("idle 0") for _ in range(runs)]
    answers: list[Answer] = []
    for number in range(streams):
        answers.append(Answer(*await client.send("GET", paths[number % runs])))
        await answers[-1].head()
    after = (await client.ask("GET", "/spent"))["kB"]
    for answer in answers:
        answer.leave()
    return (after - before) / streams


async def together(port: int, runs: int, input: str) -> list[float]:
    """Seconds that each of many clients waits for the end of its run."""
    client = Client(port)

    async def wait() -> float:
        started = time.perf_counter()
        await (await client.run(input)).drain()
        return time.perf_counter() - started

    return await asyncio.gather(*(wait() for _ in range(runs)))


# The servers


@contextmanager
def server(kind: str, folder: Path) -> Iterator[int]:
    """One of both applications in a process of its own; gives its port."""
    command = [sys.executable, __file__, "--server", kind, "--folder", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.stdin.close()


async def serve(kind: str, folder: Path) -> None:
    """Serve until the standard input closes."""
    import uvicorn

    app = measured(agent(folder) if kind == "swink" else Bare(folder))
    config = uvicorn.Config(app, log_level="critical", access_log=False, backlog=4096)
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listening:
        running = uvicorn.Server(config)
        task = asyncio.create_task(running.serve([listening]))
        print(listening.getsockname()[1], flush=True)
        await asyncio.to_thread(sys.stdin.read)
        running.should_exit = running.force_exit = True
        await task


def measured(app: Any) -> Callable[..., Awaitable[None]]:
    """The application, and at `/spent` what it has cost so far."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"] != "/spent":
            await app(scope, receive, send)
            return
        gc.collect()
        await send_json(send, {"cpu": time.process_time(), "kB": resident()})

    return answer


def resident() -> float:
    """The memory of this process, in kB."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024


def agent(folder: Path) -> Any:
    """Agents whose model does what the prompt says."""
    from swink import Agent
    from swink.memory import JsonlStore
    from swink.serve import ServeLimits, agent_app
    from swink.stream import Done, Start, TextDelta, TextEnd, TextStart

    async def model(spec: Any, context: Any, options: Any) -> AsyncIterator[Any]:
        kind, deltas = context.messages[-1].text.split()
        yield Start()
        yield TextStart(0)
        if kind == "idle":
            await asyncio.sleep(600)
        for _ in range(int(deltas)):
            if kind == "paced":
                await asyncio.sleep(1 / PACE)
            elif kind == "together":
                await asyncio.sleep(0)
            yield TextDelta(0, "token ")
        yield TextEnd(0)
        yield Done()

    def make(request: Any) -> Agent:
        return Agent("bench:model", stream_fn=model)

    limits = ServeLimits(runs=5_000, runs_per_caller=5_000, events=50_000, idle_seconds=1)
    return agent_app(make, store=JsonlStore(folder / "sessions"), limits=limits)


class Bare:
    """Sends the recorded bytes, one message of ASGI for each event."""

    def __init__(self, folder: Path) -> None:
        sent = folder / "sent"
        self._frames = [frame + b"\n\n" for frame in sent.read_bytes().split(b"\n\n")[:-1]]
        self._inputs: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path: str = scope["path"]
        if scope["type"] != "http":
            return
        if scope["method"] == "POST":
            body = json.loads((await receive())["body"])
            self._inputs.append(body.get("input", ""))
            await send_json(send, {"id": "one", "run_id": str(len(self._inputs) - 1)})
            return
        kind = self._inputs[int(path.split("/")[4])].split()[0]
        headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if kind == "idle":
            await send({"type": "http.response.body", "body": self._frames[0], "more_body": True})
            while (await receive())["type"] != "http.disconnect":
                pass
            return
        for frame in self._frames:
            if kind == "paced":
                await asyncio.sleep(1 / PACE)
            await send({"type": "http.response.body", "body": frame, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def send_json(send: Any, value: Any) -> None:
    """A whole answer."""
    body = json.dumps(value).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


if __name__ == "__main__":
    main()
