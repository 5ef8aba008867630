"""Claims: one worker at a time runs a session, and one that was believed dead is refused."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest
from tests.patience import wait_until

from swink import Agent, ToolCall, tool
from swink.errors import InvalidInput, MisuseError, SessionBusy, SessionConflict, SessionNotFound
from swink.memory import MemoryStore, PostgresStore, SqliteStore, Store
from swink.messages import UserMessage
from swink.testing import ScriptedModel


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"SqliteStore({str(tmp_path / 'sessions.db')!r})"
    dsn = request.getfixturevalue("postgres")
    return f"PostgresStore({dsn!r}, schema='test_{token_hex(8)}')"


def opened(address: str) -> Store:
    return eval(address, {"SqliteStore": SqliteStore, "PostgresStore": PostgresStore})


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    store = opened(address)
    yield store
    store.sync.close()


@pytest.fixture
def other(address: str) -> Iterator[Store]:
    store = opened(address)
    yield store
    store.sync.close()


def said(store: Store, id: str) -> list[str]:
    return [message.text for message in store.sync.open(id).messages]


def wait_until_free(store: Store, id: str) -> Any:
    """The claim of another worker, as soon as the one before has run out."""
    while True:
        claim = store.sync.claim(id, seconds=60)
        try:
            return claim, claim.__enter__()
        except SessionBusy:
            time.sleep(0.02)


def test_a_claimed_session_is_busy_for_everybody_else(store: Store, other: Store):
    id = store.sync.create().id
    plain = other.sync.open(id)
    with store.sync.claim(id, seconds=60) as session:
        session.append([UserMessage("mine")])
        with pytest.raises(SessionBusy, match=rf"held by process {os.getpid()} on .* for \d+ more seconds"):
            with other.sync.claim(id):
                pass
        with pytest.raises(SessionBusy, match="try again later"):
            plain.append([UserMessage("not now")])
        session.append([UserMessage("mine too")])
    with other.sync.claim(id) as session:
        session.append([UserMessage("theirs")])
    assert said(store, id) == ["mine", "mine too", "theirs"]


def test_a_session_that_was_given_back_is_open_to_all(store: Store, other: Store):
    id = store.sync.create().id
    with store.sync.claim(id):
        pass
    other.sync.open(id).append([UserMessage("free")])
    assert said(store, id) == ["free"]


def test_a_claim_that_has_ended_writes_nothing_more(store: Store):
    id = store.sync.create().id
    with store.sync.claim(id) as session:
        session.append([UserMessage("inside")])
    with pytest.raises(SessionConflict, match=r"has ended: .*Claim it again"):
        session.append([UserMessage("outside")])
    assert said(store, id) == ["inside"]


def test_a_claim_outlasts_its_seconds_while_its_worker_lives(store: Store, other: Store):
    id = store.sync.create().id
    backend: Any = store.sync.backend
    renewed = threading.Event()
    original = backend.renew

    def renew(*arguments: Any) -> bool:
        held = original(*arguments)
        renewed.set()
        return held

    backend.renew = renew
    # Far longer than a renewal takes on a busy machine, and renewed after a third of it.
    with store.sync.claim(id, seconds=3) as session:
        for _ in range(2):
            renewed.clear()
            assert renewed.wait(60)
        session.append([UserMessage("still here")])
    assert said(store, id) == ["still here"]


def test_a_claim_that_ran_out_is_taken_over_and_the_first_is_refused(
    store: Store, other: Store, caplog: pytest.LogCaptureFixture
):
    id = store.sync.create().id
    backend: Any = store.sync.backend
    backend.renew = lambda *arguments: True  # as if its process had been stopped
    with store.sync.claim(id, seconds=0.05) as zombie:
        claim, session = wait_until_free(other, id)
        with pytest.raises(
            SessionConflict, match="another worker took over; nothing of this append is saved"
        ):
            zombie.append([UserMessage("from the grave")])
        session.append([UserMessage("alive")])
    # The zombie has given nothing back that is not its own.
    session.append([UserMessage("and well")])
    claim.__exit__(None, None, None)
    assert said(store, id) == ["alive", "and well"]


def test_a_claim_that_was_lost_is_told_in_the_log(
    store: Store, other: Store, caplog: pytest.LogCaptureFixture
):
    id = store.sync.create().id
    backend: Any = store.sync.backend
    original, backend.renew = backend.renew, lambda *arguments: True
    with store.sync.claim(id, seconds=0.05):
        claim, _ = wait_until_free(other, id)
        backend.renew = original
        wait_until(lambda: "another worker has taken over" in caplog.text)
        claim.__exit__(None, None, None)


def test_an_expired_claim_that_nobody_wants_is_still_good(store: Store, other: Store):
    id = store.sync.create().id
    backend: Any = store.sync.backend
    backend.renew = lambda *arguments: True
    with store.sync.claim(id, seconds=0.001) as session:
        time.sleep(0.01)
        session.append([UserMessage("late")])
    assert said(store, id) == ["late"]


def test_the_database_away_at_the_end_does_not_hide_what_happened(
    store: Store, caplog: pytest.LogCaptureFixture
):
    id = store.sync.create().id
    backend: Any = store.sync.backend

    def give_back(*arguments: Any) -> bool:
        raise SessionBusy("the server is away")

    backend.give_back = give_back
    with pytest.raises(ZeroDivisionError), store.sync.claim(id):
        raise ZeroDivisionError
    assert "the server is away" in caplog.text


async def test_the_async_door_does_the_same(store: Store, other: Store):
    id = (await store.create()).id
    async with store.claim(id, seconds=60) as session:
        await session.append([UserMessage("mine")])
        with pytest.raises(SessionBusy):
            async with other.claim(id):
                pass
    with pytest.raises(SessionConflict):
        await session.append([UserMessage("outside")])
    async with other.claim(id) as session:
        await session.append([UserMessage("theirs")])
    assert said(store, id) == ["mine", "theirs"]


@pytest.mark.parametrize("moment", ["claim", "read", "append", "give_back"])
async def test_a_cancelled_claim_is_given_back(store: Store, other: Store, moment: str):
    id = (await store.create()).id
    backend: Any = store.sync.backend
    reached, go_on = threading.Event(), threading.Event()
    original = getattr(backend, moment)

    def slow(*arguments: Any, **options: Any) -> Any:
        reached.set()
        assert go_on.wait(60)
        return original(*arguments, **options)

    setattr(backend, moment, slow)

    async def work() -> None:
        async with store.claim(id, seconds=600) as session:
            await session.append([UserMessage("hello")])

    task = asyncio.create_task(work())
    while not reached.is_set():
        await asyncio.sleep(0.001)
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    claim, _ = await asyncio.to_thread(wait_until_free, other, id)
    claim.__exit__(None, None, None)
    assert said(other, id) == (["hello"] if moment in ("append", "give_back") else [])


def test_a_session_that_is_not_there_cannot_be_claimed(store: Store):
    with pytest.raises(SessionNotFound), store.sync.claim("nothing"):
        pass
    with pytest.raises(InvalidInput), store.sync.claim("../x"):
        pass


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), "x"])
def test_seconds_that_are_none_are_refused(store: Store, seconds: Any):
    with pytest.raises(InvalidInput, match="seconds"), store.sync.claim("x", seconds=seconds):
        pass


def test_a_store_without_claims_says_so():
    store = MemoryStore()
    id = store.sync.create().id
    with pytest.raises(MisuseError, match="use SqliteStore or PostgresStore"), store.sync.claim(id):
        pass


async def run_to_end(
    store: Store,
    id: str,
    log: Path,
    names: str,
    *,
    seconds: float = 60,
    stop_in: str = "",
    until: asyncio.Event | None = None,
) -> str:
    """Claim a session and run it: a model that calls a tool once for each name, which leaves a line."""

    @tool
    async def count(name: str) -> str:
        with open(log, "a") as file:
            file.write(f"{name}\n")
        if name == stop_in:
            print("stopping", flush=True)
            os.kill(os.getpid(), signal.SIGSTOP)
        if until is not None:
            await until.wait()
        return f"counted {name}"

    model = ScriptedModel([*([ToolCall(name, "count", {"name": name})] for name in names), "done"])
    async with store.claim(id, seconds=seconds) as session:
        agent = Agent("test:m", stream_fn=model, tools=[count], session=session)
        return (await agent.run(None if agent.has_pending else "go")).text


ZOMBIE = """
import asyncio, sys
from pathlib import Path
from swink.errors import SessionConflict
from tests.memory.test_leases import opened, run_to_end
store, id, log = opened(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
try:
    asyncio.run(run_to_end(store, id, log, "abc", seconds=0.5, stop_in="b"))
except SessionConflict as error:
    print("refused:", error, flush=True)
store.sync.close()
"""


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no SIGSTOP")
def test_a_worker_stopped_past_its_lease_runs_no_tool_any_more(store: Store, address: str, tmp_path: Path):
    id, log = store.sync.create().id, tmp_path / "log"
    zombie = subprocess.Popen(
        [sys.executable, "-c", ZOMBIE, address, id, str(log)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=str(Path(__file__).parents[2]),
    )
    try:
        assert zombie.stdout is not None
        assert zombie.stdout.readline() == "stopping\n"
        claim, _ = wait_until_free(store, id)
        claim.__exit__(None, None, None)
        assert asyncio.run(run_to_end(store, id, log, "c")) == "done"
        os.kill(zombie.pid, signal.SIGCONT)
        assert zombie.communicate(timeout=100)[0].startswith("refused: the claim on session")
    finally:
        zombie.kill()
        zombie.wait()
    assert log.read_text().split() == ["a", "b", "c"]
    results = [text for text in said(store, id) if not text.startswith(("go", "done"))]
    assert [text.split(":")[0] for text in results if text] == ["counted a", "outcome unknown", "counted c"]


async def test_of_two_workers_racing_for_one_run_one_works(store: Store, other: Store, tmp_path: Path):
    id, log = store.sync.create().id, tmp_path / "log"
    refused = asyncio.Event()

    async def work(mine: Store) -> str:
        try:
            return await run_to_end(mine, id, log, "ab", until=refused)
        except SessionBusy:
            refused.set()
            return "busy"

    assert sorted(await asyncio.gather(work(store), work(other))) == ["busy", "done"]
    assert log.read_text().split() == ["a", "b"]
