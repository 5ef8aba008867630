"""Disks and clocks that misbehave: read-only, slow, shared by ten writers, and a time that goes back."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.counts import in_cells
from tests.scripted import make

from swink import UserMessage
from swink.errors import SessionConflict
from swink.memory import JsonlStore, SqliteStore, Store
from swink.memory.inmemory import _Backend

NOBODY = """
import os, sys
from swink import UserMessage
from swink.errors import SessionError
from swink.memory import SqliteStore
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
store = SqliteStore(sys.argv[1]).sync
work = {
    "create": store.create,
    "list": store.list,
    "append": lambda: store.open("kept").append([UserMessage("more")]),
}[sys.argv[2]]
try:
    work()
except SessionError as error:
    print(type(error).__name__, error)
"""


@pytest.fixture
def read_only() -> Iterator[Path]:
    """A directory with a store that nobody may write to; outside of pytest's, which others cannot enter."""
    directory = Path(tempfile.mkdtemp())
    store = SqliteStore(directory / "sessions.db").sync
    store.create(id="kept").append([UserMessage("a")])
    store.close()
    (directory / "sessions.db").chmod(0o444)
    directory.chmod(0o555)
    yield directory
    directory.chmod(0o700)
    shutil.rmtree(directory)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
@in_cells(
    ("name", "work"),
    [("new.db", "create"), ("sessions.db", "create"), ("sessions.db", "append"), ("sessions.db", "list")],
    every=2,
)
def test_a_read_only_disk_is_told_with_what_to_do(read_only: Path, name: str, work: str):
    done = subprocess.run(
        [sys.executable, "-c", NOBODY, str(read_only / name), work],
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("SessionError"), done.stdout
    assert "read-only" in done.stdout
    assert "chmod" in done.stdout
    assert sorted(os.listdir(read_only)) == ["sessions.db"]


def test_ten_writers_with_connections_of_their_own_lose_nothing(tmp_path: Path):
    path = tmp_path / "sessions.db"
    SqliteStore(path).sync.create(id="shared")
    failures: list[BaseException] = []

    def write(name: int) -> None:
        store = SqliteStore(path).sync
        own = store.create(id=f"own-{name}")
        for number in range(3):
            own.append([UserMessage(f"{number}")])
            while True:
                try:
                    store.open("shared").append([UserMessage(f"{name} {number}")])
                    break
                except SessionConflict:
                    continue
        store.close()

    def tried(name: int) -> None:
        try:
            write(name)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=tried, args=(name,)) for name in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    store = SqliteStore(path).sync
    texts = [message.text for message in store.open("shared").messages]
    assert sorted(texts) == sorted(f"{name} {number}" for name in range(10) for number in range(3))
    for name in range(10):
        assert [text for text in texts if text.startswith(f"{name} ")] == [f"{name} {n}" for n in range(3)]
        assert len(store.open(f"own-{name}").messages) == 3
    store.close()


class SlowBackend(_Backend):
    """An append takes until the event loop has gone round many times."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.waited: list[bool] = []

    def append(self, id: str, after: int, records: Any, *, durable: bool = True) -> Any:
        self.begun.set()
        self.waited.append(self.may_end.wait(60))
        return super().append(id, after, records, durable=durable)


async def test_a_disk_that_is_slow_does_not_hold_up_the_event_loop():
    backend = SlowBackend()
    session = await Store(backend).create()
    agent, _ = make(["one"], session=session)

    async def go_round() -> None:
        while not backend.begun.is_set():
            await asyncio.sleep(0)
        for _ in range(50):
            await asyncio.sleep(0)
        backend.may_end.set()

    await asyncio.gather(agent.run("a"), go_round())
    assert backend.waited
    assert all(backend.waited)
    assert [message.text for message in session.messages] == ["a", "one"]


@pytest.mark.parametrize("kind", [JsonlStore, SqliteStore])
async def test_a_clock_that_goes_back_a_day_breaks_no_session(
    kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = kind(tmp_path / "sessions")
    session = await store.create()
    agent, _ = make(["one", "two"], session=session)
    await agent.run("a")
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() - 86_400)
    result = await agent.run("b", deadline=60)
    assert result.stop_reason == "stop"
    again = await store.open(session.id)
    assert [message.text for message in again.messages] == ["a", "one", "b", "two"]
    assert again.meta.updated < again.meta.created
    other = await store.create()
    await other.append([UserMessage("later by name only")])
    assert {meta.id for meta in await store.list()} == {session.id, other.id}
    assert [hit.session for hit in await store.search("two")] == [session.id]
    await store.aclose()
