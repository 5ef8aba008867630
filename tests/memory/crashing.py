"""The crash harness: children append turns and are killed; what they had acknowledged must be there.

    python -m tests.memory.crashing STORE FOLDER TIMES

A warm process forks the children. Half of them kill themselves at a write point: before, after or in the middle
of the n-th call of the operating system that a store makes from Python; the others are killed at random. One line
of JSON says how many were killed and what was wrong.
"""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from itertools import product
from typing import Any

from swink import AssistantMessage, UserMessage
from swink.errors import SessionError
from swink.memory import JsonlStore, SqliteStore, SyncStore

TURNS = 3
WRITE_POINTS = ["open", "write", "fdatasync", "fsync", "link", "unlink", "ftruncate", "rename", "replace"]
STORES: dict[str, Callable[[str], SyncStore]] = {
    "jsonl": lambda folder: JsonlStore(folder).sync,
    "sqlite": lambda folder: SqliteStore(os.path.join(folder, "sessions.db")).sync,
}
real_write = os.write


class Points:
    """Counts the calls that change files, and kills the process at one of them."""

    def __init__(self, last: int = -1, how: str = "") -> None:
        self.count, self._last, self._how = 0, last, how
        for name in WRITE_POINTS:
            if hasattr(os, name):
                setattr(os, name, self._counted(name, getattr(os, name)))

    def _counted(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **keywords: Any) -> Any:
            self.count += 1
            if self.count != self._last:
                return call(*args, **keywords)
            if self._how == "after":
                call(*args, **keywords)
            elif self._how == "half" and name == "write":
                call(args[0], args[1][: random.randrange(len(args[1]))])
            return os.kill(os.getpid(), signal.SIGKILL)

        return counted


def work(store: SyncStore, id: str, first: int, pipe: int) -> None:
    """What a child does: turns, each acknowledged, and then a fork."""
    session = store.open(id)
    for number in range(first, first + TURNS):
        size = random.choice([1, 10, 3000])
        session.append(
            [UserMessage(f"{number} question"), AssistantMessage(f"{number} answer " * size, "test", "m")]
        )
        real_write(pipe, b"%d\n" % number)
    store.fork(id)


def child(make: Callable[[], SyncStore], id: str, first: int, point: tuple[int, str] | None) -> list[int]:
    """Run a child, kill it, and return what it has acknowledged."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        try:
            os.close(reading)
            if point is not None:
                Points(*point)
            work(make(), id, first, writing)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        first_ones = b"".join([pipe.readline() for _ in range(random.randrange(TURNS))]) if not point else b""
        if point is None:
            time.sleep(random.uniform(0, 0.005))
            os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        return [int(line) for line in (first_ones + pipe.read()).split()]


def problems_of(store: SyncStore, id: str, acknowledged: set[int], tried: int) -> list[str]:
    """What is wrong after a crash; afterwards the session has one turn more."""
    problems: list[str] = []
    session = store.open(id)
    texts = [message.text for message in session.messages]
    numbers = [int(text.split()[0]) for text in texts]
    if numbers[::2] != numbers[1::2] or len(set(numbers)) * 2 != len(numbers):
        problems.append(f"half a turn is there: {numbers[-7:]}")
    if missing := acknowledged - set(numbers):
        problems.append(f"acknowledged turns are missing: {sorted(missing)}")
    if numbers != sorted(numbers):
        problems.append("turns are in disorder")
    if session.meta.messages != len(texts):
        problems.append(f"the metadata count {session.meta.messages} messages, there are {len(texts)}")
    session.append([UserMessage(f"{tried} question"), AssistantMessage(f"{tried} answer", "test", "m")])
    acknowledged.add(tried)
    if store.open(id).messages[-1].text != f"{tried} answer":
        problems.append("the next append is not there")
    for meta in store.list():
        whole = store.open(meta.id)
        if meta != whole.meta or (meta.parent and meta.forked_at != meta.messages):
            problems.append(f"the list has {meta}, the session {whole.meta}")
        if meta.parent:
            store.delete(meta.id)
    return problems


def points_of(make: Callable[[], SyncStore], id: str) -> list[tuple[int, str]]:
    """Every write point of a child's work."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        try:
            points = Points()
            work(make(), id, 0, os.open(os.devnull, os.O_WRONLY))
            real_write(writing, b"%d" % points.count)
        finally:
            os._exit(0)
    os.waitpid(process, 0)
    os.close(writing)
    with os.fdopen(reading, "rb") as count:
        calls = int(count.read())
    return list(product(range(1, calls + 1), ["before", "half", "after"]))


def main(name: str, folder: str, times: int) -> None:
    """Crash, look, and go on with the same session."""
    make = lambda: STORES[name](folder)  # noqa: E731
    store = make()
    store.create(id="other")
    points: list[tuple[int, str]] = points_of(make, "other")
    store.delete("other")
    for meta in store.list():
        store.delete(meta.id)
    id, acknowledged, problems, tried = store.create().id, set[int](), list[str](), 0
    at_points = min(len(points), max(times // 2, times - 100)) if name == "jsonl" else 0
    chosen: list[tuple[int, str] | None] = [points[n * len(points) // at_points] for n in range(at_points)]
    chosen += [None] * (times - len(chosen))
    for point in chosen:
        store.close()
        acknowledged |= set(child(make, id, tried, point))
        tried += TURNS
        try:
            problems += [f"{point}: {problem}" for problem in problems_of(store, id, acknowledged, tried)]
        except SessionError as error:
            problems.append(f"{point}: {error!r}")
        tried += 1
    store.close()
    print(json.dumps({"killed": len(chosen), "acknowledged": len(acknowledged), "problems": problems}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
